// The way from W0 to W: a slider moves a point along each curve in the ID x OOD plane, once a frame.
const WIDE = 520, HIGH = 400, LEFT = 58, RIGHT = 14, TOP = 14, BOTTOM = 52;
const DASHES = { solid: "none", dash: "9 6", dot: "2 5", dashdot: "9 5 2 5", longdash: "14 6", longdashdot: "14 5 2 5" };

// The point of a curve at alpha: [id, ood, whether it was computed or lies between two computed ones, and the spread of
// id and ood over seeds, if there are several]
function along(curve, alpha) {
  const { alphas, id, ood, spread } = curve;
  let i = alphas.findIndex((a) => a >= alpha - 1e-9);
  if (i < 0) i = alphas.length - 1;
  if (Math.abs(alphas[i] - alpha) < 1e-6 || i === 0) return [id[i], ood[i], true, spread && [spread.id[i], spread.ood[i]]];
  const t = (alpha - alphas[i - 1]) / (alphas[i] - alphas[i - 1]);
  const mix = (values) => values[i - 1] + t * (values[i] - values[i - 1]);
  return [mix(id), mix(ood), false, spread && [mix(spread.id), mix(spread.ood)]];
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
  const dial = alphaDial({ alpha: data.alpha, step: 0.005, digits: 3 }, draw, send);
  let latest = data, drawn = [], x, y;
  const plane = element("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", class: "plane" });
  const cards = element("div", { class: "cards" });
  const held = element("p", { class: "held" }, "Guess first: then α moves, and the way between the two ends is drawn.");
  const ends = element("div", { class: "ends" }, element("span", {}, "0: pre-trained"), element("span", {}, "1: fine-tuned"));
  root.append(element("div", { class: "two" }, plane, element("div", {},
    element("label", {}, dial.caption, dial.slider), ends, element("div", { class: "buttons" }, dial.play), held, cards)));

  // on which side of a point a label of this width is farthest from every dot: [left or right, above or below]
  function roomiest(px, py, width) {
    const dots = latest.curves.flatMap((c) => c.id.map((v, i) => [x.at(v), y.at(c.ood[i])]));
    const room = ([side, down]) => {
      const [near, far] = [px + 14 * side, px + (14 + width) * side], middle = py + 19 * down;
      if (Math.min(near, far) < LEFT || Math.max(near, far) > WIDE || middle > HIGH - BOTTOM || middle < TOP) return -1;
      return Math.min(...dots.map(([a, b]) => Math.hypot(a - clamp(a, Math.min(near, far), Math.max(near, far)), b - middle)));
    };
    return [[1, 1], [-1, 1], [1, -1], [-1, -1]].reduce((best, place) => (room(place) > room(best) ? place : best));
  }

  // everything that stays while alpha moves
  function prepare() {
    const dark = isDark(root), metric = latest.curves[0].metric;
    x = scale(latest.curves.flatMap((c) => (latest.hold ? [c.id[0], c.id.at(-1)] : c.id)), LEFT, WIDE - RIGHT);
    const edges = (c, side) => c.ood.map((v, i) => v + side * (c.spread?.ood[i] ?? 0));
    // before a guess the scale of the two ends alone, else its top would tell how high the way leads
    const seen = (c, values) => (latest.hold ? [values[0], values.at(-1)] : values);
    y = scale(latest.curves.flatMap((c) => [...seen(c, edges(c, -1)), ...seen(c, edges(c, 1))]), HIGH - BOTTOM, TOP);
    const lines = [
      ...ticks(x).flatMap((v) => [
        element("line", { x1: x.at(v), x2: x.at(v), y1: TOP, y2: HIGH - BOTTOM, stroke: "var(--line)" }),
        element("text", { x: x.at(v), y: HIGH - BOTTOM + 20, "text-anchor": "middle" }, String(v))]),
      ...ticks(y).flatMap((v) => [
        element("line", { y1: y.at(v), y2: y.at(v), x1: LEFT, x2: WIDE - RIGHT, stroke: "var(--line)" }),
        element("text", { y: y.at(v) + 5, x: LEFT - 8, "text-anchor": "end" }, String(v))]),
      element("text", { x: (LEFT + WIDE) / 2, y: HIGH - 8, "text-anchor": "middle" }, axisName(metric, "ID")),
      element("text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(15 ${(HIGH - BOTTOM) / 2}) rotate(-90)` },
        axisName(metric, "OOD")),
    ];
    plane.replaceChildren(...lines);
    cards.replaceChildren();
    const starts = new Set(); // a start that two curves share is named once
    drawn = latest.curves.map((curve) => {
      const color = dark ? curve.dark : curve.light;
      const path = curve.id.map((v, i) => `${x.at(v)},${y.at(curve.ood[i])}`).join(" ");
      const hold = latest.hold, ends = [0, curve.id.length - 1];
      const dots = curve.id.map((v, i) => element("circle", { cx: x.at(v), cy: y.at(curve.ood[i]), r: 3.5, fill: color,
        style: hold && !ends.includes(i) ? "display: none" : "" }));
      const last = curve.id.length - 1, said = `${curve.name}, α = 1`;
      const [side, down] = roomiest(x.at(curve.id[last]), y.at(curve.ood[last]), 8 * said.length);
      const name = element("text", { x: x.at(curve.id[last]) + 14 * side, y: y.at(curve.ood[last]) + (down > 0 ? 24 : -14),
        "text-anchor": side < 0 ? "end" : "start", style: "font-weight: 700" }, said);
      const [x0, y0] = [x.at(curve.id[0]), y.at(curve.ood[0])], where = `${Math.round(x0 / 8)} ${Math.round(y0 / 8)}`;
      if (!starts.has(where)) {
        const zero = "α = 0", [aside, below] = roomiest(x0, y0, 8 * zero.length);
        plane.append(element("text", { x: x0 + 14 * aside, y: y0 + (below > 0 ? 24 : -14), "text-anchor": aside < 0 ? "end" : "start" }, zero));
        starts.add(where);
      }
      const spot = element("circle", { r: 10, stroke: color, "stroke-width": 4, fill: "var(--st-background-color)" });
      const border = (side) => edges(curve, side).map((v, i) => `${x.at(curve.id[i])},${y.at(v)}`);
      if (curve.spread) plane.append(element("polygon", { points: [...border(1), ...border(-1).reverse()].join(" "), fill: color,
        "fill-opacity": 0.14, class: "band", style: hold ? "display: none" : "" }));
      const cross = ["id", "ood"].map(() => element("line", { stroke: color, "stroke-width": 2, class: "cross" }));
      plane.append(element("polyline", { points: path, fill: "none", stroke: color, "stroke-width": 1.5,
        style: hold ? "display: none" : "", "stroke-dasharray": DASHES[curve.dash] ?? "none" }), ...dots, name, ...cross, spot);
      const bars = ["ID", "OOD"].map((label) => {
        const fill = element("div", { class: "fill", style: `background: ${color}` });
        const number = element("span", { class: "numbers" });
        return { fill, number, node: element("div", { class: "bar" }, element("span", {}, label), element("div", { class: "track" }, fill), number) };
      });
      const note = element("div", { class: "note" });
      cards.append(element("div", { class: "card" }, element("strong", {}, curve.name), bars.map((b) => b.node), note));
      return { curve, spot, bars, note, cross };
    });
  }

  function draw() {
    dial.hold(latest.hold);
    held.style.display = latest.hold ? "" : "none";
    if (latest.hold) dial.alpha = 1;
    const words = [], metric = latest.curves[0].metric;
    for (const { curve, spot, bars, note, cross } of drawn) {
      const [id, ood, computed, spread] = along(curve, dial.alpha);
      const [wide, high] = spread ?? [0, 0];
      change(cross[0], { x1: x.at(id - wide), x2: x.at(id + wide), y1: y.at(ood), y2: y.at(ood) });
      change(cross[1], { x1: x.at(id), x2: x.at(id), y1: y.at(ood - high), y2: y.at(ood + high) });
      change(spot, { cx: x.at(id), cy: y.at(ood), "stroke-dasharray": computed ? "none" : "5 3" });
      [id, ood].forEach((value, i) => {
        bars[i].fill.style.width = `${share(value, metric)}%`;
        bars[i].number.textContent = `${computed ? "" : "≈ "}${fixed(value, 1)}${spread ? ` ± ${fixed(spread[i], 1)}` : ""} ${metric.unit}`;
      });
      const end = along(curve, 1);
      note.textContent = `against α = 1: ID ${signed(id - end[0])}, OOD ${signed(ood - end[1])}` + (computed ? "" : " (between two computed points)");
      words.push(`${curve.name}: ID ${fixed(id, 1)} ${metric.unit}, OOD ${fixed(ood, 1)} ${metric.unit}`);
    }
    dial.say(words.join(". "));
    change(plane, { "aria-label": `ID and OOD at α = ${fixed(dial.alpha, 3)}. ${words.join(". ")}` });
  }
  const signed = (value) => (value >= 0.05 ? "+" : "") + fixed(value, 1);

  // a finger on the plane takes the nearest point of any curve
  function nearest(event) {
    if (latest.hold) return;
    const box = plane.getBoundingClientRect(), k = WIDE / box.width;
    const px = (event.clientX - box.left) * k, py = (event.clientY - box.top) * k;
    let best = [Infinity, dial.alpha];
    for (const { curve } of drawn) for (let i = 0; i <= 200; i += 1) {
      const [id, ood] = along(curve, i / 200), gap = Math.hypot(x.at(id) - px, y.at(ood) - py);
      if (gap < best[0]) best = [gap, i / 200];
    }
    dial.set(best[1]);
  }
  plane.addEventListener("pointerdown", (event) => { event.preventDefault(); plane.setPointerCapture(event.pointerId); nearest(event); });
  plane.addEventListener("pointermove", (event) => { if (event.buttons) nearest(event); });
  prepare(); draw();
  return {
    update(next) { latest = next; prepare(); dial.paint(); },
    end: dial.end,
  };
}

export default component(build);
