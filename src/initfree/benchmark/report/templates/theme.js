"use strict";
// Light or dark as the system has it, until the reader chooses; figures follow.
const theme = {
  get dark() { return document.documentElement.dataset.theme === "dark"; },
  set(name) {
    document.documentElement.dataset.theme = name;
    document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
    for (const plot of document.querySelectorAll(".js-plotly-plot")) Plotly.relayout(plot, theme.changes(plot));
  },
  colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), soft: read("--soft"), line: read("--line"), page: read("--page") };
  },
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
const config = { displaylogo: false, responsive: true, displayModeBar: false };
const system = window.matchMedia("(prefers-color-scheme: dark)");
theme.set(system.matches ? "dark" : "light");
system.addEventListener("change", (event) => theme.set(event.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => theme.set(theme.dark ? "light" : "dark"));

for (const source of document.querySelectorAll("script[data-figure]")) {
  const figure = JSON.parse(source.textContent);
  delete figure.layout.template;
  Plotly.newPlot(source.dataset.figure, figure.data, theme.layout(figure.layout), config);
}

// Paper is white; folded tables open for it.
let screenTheme = null;
window.addEventListener("beforeprint", () => {
  screenTheme = document.documentElement.dataset.theme;
  theme.set("light");
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
});
window.addEventListener("afterprint", () => { if (screenTheme) theme.set(screenTheme); });

// The sidebar shows where the reader is.
const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) {
    links.forEach((a) => a.classList.remove("here"));
    links.get(entry.target.id)?.classList.add("here");
  }
}, { rootMargin: "-10% 0px -80% 0px" });
document.querySelectorAll("main section").forEach((s) => seen.observe(s));
