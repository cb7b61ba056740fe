// Methods as points in the plane of ID and OOD: they move as they train, and leave a tail. Up and right is better.
const RACE_SECONDS = 8;
const WAIT_AT = 0.25; // of the training: there the points wait for a guess
const FRAME = 40;
const ENDED = ["done", "stopped", "failed", "interrupted"];
const SPEEDS = { "slow motion": 0.25, "1×": 1, "2×": 2 };
const LETTER = 8, LINE = 17, GAP = 9; // pixels: a letter of a name, its height, and its distance from its point
// where a name may stand: Plotly's word, and its middle in shares of its width and height, and in gaps
const SIDES = { "middle right": [0.5, 0, 1, 0], "middle left": [-0.5, 0, -1, 0], "top center": [0, -0.5, 0, -1],
  "bottom center": [0, 0.5, 0, 1], "top right": [0.5, -0.5, 0.6, -0.4], "top left": [-0.5, -0.5, -0.6, -0.4],
  "bottom right": [0.5, 0.5, 0.6, 0.4], "bottom left": [-0.5, 0.5, -0.6, 0.4] };

const pointOf = (row, steps) => ({ at: row.step / steps, id: row.summary.home, ood: row.summary.shift_mean,
  spread: row.spread ?? null });

// Where a runner is at a moment from 0 to 1, between two evaluations on the straight line; and its way up to there.
function wayTo(points, moment) {
  const past = points.filter((p) => p.at <= moment);
  const next = points.find((p) => p.at > moment), from = past.at(-1);
  if (!from) return [];
  if (!next || from.at === moment) return past;
  const share = (moment - from.at) / (next.at - from.at), between = (key) => from[key] + share * (next[key] - from[key]);
  return [...past, { at: moment, id: between("id"), ood: between("ood") }];
}

// from the worst to the best: where lower is better, the axis is turned round
function rangeOf(runners, key, metric) {
  const whole = metric.high - metric.low, edge = metric.high + 0.01 * whole;
  const late = runners.flatMap((r) => r.points.filter((p) => p.at >= 0.2).map((p) => p[key]));
  const low = Math.min(...late), high = Math.max(...late), room = Math.max(0.01 * whole, 0.12 * (high - low));
  const ends = late.length ? [low - room, Math.min(edge, high + room)] : [metric.low, edge];
  return metric.higher_is_better ? ends : ends.reverse();
}

// A side for each name on which it covers no point, no other name and no edge, or covers least. heads: {name, x, y,
// bars} in pixels, or null for one that has not begun.
function sidesOf(heads, wide, high) {
  const overlap = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left))
    * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  const box = (x, y, w, h) => ({ left: x - w / 2, right: x + w / 2, top: y - h / 2, bottom: y + h / 2, area: w * h });
  const taken = heads.filter(Boolean).flatMap((head) => [box(head.x, head.y, 18, 18),
    box(head.x, head.y, 2 * (head.bars?.[0] ?? 0), 6), box(head.x, head.y, 6, 2 * (head.bars?.[1] ?? 0))]);
  const inside = { left: 0, right: wide, top: 0, bottom: high };
  return heads.map((head) => {
    if (!head) return "middle right";
    const w = LETTER * head.name.length;
    const choices = Object.entries(SIDES).map(([side, [dx, dy, gx, gy]]) => {
      const place = box(head.x + dx * w + gx * GAP, head.y + dy * LINE + gy * GAP, w, LINE);
      return { side, place, cost: taken.reduce((sum, other) => sum + overlap(place, other), 0) + place.area - overlap(place, inside) };
    });
    const best = choices.reduce((a, b) => (b.cost < a.cost - 1 ? b : a));
    taken.push(best.place);
    return best.side;
  });
}

// the answer in words stands below the chart: both fit on a small laptop
const tall = () => clamp(innerHeight - 380, 300, 560);

function build(root, data, send) {
  root.classList.add("ftp-player", "ftp-race");
  let runners = [], moment = 1, playing = false, speed = 1, last = 0, frame = 0, ends = false, Plotly = null, begun = false;
  let stops = [], trouble = "", sides = [];
  const says = element("p", { class: "says" }), spoken = element("p", { class: "hidden", "aria-live": "polite" });
  const plane = element("div", { class: "plane", role: "group",
    "aria-label": "Chart: each method as a point, ID across, OOD up" });
  const play = element("button", { type: "button", "aria-label": "Play", title: "Play", onclick: () => {
    playing = !playing;
    if (playing && moment >= 1) moment = 0;
    go();
  } }, "▶");
  const scrub = element("input", { type: "range", min: 0, max: 100, step: 1,
    oninput: (event) => { playing = false; moment = event.target.value / 100; go(); } });
  const at = element("output", {});
  const pace = element("select", { onchange: (event) => { speed = SPEEDS[event.target.value]; } },
    Object.keys(SPEEDS).map((name) => element("option", { value: name }, name)));
  pace.value = "1×";
  const hidden = (text, field, kind = "") => element("label", { class: kind }, element("span", { class: "hidden" }, text), field);
  root.append(says, spoken, plane, element("div", { class: "bar" }, play, hidden("Share of the training", scrub, "scrub"),
    at, hidden("Speed", pace)));

  function take() {
    const before = new Map(runners.map((r) => [r.id, r]));
    runners = data.runs.map((run) => {
      const known = before.get(run.id);
      const points = run.evals.length ? run.evals.map((row) => pointOf(row, run.steps)) : known?.points ?? [];
      return { ...run, points, since: known?.since ?? -1, ended: run.evals.length > 0 };
    });
    stops.forEach((stop) => stop());
    stops = runners.filter((r) => !r.ended).map((r) => polling(() => ask(r), (text) => { trouble = text; draw(); }));
  }

  async function ask(runner) {
    const news = await fetchJson(`/api/run/${runner.id}/tail?since=${runner.since}`);
    if (ends || !runners.includes(runner)) return false;
    runner.since = news.step;
    for (const row of news.evals) {
      const point = pointOf(row, news.steps), same = runner.points.findIndex((p) => p.at === point.at);
      if (same < 0) runner.points.push(point);
      else runner.points[same] = point;
    }
    layOut();
    if (!ENDED.includes(news.status)) {
      renewLease(runner.id);
      return true;
    }
    runner.ended = true;
    send("ended", runners.filter((r) => r.ended).map((r) => r.id).join(" "));
    return false;
  }

  // one standard deviation over seeds, where the point stands on an evaluation and not between two
  const bar = (point, key, color) => ({ type: "data", array: [point?.spread?.[key] ?? 0], visible: Boolean(point?.spread?.[key]),
    color, thickness: 1.6, width: 4 });
  const traces = () => runners.flatMap((r, i) => {
    const way = wayTo(r.points, moment), head = way.slice(-1);
    const label = runners.length < 7 ? "markers+text" : "markers";
    return [
      { type: "scatter", mode: "lines", x: way.map((p) => p.id), y: way.map((p) => p.ood), hoverinfo: "skip",
        line: { color: r.color, dash: r.dash, width: 2 }, opacity: 0.45, showlegend: false, name: r.name },
      { type: "scatter", mode: label, x: head.map((p) => p.id), y: head.map((p) => p.ood), name: r.name,
        error_x: bar(head[0], "home", r.color), error_y: bar(head[0], "shift_mean", r.color),
        text: head.map(() => r.name), textposition: sides[i] ?? "middle right", cliponaxis: true,
        textfont: { color: data.look.text, size: 14 },
        marker: { color: r.color, symbol: r.marker, size: 15, line: { color: data.look.paper, width: 1 } },
        hovertemplate: `%{fullData.name}<br>ID %{x:.1f} ${data.metric.unit}<br>OOD %{y:.1f} ${data.metric.unit}<extra></extra>` },
    ];
  });

  // names change sides only while the points stand still
  function arrange() {
    const { _size: size, xaxis, yaxis } = plane._fullLayout ?? {};
    if (playing || !size) return;
    const scale = ([from, to], length) => length / (to - from);
    const across = scale(xaxis.range, size.w), up = scale(yaxis.range, size.h);
    sides = sidesOf(runners.map((r) => {
      const head = wayTo(r.points, moment).at(-1);
      return head ? { name: r.name, x: across * (head.id - xaxis.range[0]), y: size.h - up * (head.ood - yaxis.range[0]),
        bars: [Math.abs(across) * (head.spread?.home ?? 0), Math.abs(up) * (head.spread?.shift_mean ?? 0)] } : null;
    }), size.w, size.h);
  }

  function layOut() {
    if (!Plotly || ends) return;
    const look = data.look;
    const layout = layoutOf(look, { height: tall(), margin: { l: 56, r: 16, t: 12, b: 48 }, showlegend: runners.length > 6,
      uirevision: runners.map((r) => r.id).join(), legend: { font: { size: 13, color: look.text } },
      xaxis: axis(look, `${axisName(data.metric, "ID")}: the task`, { range: rangeOf(runners, "id", data.metric) }),
      yaxis: axis(look, `${axisName(data.metric, "OOD")}: mean over the shifts`, { range: rangeOf(runners, "ood", data.metric) }) });
    Plotly[begun ? "react" : "newPlot"](plane, traces(), layout, CONFIG);
    begun = true;
    draw();
  }

  // the points move, the chart stays
  function draw() {
    if (!begun || ends) return;
    arrange();
    const now = traces(), all = now.map((_, i) => i);
    Plotly.restyle(plane, { x: now.map((t) => t.x), y: now.map((t) => t.y), text: now.map((t) => t.text ?? []),
      textposition: now.map((t) => t.textposition ?? "middle right"),
      error_x: now.map((t) => t.error_x ?? {}), error_y: now.map((t) => t.error_y ?? {}) }, all);
    words();
  }

  function words() {
    const heads = runners.map((r) => ({ name: r.name, ...wayTo(r.points, moment).at(-1) })).filter((r) => r.at > 0);
    const trained = Math.max(0, ...heads.map((r) => r.at)); // less than the moment while they train
    const arrived = heads.length === runners.length && heads.every((r) => r.at >= 1);
    const best = heads.reduce((a, b) => (a && better(data.metric, a.ood, b.ood) ? a : b), null);
    const waits = runners.filter((r) => !r.points.some((p) => p.at > 0)).map((r) => r.name);
    // nobody has won before all have arrived
    says.textContent = trouble || (arrived
      ? `All have arrived; the highest point is ${best.name}: OOD ${withUnit(best.ood, data.metric)}, ID ${withUnit(best.id, data.metric)}.`
      : heads.length ? `After ${Math.round(100 * Math.min(moment, trained))}\u00a0% of the training` +
        `${waits.length ? `; waiting: ${waits.join(", ")}` : "; nobody has arrived yet"}.`
      : moment > 0 ? "Waiting for the first evaluations." : "At the start no head has learned anything yet.");
    if (!playing) spoken.textContent = says.textContent;
    change(play, { "aria-label": playing ? "Pause" : "Play", title: playing ? "Pause" : "Play" });
    play.textContent = playing ? "❚❚" : "▶";
    scrub.value = Math.round(100 * moment);
    change(scrub, { "aria-valuetext": `${scrub.value} percent of the training` });
    at.textContent = `${scrub.value}\u00a0%`;
  }

  function tick(now) {
    frame = 0;
    const gap = now - last;
    if (ends) return;
    if (gap >= FRAME) {
      last = now;
      moment = Math.min(1, moment + (speed * Math.min(gap, 250)) / 1000 / RACE_SECONDS);
      if (moment >= 1) playing = false;
      draw();
    }
    go();
  }
  function go() {
    if (playing && !frame) frame = requestAnimationFrame(tick);
    if (!playing) draw();
  }

  function start() {
    const ready = runners.every((r) => r.ended);
    playing = ready && !data.hold && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    moment = ready && data.hold ? WAIT_AT : playing ? 0 : 1;
    layOut();
    go();
  }

  loadPlotly().then((loaded) => {
    Plotly = loaded;
    take();
    start();
  }).catch(() => { says.textContent = "The chart did not load; reload the page."; });

  return {
    update: (next) => {
      const same = JSON.stringify(next.runs) === JSON.stringify(data.runs), before = data.runs.map((r) => r.id).join();
      const guessed = data.hold && !next.hold;
      data = next;
      if (!Plotly) return;
      if (same && guessed && !playing) start();
      else if (same) layOut();
      else {
        take();
        if (before === next.runs.map((r) => r.id).join()) layOut();
        else start();
      }
    },
    end: () => {
      ends = true;
      cancelAnimationFrame(frame);
      stops.forEach((stop) => stop());
      if (begun) Plotly.purge(plane);
    },
  };
}

export default component(build);
