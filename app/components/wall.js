// The class wall: every finished run of the class as a point in the plane of ID and OOD accuracy.
const NEW_SECONDS = 6; // a point that has just come is larger

function build(root, data) {
  root.classList.add("ftp-player", "ftp-wall");
  const runs = new Map();
  let since = 0, busy = null, begun = false, ends = false, Plotly = null, stop = () => {}, trouble = "";
  const says = element("p", { class: "says", "aria-live": "polite" });
  const plane = element("div", { class: "plane", role: "group",
    "aria-label": "Chart: each finished run as a point, ID accuracy across, OOD accuracy up" });
  root.append(says, plane);

  async function ask() {
    const news = await fetchJson(`/api/wall?since=${Math.floor(since)}`);
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
      const own = [...runs.values()].filter((run) => run.method === method);
      const style = data.styles[method] ?? data.styles[""];
      return { type: "scatter", mode: "markers", name: style.name || letters(method), x: own.map((r) => r.id),
        y: own.map((r) => r.ood_avg), text: own.map((r) => letters(r.name || `seed ${r.seed}`)),
        marker: { color: style.color, symbol: style.marker, opacity: 0.85, size: own.map((r) => (isNew(r) ? 26 : 13)),
          line: { color: data.look.paper, width: 1 } },
        hovertemplate: "%{fullData.name}, %{text}<br>ID %{x:.1f} %<br>OOD %{y:.1f} %<extra></extra>" };
    });
  }

  function draw() {
    if (ends || !Plotly) return;
    const look = data.look;
    const layout = layoutOf(look, { height: 520, uirevision: "wall", showlegend: true,
      legend: { font: { size: 14, color: look.text } }, margin: { l: 60, r: 16, t: 12, b: 50 },
      xaxis: axis(look, "ID accuracy (%): the task"), yaxis: axis(look, "OOD accuracy (%): mean over the shifts") });
    if (!runs.size) [layout.xaxis.range, layout.yaxis.range] = [[90, 100], [50, 100]]; // else an empty plane shows -1 to 6
    Plotly[begun ? "react" : "newPlot"](plane, traces(), layout, CONFIG);
    begun = true;
    words();
  }

  function words() {
    const best = [...runs.values()].reduce((a, b) => (a && a.ood_avg >= b.ood_avg ? a : b), null);
    const work = busy ? ` ${busy.running} under way, ${busy.waiting} waiting.` : "";
    const text = trouble || (best
      ? `${runs.size} runs so far; the highest OOD accuracy is ${best.ood_avg.toFixed(1)}\u00a0% (${data.styles[best.method]?.name ?? best.method}).${work}`
      : `No run has ended yet.${work}`);
    if (says.textContent !== text) says.textContent = text;
  }

  loadPlotly().then((found) => {
    if (ends) return;
    Plotly = found;
    stop = polling(ask, (text) => { trouble = text; words(); });
  }).catch(() => { says.textContent = "The chart did not load; reload the page."; });

  return {
    update: (next) => { data = next; draw(); },
    end: () => { ends = true; stop(); if (begun) Plotly.purge(plane); },
  };
}

export default component(build);
