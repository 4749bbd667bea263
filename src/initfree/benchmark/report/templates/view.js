"use strict";
// The view of reconstructions: filters, the list of runs, the scene, the curves.
const scenes = JSON.parse(document.getElementById("scenes").textContent);
const FIELDS = { set: "set", method: "method", formulation: "formulation", init: "initialisation", loss: "loss", rotations: "rotations", min_obs: "min. obs." };
// Exact data fit to the last digit; below this a curve says nothing more.
const FLOOR = 1e-8;
const OUTSIDE = 65535, FAILED = "#d1495b", GOOD = "#1a9e8f";
const state = { upgrade: scenes.upgrades[0], outcome: "", chosen: null };
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
  const upgrade = wanted.upgrade && scenes.upgrades.includes(wanted.upgrade) ? wanted.upgrade : scenes.upgrades[0];
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

function decode(model, truth) {
  const bytes = Uint8Array.from(atob(model.data), (c) => c.charCodeAt(0));
  const raw = new Uint16Array(bytes.buffer);
  const place = (k) => (raw[k] === OUTSIDE ? null : [0, 1, 2].map((d) => truth.origin[d] + (truth.side * raw[k + d]) / 65534));
  const n = model.cameras;
  return {
    centres: Array.from({ length: n }, (_, k) => place(3 * k)),
    turns: Array.from({ length: n }, (_, k) => [0, 1, 2, 3].map((d) => raw[3 * n + 4 * k + d] / 32767 - 1)),
    points: Array.from({ length: model.landmarks }, (_, k) => place(7 * n + 3 * k)),
  };
}
// Rows of the rotation of a unit quaternion (x, y, z, w): the camera's axes in the world.
function axes([x, y, z, w]) {
  return [
    [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
    [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
    [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
  ];
}
function frusta(model, size, colour, width, name) {
  const xyz = [[], [], []];
  const line = (...points) => { for (const p of [...points, [null, null, null]]) p.forEach((v, d) => xyz[d].push(v)); };
  model.centres.forEach((c, k) => {
    if (!c) return;
    const [right, down, ahead] = axes(model.turns[k]);
    const corner = (u, v) => c.map((value, d) => value + size * (ahead[d] + u * right[d] + v * down[d]));
    const corners = [corner(-0.6, -0.45), corner(0.6, -0.45), corner(0.6, 0.45), corner(-0.6, 0.45)];
    line(...corners, corners[0]);
    corners.forEach((p) => line(c, p));
  });
  return { type: "scatter3d", mode: "lines", name, x: xyz[0], y: xyz[1], z: xyz[2], line: { color: colour, width }, hoverinfo: "skip" };
}
function cloud(model, colour, size, opacity, name) {
  const points = model.points.filter((p) => p);
  return { type: "scatter3d", mode: "markers", name, x: points.map((p) => p[0]), y: points.map((p) => p[1]), z: points.map((p) => p[2]), marker: { size, color: colour, opacity }, hoverinfo: "skip" };
}

function show(jobs) {
  document.querySelectorAll("#runs tbody tr").forEach((row) => row.classList.toggle("chosen", row.dataset.job === state.chosen));
  const job = jobs.find((j) => j.job === state.chosen), words = document.getElementById("chosen");
  if (!job) { words.textContent = "No run passes the filters."; Plotly.purge("view3d"); ["ose", "refinement"].forEach((s) => Plotly.purge(`curve-${s}`)); return; }
  const upgrade = shownUpgrade(job), figures = job.upgrades[upgrade], truth = scenes.truths[job.truth];
  const real = decode(truth, truth), estimate = decode(figures, truth), colour = figures.failed ? FAILED : GOOD;
  const away = estimate.points.filter((p) => !p).length;
  const outcome = document.createElement("b");
  outcome.className = figures.failed ? "bad" : "good";
  outcome.textContent = figures.failed ? "failed" : "succeeded";
  words.replaceChildren(
    `${named(job.set)}, seed ${job.seed}, ${[named(job.formulation || job.method), job.init, job.loss && `loss ${job.loss}`, `min. obs. ${job.min_obs}`].filter(Boolean).join(", ")}; ${upgrade}: `, outcome,
    `; rotation A20 ${digits(figures.rotation)}, translation A20 ${digits(figures.translation)}, RMSE ${digits(figures.rmse, 2)}; OSE residual ${job.ose_residual ?? "–"}, refinement ${job.refine_residual ?? "–"} px` + (away ? `; ${away} of ${estimate.points.length} landmarks out of view` : ""));
  const extent = truth.side / 6, size = 0.1 * extent;
  const grey = theme.dark ? "#6b7685" : "#b4bcc8";
  const axis = { visible: false, showspikes: false };
  const layout = { margin: { l: 0, r: 0, t: 0, b: 0 }, uirevision: job.truth, showlegend: true, legend: { x: 0, y: 1, bgcolor: "rgba(0,0,0,0)" },
    scene: { xaxis: axis, yaxis: axis, zaxis: axis, aspectmode: "data", camera: { eye: { x: 1.15, y: 1.15, z: 0.85 } } } };
  const traces = [cloud(real, grey, 3.5, 0.6, "truth"), frusta(real, size, grey, 6, "true cameras"), cloud(estimate, colour, 1.8, 1, "estimate"), frusta(estimate, size, colour, 2, "estimated cameras")];
  Plotly.react("view3d", traces, theme.layout(layout), { ...config, displayModeBar: "hover" });
  document.getElementById("view3d").dataset.job = job.job;
  showCurves(job, jobs);
}
function showCurves(job, jobs) {
  for (const [stage, title] of [["ose", "OSE cost / first"], ["refinement", "refinement cost / first"]]) {
    const relative = (j) => ({ x: j[stage].map((p) => p[0]), y: j[stage].map((p) => Math.max(FLOOR, p[1] / (j[stage][0][1] || 1))) });
    const others = jobs.filter((j) => j[stage].length && j !== job).slice(0, 80);
    const colour = (j) => (j.upgrades[shownUpgrade(j)].failed ? FAILED : GOOD);
    const traces = others.map((j) => ({ ...relative(j), mode: "lines", line: { color: colour(j), width: 1 }, opacity: 0.25, hoverinfo: "skip" }));
    if (job[stage].length) traces.push({ ...relative(job), mode: "lines", line: { color: colour(job), width: 3.5 }, hovertemplate: "iteration %{x}: %{y:.2e}<extra></extra>" });
    const costs = traces.flatMap((t) => t.y), decades = costs.length ? Math.log10(Math.max(...costs) / Math.min(...costs)) : 1;
    const layout = { margin: { l: 52, r: 6, t: 28, b: 36 }, showlegend: false, title: { text: title, font: { size: 13 }, x: 0.02 }, xaxis: { title: { text: "iteration" } }, yaxis: { type: "log", tickformat: ".0e", dtick: decades < 2 ? "D2" : Math.ceil(decades / 5) } };
    Plotly.react(`curve-${stage}`, traces, theme.layout(layout), config);
  }
}

if (scenes.jobs.length) {
  makeFilters();
  update();
  document.getElementById("theme").addEventListener("click", () => show(passing()));
}
for (const link of document.querySelectorAll("a[data-filter]")) {
  link.addEventListener("click", () => { if (scenes.jobs.length) choose(JSON.parse(link.dataset.filter)); });
}
