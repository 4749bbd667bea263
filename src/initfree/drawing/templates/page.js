"use strict";
// Light or dark as the system has it, until the reader chooses; what is drawn follows the event "themed".
const theme = {
  get dark() { return document.documentElement.dataset.theme === "dark"; },
  set(name) {
    document.documentElement.dataset.theme = name;
    document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
    document.dispatchEvent(new Event("themed"));
  },
  colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), soft: read("--soft"), line: read("--line"), page: read("--page") };
  },
};
const system = window.matchMedia("(prefers-color-scheme: dark)");
theme.set(system.matches ? "dark" : "light");
system.addEventListener("change", (event) => theme.set(event.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => theme.set(theme.dark ? "light" : "dark"));

// On small screens the sections are behind a button.
const navigation = document.querySelector("nav"), menu = document.getElementById("menu");
const open = (yes) => { navigation.classList.toggle("open", yes); menu.setAttribute("aria-expanded", String(yes)); };
menu.addEventListener("click", () => open(!navigation.classList.contains("open")));
navigation.addEventListener("click", (event) => { if (event.target.closest("a")) open(false); });

// A table wider than its place says so, until it is scrolled to its end.
for (const box of document.querySelectorAll(".scroll")) {
  const holder = document.createElement("div");
  holder.className = "scroll-holder";
  box.replaceWith(holder);
  holder.append(box);
  box.tabIndex = 0;
  const look = () => {
    const rest = box.scrollWidth - box.clientWidth;
    holder.classList.toggle("wide", rest > 4);
    holder.classList.toggle("more", rest - box.scrollLeft > 4);
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  const folded = box.closest("details");
  if (folded) folded.addEventListener("toggle", look);
  look();
}

// Paper is white; folded parts open for it.
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
