"use strict";
// Plotly's figures in the page's colours.
const figures = {
  layout(layout) {
    const c = theme.colours();
    const themed = { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { ...layout.font, color: c.ink, size: 12 } };
    for (const key of Object.keys(themed)) {
      if (/^[xy]axis\d*$/.test(key)) themed[key] = { ...themed[key], gridcolor: c.line, zerolinecolor: c.line, linecolor: c.line };
    }
    if (themed.annotations) themed.annotations = themed.annotations.map((a) => ({ ...a, font: { ...a.font, size: 13, color: c.ink } }));
    return themed;
  },
  changes(plot) {
    const c = theme.colours();
    const changes = { "font.color": c.ink };
    for (const key of Object.keys(plot._fullLayout)) {
      if (/^[xy]axis\d*$/.test(key)) for (const part of ["gridcolor", "zerolinecolor", "linecolor"]) changes[`${key}.${part}`] = c.line;
    }
    (plot.layout.annotations || []).forEach((_, k) => { changes[`annotations[${k}].font.color`] = c.ink; });
    return changes;
  },
};
// Where there is no room for parts side by side, they stand below each other; an even number of them, two in a row.
const NARROW = 760;
// Long titles on several lines; words stay whole, and so do tags.
function broken(text, most = 46) {
  let length = 0;
  return text.split(/( |<br>)/).map((word) => {
    const plain = word.replace(/<[^>]*>/g, "");
    length = word === "<br>" ? 0 : length + plain.length;
    if (word !== " " || length < most) return word;
    length = 0;
    return "<br>";
  }).join("");
}
function stacked(layout) {
  const cells = Object.keys(layout).filter((key) => /^xaxis\d*$/.test(key)).map((key) => ({ x: layout[key], y: layout[key.replace("x", "y")], key }));
  const lefts = [...new Set(cells.map((c) => c.x.domain[0]))].sort((a, b) => a - b), tops = [...new Set(cells.map((c) => c.y.domain[1]))].sort((a, b) => b - a);
  if (lefts.length < 2) return layout;
  const wide = lefts.length % 2 ? 1 : 2, each = Math.ceil(lefts.length / wide), rows = tops.length * each, margin = { ...layout.margin, t: (layout.margin?.t ?? 0) + 20 }, gap = margin.t + (margin.b ?? 0);
  const inside = layout.height - (layout.margin?.t ?? 0) - (margin.b ?? 0), high = Math.max(...cells.map((c) => c.y.domain[1] - c.y.domain[0])) * inside, total = rows * high + (rows - 1) * gap;
  const made = { ...layout, margin, height: total + gap, annotations: (layout.annotations ?? []).map((a) => ({ ...a, text: broken(a.text) })) };
  for (const cell of cells) {
    const column = lefts.indexOf(cell.x.domain[0]), row = tops.indexOf(cell.y.domain[1]) * each + Math.floor(column / wide), place = column % wide;
    const top = 1 - (row * (high + gap)) / total, x = wide === 1 ? [0, 1] : [place * 0.56, place * 0.56 + 0.44], y = [top - high / total, top];
    (layout.annotations ?? []).forEach((a, k) => {
      if (Math.abs(a.y - cell.y.domain[1]) < 1e-6 && a.x >= cell.x.domain[0] - 1e-6 && a.x <= cell.x.domain[1] + 1e-6) Object.assign(made.annotations[k], { x: a.xanchor === "left" ? x[0] : (x[0] + x[1]) / 2, y: top });
    });
    made[cell.key] = { ...cell.x, domain: x };
    made[cell.key.replace("x", "y")] = { ...cell.y, domain: y };
  }
  if (layout.legend) made.legend = { ...layout.legend, y: -70 / total };
  return made;
}
const config = { displaylogo: false, responsive: true, displayModeBar: false };
function plot(source) {
  const figure = JSON.parse(source.textContent), element = document.getElementById(source.dataset.figure), narrow = element.clientWidth < NARROW;
  if (element.dataset.narrow === String(narrow)) return;
  element.dataset.narrow = String(narrow);
  delete figure.layout.template;
  const layout = narrow ? stacked(figure.layout) : figure.layout;
  element.style.height = `${layout.height}px`;
  Plotly.react(element, figure.data, figures.layout(layout), config);
}
const plotAll = () => document.querySelectorAll("script[data-figure]").forEach(plot);
plotAll();
window.addEventListener("resize", plotAll);
document.addEventListener("themed", () => {
  for (const made of document.querySelectorAll(".js-plotly-plot")) Plotly.relayout(made, figures.changes(made));
});
