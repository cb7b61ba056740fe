// A run, live or replayed: the leash of every layer while it is learned, and what becomes of the scores.
const ENDED = ["done", "stopped", "failed", "interrupted"];
const SPEEDS = { "slow motion": 0.2, "1×": 1, "2×": 2, "5×": 5 };
const REPLAY_SECONDS = 12;
const HELD = 0.02; // of the training: there a run that has ended waits for a guess, before its leashes give the answer
const LOOK_AGAIN = 5; // seconds: a run that was stopped may go on in another tab
const FRAME = 80; // milliseconds: more pictures a second cost much and show no more
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const homeOf = (row) => row.summary.home;
const oodOf = (row) => row.summary.shift_mean;
const metricOf = (run) => run.measures.metrics[0] ?? { name: "score", unit: "", higher_is_better: true, low: 0, high: 1 };
const upTo = (rows, step) => { // how many rows there are up to a step
  let n = rows.length;
  while (n && rows[n - 1].step > step) n--;
  return n;
};
const blank = (id) => ({ id, since: -1, layers: [], points: [], evals: [], said: [], sheet: null, status: "", place: null, steps: 0,
  phases: [], measures: { metrics: [], roles: {} } });

// Take in what the route sent; the last evaluations may come twice.
function takeIn(run, news) {
  Object.assign(run, { since: news.step, status: news.status, steps: news.steps ?? run.steps, phases: news.phases ?? run.phases, place: news.place,
    error: news.error, method: news.method ?? run.method });
  if (news.layers?.length) run.layers = news.layers;
  if (news.measures?.metrics.length) run.measures = news.measures;
  run.points.push(...news.points);
  const fresh = news.evals.filter((row) => [row.answers, row.maps].some((said) => Object.keys(said ?? {}).length));
  run.said = [...run.said.filter((row) => !fresh.some((f) => f.step === row.step)), ...fresh];
  for (const row of news.evals.filter((row) => row.step > 0)) { // the fresh head's guesses would squash the chart
    const same = run.evals.findIndex((e) => e.step === row.step);
    if (same < 0) run.evals.push(row);
    else run.evals[same] = row;
  }
}

// What is going on at a step, in one line.
function sentence(run, step, layer, idle, held) {
  const n = upTo(run.points, step), point = run.points[n - 1], row = run.evals[upTo(run.evals, step) - 1];
  if (!point && run.points.length) return "Step 0: every layer stands at its anchor W₀.";
  if (!point && !run.status) return "Loading.";
  if (!point) return run.status === "queued" ? waiting(run, idle) : "The network is loading; the first step comes at once.";
  if (held) return `Step ${point.step} of ${run.steps}. Make your guess, and the run plays on.`;
  const key = hasGamma(run) ? "gamma" : "distance";
  const values = point[key].filter((v) => v !== null), half = Math.ceil(values.length / 2);
  const words = key === "gamma" ? "γ of early layers" : "no leash; early layers are away by";
  const parts = [`${words} ${mean(values.slice(0, half)).toFixed(2)}, late ${mean(values.slice(half)).toFixed(2)}`];
  const at = run.layers.indexOf(layer);
  if (at >= 0) {
    const gamma = point.gamma[at] === null ? "no leash" : `γ ${point.gamma[at].toFixed(3)}`;
    parts[0] = `${layer} has ${gamma} and is ${point.distance[at].toFixed(3)} away from W₀`;
  }
  if (row && homeOf(row) !== null) {
    const shifted = oodOf(row) === null ? "" : `, OOD ${withUnit(oodOf(row), metricOf(run))}`;
    parts.push(`ID ${withUnit(homeOf(row), metricOf(run))}${shifted}`);
  }
  const last = point.step === run.steps && run.status === "running" ? " The last scores, on all images, are on their way." : "";
  return `Step ${point.step} of ${run.steps}: ${parts.join("; ")}.${last}`;
}

function waiting(run, idle) {
  if (idle) return "Not begun.";
  const ahead = run.place?.ahead ?? 0, seconds = Math.ceil(run.place?.seconds ?? 0);
  const who = ahead === 1 ? "1 run is" : `${ahead} runs are`;
  return ahead ? `Waiting: ${who} ahead, about ${seconds} s.` : "Waiting for a free worker; it starts in a moment.";
}

const hasGamma = (run) => run.points.some((point) => point.gamma.some((value) => value !== null));

function build(root, data, send) {
  let run = blank(data.run), other = null, layer = data.layer || "", kind = "distance", picture = "network";
  let cursor = 0, playing = false, follow = true, speed = 1, drawn = 0, last = 0, frame = 0, spoken = 0, trouble = "";
  let charts = null, stops = [], ends = false, rated = false, known = data.status, cost = 0, frames = 0;
  root.classList.add("ftp-player");
  const ui = controls(root, {
    play: () => { follow = false; playing = !playing; if (playing && cursor >= end()) cursor = 0; go(); },
    step: (by) => { follow = playing = false; cursor = stepBeside(by); go(); },
    scrub: (to) => { follow = playing = false; cursor = to; go(); },
    speed: (name) => { speed = SPEEDS[name]; },
    follow: () => { follow = true; playing = false; cursor = end(); go(); },
    layer: (name) => choose(name),
    kind: (name) => { kind = name; redraw(); },
    picture: (name) => { picture = name; draw(); charts?.main.fit(); },
  });

  const net = network(ui.places.network, (name) => choose(name));
  const pictures = strip(ui.places.strip);
  const early = new Map();
  const end = () => run.points.at(-1)?.step ?? 0;
  const stepBeside = (by) => {
    const n = clamp(upTo(run.points, cursor) + by, 0, run.points.length);
    return n ? run.points[n - 1].step : 0;
  };

  function choose(name) {
    layer = layer === name ? "" : name;
    send("layer", layer);
    redraw();
  }

  // all charts anew, in place
  function redraw() {
    if (!charts || ends) return;
    const n = upTo(run.points, cursor), e = upTo(run.evals, cursor), look = data.look;
    const otherPoints = other?.points ?? [];
    const still = (key) => otherLines(other, key, layer, look);
    const main = hasGamma(run) || !run.points.length ? "gamma" : "distance";
    pictures.set(run.sheet, run);
    net.set(run, layer, look);
    charts.main.set(layerLines(run, main, layer, look), mainLayout(run, main, layer, look), run.points, n, [
      ...still(main), depthBar(look)]);
    const small = main === "distance" ? "" : kind; // without a leash the large chart shows the distance already
    if (small) charts.small.set(layerLines(run, small, layer, look, 1.2), smallLayout(run, small, look), run.points, n,
      otherPoints.length ? still(small) : []);
    const loss = [{ name: "loss", color: look.text, width: 1.5, value: (p) => p.loss }];
    charts.loss.set(loss, lossLayout(run, look), run.points, n);
    rated = e > 0;
    charts.accuracy.set(accuracyLines(run, look), accuracyLayout(run, look, e), run.evals, e, otherAccuracy(other, look));
    draw();
  }

  // the same lines, longer or shorter; in motion the side charts follow at every fourth picture, and at the end
  function draw() {
    if (!charts || ends) return;
    const n = upTo(run.points, cursor), e = upTo(run.evals, cursor), begun = performance.now();
    if (rated !== e > 0) { redraw(); return; } // the first score brings another axis
    const moving = playing || (follow && cursor < end());
    net.draw(run.points[n - 1], run);
    const said = run.said[upTo(run.said, cursor) - 1];
    pictures.draw(said);
    charts.main.grow(run.points, n);
    if (!moving || frames++ % 4 === 0) {
      for (const name of ["small", "loss"]) charts[name].grow(run.points, n);
      charts.accuracy.grow(run.evals, e);
    }
    cost = 0.7 * cost + 0.3 * (performance.now() - begun);
    const ended = ENDED.includes(run.status);
    const held = data.hold && ended && !playing && cursor <= HELD * run.steps;
    const text = trouble || sentence(run, cursor, layer, data.idle, held);
    ui.show({ text, cursor: n ? run.points[n - 1].step : 0, steps: run.steps, playing, follow, ended, layer,
      layers: run.layers, kind, picture, leashless: run.points.length > 0 && !hasGamma(run) });
    if (!playing || performance.now() - spoken > 5000) { ui.speak(text); spoken = performance.now(); }
    drawn = n;
  }

  function tick(now) {
    frame = 0;
    if (ends) return;
    const gap = now - last;
    if (gap >= Math.max(FRAME, 3 * cost)) { // on a slow machine fewer pictures, so that training and buttons go on
      last = now;
      const rest = end() - cursor;
      if (playing) cursor = Math.min(end(), cursor + (speed * run.steps * Math.min(gap, 250)) / 1000 / REPLAY_SECONDS);
      else if (follow) cursor = rest > 60 || calm() ? end() : Math.min(end(), cursor + Math.max(1, rest * 0.3));
      if (playing && cursor >= end() && ENDED.includes(run.status)) playing = false;
      if (upTo(run.points, cursor) !== drawn || !playing) draw();
    }
    go();
  }
  function go() {
    const moving = playing || (follow && cursor < end());
    if (moving && !frame) frame = requestAnimationFrame(tick);
    if (!moving) draw();
  }

  function watch() {
    stops.forEach((stop) => stop());
    stops = [polling(() => ask(run, true), say)];
    if (other) stops.push(polling(() => ask(other, false), () => {}));
  }
  const say = (text) => { trouble = text; draw(); };
  async function ask(target, first) {
    const query = target === run && data.recorded ? "&recorded=1" : "";
    const news = await (early.get(target) ?? fetchJson(`/api/run/${target.id}/tail?since=${target.since}${query}`));
    early.delete(target);
    if (ends || (target !== run && target !== other)) return false;
    const begins = !target.points.length, unknown = !target.steps, unrated = !target.evals.length;
    const hadEnded = ENDED.includes(target.status);
    takeIn(target, news);
    if (first) fetchSheet(target);
    const ended = ENDED.includes(target.status);
    if (!ended) renewLease(target.id);
    if (first && hadEnded && (!ended || news.points.length)) [playing, follow] = [false, true]; // somebody went on with it
    if (begins && target.points.length) {
      if (first && ended && data.hold) { follow = playing = false; cursor = HELD * run.steps; }
      else if (first && ended && data.replay && !calm()) { follow = false; playing = true; cursor = 0; }
      else if (first && ended) cursor = end();
      redraw();
    } else if (first ? unknown || (unrated && target.evals.length) : news.points.length) redraw(); // other axes, more lines
    // only what is news to the page: to say more runs its script again, which takes back a click on another view
    if (first && target.status !== known) { known = target.status; send("status", `${target.id} ${known}`); }
    go();
    return !ended || (target.status !== "done" && LOOK_AGAIN);
  }

  // a network's answers need the pictures they are about; they come once, and without them the strip stays away
  function fetchSheet(target) {
    if (target.sheet || !target.said.length || target.asked) return;
    target.asked = true;
    fetchJson(`/api/run/${target.id}/pictures`).then((sheet) => {
      if (ends || target !== run || !sheet.sheet) return;
      target.sheet = sheet;
      redraw();
      if (picture === "lines") charts?.main.fit();
    }).catch(() => { target.asked = false; }); // asked for again with the next numbers
  }

  function update(next) {
    const before = data;
    data = next;
    if (next.status !== before.status) known = next.status;
    if (next.run !== before.run || next.recorded !== before.recorded) {
      run = blank(next.run);
      [cursor, playing, follow, known, trouble] = [0, false, true, next.status, ""];
    } else if (next.turn !== before.turn) [playing, follow] = [false, true]; // it goes on, and so does the chart
    if ((next.other ?? "") !== (other?.id ?? "")) other = next.other ? blank(next.other) : null;
    if (next.layer !== before.layer) layer = next.layer || "";
    if (before.hold && !next.hold && next.run === before.run && ENDED.includes(run.status) && cursor < end()) {
      [follow, playing] = [false, !calm()]; // the guess is made: on to the end
      if (calm()) cursor = end();
      go();
    }
    const changed = ["run", "other", "turn", "recorded"].some((key) => next[key] !== before[key]);
    if (changed || JSON.stringify(next.look) !== JSON.stringify(before.look)) redraw();
    if (changed) watch();
  }

  if (data.other) other = blank(data.other);
  // the numbers come while Plotly is still on its way; what goes wrong is told when they are asked for again
  early.set(run, fetchJson(`/api/run/${run.id}/tail?since=-1${data.recorded ? "&recorded=1" : ""}`));
  early.get(run).catch(() => early.delete(run));
  // one picture with lines instead of an empty one first, if the numbers do not take long
  const soon = Promise.race([early.get(run), new Promise((done) => setTimeout(done, 1000))]).catch(() => null);
  Promise.all([loadPlotly(), soon]).then(async ([Plotly, news]) => {
    if (ends) return;
    charts = Object.fromEntries(["main", "accuracy", "small", "loss"].map((n) => [n, growing(Plotly, ui.places[n])]));
    if (news) await ask(run, true).catch(() => {}); // told when it is asked for again
    if (ends) return;
    if (!charts.main.begun) redraw();
    ui.places.main.on("plotly_click", (event) => {
      const name = run.layers[charts.main.lines[event.points[0].curveNumber]?.at];
      if (name) choose(name);
    });
    watch();
  }).catch(() => { trouble = "The charts did not load; reload the page."; ui.show({ text: trouble }); });

  return { update, end: () => {
    ends = true;
    cancelAnimationFrame(frame);
    stops.forEach((stop) => stop());
    if (charts) Object.values(charts).forEach((chart) => chart.end());
  } };
}

export default component(build);
