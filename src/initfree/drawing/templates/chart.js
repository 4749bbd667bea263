"use strict";
// Small charts as SVG in the page's own colours; drawn again where their width changes.
const SVG = "http://www.w3.org/2000/svg";
const FLOOR = 1e-300;
function node(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
const short = (v) => { const a = Math.abs(v); if (v === 0) return "0"; if (a >= 1e4 || a < 1e-2) return v.toExponential(1).replace(".0e", "e").replace("e+", "e"); return String(Number(v.toPrecision(2))); };
function ticks(low, high, log, count = 4) {
  if (log) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), every = Math.max(1, Math.ceil((last - first) / count));
    const found = [];
    for (let e = first; e <= last; e += every) for (const m of last - first < 2 ? [1, 2, 5] : [1]) if (m * 10 ** e >= low * 0.999 && m * 10 ** e <= high * 1.001) found.push(m * 10 ** e);
    return found.length > 1 ? found : [low, high];
  }
  const raw = (high - low) / count || 1, unit = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw);
  const found = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + 1e-9 * step; v += step) found.push(Number(v.toPrecision(10)));
  return found;
}
const charts = {
  frame(element, { title = "", x = "", y = "", xs, ys, log = false, left = 46 }) {
    const w = Math.max(element.clientWidth, 160), h = element.clientHeight || 200, top = title ? 30 : 8, bottom = x ? 34 : 18, right = 10;
    const svg = node("svg", { viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "img", "aria-label": title || y });
    const to = { x: (v) => left + ((v - xs[0]) / (xs[1] - xs[0] || 1)) * (w - left - right) };
    const height = h - top - bottom, scale = (v) => (log ? Math.log10(Math.max(v, FLOOR)) : v), [low, high] = ys.map(scale);
    to.y = (v) => top + height * (1 - (scale(v) - low) / (high - low || 1));
    for (const v of ticks(ys[0], ys[1], log)) {
      svg.append(node("line", { x1: left, x2: w - right, y1: to.y(v), y2: to.y(v), class: "grid" }));
      svg.append(node("text", { x: left - 5, y: to.y(v) + 4, "text-anchor": "end" }, short(v)));
    }
    if (title) svg.append(node("text", { x: 2, y: 14, class: "title" }, title));
    if (x) svg.append(node("text", { x: (left + w - right) / 2, y: h - 3, "text-anchor": "middle" }, x));
    element.replaceChildren(svg);
    return { svg, to, w, h, left, right, top, bottom };
  },
  lines(element, spec) {
    const all = spec.series.flatMap((s) => s.y).filter((v) => Number.isFinite(v) && (!spec.log || v > 0));
    const last = Math.max(1, ...spec.series.flatMap((s) => s.x));
    const low = all.length ? Math.min(...all) : 0.1, high = all.length ? Math.max(...all) : 1;
    const ys = spec.log ? [low * 0.9, Math.max(high * 1.1, low * 1.2)] : [Math.min(0, low), high * 1.05 || 1];
    const made = charts.frame(element, { ...spec, xs: [0, last], ys }), { svg, to, h, bottom } = made;
    for (const v of ticks(0, last, false, 5)) if (Number.isInteger(v)) svg.append(node("text", { x: to.x(v), y: h - bottom + 14, "text-anchor": "middle" }, String(v)));
    for (const s of spec.series) {
      const path = s.x.map((v, k) => [v, s.y[k]]).filter(([, v]) => Number.isFinite(v) && (!spec.log || v > 0)).map(([a, b], k) => `${k ? "L" : "M"}${to.x(a).toFixed(1)},${to.y(b).toFixed(1)}`).join("");
      const line = node("path", { d: path, fill: "none", stroke: s.colour ?? "var(--accent)", "stroke-width": s.width ?? 2, opacity: s.opacity ?? 1 });
      if (s.name) line.append(node("title", {}, s.name));
      svg.append(line);
    }
    return made;
  },
  // One bar a value, in the order given; `marked` stand out; `ticks` are [number of bars before it, text].
  bars(element, spec) {
    const n = spec.values.length, finite = spec.values.filter(Number.isFinite), high = Math.max(...finite, spec.least ?? 0) * 1.08 || 1;
    const made = charts.frame(element, { ...spec, xs: [0, n], ys: [0, high] }), { svg, to, h, bottom } = made, wide = Math.max((to.x(1) - to.x(0)) * 0.82, 0.8);
    for (const [at, text] of spec.ticks ?? []) svg.append(node("text", { x: to.x(at), y: h - bottom + 14, "text-anchor": at < n ? "middle" : "end" }, text));
    spec.values.forEach((v, k) => {
      if (!Number.isFinite(v)) return;
      const bar = node("rect", { x: to.x(k + 0.5) - wide / 2, width: wide, y: to.y(v), height: Math.max(to.y(0) - to.y(v), 0.5), class: spec.marked?.includes(k) ? "bar marked" : "bar" });
      bar.append(node("title", {}, `${spec.names[k]}: ${short(v)} ${spec.unit ?? ""}`));
      svg.append(bar);
    });
    return made;
  },
  // Cells of the image plane by the size of their residuals, with the mean residual of each as an arrow.
  plane(element, spec) {
    const w = Math.max(element.clientWidth, 160), rows = spec.cells.length, cols = spec.cells[0].length, wide = w - 4, h = wide * spec.aspect, top = 22, all = h + top + 24, svg = node("svg", { viewBox: `0 0 ${w} ${all}`, width: w, height: all, role: "img", "aria-label": spec.title });
    svg.append(node("text", { x: 2, y: 14, class: "title" }, spec.title));
    const cw = wide / cols, ch = h / rows;
    spec.cells.forEach((line, r) => line.forEach((cell, c) => {
      const x = 2 + c * cw, y = top + r * ch;
      const box = node("rect", { x, y, width: cw - 1, height: ch - 1, fill: cell ? cell.colour : "var(--panel)" });
      if (cell) box.append(node("title", {}, `${cell.count} observations, mean ${cell.size.toFixed(2)} px, together (${cell.dx.toFixed(2)}, ${cell.dy.toFixed(2)}) px`));
      svg.append(box);
      if (cell) {
        const s = (0.45 * Math.min(cw, ch)) / spec.longest, mx = x + cw / 2, my = y + ch / 2;
        svg.append(node("line", { x1: mx, y1: my, x2: mx + s * cell.dx, y2: my + s * cell.dy, stroke: "#fff", "stroke-width": 1.6 }));
        svg.append(node("circle", { cx: mx, cy: my, r: 1.6, fill: "#fff" }));
      }
    }));
    const bar = 110, from = 24, y = h + top + 8, stops = spec.scale.length;
    spec.scale.forEach((colour, k) => svg.append(node("rect", { x: from + (k * bar) / stops, y, width: bar / stops + 0.5, height: 10, fill: colour })));
    svg.append(node("text", { x: 2, y: y + 9 }, "0"), node("text", { x: from + bar + 6, y: y + 9 }, `${short(spec.high)} px`));
    element.style.height = "auto";
    element.replaceChildren(svg);
  },
  watch(element, kind, spec) {
    const draw = () => charts[kind](element, spec);
    let width = element.clientWidth;
    draw();
    new ResizeObserver(() => { if (element.clientWidth !== width) { width = element.clientWidth; draw(); } }).observe(element);
  },
};
for (const source of document.querySelectorAll("script[data-chart]")) {
  const { kind, ...spec } = JSON.parse(source.textContent);
  charts.watch(document.getElementById(source.dataset.chart), kind, spec);
}
