// A severity dial: the pictures, every method's bar and the cursor of the curves move together.
const WIDE = 460, HIGH = 300, LEFT = 44, RIGHT = 12, TOP = 30, BOTTOM = 48, COLUMNS = 8, ROWS = 6;
const DASHES = { solid: "none", dash: "9 6", dot: "2 5", dashdot: "9 5 2 5", longdash: "14 6", longdashdot: "14 5 2 5" };
const across = (severity) => LEFT + ((WIDE - LEFT - RIGHT) * severity) / 5;

function build(root, data, send) {
  const at = { severity: data.severity, timer: 0 };
  let latest = data, drawn = [];
  const dial = element("input", { type: "range", min: 0, max: 5, step: 1, "aria-label": "Severity" });
  const shown = element("strong");
  const play = element("button", { type: "button", onclick: toggle }, "▶ Turn up");
  const tiles = Array.from({ length: COLUMNS }, () => element("div", { class: "tile" }));
  const pictures = element("div", { class: "tiles", role: "img" }, tiles);
  const marks = element("div", { class: "marks", "aria-hidden": "true" }, ["clean", 1, 2, 3, 4, 5].map((n) => element("span", {}, String(n))));
  const bars = element("div", { class: "bars", role: "list" });
  const held = element("p", { class: "held" }, "Guess first: then the dial turns.");
  const plane = element("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img" });
  root.append(
    element("div", { class: "dial" }, element("label", {}, element("span", {}, "Severity: ", shown), dial, marks), play),
    held, pictures, element("div", { class: "two" }, bars, plane));

  function prepare() {
    const dark = isDark(root);
    const all = latest.runs.flatMap((run) => run.values.map((v, n) => v - (run.spread?.[n] ?? 0)));
    const { low: floor, high } = latest.metric, tenth = (high - floor) / 10;
    const low = Math.max(floor, tenth * Math.floor(Math.min(...all) / tenth));
    const up = (value) => TOP + ((HIGH - TOP - BOTTOM) * (high - value)) / Math.max(tenth, high - low);
    for (const tile of tiles) tile.style.backgroundImage = `url(data:image/webp;base64,${latest.picture})`;
    bars.replaceChildren();
    plane.replaceChildren();
    for (let v = low; v <= high; v += (high - low > 5 * tenth ? 2 : 1) * tenth) plane.append(
      element("line", { x1: LEFT, x2: WIDE - RIGHT, y1: up(v), y2: up(v), stroke: "var(--line)" }),
      element("text", { x: LEFT - 8, y: up(v) + 5, "text-anchor": "end" }, String(v)));
    for (let n = 0; n <= 5; n += 1) plane.append(
      element("text", { x: across(n), y: HIGH - BOTTOM + 20, "text-anchor": n === 5 ? "end" : "middle" }, n ? String(n) : "clean"));
    plane.append(element("text", { x: (LEFT + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle" }, "severity"),
      element("text", { x: 2, y: 14 }, axisName(latest.metric, "").trim()));
    const cursor = element("line", { y1: TOP, y2: HIGH - BOTTOM, stroke: "var(--st-primary-color)", "stroke-width": 3 });
    plane.append(cursor);
    const rows = latest.runs.map((run) => {
      const color = dark ? run.dark : run.light;
      const line = element("polyline", { points: run.values.map((v, n) => `${across(n)},${up(v)}`).join(" "), fill: "none", stroke: color,
        "stroke-width": run.strong ? 4 : 1.8, "stroke-dasharray": DASHES[run.dash] ?? "none" });
      // the spread of the seeds, of the two that the question is about: eleven bands would hide one another
      const edge = (side) => run.values.map((v, n) => `${across(n)},${up(clamp(v + side * run.spread[n], floor, high))}`);
      const band = run.spread && run.strong ? element("polygon", { points: [...edge(1), ...edge(-1).reverse()].join(" "), fill: color,
        "fill-opacity": 0.18, class: "band" }) : null;
      plane.append(...[band, line].filter(Boolean));
      const dot = element("circle", { r: run.strong ? 6 : 4, fill: color });
      plane.append(dot);
      const whisker = run.spread ? element("div", { class: "whisker" }) : null;
      const fill = element("div", { class: "fill", style: `background: ${color}` }), number = element("span", { class: "numbers" });
      bars.append(element("div", { class: run.strong ? "bar strong" : "bar", role: "listitem" }, element("span", {}, run.name),
        element("div", { class: "track" }, [fill, whisker].filter(Boolean)), number));
      return { run, dot, fill, number, up, line, band, whisker };
    });
    drawn = { rows, cursor };
  }

  function draw() {
    const s = latest.hold ? 0 : at.severity;
    dial.disabled = play.disabled = Boolean(latest.hold);
    held.style.display = latest.hold ? "" : "none";
    shown.textContent = s ? `${s} of 5` : "0, clean";
    dial.value = s;
    dial.setAttribute("aria-valuetext", shown.textContent);
    tiles.forEach((tile, i) => { tile.style.backgroundPosition = `${(100 * i) / (COLUMNS - 1)}% ${(100 * s) / (ROWS - 1)}%`; });
    for (const { run, dot, fill, number, up, line, band, whisker } of drawn.rows) {
      for (const node of [line, band]) if (node) node.style.display = latest.hold ? "none" : "";
      const spread = run.spread?.[s] ?? 0, from = share(run.values[s] - spread, latest.metric), to = share(run.values[s] + spread, latest.metric);
      if (whisker) Object.assign(whisker.style, { left: `${Math.max(0, from)}%`, width: `${Math.min(100, to) - Math.max(0, from)}%` });
      fill.style.width = `${share(run.values[s], latest.metric)}%`;
      number.textContent = `${fixed(run.values[s], 1)}${run.spread ? ` ± ${fixed(spread, 1)}` : ""} ${latest.metric.unit}`;
      change(dot, { cx: across(s), cy: up(run.values[s]) });
    }
    change(drawn.cursor, { x1: across(s), x2: across(s) });
    const best = [...drawn.rows].sort((a, b) => (better(latest.metric, a.run.values[s], b.run.values[s]) ? -1 : 1))[0].run;
    pictures.setAttribute("aria-label", `The pictures ${latest.labels.join(", ")} under ${latest.title}, severity ${s}`);
    plane.setAttribute("aria-label", `Every method for each severity of ${latest.title}. At ${s} the best is ${best.name} with ${fixed(best.values[s], 1)} ${latest.metric.unit}.`);
  }

  const paint = painter(draw);
  let later = 0;
  function set(severity) {
    at.severity = clamp(severity, 0, 5);
    paint();
    clearTimeout(later);
    later = setTimeout(() => send("severity", at.severity), 300);
  }
  function stop() { clearInterval(at.timer); at.timer = 0; play.textContent = "▶ Turn up"; }
  function toggle() {
    if (at.timer) { stop(); return; }
    if (at.severity === 5) set(0);
    play.textContent = "❚❚ Pause";
    at.timer = setInterval(() => { if (at.severity === 5) stop(); else set(at.severity + 1); }, 900);
  }
  dial.addEventListener("input", () => { stop(); set(Number(dial.value)); });
  prepare(); draw();
  return {
    update(next) { latest = next; prepare(); paint(); },
    end() { paint.cancel(); stop(); clearTimeout(later); },
  };
}

export default component(build);
