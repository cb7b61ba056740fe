// Methods as points in the plane of ID and OOD accuracy: they move as they train, and leave a tail.
const RACE_SECONDS = 8;
const HELD = 0.25; // of the training: there the points wait for a guess
const FRAME = 40;
const ENDED = ["done", "stopped", "failed", "interrupted"];
const SPEEDS = { "slow motion": 0.25, "1×": 1, "2×": 2 };
const SIDES = ["top center", "bottom center", "middle left", "middle right", "top left", "bottom right"];

const shifts = (row) => Object.entries(row.accuracy).filter(([name]) => name !== "id" && name !== "val");
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const pointOf = (row, steps) => ({ at: row.step / steps, id: row.accuracy.id, ood: mean(shifts(row).map(([, v]) => v)) });

// Where a runner is at a moment from 0 to 1, between two evaluations on the straight line; and its way up to there.
function wayTo(points, moment) {
  const past = points.filter((p) => p.at <= moment);
  const next = points.find((p) => p.at > moment), from = past.at(-1);
  if (!from) return [];
  if (!next) return past;
  const share = (moment - from.at) / (next.at - from.at), between = (key) => from[key] + share * (next[key] - from[key]);
  return [...past, { at: moment, id: between("id"), ood: between("ood") }];
}

function rangeOf(runners, key) {
  const late = runners.flatMap((r) => r.points.filter((p) => p.at >= 0.2).map((p) => p[key]));
  if (!late.length) return [0, 101];
  const low = Math.min(...late), high = Math.max(...late), room = Math.max(1, 0.12 * (high - low));
  return [low - room, Math.min(101, high + room)];
}

function build(root, data, send) {
  root.classList.add("ftp-player", "ftp-race");
  let runners = [], moment = 1, playing = false, speed = 1, last = 0, frame = 0, ends = false, Plotly = null, begun = false;
  let stops = [], told = "";
  const says = element("p", { class: "says" }), spoken = element("p", { class: "hidden", "aria-live": "polite" });
  const plane = element("div", { class: "plane", role: "group",
    "aria-label": "Chart: each method as a point, ID accuracy across, OOD accuracy up" });
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
    stops = runners.filter((r) => !r.ended).map((r) => polling(() => ask(r), (text) => { told = text; draw(); }));
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
    if (!ENDED.includes(news.status)) return true;
    runner.ended = true;
    send("ended", runners.filter((r) => r.ended).map((r) => r.id).join(" "));
    return false;
  }

  const traces = () => runners.flatMap((r, i) => {
    const way = wayTo(r.points, moment), head = way.slice(-1);
    const label = runners.length < 7 ? "markers+text" : "markers";
    return [
      { type: "scatter", mode: "lines", x: way.map((p) => p.id), y: way.map((p) => p.ood), hoverinfo: "skip",
        line: { color: r.color, dash: r.dash, width: 2 }, opacity: 0.45, showlegend: false, name: r.name },
      { type: "scatter", mode: label, x: head.map((p) => p.id), y: head.map((p) => p.ood), name: r.name,
        text: head.map(() => r.name), textposition: SIDES[i % SIDES.length], cliponaxis: true,
        textfont: { color: data.look.text, size: 14 },
        marker: { color: r.color, symbol: r.marker, size: 15, line: { color: data.look.paper, width: 1 } },
        hovertemplate: "%{fullData.name}<br>ID %{x:.1f} %<br>OOD %{y:.1f} %<extra></extra>" },
    ];
  });

  function layOut() {
    if (!Plotly || ends) return;
    const look = data.look;
    const layout = layoutOf(look, { height: 440, margin: { l: 56, r: 16, t: 12, b: 48 }, showlegend: runners.length > 6,
      uirevision: runners.map((r) => r.id).join(), legend: { font: { size: 13, color: look.text } },
      xaxis: axis(look, "ID accuracy (%): the task", { range: rangeOf(runners, "id") }),
      yaxis: axis(look, "OOD accuracy (%): mean over the shifts", { range: rangeOf(runners, "ood") }) });
    Plotly[begun ? "react" : "newPlot"](plane, traces(), layout, CONFIG);
    begun = true;
    words();
  }

  // the points move, the chart stays
  function draw() {
    if (!begun || ends) return;
    const now = traces(), all = now.map((_, i) => i);
    Plotly.restyle(plane, { x: now.map((t) => t.x), y: now.map((t) => t.y), text: now.map((t) => t.text ?? []) }, all);
    words();
  }

  function words() {
    const heads = runners.map((r) => ({ name: r.name, ...wayTo(r.points, moment).at(-1) })).filter((r) => r.at > 0);
    const trained = Math.max(0, ...heads.map((r) => r.at)); // less than the moment while they train
    const best = heads.reduce((a, b) => (a && a.ood >= b.ood ? a : b), null);
    says.textContent = told || (best
      ? `After ${Math.round(100 * Math.min(moment, trained))}\u00a0% of the training ${best.name} keeps most: OOD ${best.ood.toFixed(0)}\u00a0%, ` +
        `ID ${best.id.toFixed(0)}\u00a0%.`
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
    moment = ready && data.hold ? HELD : playing ? 0 : 1;
    layOut();
    go();
  }

  loadPlotly().then((found) => {
    Plotly = found;
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
