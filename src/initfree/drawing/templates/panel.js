"use strict";
// A scene with its choices: colours of the landmarks, what is shown, and a slider through the steps of the solve.
function scenePanel(element, data) {
  const make = (tag, attributes = {}, ...children) => { const node = Object.assign(document.createElement(tag), attributes); node.append(...children); return node; };
  const controls = make("div", { className: "scene-controls" }), place = make("div", { className: "scene-place" }), legend = make("div", { className: "scene-legend" });
  const view = new SceneView(place, { up: data.up, centre: data.centre, reach: data.reach, from: data.from, picked: (k) => list.choose(k) });
  const read = (m) => ({ ...m, at: unpack.places(m.centres, data.box), turns: unpack.turns(m.turns), points: unpack.places(m.points, data.box) });
  const models = data.models.map(read), main = models[0];
  const shape = Float32Array.from(data.shape.flat()), images = (data.images ?? []).map((source) => { if (!source) return null; const image = new Image(); image.addEventListener("load", () => view.draw()); image.src = source; return image; });
  const state = { colouring: 0, cameras: true, landmarks: true, images: true, chosen: null, joint: data.joint_shown, sharing: false, other: true, step: data.steps.length };
  // Few points are drawn larger: the same amount of ink.
  const pointSize = Math.min(3, Math.max(1.4, 1.4 * Math.cbrt((18000 / Math.max(1, main.points.length)))));
  const decoded = new Map(), steps = (k) => { if (!decoded.has(k)) decoded.set(k, read(data.steps[k])); return decoded.get(k); };
  const colourings = data.colourings.map((c) => ({ ...c, bytes: unpack.bytes(c.rgb) }));
  const current = () => (state.step < data.steps.length ? steps(state.step) : main), centre = (k) => [...current().at.subarray(3 * k, 3 * k + 3)];
  const list = imageList(data, {
    chosen: (k) => { state.chosen = k; if (k !== null) view.lookAt(centre(k)); show(); },
    through: (k) => view.lookThrough(centre(k), columns(current().turns.subarray(4 * k, 4 * k + 4))[2]),
  });
  element.append(controls, place, legend);

  const select = make("select", { title: "colour of the landmarks" });
  colourings.forEach((c, k) => select.append(new Option(c.name, k)));
  select.addEventListener("change", () => { state.colouring = Number(select.value); show(); });
  controls.append(make("label", {}, "landmarks by ", select));
  Object.assign(state, { names: data.names_shown, floor: true });
  const toggles = [["cameras", "cameras", true], ["names", "names", true], ["floor", "floor", data.floor.length > 0], ["landmarks", "landmarks", true], ["images", "images", images.some(Boolean)], ["joint", "weakest joint", data.joint.length > 0], ["sharing", "what images share", data.edges.length > 0], ["other", data.models[1]?.name ?? "", models.length > 1]];
  for (const [key, text, there] of toggles) {
    if (!there) continue;
    const box = make("input", { type: "checkbox", checked: state[key] });
    box.addEventListener("change", () => { state[key] = box.checked; show(); });
    controls.append(make("label", {}, box, ` ${text}`));
  }
  if (data.steps.length) {
    const slider = make("input", { type: "range", min: 0, max: data.steps.length, value: data.steps.length, title: "step of the solve" }), words = make("span", { className: "scene-step" }), play = make("button", { type: "button", textContent: "▶ from the start" });
    const tell = () => { const s = data.steps[state.step]; words.textContent = s ? `${s.stage}, step ${s.index}${s.cost === null ? "" : `, cost ${s.cost.toPrecision(4)}`}` : "result"; };
    const go = (k) => { state.step = k; slider.value = k; tell(); show(); };
    slider.addEventListener("input", () => go(Number(slider.value)));
    let timer = null;
    play.addEventListener("click", () => {
      clearInterval(timer);
      go(0);
      timer = setInterval(() => { if (state.step >= data.steps.length) clearInterval(timer); else go(state.step + 1); }, Math.min(250, 6000 / data.steps.length));
    });
    element.append(make("div", { className: "scene-steps" }, play, slider, words));
    tell();
  }

  element.append(list.box);

  function show() {
    const now = current(), c = colourings[state.colouring], soft = theme.colours().soft;
    const joint = new Set(data.joint), layers = [], ends = (m, i, j) => [...m.at.subarray(3 * i, 3 * i + 3), ...m.at.subarray(3 * j, 3 * j + 3)];
    if (state.other) for (const other of models.slice(1)) {
      layers.push({ kind: "points", at: other.points, colour: "#8a94a3", size: 1, opacity: 0.6, under: true });
      layers.push({ kind: "frusta", at: other.at, turns: other.turns, size: data.size, colour: "#8a94a3", width: 1.2, names: other.names.map((n) => `${n} (${other.name})`) });
    }
    if (state.landmarks) layers.push({ kind: "points", at: now.points, colour: now === main ? c.bytes : data.step_rows ? pick(c.bytes, data.step_rows) : "#5b7fb9", size: pointSize });
    if (state.floor && data.floor.length) layers.push({ kind: "lines", pairs: data.floor, colour: "#8a94a3", width: 0.8, opacity: 0.45 });
    if (state.sharing) layers.push({ kind: "lines", pairs: data.edges.map(([i, j]) => ends(now, i, j)), widths: data.edges.map(([, , share]) => 0.4 + 2 * share), colour: "#5b7fb9", opacity: 0.35 });
    if (state.joint && joint.size) layers.push({ kind: "lines", pairs: data.joint_edges.map(([i, j]) => ends(now, i, j)), colour: "#d98613", width: 1.6, opacity: 0.8 });
    if (state.cameras) layers.push({ kind: "frusta", at: now.at, turns: now.turns, shape, size: data.size, width: 1.3, names: data.tips, pick: true, labels: state.names ? main.names : null, images: state.images ? images : null,
      colour: data.tips.map((_, k) => (data.failing.includes(k) ? "#d1495b" : state.joint && joint.has(k) ? "#d98613" : "#1a9e8f")) });
    if (state.cameras && state.chosen !== null) {
      const k = state.chosen;
      layers.push({ kind: "frusta", at: now.at.subarray(3 * k, 3 * k + 3), turns: now.turns.subarray(4 * k, 4 * k + 4), shape: shape.subarray(2 * k, 2 * k + 2), size: 2 * data.size, colour: "#2f7bff", width: 3.2 });
    }
    view.show(layers);
    legend.replaceChildren();
    if (c.scale) {
      const bar = make("span", { className: "scene-bar" });
      bar.style.background = `linear-gradient(90deg, ${c.scale.join(", ")})`;
      legend.append(`${c.name}: ${c.low} `, bar, ` ${c.high}`);
    }
    const marks = [["#1a9e8f", "camera"]];
    if (data.failing.length) marks.push(["#d1495b", "camera that does not agree"]);
    if (state.joint && joint.size) marks.push(["#d98613", "weakest joint"]);
    if (models.length > 1 && state.other) marks.push(["#8a94a3", models[1].name]);
    for (const [colour, text] of marks) { const dot = make("i", {}); dot.style.background = colour; legend.append(make("span", {}, dot, text)); }
    if (state.floor && data.frame_words) legend.append(data.frame_words);
    if (c.scale) legend.dataset.colouring = c.name;
    element.dataset.step = String(state.step);
  }
  function pick(bytes, rows) { const out = new Uint8Array(rows.length * 3).fill(138); rows.forEach((row, k) => { if (row >= 0) out.set(bytes.subarray(3 * row, 3 * row + 3), 3 * k); }); return out; }
  document.addEventListener("themed", show);
  show();
  return { view, state, show };
}
for (const source of document.querySelectorAll("script[data-scene]")) scenePanel(document.getElementById(source.dataset.scene), JSON.parse(source.textContent));
