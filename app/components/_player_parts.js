// The player's buttons, and what its four charts show.
function controls(root, on) {
  const button = (label, text, click) =>
    element("button", { type: "button", "aria-label": label, title: label, onclick: click }, text);
  const named = (text, field, shown = true) =>
    element("label", {}, element("span", { class: shown ? "" : "hidden" }, text), field);
  const options = (names) => names.map((name) => element("option", { value: name }, name));
  const says = element("p", { class: "says" });
  const spoken = element("p", { class: "hidden", "aria-live": "polite" });
  const places = {};
  places.network = element("div", { class: "network" });
  places.strip = element("div", { class: "strip", role: "group", style: "display: none",
    "aria-label": "Pictures of every set, and what the network says of each" });
  for (const [name, alt] of Object.entries(ALTS)) places[name] = element("div", { class: name, role: "group", "aria-label": alt });
  const play = button("Play", "▶", on.play);
  const scrub = element("input", { type: "range", min: 0, max: 1, step: 1, value: 0,
    oninput: (event) => on.scrub(Number(event.target.value)) });
  const at = element("output", {});
  const speed = element("select", { onchange: (event) => on.speed(event.target.value) }, options(Object.keys(SPEEDS)));
  speed.value = "1×";
  const follow = button("Follow live", "⇥ Follow live", on.follow);
  const layer = element("select", { onchange: (event) => on.layer(event.target.value) });
  const kind = element("select", { onchange: (event) => on.kind(event.target.value) },
    Object.entries(SMALL).map(([value, text]) => element("option", { value }, text)));
  const picture = element("div", { class: "picture", role: "group", "aria-label": "Picture" },
    Object.entries(PICTURES).map(([value, text]) => button(text, text, () => on.picture(value))));
  const bar = element("div", { class: "bar" }, play,
    button("One step back", "−1", () => on.step(-1)), button("One step forward", "+1", () => on.step(1)),
    element("label", { class: "scrub" }, element("span", { class: "hidden" }, "Step"), scrub), at,
    named("Speed", speed, false), follow, named("Layer", layer));
  root.append(says, spoken, element("div", { class: "charts" },
    element("div", { class: "large" }, places.strip, element("div", { class: "drawn" }, picture, places.network, places.main)),
    element("div", { class: "side" }, places.accuracy, named("Small chart", kind, false), places.small, places.loss)), bar);

  let listed = "";
  function show(now) {
    says.textContent = now.text;
    if (now.steps === undefined) return;
    change(play, { "aria-label": now.playing ? "Pause" : "Play", title: now.playing ? "Pause" : "Play" });
    play.textContent = now.playing ? "❚❚" : "▶";
    scrub.max = now.steps || 1;
    scrub.value = now.cursor;
    change(scrub, { "aria-valuetext": `step ${now.cursor} of ${now.steps}` });
    at.textContent = `${now.cursor} / ${now.steps}`;
    follow.style.display = now.ended ? "none" : "";
    change(follow, { "aria-pressed": String(now.follow) });
    // without a leash the large chart shows the distance: not twice
    for (const node of [kind.parentElement, places.small]) node.style.display = now.leashless ? "none" : "";
    if (now.layers.join() !== listed) {
      listed = now.layers.join();
      layer.replaceChildren(element("option", { value: "" }, "all layers"), ...options(now.layers));
    }
    layer.value = now.layer;
    [...picture.children].forEach((node, i) => change(node, { "aria-pressed": String(Object.keys(PICTURES)[i] === now.picture) }));
    places.network.style.display = now.picture === "network" ? "" : "none";
    places.main.style.display = now.picture === "network" ? "none" : "";
  }
  return { places, show, speak: (text) => { spoken.textContent = text; } };
}

const ALTS = {
  main: "Chart: the constraint γ of every layer over the training steps",
  accuracy: "Chart: the score on the task (ID) and on each shift (OOD) over the training steps",
  small: "Chart: distance from the anchor, or rows on the boundary, of every layer over the training steps",
  loss: "Chart: the training loss over the training steps",
};
const PICTURES = { network: "The network", lines: "Growth lines" };
const SMALL = { distance: "Distance from W₀ of every layer", boundary: "Share of rows on the boundary" };

const colorAt = (look, i, count) => look.depth[Math.round((i / Math.max(1, count - 1)) * (look.depth.length - 1))];

// One line for each layer that has this number, early ones dark; a chosen one stands out.
function layerLines(run, key, chosen, look, width = 1.8) {
  const places = run.layers.map((_, i) => i).filter((i) => run.points.some((point) => point[key][i] !== null));
  return places.map((i) => {
    const isChosen = run.layers[i] === chosen;
    return { at: i, name: run.layers[i], color: colorAt(look, i, run.layers.length),
      width: isChosen ? width * 2.4 : width, opacity: isChosen || !chosen ? 1 : 0.22, value: (point) => point[key][i] };
  });
}

// The run that is compared with, dotted: the chosen layer, or all of them faintly.
function otherLines(other, key, chosen, look) {
  if (!other?.points.length) return [];
  const lines = layerLines(other, key, "", look).filter((line) => !chosen || line.name === chosen);
  return lines.map((line) => ({ type: "scatter", mode: "lines", name: `before: ${line.name}`, opacity: chosen ? 1 : 0.45,
    line: { color: line.color, dash: "dot", width: chosen ? 3 : 1.2 }, x: other.points.map((p) => p.step),
    y: other.points.map(line.value), hovertemplate: "%{fullData.name}<br>step %{x}: %{y:.3g}<extra></extra>" }));
}

// An empty trace: only its colour bar is seen, in place of a legend entry for each layer.
function depthBar(look) {
  const scale = look.depth.map((color, i) => [i / (look.depth.length - 1), color]);
  const bar = { thickness: 10, len: 0.9, x: 1, xpad: 6, outlinewidth: 0, ticks: "", tickvals: [0.04, 0.96],
    ticktext: ["early", "late"], tickfont: { size: 12, color: look.text } };
  return { type: "scatter", mode: "markers", x: [null], y: [null], hoverinfo: "skip",
    marker: { color: [0], cmin: 0, cmax: 1, colorscale: scale, showscale: true, colorbar: bar } };
}

const heading = (text, look) => ({ text, x: 0, xref: "paper", xanchor: "left", y: 1, yref: "container", yanchor: "top",
  pad: { t: text.includes("<br>") ? 14 : 4 }, font: { size: 14, color: look.text, weight: 600 } });
const steps = (run, look, title = "") => axis(look, title, { range: [0, run.steps || 1] });

// Where the phases of a run begin: a light line each, and along it the name of what begins there. One phase needs none.
function phaseMarks(run, look) {
  if (run.phases.length < 2) return {};
  const begins = run.phases.map((name, i) => ({ name, x: (i * run.steps) / run.phases.length }));
  return {
    shapes: begins.slice(1).map(({ x }) => ({ type: "line", layer: "between", x0: x, x1: x, yref: "paper", y0: 0, y1: 1,
      line: { color: look.muted, width: 1, dash: "dot" } })),
    annotations: begins.map(({ name, x }) => ({ text: name, x, xanchor: "left", yref: "paper", y: 1, yanchor: "top",
      textangle: 90, showarrow: false, font: { size: 11, color: look.muted } })),
  };
}

function mainLayout(run, key, chosen, look) {
  const text = key === "gamma" ? "Leash γ of every layer" : "No leash: distance from W₀ of every layer";
  return layoutOf(look, { title: heading(text, look), uirevision: run.id, height: 372, ...phaseMarks(run, look),
    margin: { l: 52, r: 66, t: 28, b: 42 }, xaxis: steps(run, look, "training step"),
    yaxis: axis(look, key === "gamma" ? "γ, in l1 distance" : "l1 distance", { rangemode: "tozero" }) });
}

function smallLayout(run, key, look) {
  const most = key === "boundary" ? { range: [0, 1.05] } : { rangemode: "tozero" };
  return layoutOf(look, { uirevision: `${run.id} ${key}`, height: 85,
    margin: { l: 46, r: 8, t: 6, b: 22 }, xaxis: steps(run, look), yaxis: axis(look, "", { nticks: 4, ...most }) });
}

function lossLayout(run, look) {
  return layoutOf(look, { title: heading("Training loss", look), uirevision: run.id, height: 85,
    margin: { l: 46, r: 8, t: 24, b: 22 }, xaxis: steps(run, look),
    yaxis: axis(look, "", { nticks: 4, rangemode: "tozero" }) });
}

// ID and the mean of the shifts are thick, each shift or task is thin, with its own colour and dash.
function accuracyLines(run, look) {
  const metric = metricOf(run);
  const hover = `%{fullData.name}<br>step %{x}: %{y:.1f} ${metric.unit}<extra></extra>`;
  const thick = { width: 2.8, mode: "lines+markers", hover };
  const bars = (key) => (run.evals.some((row) => errorsOf(row, run.measures)[key] !== null)
    ? { error: (row) => errorsOf(row, run.measures)[key], hover: hover.replace("<extra>", "± %{customdata:.1f}: one standard error<extra>") } : {});
  const others = Object.entries(run.measures.roles).filter(([, role]) => role === "shift" || role === "task");
  const shifted = others.some(([, role]) => role === "shift");
  return [
    { name: "ID", color: look.id, value: homeOf, ...thick, ...bars("home") },
    ...(shifted ? [{ name: "OOD", color: look.ood, dash: "dash", value: oodOf, ...thick, ...bars("shift_mean") }] : []),
    ...others.map(([name], i) => ({ name, hover, width: 1.3, mode: "lines",
      value: (row) => row.scores[metric.name]?.[name] ?? null,
      color: look.shifts[i % look.shifts.length], dash: look.dashes[i % look.dashes.length] })),
  ];
}

function otherAccuracy(other, look) {
  if (!other?.evals.length) return [];
  const line = (name, color, value) => ({ type: "scatter", mode: "lines", name: `before: ${name}`, showlegend: false,
    line: { color, dash: "dot", width: 2 }, x: other.evals.map((e) => e.step), y: other.evals.map(value) });
  return [line("ID", look.id, homeOf), line("OOD", look.ood, oodOf)];
}

// what a point on the way stands on; nothing where the metric has no error bar
function standsOn(run) {
  const row = run.evals.find((entry) => !entry.whole);
  if (!row) return "";
  const { home, images: [ours, theirs] } = errorsOf(row, run.measures);
  const each = theirs ? `, ${theirs} of each shift` : "";
  return home === null ? "" : `<br><span style="font-size: 11px; font-weight: 400">± 1 standard error: ${ours} images${each}</span>`;
}

// without a score to show yet, its axis is all that the metric can be
function accuracyLayout(run, look, n) {
  const metric = metricOf(run), empty = n ? {} : { range: [metric.low, metric.high] };
  const roles = Object.values(run.measures.roles), thin = roles.includes("shift") ? "; thin: each shift" : "";
  const name = axisName(metric, "").trim();
  const title = /^.[a-z]/.test(name) ? name[0].toUpperCase() + name.slice(1) : name;  // mIoU stays as it is
  // beside the network there is room for so many letters
  const second = title.length + thin.length > 36 ? `<br><span style="font-size: 11px; font-weight: 400">${thin.slice(2)}</span>` : thin;
  return layoutOf(look, { title: heading(`${title}${second}${standsOn(run)}`, look), uirevision: run.id, height: 200, showlegend: true,
    legend: { orientation: "h", x: 0, y: -0.16, yanchor: "top", font: { size: 11, color: look.text },
      entrywidth: 0.33, entrywidthmode: "fraction", itemwidth: 30, bgcolor: "rgba(0,0,0,0)" },
    margin: { l: 46, r: 8, t: 38, b: 72 }, xaxis: steps(run, look), yaxis: axis(look, "", { nticks: 5, ...empty }),
    ...phaseMarks(run, look) });
}
