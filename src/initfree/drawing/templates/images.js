"use strict";
// The images of a scene as a list: found by name, chosen by mouse or keyboard, marked where they do not agree.
// `chosen(k)` is called with the image's number, or null; `through(k)` to look through its camera. Returns how to choose from outside.
function imageList(data, { chosen, through }) {
  const make = (tag, attributes = {}, ...children) => { const node = Object.assign(document.createElement(tag), attributes); node.append(...children); return node; };
  const a = data.thing === "image" ? "an image" : `a ${data.thing}`, names = data.models[0].names, several = document.querySelectorAll(".scene-images").length;
  const box = make("details", { className: "scene-images", open: Boolean(data.list_open) });
  const heading = make("summary", {}), find = make("input", { type: "search", placeholder: `find ${a}`, ariaLabel: `find ${a}` });
  const order = make("select", { title: "order", ariaLabel: `order of the ${data.thing}s` }, new Option("worst first", "worst"), new Option("by name", "name"));
  const list = make("div", { className: "scene-rows", tabIndex: 0 }), about = make("div", { className: "scene-about" });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", `${data.thing}s`);
  about.setAttribute("aria-live", "polite");
  const sorted = names.map((_, k) => k).sort((a, b) => names[a].localeCompare(names[b], "en", { numeric: true }));
  const rows = names.map((name, k) => {
    const row = make("div", { className: "scene-row", id: `scene-image-${several}-${k}`, title: data.tips[k] });
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", "false");
    if (data.flags[k]) row.classList.add(data.flags[k] === "weakest joint" ? "joint" : "failing");
    if (data.images?.[k]) row.append(make("img", { src: data.images[k], alt: "", loading: "lazy" }));
    row.append(make("span", { className: "name", textContent: name }));
    if (data.flags[k]) row.append(make("span", { className: "flag", textContent: data.flags[k] }));
    row.append(make("span", { className: "figure", textContent: data.residuals[k] === null ? "–" : `${data.residuals[k].toFixed(2)} px` }));
    row.addEventListener("click", () => choose(k));
    row.addEventListener("dblclick", () => through(k));
    return row;
  });
  const lost = data.left_out.map((name) => {
    const row = make("div", { className: "scene-row lost" }, make("span", { className: "name", textContent: name }), make("span", { className: "flag", textContent: "left out" }));
    row.setAttribute("role", "option");
    row.setAttribute("aria-disabled", "true");
    return row;
  });
  let current = null;
  const shown = () => (order.value === "name" ? sorted : data.worst_first).filter((k) => !rows[k].hidden);
  function arrange() {
    list.replaceChildren(...lost, ...(order.value === "name" ? sorted : data.worst_first).map((k) => rows[k]));
    filter();
  }
  function filter() {
    const word = find.value.trim().toLowerCase();
    rows.forEach((row, k) => { row.hidden = !names[k].toLowerCase().includes(word); });
    lost.forEach((row, k) => { row.hidden = !data.left_out[k].toLowerCase().includes(word); });
    const found = rows.filter((row) => !row.hidden).length, wrong = data.flags.filter(Boolean).length;
    const parts = [word ? `${found} of ${names.length} ${data.thing}s` : `${names.length} ${data.thing}${names.length === 1 ? "" : "s"}`];
    if (wrong) parts.push(`${wrong} marked`);
    if (lost.length) parts.push(`${lost.length} left out`);
    heading.textContent = parts.join(", ");
  }
  function choose(k) {
    if (current !== null) rows[current].setAttribute("aria-selected", "false");
    current = k;
    list.removeAttribute("aria-activedescendant");
    about.replaceChildren();
    if (k !== null) {
      rows[k].setAttribute("aria-selected", "true");
      list.setAttribute("aria-activedescendant", rows[k].id);
      if (box.open) rows[k].scrollIntoView({ block: "nearest" });
      const look = make("button", { type: "button", textContent: "look through it" });
      look.addEventListener("click", () => through(k));
      about.append(make("span", { textContent: [data.tips[k], data.flags[k]].filter(Boolean).join("\n") }), look);
    }
    chosen(k);
  }
  const step = (by) => {
    const all = shown(), at = all.indexOf(current);
    if (all.length) choose(all[Math.min(all.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by))]);
  };
  const keys = { ArrowDown: () => step(1), ArrowUp: () => step(-1), PageDown: () => step(10), PageUp: () => step(-10), Home: () => step(-Infinity), End: () => step(Infinity), Enter: () => { if (current !== null) through(current); }, Escape: () => choose(null) };
  list.addEventListener("keydown", (event) => { if (keys[event.key]) { event.preventDefault(); keys[event.key](); } });
  find.addEventListener("keydown", (event) => { if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); list.focus(); if (shown().indexOf(current) < 0) step(1); } });
  find.addEventListener("input", filter);
  order.addEventListener("change", arrange);
  box.append(heading, make("div", { className: "scene-find" }, find, order), list, about);
  arrange();
  return { box, choose };
}
