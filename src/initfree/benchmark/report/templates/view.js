"use strict";
// The view of reconstructions: filters, the list of runs, the scene, the curves.
const scenes = JSON.parse(document.getElementById("scenes").textContent);
const FIELDS = { set: "set", method: "method", formulation: "formulation", init: "initialisation", loss: "loss", rotations: "rotations", min_obs: "min. obs." };
// Exact data fit to the last digit; below this a curve says nothing more.
const LEAST = 1e-8;
const FAILED = "#d1495b", GOOD = "#1a9e8f";
const first = scenes.upgrades.includes("linear1997") ? "linear1997" : scenes.upgrades[0];  // that of the claims
const state = { upgrade: first, outcome: "", chosen: null };
const named = (value) => scenes.names[value] ?? (value || "–");
const digits = (value, n = 1) => (value === null || value === undefined ? "–" : Math.abs(value) >= 1e4 ? value.toExponential(1) : value.toFixed(n));

function shownUpgrade(job) {
  // Methods that have no choice of upgrade show the one they have.
  return state.upgrade in job.upgrades ? state.upgrade : Object.keys(job.upgrades)[0];
}
function passing() {
  return scenes.jobs.filter((job) => {
    if (job.method === "initfree" && !(state.upgrade in job.upgrades)) return false;
    if (Object.keys(FIELDS).some((field) => state[field] && String(job[field]) !== state[field])) return false;
    return !state.outcome || (job.upgrades[shownUpgrade(job)].failed ? "failed" : "succeeded") === state.outcome;
  });
}

function makeFilters() {
  const form = document.getElementById("filters");
  const add = (field, title, values, all) => {
    const label = document.createElement("label"), select = document.createElement("select");
    label.textContent = title;
    select.name = field;
    if (all) select.append(new Option("all", ""));
    values.forEach((value) => select.append(new Option(named(value), value)));
    select.value = state[field];
    select.addEventListener("change", () => { state[field] = select.value; update(); });
    label.append(select);
    form.append(label);
  };
  for (const [field, title] of Object.entries(FIELDS)) {
    const values = [...new Set(scenes.jobs.map((job) => String(job[field])))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    state[field] = "";
    if (values.length > 1) add(field, title, values.filter((v) => v !== ""), true);
  }
  add("outcome", "outcome", ["succeeded", "failed"], true);
  add("upgrade", "upgrade shown", scenes.upgrades, false);
  const reset = document.createElement("button");
  reset.type = "button";
  reset.textContent = "Reset";
  reset.addEventListener("click", () => choose({}));
  form.append(reset);
}

// What a link of a table asks for: a run, or values of the filters.
function choose(wanted) {
  const upgrade = wanted.upgrade && scenes.upgrades.includes(wanted.upgrade) ? wanted.upgrade : first;
  Object.assign(state, Object.fromEntries(Object.keys(FIELDS).map((f) => [f, wanted[f] ?? ""])), { outcome: "", upgrade, chosen: wanted.job ?? null });
  document.querySelectorAll("#filters select").forEach((select) => { select.value = state[select.name]; if (select.selectedIndex < 0) { select.value = ""; state[select.name] = ""; } });
  update();
  if (wanted.job && state.chosen !== wanted.job) document.getElementById("chosen").textContent = "The reconstruction of that run is not in this page.";
}

function update() {
  const jobs = passing();
  const body = document.querySelector("#runs tbody");
  document.querySelector("#runs thead").innerHTML = "<tr><th>Set</th><th>Formulation</th><th>Init.</th><th>Loss</th><th class='number'>Rot. A20</th><th class='number'>RMSE</th></tr>";
  body.replaceChildren(...jobs.map((job) => {
    const row = document.createElement("tr"), figures = job.upgrades[shownUpgrade(job)];
    const words = [`${named(job.set)}${job.min_obs === 3 ? "" : ` ≥${job.min_obs}`}`, named(job.formulation || job.method) + (job.rotations === "estimated" ? " est." : ""), job.init || "–", job.loss || "–"];
    words.forEach((text) => row.insertCell().append(text));
    [digits(figures.rotation), digits(figures.rmse, 2)].forEach((text) => { const cell = row.insertCell(); cell.className = `number ${figures.failed ? "bad" : "good"}`; cell.append(text); });
    row.dataset.job = job.job;
    row.addEventListener("click", () => { state.chosen = job.job; show(jobs); });
    return row;
  }));
  const failed = jobs.filter((job) => job.upgrades[shownUpgrade(job)].failed).length;
  document.getElementById("count").textContent = `${jobs.length} runs, ${failed} failed`;
  if (!jobs.some((job) => job.job === state.chosen)) state.chosen = jobs.length ? jobs[0].job : null;
  show(jobs);
  // Only the list scrolls: the page stays where its reader is.
  const row = document.querySelector("#runs tr.chosen"), list = row?.closest(".rows");
  if (row) list.scrollTop = row.offsetTop - list.clientHeight / 2;
}

function decode(model, box) {
  return { at: unpack.places(model.centres, box), turns: unpack.turns(model.turns), points: unpack.places(model.points, box) };
}
const view3d = scenes.jobs.length ? new SceneView(document.getElementById("view3d"), { up: [0, 0, 1], from: [45, 28] }) : null;
let lookedAt = null;

function show(jobs) {
  document.querySelectorAll("#runs tbody tr").forEach((row) => row.classList.toggle("chosen", row.dataset.job === state.chosen));
  const job = jobs.find((j) => j.job === state.chosen), words = document.getElementById("chosen");
  if (!job) { words.textContent = "No run passes the filters."; view3d.show([]); ["ose", "refinement"].forEach((s) => document.getElementById(`curve-${s}`).replaceChildren()); return; }
  const upgrade = shownUpgrade(job), figures = job.upgrades[upgrade], truth = scenes.truths[job.truth];
  const real = decode(truth, truth), estimate = decode(figures, truth), colour = figures.failed ? FAILED : GOOD;
  const away = estimate.points.filter((v) => Number.isNaN(v)).length / 3;
  const outcome = document.createElement("b");
  outcome.className = figures.failed ? "bad" : "good";
  outcome.textContent = figures.failed ? "failed" : "succeeded";
  words.replaceChildren(
    `${named(job.set)}, seed ${job.seed}, ${[named(job.formulation || job.method), job.init, job.loss && `loss ${job.loss}`, `min. obs. ${job.min_obs}`].filter(Boolean).join(", ")}; ${upgrade}: `, outcome,
    `; rotation A20 ${digits(figures.rotation)}, translation A20 ${digits(figures.translation)}, RMSE ${digits(figures.rmse, 2)}; OSE residual ${job.ose_residual ?? "–"}, refinement ${job.refine_residual ?? "–"} px` + (away ? `; ${away} of ${estimate.points.length / 3} landmarks out of view` : ""));
  const grey = theme.dark ? "#6b7685" : "#b4bcc8", reach = truth.side / 6, size = 0.1 * reach;
  // A new scene is looked at afresh; another run of the same keeps the reader's point of view.
  if (lookedAt !== job.truth) { view3d.home = { ...view3d.home, centre: truth.origin.map((v) => v + truth.side / 2), reach }; view3d.reset(); lookedAt = job.truth; }
  view3d.show([
    { kind: "points", at: real.points, colour: grey, size: 2.2, under: true }, { kind: "frusta", at: real.at, turns: real.turns, size, colour: grey, width: 3 },
    { kind: "points", at: estimate.points, colour, size: 1.5 }, { kind: "frusta", at: estimate.at, turns: estimate.turns, size, colour, width: 1.4 },
  ]);
  document.getElementById("view3d").dataset.job = job.job;
  showCurves(job, jobs);
}
function showCurves(job, jobs) {
  for (const [stage, title] of [["ose", "OSE cost / first"], ["refinement", "refinement cost / first"]]) {
    const relative = (j) => ({ x: j[stage].map((p) => p[0]), y: j[stage].map((p) => Math.max(LEAST, p[1] / (j[stage][0][1] || 1))) });
    const others = jobs.filter((j) => j[stage].length && j !== job).slice(0, 80);
    const colour = (j) => (j.upgrades[shownUpgrade(j)].failed ? FAILED : GOOD);
    const traces = others.map((j) => ({ ...relative(j), colour: colour(j), width: 1, opacity: 0.25 }));
    if (job[stage].length) traces.push({ ...relative(job), colour: colour(job), width: 3 });
    charts.lines(document.getElementById(`curve-${stage}`), { title, x: "iteration", log: true, series: traces });
  }
}

if (scenes.jobs.length) {
  makeFilters();
  update();
  document.addEventListener("themed", () => show(passing()));
  new ResizeObserver(() => show(passing())).observe(document.querySelector(".curves"));
}
for (const link of document.querySelectorAll("a[data-filter]")) {
  link.addEventListener("click", () => { if (scenes.jobs.length) choose(JSON.parse(link.dataset.filter)); });
}
