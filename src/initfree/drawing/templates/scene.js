"use strict";
// Points, cameras and lines in space on a plain canvas: no library, no WebGL, the same picture on every machine.
const OUTSIDE = 65535;
const unpack = {
  bytes: (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)),
  // Steps of 1/65534 of a box's side; what lies outside is NaN.
  places(text, box) {
    const raw = new Uint16Array(unpack.bytes(text).buffer);
    return Float32Array.from(raw, (v, k) => (v === OUTSIDE ? NaN : box.origin[k % 3] + (box.side * v) / 65534));
  },
  turns: (text) => Float32Array.from(new Uint16Array(unpack.bytes(text).buffer), (v) => v / 32767 - 1),
};
const rgb = (text) => { const v = parseInt(text.slice(1), 16); return [v >> 16, (v >> 8) & 255, v & 255]; };

class SceneView {
  // `up` is the world's vertical; `centre` and `reach` are what a look from `from` (azimuth, elevation in degrees) shows.
  constructor(element, { up = [0, -1, 0], centre = [0, 0, 0], reach = 1, from = [35, 24], label = "the reconstruction", picked = null } = {}) {
    this.element = element;
    this.picked = picked;
    this.home = { centre, reach, azimuth: (from[0] * Math.PI) / 180, elevation: (from[1] * Math.PI) / 180 };
    this.basis(up);
    this.layers = [];
    element.classList.add("scene-view");
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${label}; drag to turn, shift-drag to move, arrow keys and + − work too`);
    this.tip = document.createElement("div");
    this.tip.className = "scene-tip";
    const buttons = document.createElement("div");
    buttons.className = "scene-buttons";
    for (const [text, title, action] of [["+", "closer", () => this.zoom(0.8)], ["−", "farther", () => this.zoom(1.25)], ["⟲", "as at first", () => this.reset()]]) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: text, title });
      button.addEventListener("click", action);
      buttons.append(button);
    }
    element.replaceChildren(this.canvas, buttons, this.tip);
    this.listen();
    this.reset();
    new ResizeObserver(() => this.draw()).observe(element);
    document.addEventListener("themed", () => this.draw());
  }
  basis(up) {
    const n = Math.hypot(...up), u = up.map((v) => v / n), other = Math.abs(u[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
    const a = cross(u, other), m = Math.hypot(...a);
    this.axes = { up: u, a: a.map((v) => v / m), b: cross(u, a.map((v) => v / m)) };
  }
  reset() { Object.assign(this, this.home); this.target = [...this.home.centre]; this.distance = this.home.reach * 2.7; this.draw(); }
  zoom(factor) { this.distance *= factor; this.draw(); }
  // A place comes to the middle, from where it is seen now.
  lookAt(place) { if (place.every(Number.isFinite)) { this.target = place; this.draw(); } }
  // From a place along an axis; upright, whichever way the camera was held.
  lookThrough(place, axis) {
    if (!place.every(Number.isFinite)) return;
    const { up, a, b } = this.axes, dot = (u) => u.reduce((sum, v, d) => sum - v * axis[d], 0);
    this.elevation = Math.asin(Math.min(1, Math.max(-1, dot(up))));
    this.azimuth = Math.atan2(dot(b), dot(a));
    this.distance = this.home.reach;
    this.target = place.map((v, d) => v + this.distance * axis[d]);
    this.draw();
  }
  listen() {
    const held = new Map();
    let spread = 0, down = null;
    this.canvas.addEventListener("pointerdown", (e) => { down = [e.clientX, e.clientY]; held.set(e.pointerId, [e.clientX, e.clientY]); this.canvas.setPointerCapture(e.pointerId); });
    const release = (e) => { held.delete(e.pointerId); spread = 0; };
    this.canvas.addEventListener("pointerup", (e) => {
      release(e);
      const pick = this.nearest(e);
      if (this.picked && pick && pick[3] !== null && Math.hypot(e.clientX - down[0], e.clientY - down[1]) < 4) this.picked(pick[3]);
    });
    this.canvas.addEventListener("pointercancel", release);
    this.canvas.addEventListener("pointerleave", () => { this.tip.style.display = "none"; });
    this.canvas.addEventListener("pointermove", (e) => {
      const before = held.get(e.pointerId);
      if (!before) { this.point(e); return; }
      const [dx, dy] = [e.clientX - before[0], e.clientY - before[1]];
      held.set(e.pointerId, [e.clientX, e.clientY]);
      if (held.size === 2) {
        const [p, q] = [...held.values()], now = Math.hypot(p[0] - q[0], p[1] - q[1]);
        if (spread) this.distance *= spread / now;
        spread = now;
        this.move(dx / 2, dy / 2);
      } else if (e.shiftKey || e.buttons === 2) this.move(dx, dy);
      else this.turn(dx, dy);
      this.draw();
    });
    this.canvas.addEventListener("contextmenu", (e) => e.preventDefault());
    // The page scrolls over the scene until someone works with it.
    this.canvas.addEventListener("wheel", (e) => { if (document.activeElement === this.canvas || e.ctrlKey) { e.preventDefault(); this.zoom(Math.exp(e.deltaY * 0.001)); } }, { passive: false });
    const keys = { ArrowLeft: () => this.turn(-20, 0), ArrowRight: () => this.turn(20, 0), ArrowUp: () => this.turn(0, -20), ArrowDown: () => this.turn(0, 20), "+": () => this.zoom(0.8), "-": () => this.zoom(1.25), "0": () => this.reset() };
    this.canvas.addEventListener("keydown", (e) => { if (keys[e.key]) { e.preventDefault(); keys[e.key](); this.draw(); } });
  }
  turn(dx, dy) { this.azimuth -= dx * 0.008; this.elevation = Math.min(1.55, Math.max(-1.55, this.elevation + dy * 0.008)); }
  move(dx, dy) {
    const { right, down } = this.eye(), step = this.distance / Math.min(0.95 * this.canvas.clientWidth, 1.5 * this.canvas.clientHeight);
    this.target = this.target.map((v, d) => v - step * (dx * right[d] + dy * down[d]));
  }
  eye() {
    const { up, a, b } = this.axes, ce = Math.cos(this.elevation), se = Math.sin(this.elevation), ca = Math.cos(this.azimuth), sa = Math.sin(this.azimuth);
    const back = up.map((v, d) => se * v + ce * (ca * a[d] + sa * b[d])), ahead = back.map((v) => -v);
    const right = a.map((v, d) => -sa * v + ca * b[d]), down = cross(ahead, right);
    return { at: this.target.map((v, d) => v + this.distance * back[d]), right, down, ahead };
  }
  show(layers) { this.layers = layers; this.draw(); }
  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }
  paint() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), w = Math.round(this.element.clientWidth * ratio), h = Math.round(this.element.clientHeight * ratio);
    if (!w || !h) return;
    if (this.canvas.width !== w || this.canvas.height !== h) { this.canvas.width = w; this.canvas.height = h; }
    const context = this.canvas.getContext("2d"), { at, right, down, ahead } = this.eye();
    const f = Math.min(0.95 * w, 1.5 * h), near = 0.02 * this.distance;
    const place = (x, y, z, out) => {
      x -= at[0]; y -= at[1]; z -= at[2];
      const depth = x * ahead[0] + y * ahead[1] + z * ahead[2];
      out[2] = depth;
      out[0] = w / 2 + (f * (x * right[0] + y * right[1] + z * right[2])) / depth;
      out[1] = h / 2 + (f * (x * down[0] + y * down[1] + z * down[2])) / depth;
      return depth > near;
    };
    context.clearRect(0, 0, w, h);
    this.paintPoints(context, w, h, ratio, place);
    this.picks = [];
    for (const layer of this.layers) {
      if (layer.kind === "lines") this.paintLines(context, layer, ratio, place);
      if (layer.kind === "frusta") this.paintFrusta(context, layer, ratio, place);
    }
  }
  paintPoints(context, w, h, ratio, place) {
    const image = context.createImageData(w, h), pixels = new Uint32Array(image.data.buffer), depths = new Float32Array(w * h).fill(Infinity), p = [0, 0, 0];
    for (const layer of this.layers) {
      if (layer.kind !== "points") continue;
      const fixed = typeof layer.colour === "string" ? rgb(layer.colour) : null, n = layer.at.length / 3, alpha = Math.round(255 * (layer.opacity ?? 1));
      // A model that lies under another, nearly in the same places, must not shine through it where it is a hair nearer.
      const under = layer.under ? 0.03 * this.distance : 0;
      for (let k = 0; k < n; k += 1) {
        if (!place(layer.at[3 * k], layer.at[3 * k + 1], layer.at[3 * k + 2], p)) continue;
        const radius = Math.max(0.7, (layer.size ?? 1.5) * ratio * Math.min(2.5, Math.max(0.6, this.distance / p[2]))), r2 = radius * radius;
        const [r, g, b] = fixed ?? [layer.colour[3 * k], layer.colour[3 * k + 1], layer.colour[3 * k + 2]];
        const word = ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
        const x0 = Math.max(0, Math.ceil(p[0] - radius)), x1 = Math.min(w - 1, Math.floor(p[0] + radius)), y0 = Math.max(0, Math.ceil(p[1] - radius)), y1 = Math.min(h - 1, Math.floor(p[1] + radius));
        for (let y = y0; y <= y1; y += 1) for (let x = x0; x <= x1; x += 1) {
          const i = y * w + x;
          if ((x - p[0]) ** 2 + (y - p[1]) ** 2 <= r2 && p[2] + under < depths[i]) { depths[i] = p[2] + under; pixels[i] = word; }
        }
      }
    }
    context.putImageData(image, 0, 0);
  }
  paintLines(context, layer, ratio, place) {
    const p = [0, 0, 0], q = [0, 0, 0];
    context.globalAlpha = layer.opacity ?? 1;
    context.strokeStyle = layer.colour;
    layer.pairs.forEach(([x, y, z, u, v, t], k) => {
      if (!place(x, y, z, p) || !place(u, v, t, q)) return;
      context.lineWidth = (layer.widths ? layer.widths[k] : layer.width ?? 1) * ratio;
      context.beginPath();
      context.moveTo(p[0], p[1]);
      context.lineTo(q[0], q[1]);
      context.stroke();
    });
    context.globalAlpha = 1;
  }
  paintFrusta(context, layer, ratio, place) {
    const n = layer.at.length / 3, corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]];
    context.globalAlpha = layer.opacity ?? 1;
    for (let k = 0; k < n; k += 1) {
      const c = [layer.at[3 * k], layer.at[3 * k + 1], layer.at[3 * k + 2]], tip = [0, 0, 0];
      if (!place(...c, tip)) continue;
      const [rx, ry, rz] = columns(layer.turns.subarray(4 * k, 4 * k + 4)), wide = layer.shape ? layer.shape[2 * k] : 0.6, high = layer.shape ? layer.shape[2 * k + 1] : 0.45;
      const seen = corners.map(([u, v]) => { const out = [0, 0, 0]; return place(...c.map((value, d) => value + layer.size * (rz[d] + u * wide * rx[d] + v * high * ry[d])), out) ? out : null; });
      if (seen.includes(null)) continue;
      const picture = layer.images?.[k];
      if (picture?.complete && picture.naturalWidth) {
        context.save();
        const [o, x, , y] = seen;
        context.setTransform((x[0] - o[0]) / picture.naturalWidth, (x[1] - o[1]) / picture.naturalWidth, (y[0] - o[0]) / picture.naturalHeight, (y[1] - o[1]) / picture.naturalHeight, o[0], o[1]);
        context.drawImage(picture, 0, 0);
        context.restore();
      }
      context.strokeStyle = Array.isArray(layer.colour) ? layer.colour[k] : layer.colour;
      context.lineWidth = (layer.width ?? 1.3) * ratio;
      context.beginPath();
      seen.forEach((s, i) => { context.moveTo(tip[0], tip[1]); context.lineTo(s[0], s[1]); const next = seen[(i + 1) % 4]; context.lineTo(next[0], next[1]); });
      context.stroke();
      if (layer.labels) {
        context.font = `${12 * ratio}px system-ui, sans-serif`;
        context.fillStyle = theme.colours().ink;
        context.textAlign = "center";
        const ys = [tip, ...seen].map((q) => q[1]);
        context.fillText(layer.labels[k], tip[0], Math.min(...ys) - 5 * ratio);
      }
      if (layer.names) this.picks.push([tip[0] / ratio, tip[1] / ratio, layer.names[k], layer.pick ? k : null]);
    }
    context.globalAlpha = 1;
  }
  nearest(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, least = 14;
    for (const pick of this.picks ?? []) { const d = Math.hypot(pick[0] - x, pick[1] - y); if (d < least) { least = d; best = pick; } }
    return best;
  }
  point(event) {
    const box = this.canvas.getBoundingClientRect(), best = this.nearest(event);
    this.tip.style.display = best ? "block" : "none";
    if (!best) return;
    this.tip.textContent = best[2];
    this.tip.style.left = `${Math.max(4, Math.min(best[0] + 10, box.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${Math.max(4, best[1] - 10 - this.tip.offsetHeight)}px`;
  }
}
function cross(a, b) { return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]; }
// A quaternion (x, y, z, w) from world to camera: its rows are the camera's axes in the world.
function columns([x, y, z, w]) {
  return [
    [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
    [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
    [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
  ];
}
