// The class wall: every finished run of the class in one world as a point in the plane of ID and OOD.
const NEW_SECONDS = 6; // a point that has just come is larger
const LEAST = 0.1; // of what the metric can be: a narrower axis would blow up the noise between two seeds

// The range of an axis that holds all values, around their middle, never narrower than LEAST.
function rangeOf(values, metric) {
  const whole = metric.high - metric.low, low = Math.min(...values), high = Math.max(...values);
  const half = Math.max((LEAST * whole) / 2, 0.55 * (high - low)), middle = (low + high) / 2;
  const edge = 0.01 * whole, ends = [middle - half, middle + half].map((end) => clamp(end, metric.low - edge, metric.high + edge));
  return metric.higher_is_better ? ends : ends.reverse();
}

function build(root, data) {
  root.classList.add("ftp-player", "ftp-wall");
  const runs = new Map();
  let since = 0, busy = null, begun = false, ends = false, Plotly = null, stop = () => {}, trouble = "";
  const says = element("p", { class: "says", "aria-live": "polite" });
  const plane = element("div", { class: "plane", role: "group",
    "aria-label": "Chart: each finished run as a point, ID across, OOD up" });
  root.append(says, plane);

  async function ask() {
    const news = await fetchJson(`/api/wall?since=${Math.floor(since)}&world=${encodeURIComponent(data.world)}`);
    for (const point of news.points) {
      since = Math.max(since, point.ended);
      if (!runs.has(point.run_id)) runs.set(point.run_id, { ...point, came: performance.now(), late: begun });
    }
    busy = news.busy;
    draw();
    return true;
  }

  // names are text: Plotly would read tags in them
  const letters = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const isNew = (run) => run.late && performance.now() - run.came < 1000 * NEW_SECONDS;

  function traces() {
    const methods = [...new Set([...runs.values()].map((run) => run.method))].sort();
    return methods.map((method) => {
      const runsOfMethod = [...runs.values()].filter((run) => run.method === method);
      const style = data.styles[method] ?? data.styles[""];
      return { type: "scatter", mode: "markers", name: style.name || letters(method), x: runsOfMethod.map((r) => r.id),
        y: runsOfMethod.map((r) => r.ood_avg), text: runsOfMethod.map((r) => letters(r.name || `seed ${r.seed}`)),
        marker: { color: style.color, symbol: style.marker, opacity: 0.85, size: runsOfMethod.map((r) => (isNew(r) ? 26 : 13)),
          line: { color: data.look.paper, width: 1 } },
        hovertemplate: `%{fullData.name}, %{text}<br>ID %{x:.1f} ${data.metric.unit}<br>OOD %{y:.1f} ${data.metric.unit}<extra></extra>` };
    });
  }

  function draw() {
    if (ends || !Plotly) return;
    const look = data.look, all = [...runs.values()], edges = [data.metric.low, data.metric.high];
    const range = (key) => (all.length ? rangeOf(all.map((run) => run[key]), data.metric) : edges);
    const layout = layoutOf(look, { height: clamp(innerHeight - 250, 320, 640), uirevision: all.length ? "wall" : "empty", showlegend: true,
      legend: { font: { size: 14, color: look.text } }, margin: { l: 60, r: 16, t: 12, b: 50 },
      xaxis: axis(look, `${axisName(data.metric, "ID")}: the task`, { range: range("id") }),
      yaxis: axis(look, `${axisName(data.metric, "OOD")}: mean over the shifts`, { range: range("ood_avg") }) });
    Plotly[begun ? "react" : "newPlot"](plane, traces(), layout, CONFIG);
    begun = true;
    words();
  }

  function words() {
    const best = [...runs.values()].reduce((a, b) => (a && better(data.metric, a.ood_avg, b.ood_avg) ? a : b), null);
    const work = busy ? ` ${busy.running} under way, ${busy.waiting} waiting.` : "";
    const text = trouble || (best
      ? `${runs.size} runs so far; the best OOD ${data.metric.name} is ${withUnit(best.ood_avg, data.metric, 1)} (${data.styles[best.method]?.name ?? best.method}).${work}`
      : `No run has ended yet; train one in Live, and it arrives here by itself.${work}`);
    if (says.textContent !== text) says.textContent = text;
  }

  loadPlotly().then((loaded) => {
    if (ends) return;
    Plotly = loaded;
    stop = polling(ask, (text) => { trouble = text; words(); });
  }).catch(() => { says.textContent = "The chart did not load; reload the page."; });

  return {
    update: (next) => { data = next; draw(); },
    end: () => { ends = true; stop(); if (begun) Plotly.purge(plane); },
  };
}

export default component(build);
