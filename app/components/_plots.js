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
    zeroline: false, automargin: false, ...more };
}

function layoutOf(look, more = {}) {
  return { paper_bgcolor: look.paper, plot_bgcolor: look.paper, showlegend: false, hovermode: "closest",
    font: { family: look.font, size: 13, color: look.text }, margin: { l: 46, r: 10, t: 26, b: 34 },
    hoverlabel: { bgcolor: look.paper, bordercolor: look.muted, font: { color: look.text } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: look.muted, activecolor: look.text }, ...more };
}

// A chart of lines over steps. A line is {name, color, dash, width, value: row => number}; a row has its `step`.
function growing(Plotly, div) {
  const own = { div, lines: [], shown: 0, begun: false };
  const upTo = (rows, line, n) => ({ x: rows.slice(0, n).map((r) => r.step), y: rows.slice(0, n).map(line.value) });

  // another run, other lines or another look; `still` are traces that do not grow
  own.set = (lines, layout, rows, n, still = []) => {
    own.lines = lines;
    own.shown = n;
    const traces = lines.map((line) => ({ type: "scatter", mode: line.mode ?? "lines", name: line.name,
      line: { color: line.color, dash: line.dash ?? "solid", width: line.width ?? 1.8 }, opacity: line.opacity ?? 1,
      marker: { size: 5, color: line.color }, showlegend: line.legend ?? true,
      hovertemplate: line.hover ?? "%{fullData.name}<br>step %{x}: %{y:.3g}<extra></extra>", ...upTo(rows, line, n) }));
    Plotly[own.begun ? "react" : "newPlot"](div, [...traces, ...still], layout, CONFIG);
    own.begun = true;
  };

  own.grow = (rows, n) => {
    if (n === own.shown || !own.lines.length) return;
    const all = own.lines.map((_, i) => i);
    if (n > own.shown) {
      const fresh = rows.slice(own.shown, n);
      const x = fresh.map((row) => row.step);
      Plotly.extendTraces(div, { x: own.lines.map(() => x), y: own.lines.map((l) => fresh.map(l.value)) }, all);
    } else {
      const parts = own.lines.map((line) => upTo(rows, line, n));
      Plotly.restyle(div, { x: parts.map((p) => p.x), y: parts.map((p) => p.y) }, all);
    }
    own.shown = n;
  };
  own.end = () => own.begun && Plotly.purge(div);
  return own;
}

// Ask a route again and again: once a second, seldom while nobody looks, less and less often while it fails.
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
    if (alive && more) timer = setTimeout(turn, 1000 * wait);
  };
  turn();
  return () => { alive = false; clearTimeout(timer); };
}

async function fetchJson(url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" } });
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.error), { sentence: found.error, status: answer.status });
  return found;
}
