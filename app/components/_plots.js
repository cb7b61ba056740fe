// Plotly, loaded once for all charts of the page, and charts that grow in place: no blink, and a zoom is kept.
const CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

function loadPlotly() {
  window.ftpPlotly ??= new Promise((done, fail) => {
    const script = element("script", { src: "/api/plotly.js" });
    script.onload = () => done(window.Plotly);
    script.onerror = () => { window.ftpPlotly = null; fail(new Error("no Plotly")); };
    document.head.append(script);
  });
  return window.ftpPlotly;
}

function axis(look, title, more = {}) {
  return { title: { text: title, font: { size: 13, color: look.text }, standoff: 6 }, color: look.text,
    tickfont: { size: 12, color: look.text }, gridcolor: look.grid, linecolor: look.muted, showline: true,
    zeroline: false, automargin: false, exponentformat: "e", ...more };
}

function layoutOf(look, more = {}) {
  return { paper_bgcolor: look.paper, plot_bgcolor: look.paper, showlegend: false, hovermode: "closest",
    font: { family: look.font, size: 13, color: look.text }, margin: { l: 46, r: 10, t: 26, b: 34 },
    hoverlabel: { bgcolor: look.paper, bordercolor: look.muted, font: { color: look.text } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: look.muted, activecolor: look.text }, ...more };
}

// How far chance alone may move an accuracy that stands on so many images: one standard error, in its own unit; null for
// other metrics. Two right and two wrong are added to the count, else 200 of 200 would claim to be without any error.
function standardError(value, metric, images) {
  if (metric.name !== "accuracy" || value == null || !images) return null;
  const whole = metric.high - metric.low, right = (images * (value - metric.low)) / whole, p = (right + 2) / (images + 4);
  return whole * Math.sqrt((p * (1 - p)) / (images + 4));
}

// The same of an evaluation at home and of the mean over its shifts: {home, shift_mean, images: [home, of each shift]}.
function errorsOf(row, measures) {
  const metric = measures.metrics[0], names = (role) => Object.keys(measures.roles).filter((n) => measures.roles[n] === role);
  const error = (name) => standardError(row.scores[metric?.name]?.[name], metric ?? {}, row.counts?.[name]);
  const [home] = names("home"), shifts = names("shift"), errors = shifts.map(error);
  const mean = errors.length && errors.every((e) => e !== null) ? Math.hypot(...errors) / errors.length : null;
  return { home: error(home), shift_mean: mean, images: [row.counts?.[home], row.counts?.[shifts[0]]] };
}

// A chart of lines over steps. A line is {name, color, dash, width, value: row => number}; a row has its `step`. With
// error: row => number or null, each point has its error bar.
function growing(Plotly, div) {
  const chart = { div, lines: [], shown: 0, begun: false };
  const upTo = (rows, line, n) => ({ x: rows.slice(0, n).map((r) => r.step), y: rows.slice(0, n).map(line.value),
    errors: line.error ? rows.slice(0, n).map((row) => line.error(row) ?? 0) : [] });
  const barOf = (line, array) => ({ type: "data", array, visible: Boolean(line.error), color: line.color, thickness: 1.2, width: 3 });

  // another run, other lines or another look; `still` are traces that do not grow
  chart.set = (lines, layout, rows, n, still = []) => {
    chart.lines = lines;
    chart.shown = n;
    const part = (line, { errors, ...xy }) => ({ ...xy, ...(line.error && { error_y: barOf(line, errors), customdata: errors }) });
    const traces = lines.map((line) => ({ type: "scatter", mode: line.mode ?? "lines", name: line.name,
      line: { color: line.color, dash: line.dash ?? "solid", width: line.width ?? 1.8 }, opacity: line.opacity ?? 1,
      marker: { size: 5, color: line.color }, showlegend: line.legend ?? true,
      hovertemplate: line.hover ?? "%{fullData.name}<br>step %{x}: %{y:.3g}<extra></extra>", ...part(line, upTo(rows, line, n)) }));
    Plotly[chart.begun ? "react" : "newPlot"](div, [...traces, ...still], layout, CONFIG);
    chart.begun = true;
  };

  chart.grow = (rows, n) => {
    if (n === chart.shown || !chart.lines.length) return;
    const all = chart.lines.map((_, i) => i);
    if (n > chart.shown && !chart.lines.some((line) => line.error)) {
      const fresh = rows.slice(chart.shown, n);
      const x = fresh.map((row) => row.step);
      Plotly.extendTraces(div, { x: chart.lines.map(() => x), y: chart.lines.map((l) => fresh.map(l.value)) }, all);
    } else {
      const parts = chart.lines.map((line) => upTo(rows, line, n));
      const bars = chart.lines.some((line) => line.error)
        ? { "error_y.array": parts.map((p) => p.errors), customdata: parts.map((p) => p.errors) } : {};
      Plotly.restyle(div, { x: parts.map((p) => p.x), y: parts.map((p) => p.y), ...bars }, all);
    }
    chart.shown = n;
  };
  chart.fit = () => chart.begun && Plotly.Plots.resize(div); // it was drawn while nobody saw it
  chart.end = () => chart.begun && Plotly.purge(div);
  return chart;
}

// Ask a route again and again: once a second, seldom while nobody looks, less and less often while it fails. What `ask`
// gives back says whether to go on, or after how many seconds.
function polling(ask, says) {
  let timer = 0, wait = 1, alive = true;
  const turn = async () => {
    if (!alive) return;
    let more = true;
    if (!document.hidden) {
      try {
        more = await ask();
        if (wait > 1) says("");
        wait = 1;
      } catch (error) {
        wait = Math.min(30, wait * 2);
        says(error.sentence ?? `The server does not answer; asking again in ${wait} s.`);
        more = !error.sentence || error.status === 503; // the store may be back soon; what is not there stays away
      }
    }
    if (alive && more) timer = setTimeout(turn, 1000 * Math.max(wait, Number(more)));
  };
  turn();
  return () => { alive = false; clearTimeout(timer); };
}

// Say that somebody looks at a run that is not over: one that nobody watches for minutes is stopped. Looking alone, a
// GET, keeps nothing alive.
const RENEW_SECONDS = 30; // far less than the lease in app/limits.py
const renewals = new Map();
function renewLease(run) {
  if (performance.now() - (renewals.get(run) ?? -Infinity) < 1000 * RENEW_SECONDS) return;
  renewals.set(run, performance.now());
  fetchJson(`/api/run/${run}/watch`, "POST").catch(() => renewals.delete(run)); // so the next look says it again
}

async function fetchJson(url, method = "GET") {
  const answer = await fetch(url, { method, headers: { Accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.error), { sentence: body.error, status: answer.status });
  return body;
}
