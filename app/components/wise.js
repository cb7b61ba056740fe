// The way from W0 to W: a slider moves a point along each curve in the ID x OOD plane, once a frame.
const WIDE = 520, HIGH = 400, LEFT = 58, RIGHT = 14, TOP = 14, BOTTOM = 52;
const GLIDE = 5000; // milliseconds from alpha 0 to 1
const DASHES = { solid: "none", dash: "9 6", dot: "2 5", dashdot: "9 5 2 5", longdash: "14 6", longdashdot: "14 5 2 5" };

// The point of a curve at alpha: [id, ood, whether it was computed or lies between two computed ones]
function along(curve, alpha) {
  const { alphas, id, ood } = curve;
  let i = alphas.findIndex((a) => a >= alpha - 1e-9);
  if (i < 0) i = alphas.length - 1;
  if (Math.abs(alphas[i] - alpha) < 1e-6 || i === 0) return [id[i], ood[i], true];
  const t = (alpha - alphas[i - 1]) / (alphas[i] - alphas[i - 1]);
  const mix = (values) => values[i - 1] + t * (values[i] - values[i - 1]);
  return [mix(id), mix(ood), false];
}

function scale(values, from, to) {
  const low = Math.min(...values), high = Math.max(...values), room = Math.max(0.06 * (high - low), 0.5);
  const [a, b] = [low - room, high + room];
  return { a, b, at: (value) => from + ((value - a) / (b - a)) * (to - from) };
}

function ticks({ a, b }) {
  const step = [0.5, 1, 2, 5, 10, 20].find((s) => (b - a) / s <= 8);
  return Array.from({ length: Math.floor(b / step) - Math.ceil(a / step) + 1 }, (_, i) => (Math.ceil(a / step) + i) * step);
}

function build(root, data, send) {
  const at = { alpha: data.alpha, playing: 0 };
  let given = data, drawn = [], x, y;
  const plane = element("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", class: "plane" });
  const slider = element("input", { type: "range", min: 0, max: 1, step: 0.005, "aria-label": "α, from W₀ to W" });
  const shown = element("strong", { class: "numbers" });
  const play = element("button", { type: "button", onclick: toggle }, "▶ Glide");
  const cards = element("div", { class: "cards" });
  const ends = element("div", { class: "ends" }, element("span", {}, "0: pre-trained"), element("span", {}, "1: fine-tuned"));
  root.append(element("div", { class: "two" }, plane, element("div", {},
    element("label", {}, element("span", {}, "α, the share of the way from W₀ to W: ", shown), slider), ends,
    element("div", { class: "buttons" }, play), cards)));

  // everything that stays while alpha moves
  function prepare() {
    const dark = isDark(root);
    x = scale(given.curves.flatMap((c) => c.id), LEFT, WIDE - RIGHT);
    y = scale(given.curves.flatMap((c) => c.ood), HIGH - BOTTOM, TOP);
    const lines = [
      ...ticks(x).flatMap((v) => [
        element("line", { x1: x.at(v), x2: x.at(v), y1: TOP, y2: HIGH - BOTTOM, stroke: "var(--line)" }),
        element("text", { x: x.at(v), y: HIGH - BOTTOM + 20, "text-anchor": "middle" }, String(v))]),
      ...ticks(y).flatMap((v) => [
        element("line", { y1: y.at(v), y2: y.at(v), x1: LEFT, x2: WIDE - RIGHT, stroke: "var(--line)" }),
        element("text", { y: y.at(v) + 5, x: LEFT - 8, "text-anchor": "end" }, String(v))]),
      element("text", { x: (LEFT + WIDE) / 2, y: HIGH - 8, "text-anchor": "middle" }, "ID accuracy (%)"),
      element("text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(15 ${(HIGH - BOTTOM) / 2}) rotate(-90)` },
        "OOD accuracy (%)"),
    ];
    plane.replaceChildren(...lines);
    cards.replaceChildren();
    drawn = given.curves.map((curve) => {
      const color = dark ? curve.dark : curve.light;
      const path = curve.id.map((v, i) => `${x.at(v)},${y.at(curve.ood[i])}`).join(" ");
      const dots = curve.id.map((v, i) => element("circle", { cx: x.at(v), cy: y.at(curve.ood[i]), r: 3.5, fill: color }));
      const last = curve.id.length - 1, near = x.at(curve.id[last]) > WIDE - 120;
      const name = element("text", { x: x.at(curve.id[last]) + (near ? -12 : 12), y: y.at(curve.ood[last]) + 18,
        "text-anchor": near ? "end" : "start", style: "font-weight: 700" }, `${curve.name}, α = 1`);
      const spot = element("circle", { r: 10, stroke: color, "stroke-width": 4, fill: "var(--st-background-color)" });
      plane.append(element("polyline", { points: path, fill: "none", stroke: color, "stroke-width": 1.5,
        "stroke-dasharray": DASHES[curve.dash] ?? "none" }), ...dots, name, spot);
      const bars = ["ID", "OOD"].map((label) => {
        const fill = element("div", { class: "fill", style: `background: ${color}` });
        const number = element("span", { class: "numbers" });
        return { fill, number, node: element("div", { class: "bar" }, element("span", {}, label), element("div", { class: "track" }, fill), number) };
      });
      const note = element("div", { class: "note" });
      cards.append(element("div", { class: "card" }, element("strong", {}, curve.name), bars.map((b) => b.node), note));
      return { curve, spot, bars, note };
    });
  }

  function draw() {
    const words = [];
    for (const { curve, spot, bars, note } of drawn) {
      const [id, ood, computed] = along(curve, at.alpha);
      change(spot, { cx: x.at(id), cy: y.at(ood), "stroke-dasharray": computed ? "none" : "5 3" });
      [id, ood].forEach((value, i) => {
        bars[i].fill.style.width = `${value}%`;
        bars[i].number.textContent = `${computed ? "" : "≈ "}${fixed(value, 1)} %`;
      });
      const end = along(curve, 1);
      note.textContent = `against α = 1: ID ${signed(id - end[0])}, OOD ${signed(ood - end[1])}` + (computed ? "" : " (between two computed points)");
      words.push(`${curve.name}: ID ${fixed(id, 1)} %, OOD ${fixed(ood, 1)} %`);
    }
    shown.textContent = fixed(at.alpha, 3);
    slider.value = at.alpha;
    slider.setAttribute("aria-valuetext", `α ${fixed(at.alpha, 3)}. ${words.join(". ")}`);
    change(plane, { "aria-label": `ID and OOD accuracy at α = ${fixed(at.alpha, 3)}. ${words.join(". ")}` });
  }
  const signed = (value) => (value >= 0.05 ? "+" : "") + fixed(value, 1);

  const paint = painter(draw);
  let later = 0, frame = 0;
  function tell() {
    clearTimeout(later);
    later = setTimeout(() => send("alpha", Number(fixed(at.alpha, 3))), 250);
  }
  function set(alpha) { at.alpha = clamp(alpha, 0, 1); paint(); }
  function stop() { cancelAnimationFrame(frame); at.playing = 0; play.textContent = "▶ Glide"; }
  function toggle() {
    if (at.playing) { stop(); tell(); return; }
    if (at.alpha > 0.999) at.alpha = 0;
    const from = at.alpha, began = performance.now();
    at.playing = 1;
    play.textContent = "❚❚ Pause";
    const go = (now) => {
      at.alpha = clamp(from + (now - began) / GLIDE, 0, 1);
      draw();
      if (at.alpha < 1) frame = requestAnimationFrame(go);
      else { stop(); tell(); }
    };
    frame = requestAnimationFrame(go);
  }
  slider.addEventListener("input", () => { stop(); set(Number(slider.value)); tell(); });
  // a finger on the plane takes the nearest point of any curve
  function nearest(event) {
    const box = plane.getBoundingClientRect(), k = WIDE / box.width;
    const px = (event.clientX - box.left) * k, py = (event.clientY - box.top) * k;
    let best = [Infinity, at.alpha];
    for (const { curve } of drawn) for (let i = 0; i <= 200; i += 1) {
      const [id, ood] = along(curve, i / 200), gap = Math.hypot(x.at(id) - px, y.at(ood) - py);
      if (gap < best[0]) best = [gap, i / 200];
    }
    stop(); set(best[1]); tell();
  }
  plane.addEventListener("pointerdown", (event) => { event.preventDefault(); plane.setPointerCapture(event.pointerId); nearest(event); });
  plane.addEventListener("pointermove", (event) => { if (event.buttons) nearest(event); });
  prepare(); draw();
  return {
    update(next) { given = next; prepare(); paint(); },
    end() { paint.cancel(); stop(); clearTimeout(later); },
  };
}

export default component(build);
