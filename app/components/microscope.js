// One real step of SGDP at a time: six stages, each lights up its numbers and moves the picture; back and forth.
const SIZE = 400, HALF = SIZE / 2, ROOM = 150;
const STAGES = 6; // Eq. 1, Eq. 4, Eq. 5, Alg. 2, the clip, Eq. 2
const sig = (v) => (v === 0 ? "0" : Math.abs(v) < 1e-3 || Math.abs(v) >= 1e4 ? v.toExponential(2) : String(Number(v.toPrecision(4)))).replaceAll("-", "−");
const put = (v) => (v < 0 ? `(${sig(v)})` : sig(v));

// What each stage says: [name, what happens, the numbers]
function stages(step, trace) {
  const o = trace.options, [w] = step.weights, row = step.row, rows = step.rows.wanted.length;
  const decay = `${put(w.grad)} + ${sig(o.weight_decay)} · ${put(w.start)}`;
  const pulled = step.rows.factor.filter((f) => f < 1).length;
  const [before, moved, after] = step.gamma;
  return [
    ["Eq. 1: walk", "The base rule takes every weight to W̃. The first followed weight:",
      `w̃ = w − η (g + λ w${o.momentum ? ` + ${sig(o.momentum)} m` : ""}) = ${sig(w.start)} − ${sig(step.lr)} · (${decay}${o.momentum ? ` + ${sig(o.momentum)} · ${put(w.momentum)}` : ""}) = ${sig(w.wanted)}`],
    ["Eq. 4: ask the gradient", "Does it lead farther out along the previous way d = W̃ − W₀? For this row, then all rows together:",
      row.length ? `g · d / ‖d‖₁ = ${sig(row.dot)} / ${sig(row.length)} = ${sig(row.slope)}; Σ over ${rows} rows = ${sig(step.slope)}: ${step.slope < 0 ? "outward, longer" : "inward, shorter"}`
        : "there is no previous way yet: 0"],
    ["Eq. 5: anneal", "What would shorten the leash counts κ times.",
      `κ = ${sig(o.k)}: ${sig(step.slope)} → ${sig(step.annealed)}`],
    ["Alg. 2: Adam moves γ", `m: ${sig(step.m[0])} → ${sig(step.m[1])}; v: ${sig(step.v[0])} → ${sig(step.v[1])}.`,
      step.step === 1 ? `γ = ${sig(before)}: the first step only sets it`
        : `γ − μ m̂ / √v̂ = ${sig(before)} − ${sig(o.gamma_lr)} · ${put(step.m[2])} / √${put(step.v[2])} = ${sig(moved)}`],
    ["Clip", "A leash longer than the farthest row wants to go would be slack.",
      `γ = min(${sig(moved)}, ${sig(Math.max(...step.rows.wanted))}) = ${sig(after)}`],
    ["Eq. 2, 10: pull back", `${pulled} of ${rows} rows are pulled. This row:`,
      `min(1, γ / ‖d‖₁) = min(1, ${sig(after)} / ${sig(row.wanted)}) = ${sig(row.factor)}; it ends ${sig(row.kept)} from its anchor`],
  ];
}

function build(root, data, send) {
  let latest = data, at = 0; // at = stage + STAGES * place of the step
  const steps = () => latest.trace.steps;
  const starting = () => STAGES * Math.max(0, steps().findIndex((s) => s.step === latest.step)) + STAGES - 1;
  at = starting();
  const time = element("input", { type: "range", min: 0, step: 1, "aria-label": "Step and stage" });
  const shown = element("strong", { class: "numbers" });
  const back = element("button", { type: "button", onclick: () => go(at - 1) }, "◀ Back");
  const next = element("button", { type: "button", onclick: () => go(at + 1) }, "Forward ▶");
  const former = element("button", { type: "button", onclick: () => go(at - STAGES) }, "◀◀ Step before");
  const later = element("button", { type: "button", onclick: () => go(at + STAGES) }, "Next step ▶▶");
  const dot = (fill, r = 8) => element("circle", { r, fill });
  const ball = element("polygon", { fill: "var(--leash)", "fill-opacity": 0.16, stroke: "var(--leash)", "stroke-width": 2 });
  const walk = element("line", { stroke: "var(--walk)", "stroke-width": 3 });
  const pull = element("line", { stroke: "var(--here)", "stroke-width": 3, "stroke-dasharray": "2 6", "stroke-linecap": "round" });
  const post = element("rect", { x: HALF - 7, y: HALF - 7, width: 14, height: 14, fill: "var(--anchor)" });
  const start = dot("var(--anchor)", 6), wanted = element("circle", { r: 9, fill: "var(--st-background-color)", stroke: "var(--walk)", "stroke-width": 4 });
  const projected = dot("var(--here)", 9);
  const names = ["W₀", "W̃", "W"].map((n) => element("text", { "text-anchor": "middle", style: "font-weight: 700; font-size: 18px" }, n));
  const caption = element("text", { x: HALF, y: SIZE - 6, "text-anchor": "middle" });
  const clip = element("g", {}, ball);
  const picture = element("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", class: "slice" },
    element("line", { x1: 10, x2: SIZE - 10, y1: HALF, y2: HALF, stroke: "var(--line)" }),
    element("line", { y1: 10, y2: SIZE - 26, x1: HALF, x2: HALF, stroke: "var(--line)" }),
    clip, walk, pull, post, start, wanted, projected, names, caption);
  const lengths = element("svg", { viewBox: `0 0 ${SIZE} ${ROOM + 26}`, role: "img", class: "slice" });
  const cards = Array.from({ length: STAGES }, () => ["strong", "div", "div"].map((tag) => element(tag)));
  const list = element("ol", { class: "stages" }, cards.map((parts) => element("li", {}, parts)));
  cards.forEach((parts) => parts[2].classList.add("numbers", "formula"));
  root.append(element("div", { class: "top" }, shown, element("div", { class: "buttons" }, former, back, next, later)), time,
    element("div", { class: "two" }, element("div", {}, picture, lengths), list));

  function place(step, stage) {
    const [a, b = a] = step.weights;
    const point = (name) => [a[name] - a.anchor, (b[name] - b.anchor) * (a === b ? 0 : 1)];
    const [from, to, end] = ["start", "wanted", "kept"].map(point);
    const reach = 1.25 * Math.max(...[...from, ...to, ...end].map(Math.abs), 1e-12);
    const x = (v) => HALF + (HALF - 30) * (v / reach), y = (v) => HALF - (HALF - 30) * (v / reach);
    // the ball |.|_1 <= gamma, cut where the other weights of the row end up
    const gamma = stage >= 4 ? step.gamma[2] : stage >= 3 ? step.gamma[1] : step.gamma[0];
    const rest = step.row.kept - Math.abs(end[0]) - Math.abs(end[1]);
    const size = clamp(gamma - rest, 0, 3 * reach);
    change(ball, { points: [[size, 0], [0, size], [-size, 0], [0, -size]].map(([p, q]) => `${x(p)},${y(q)}`).join(" ") });
    change(walk, { x1: x(from[0]), y1: y(from[1]), x2: x(to[0]), y2: y(to[1]) });
    change(pull, { x1: x(to[0]), y1: y(to[1]), x2: x(end[0]), y2: y(end[1]), visibility: stage >= 5 ? "visible" : "hidden" });
    change(start, { cx: x(from[0]), cy: y(from[1]) });
    change(wanted, { cx: x(to[0]), cy: y(to[1]) });
    change(projected, { cx: x(end[0]), cy: y(end[1]), visibility: stage >= 5 ? "visible" : "hidden" });
    name([x(to[0]), y(to[1])], [x(end[0]), y(end[1])]);
    change(names[2], { visibility: stage >= 5 && step.row.factor < 0.995 ? "visible" : "hidden" });
    caption.textContent = `two of ${latest.trace.shape.slice(1).reduce((p, n) => p * n, 1)} weights; the edge is ${sig(reach)} from the anchor`;
  }

  // each name on a side of its own: the anchor's behind the way that the row has come, W̃ ahead of it, W beside it
  function name(to, end) {
    const turn = Math.hypot(to[0] - HALF, to[1] - HALF) > 1 ? Math.atan2(HALF - to[1], to[0] - HALF) : Math.PI / 4;
    const put = (node, [x, y], angle) => change(node, { x: clamp(x + 25 * Math.cos(angle), 16, SIZE - 16),
      y: clamp(y - 25 * Math.sin(angle) + 6, 18, SIZE - 30) });
    put(names[0], [HALF, HALF], turn + Math.PI);
    put(names[1], to, turn);
    put(names[2], end, turn + Math.PI / 2);
  }

  function bars(step, stage) {
    const gamma = stage >= 4 ? step.gamma[2] : stage >= 3 ? step.gamma[1] : step.gamma[0];
    const high = 1.1 * Math.max(...step.rows.wanted, step.gamma[2]), width = (SIZE - 20) / step.rows.wanted.length;
    const up = (v) => ROOM - (ROOM - 16) * Math.min(1, v / high);
    const boxes = step.rows.wanted.flatMap((length, i) => {
      const isFollowed = i === latest.trace.row, color = isFollowed ? "var(--walk)" : "var(--anchor)";
      const x = 10 + i * width, end = length * step.rows.factor[i];
      const bar = (v, fill, opacity) => element("rect", { x: x + width * 0.1, width: width * 0.8, y: up(v), height: ROOM - up(v), fill, "fill-opacity": opacity });
      return stage >= 5 ? [bar(length, color, 0.25), bar(end, isFollowed ? "var(--walk)" : "var(--here)", isFollowed ? 1 : 0.55)] : [bar(length, color, 0.7)];
    });
    lengths.replaceChildren(...boxes,
      element("line", { x1: 6, x2: SIZE - 6, y1: up(gamma), y2: up(gamma), stroke: "var(--leash)", "stroke-width": 3 }),
      element("text", { x: SIZE - 8, y: Math.max(13, up(gamma) - 5), "text-anchor": "end", class: "gamma" }, `γ = ${sig(gamma)}`),
      element("text", { x: HALF, y: ROOM + 20, "text-anchor": "middle" }, "how far each row wants to go, in l1; this row in gold"));
    lengths.setAttribute("aria-label", `l1 lengths of ${step.rows.wanted.length} rows against γ = ${sig(gamma)}`);
  }

  function draw() {
    const step = steps()[Math.floor(at / STAGES)], stage = at % STAGES;
    place(step, stage);
    bars(step, stage);
    stages(step, latest.trace).forEach(([name, what, numbers], i) => {
      const [title, text, formula] = cards[i];
      title.textContent = name;
      text.textContent = i <= stage ? what : "…";
      formula.textContent = i <= stage ? numbers : "";
      title.parentElement.className = i === stage ? "lit" : "";
      if (i === stage) title.parentElement.setAttribute("aria-current", "step");
      else title.parentElement.removeAttribute("aria-current");
    });
    const name = stages(step, latest.trace)[stage][0];
    shown.textContent = `Step ${step.step} of ${latest.trace.settings.steps}, ${name}`;
    change(time, { max: STAGES * steps().length - 1, "aria-valuetext": shown.textContent });
    time.value = at;
    picture.setAttribute("aria-label", `Step ${step.step}: anchor, proposed point and kept point of one row, and the ball of γ = ${sig(step.gamma[2])}`);
    back.disabled = at === 0;
    former.disabled = at < STAGES;
    next.disabled = at === STAGES * steps().length - 1;
    later.disabled = at >= STAGES * (steps().length - 1);
  }

  const paint = painter(draw);
  let timer = 0;
  function go(place) {
    at = clamp(place, 0, STAGES * steps().length - 1);
    paint();
    clearTimeout(timer);
    timer = setTimeout(() => send("step", steps()[Math.floor(at / STAGES)].step), 300);
  }
  time.addEventListener("input", () => go(Number(time.value)));
  draw();
  return {
    update(fresh) {
      const other = fresh.trace.layer !== latest.trace.layer || fresh.run !== latest.run;
      latest = fresh;
      if (other) at = starting();
      at = clamp(at, 0, STAGES * steps().length - 1);
      paint();
    },
    end() { paint.cancel(); clearTimeout(timer); },
  };
}

export default component(build);
