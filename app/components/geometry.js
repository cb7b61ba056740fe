// A row of two weights on its leash: drag W~ or the corner of the diamond, or move them with the arrow keys.
const REACH = 2; // of both weights and of gamma
const SIZE = 440, HALF = SIZE / 2, UNIT = HALF / 2.4;
const STEP = 0.05;

const across = (x) => HALF + UNIT * x;
const up = (y) => HALF - UNIT * y;
const toGrid = (value) => Math.round(value / STEP) * STEP;

// Eq. 10; the page's Python has the same in app/geometry.py, and a test holds the two together
function project(x, y, gamma) {
  const l1 = Math.abs(x) + Math.abs(y), l2 = Math.hypot(x, y);
  const shrink = l1 <= gamma + 1e-9 ? 1 : gamma / l1;
  const round = l2 <= gamma + 1e-9 ? 1 : gamma / l2;
  return { l1, l2, shrink, round, x: shrink * x, y: shrink * y };
}

function sentence(row, gamma) {
  if (row.l1 < 1e-9) return "The row stayed at its anchor, so the leash has nothing to do.";
  const wish = `The row wanted to go ${fixed(row.l1)} away; the leash is ${fixed(gamma)} long, so `;
  if (row.shrink === 1) return wish + "it is within reach and nothing happens.";
  if (gamma < 1e-9) return wish + "it is pulled all the way back to its anchor.";
  return wish + `it is pulled back to ${clamp(Math.round(100 * row.shrink), 1, 99)}\u00a0% of its way.`;
}

function grid() {
  const lines = [-2, -1, 0, 1, 2].flatMap((n) => [
    element("line", { x1: across(n), x2: across(n), y1: up(-2.2), y2: up(2.2), stroke: "var(--line)" }),
    element("line", { y1: up(n), y2: up(n), x1: across(-2.2), x2: across(2.2), stroke: "var(--line)" }),
    element("text", { x: across(n), y: up(-2.38), "text-anchor": "middle" }, String(n)),
    element("text", { x: across(-2.3), y: up(n) + 5, "text-anchor": "middle" }, String(n)),
  ]);
  return element("g", { "aria-hidden": "true" }, lines);
}

function build(root, data, send) {
  const at = { x: data.x, y: data.y, gamma: data.gamma, circle: data.circle };
  const circle = element("circle", { cx: HALF, cy: HALF, fill: "none", stroke: "var(--anchor)", "stroke-width": 2,
    "stroke-dasharray": "7 5" });
  const diamond = element("polygon", { fill: "var(--leash)", "fill-opacity": 0.16, stroke: "var(--leash)",
    "stroke-width": 2.5 });
  const leash = element("line", { x1: HALF, y1: HALF, stroke: "var(--leash)", "stroke-width": 5 });
  const pull = element("line", { stroke: "var(--walk)", "stroke-width": 2.5, "stroke-dasharray": "2 6",
    "stroke-linecap": "round" });
  const post = element("rect", { x: HALF - 7, y: HALF - 7, width: 14, height: 14, fill: "var(--anchor)" });
  const projected = element("circle", { r: 9, fill: "var(--here)" });
  const round = element("circle", { r: 6, fill: "none", stroke: "var(--anchor)", "stroke-width": 3 });
  const bold = { "text-anchor": "middle", style: "font-weight: 700; font-size: 19px; pointer-events: none" };
  const names = ["W₀", "W", "W̃"].map((name) => element("text", bold, name));
  const handle = (r) => element("circle", { r, fill: "transparent", class: "grip" });
  const dot = element("circle", { r: 10, fill: "var(--st-background-color)", stroke: "var(--walk)",
    "stroke-width": 4 });
  const wanted = element("g", { tabindex: 0, role: "slider", class: "handle", "aria-label": "Wanted point W̃",
    "aria-valuemin": -REACH, "aria-valuemax": REACH }, handle(24), dot);
  const corner = element("g", { tabindex: 0, role: "slider", class: "handle", "aria-label": "Length of the leash γ",
    "aria-valuemin": 0, "aria-valuemax": REACH }, handle(24),
    element("rect", { x: -8, y: -8, width: 16, height: 16, rx: 3, fill: "var(--leash)", transform: "rotate(45)" }),
    element("text", { x: 20, y: -10, style: "font-weight: 700; font-size: 19px" }, "γ"));
  const picture = element("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "board" }, grid(), circle, diamond, pull,
    leash, post, round, projected, names, corner, wanted);

  const answer = element("p", { style: "font-weight: 700; min-height: 3em" });
  const lines = Array.from({ length: 6 }, () => element("div"));
  const length = element("input", { type: "range", min: 0, max: REACH, step: STEP, "aria-label": "γ, the length of the leash" });
  const shown = element("span", { class: "numbers" });
  const compare = element("input", { type: "checkbox" });
  compare.checked = at.circle;
  const words = element("div", {}, answer,
    element("label", {}, element("span", {}, "γ, the length of the leash: ", shown), length),
    element("label", { class: "check" }, compare, element("span", {}, "Compare with the l2 circle of the same γ")),
    element("div", { class: "numbers formula", role: "group", "aria-label": "Eq. 10 with these numbers" },
      element("strong", {}, "Eq. 10, with these numbers"), lines));
  root.append(element("div", { class: "two" }, picture, words));

  function draw() {
    const { x, y, gamma } = at, row = project(x, y, gamma), pulled = row.shrink < 1;
    change(circle, { r: UNIT * gamma, visibility: at.circle ? "visible" : "hidden" });
    change(diamond, { points: [[gamma, 0], [0, gamma], [-gamma, 0], [0, -gamma]].map(([a, b]) => `${across(a)},${up(b)}`).join(" ") });
    change(leash, { x2: across(row.x), y2: up(row.y) });
    change(pull, { x1: across(x), y1: up(y), x2: across(row.x), y2: up(row.y), visibility: pulled ? "visible" : "hidden" });
    change(projected, { cx: across(row.x), cy: up(row.y) });
    change(round, { cx: across(row.round * x), cy: up(row.round * y), visibility: at.circle && row.round < 1 ? "visible" : "hidden" });
    change(wanted, { transform: `translate(${across(x)} ${up(y)})`, "aria-valuenow": fixed(x), "aria-valuetext": `x ${fixed(x)}, y ${fixed(y)}` });
    change(corner, { transform: `translate(${across(gamma)} ${HALF})`, "aria-valuenow": fixed(gamma), "aria-valuetext": `γ ${fixed(gamma)}` });
    label(row, pulled);
    answer.textContent = sentence(row, gamma);
    length.value = gamma;
    shown.textContent = fixed(gamma);
    const d = `(${fixed(x)}, ${fixed(y)})`;
    [
      `d = W̃ − W₀ = ${d}`,
      `‖d‖₁ = |${fixed(x)}| + |${fixed(y)}| = ${fixed(row.l1)}`,
      `W = W₀ + min(1, γ / ‖d‖₁) · d`,
      row.l1 < 1e-9 ? "= W₀, nothing to divide by" : `= W₀ + min(1, ${fixed(gamma)} / ${fixed(row.l1)}) · d = W₀ + ${fixed(row.shrink, 3)} · ${d}`,
      `= (${fixed(row.x)}, ${fixed(row.y)})`,
      at.circle ? `circle: min(1, γ / ‖d‖₂) = min(1, ${fixed(gamma)} / ${fixed(row.l2)}) = ${fixed(row.round, 3)}` : "",
    ].forEach((text, i) => { lines[i].textContent = text; });
  }

  // labels on three different sides of the leash, so that near points stay readable
  function label(row, pulled) {
    const turn = row.l1 > 1e-9 ? Math.atan2(at.y, at.x) : Math.PI / 4;
    const put = (node, x, y, angle) => change(node, { x: across(x) + 25 * Math.cos(angle), y: up(y) - 25 * Math.sin(angle) + 7 });
    put(names[0], 0, 0, turn + Math.PI);
    put(names[1], row.x, row.y, turn + Math.PI / 2);
    put(names[2], at.x, at.y, turn);
    names[1].textContent = pulled ? "W" : "W = W̃";
    change(names[2], { visibility: pulled ? "visible" : "hidden" });
  }

  const paint = painter(draw);
  let later = 0;
  function set(values) {
    for (const [name, value] of Object.entries(values)) at[name] = clamp(value, name === "gamma" ? 0 : -REACH, REACH);
    paint();
  }
  function tell() { // the page learns of it when the hand rests: then link, table and code follow
    clearTimeout(later);
    later = setTimeout(() => send("row", { ...at, x: Number(fixed(at.x)), y: Number(fixed(at.y)), gamma: Number(fixed(at.gamma)) }), 200);
  }
  function point(event) {
    const box = picture.getBoundingClientRect(), scale = SIZE / box.width;
    return [((event.clientX - box.left) * scale - HALF) / UNIT, (HALF - (event.clientY - box.top) * scale) / UNIT];
  }
  function draggable(node, move) {
    node.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // else a phone scrolls and a desktop selects text
      node.focus();
      node.setPointerCapture(event.pointerId);
      node.addEventListener("pointermove", move);
    });
    for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => {
      node.removeEventListener("pointermove", move);
      tell();
    });
  }
  draggable(wanted, (event) => { const [x, y] = point(event); set({ x: toGrid(x), y: toGrid(y) }); });
  draggable(corner, (event) => set({ gamma: toGrid(point(event)[0]) }));
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  function keys(node, move) {
    node.addEventListener("keydown", (event) => {
      if (!(event.key in arrows)) return;
      event.preventDefault();
      const [dx, dy] = arrows[event.key], size = event.shiftKey ? 0.25 : STEP;
      move(dx * size, dy * size);
      tell();
    });
  }
  keys(wanted, (dx, dy) => set({ x: toGrid(at.x + dx), y: toGrid(at.y + dy) }));
  keys(corner, (dx, dy) => set({ gamma: toGrid(at.gamma + dx + dy) }));
  length.addEventListener("input", () => { set({ gamma: Number(length.value) }); tell(); });
  compare.addEventListener("change", () => { at.circle = compare.checked; paint(); tell(); });
  draw();
  return { end: () => { paint.cancel(); clearTimeout(later); } };
}

export default component(build);
