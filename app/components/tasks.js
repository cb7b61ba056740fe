// Tasks in a row: the matrix R fills, task by task; below it every old task over time, one small chart for each run.
const OVER = ["done", "stopped", "failed", "interrupted"];
const WIDE = 240, HIGH = 138, LEFT = 30, RIGHT = 8, TOP = 8, BOTTOM = 26;
const PAUSE = 900; // milliseconds for each task of a replay
const NUMBERED = 12; // tasks: more numbers do not fit into the squares
const PAPER = { light: [255, 255, 255], dark: [23, 22, 20] }, FULL = { light: [115, 177, 213], dark: [0, 100, 158] };
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// a square's colour: from the paper to a blue on which the text can be read
function shade(part, dark) {
  const kind = dark ? "dark" : "light";
  return `rgb(${PAPER[kind].map((from, i) => Math.round(from + clamp(part, 0, 1) * (FULL[kind][i] - from))).join(", ")})`;
}

// R and the mean gamma of each task out of a live run's events; an evaluation may come twice
function takeIn(run, news, tasks, metric) {
  run.status = news.status;
  run.since = news.step;
  run.error = news.error;
  for (const point of news.points) {
    const known = point.gamma.filter((value) => value !== null);
    if (known.length) run.gamma[point.phase] = known.reduce((a, b) => a + b, 0) / known.length;
    run.phase = point.phase;
  }
  for (const entry of news.evals.filter((row) => row.whole && row.phase <= run.matrix.length)) {
    const scores = entry.scores[metric.name] ?? {};
    const row = tasks.names.slice(0, entry.phase + 1).map((name) => scores[name]);
    if (row.every((value) => value !== undefined && value !== null)) run.matrix[entry.phase] = row;
  }
}

function build(root, data, send) {
  let runs = [], main = data.main, at = 0, picked = -1, follow = true, timer = 0, stops = [], trouble = "", ends = false;
  const says = element("p", { class: "says", "aria-live": "polite" });
  const about = element("p", { class: "note" }); // what the chosen method does
  const table = element("table"), panel = element("div"), strip = element("div", { class: "runs" });
  const slider = element("input", { type: "range", min: 1, step: 1, "aria-label": "Tasks learned so far" });
  const shown = element("strong", { class: "numbers" });
  const play = element("button", { type: "button", onclick: toggle }, "▶ Replay");
  root.append(element("div", { class: "top" },
    element("div", {}, table, element("div", { class: "time" }, play,
      element("label", {}, element("span", {}, "Tasks learned: ", shown), slider))), element("div", {}, says, about, panel)), strip);

  const names = () => data.tasks.names;
  const chosen = () => runs.find((run) => run.run_id === main) ?? runs[0];
  const end = () => (chosen()?.matrix.length ?? 0);
  const live = (run) => !OVER.includes(run.status);
  const last = () => (data.hold ? Math.min(1, end()) : clamp(at || end(), Math.min(1, end()), end()));

  function receive() {
    const before = new Map(runs.map((run) => [run.run_id, run])), had = end();
    runs = data.runs.map((run) => {
      const old = before.get(run.run_id);
      const fresh = { ...run, matrix: [...run.matrix], gamma: [...run.gamma], since: -1 };
      // what was seen live may be ahead of the page's last run
      return old && live(run) && live(old) && old.matrix.length >= run.matrix.length ? { ...fresh, matrix: old.matrix,
        gamma: old.gamma, since: old.since, status: old.status, phase: old.phase } : fresh;
    });
    if (follow && at && end() > had) at = end(); // the page may know of a task before the run was asked
    stops.forEach((stop) => stop());
    for (const run of runs) run.asked = before.get(run.run_id)?.asked && !Object.keys(run.mistakes).length;
    stops = runs.filter(live).map((run) => polling(() => ask(run), (text) => { trouble = text; draw(); }));
    runs.filter((run) => run.asked).forEach(look);
  }

  async function ask(run) {
    const news = await fetchJson(`/api/run/${run.run_id}/tail?since=${run.since}`);
    if (ends || !runs.includes(run)) return false;
    const grown = run.matrix.length;
    takeIn(run, news, data.tasks, data.metric);
    if (live(run)) renewLease(run.run_id);
    if (run.run_id === main && follow && run.matrix.length > grown) at = run.matrix.length;
    draw();
    if (!live(run)) send("ended", run.run_id);
    return live(run);
  }

  function matrix() {
    const run = chosen(), rows = run.matrix.slice(0, last()), count = names().length, small = count > NUMBERED;
    const learning = learningNow();
    const head = element("tr", {}, element("th", { class: "side", scope: "col" }, element("span", { title: "tasks learned" }, "i")),
      names().map((name, n) => element("th", { scope: "col" }, element("button", { type: "button", title: name,
        "aria-label": `Show ${name}`, "aria-pressed": String(n === (picked < 0 ? learning : picked)),
        onclick: () => { picked = picked === n ? -1 : n; draw(); } }, small ? " " : String(n + 1)))));
    const body = names().map((_, i) => element("tr", {}, element("th", { class: "side", scope: "row" }, small && i % 5 ? "" : String(i + 1)),
      names().map((name, n) => {
        const value = rows[i]?.[n];
        if (value === undefined) return element("td", { class: small ? "many" : "", style: n <= i ? "background: var(--faint)" : "" });
        const part = share(value, data.metric) / 100, full = data.metric.higher_is_better ? part : 1 - part;
        return element("td", { class: small ? "many" : "", style: `background: ${shade(full, data.dark)}`,
          title: `${name} after ${i + 1}: ${withUnit(value, data.metric, 1)}` }, fixed(value, 0));
      })));
    const title = `${run.name}: ${data.metric.name} (${data.metric.unit}) after i tasks`;
    table.replaceChildren(element("caption", {}, title), element("thead", {}, head), element("tbody", {}, body));
  }

  // the task that is being learned; of a run that is over, the last one shown
  function learningNow() {
    const run = chosen();
    return clamp(live(run) && follow ? run.matrix.length : last() - 1, 0, names().length - 1);
  }

  function tile(label, below, mark = "") {
    const place = data.tiles ? `background-image: url(data:image/png;base64,${data.tiles}); background-position: ` +
      `${-32 * (label % data.across)}px ${-32 * Math.floor(label / data.across)}px;` : "";
    const ink = element("div", { class: "ink", role: "img", "aria-label": data.tasks.classes[label] ?? String(label),
      title: data.tasks.classes[label] ?? "", style: `${place} ${mark}` });
    return element("div", { class: "tile" }, ink, below);
  }

  function character() {
    const run = chosen(), n = picked < 0 ? learningNow() : picked, name = names()[n];
    const labels = data.tasks.labels[n] ?? [], known = data.hold ? null : run.mistakes[name];
    const rows = new Map((known ?? []).map((row) => [row[0], row]));
    const words = live(run) && picked < 0 ? `Learning now: ${name}` : name[0].toUpperCase() + name.slice(1);
    const tiles = labels.map((label) => {
      const row = rows.get(label), bad = row && row[2] * 2 < row[1];
      return tile(label, row ? `${row[2]}/${row[1]}` : "", bad ? "outline: 2px dashed var(--st-text-color)" : "");
    });
    const pairs = (known ?? []).flatMap((row) => row[3].map(([answer, count]) => [row[0], answer, count]))
      .sort((a, b) => b[2] - a[2]).slice(0, 8);
    const wanted = run.askable && !known && !data.hold;
    const ask = element("button", { type: "button", onclick: () => look(run) }, run.asked ? "Looking …" : "What is taken for what?");
    ask.disabled = Boolean(run.asked);
    const note = known ? "Right of all test pictures, after the last task; dashed: fewer than half. Most often mistaken for:"
      : data.hold ? "Guess first: then see which of them are still known." : wanted ? (run.refused ?? "") : live(run) ? "What is mistaken for what is known when the run is through." : "";
    panel.replaceChildren(element("h3", {}, `${words}: ${labels.length} classes`), element("div", { class: "tiles" }, tiles),
      element("p", { class: "note" }, note), wanted ? ask : "", element("div", { class: "wrong" }, pairs.map(([from, to, count]) =>
        element("span", { class: "pair" }, tile(from, ""), "→", tile(to, ""), `× ${count}`))));
  }

  // a worker looks at the weights of a run of one's own
  function look(run) {
    run.asked = true;
    send("asked", run.run_id);
    draw();
    stops.push(polling(async () => {
      const news = await fetchJson(`/api/run/${run.run_id}/mistakes`);
      if (ends || !runs.includes(run)) return false;
      if (news.status === "done") run.mistakes = news.tasks;
      if (news.status === "failed") [run.refused, run.asked] = [news.error, false];
      if (["done", "failed"].includes(news.status)) draw();
      return !["done", "failed"].includes(news.status);
    }, (text) => { trouble = text; draw(); }));
  }

  function chart(run) {
    const count = names().length, across = (i) => LEFT + ((WIDE - LEFT - RIGHT) * i) / Math.max(1, count - 1);
    const { low, high } = data.metric, up = (v) => TOP + ((HIGH - TOP - BOTTOM) * (high - v)) / (high - low);
    const svg = element("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img" });
    for (const v of [low, (low + high) / 2, high]) svg.append(
      element("line", { x1: LEFT, x2: WIDE - RIGHT, y1: up(v), y2: up(v), stroke: "var(--line)" }),
      element("text", { x: LEFT - 5, y: up(v) + 5, "text-anchor": "end" }, String(v)));
    const rows = run.matrix.slice(0, data.hold ? 1 : at && run.run_id === main ? last() : (at ? Math.min(at, run.matrix.length) : undefined));
    names().forEach((_, n) => {
      const line = rows.flatMap((row, i) => (i >= n ? [`${across(i)},${up(row[n])}`] : []));
      const on = picked < 0 || picked === n, color = data.colors[n];
      if (line.length) svg.append(element("polyline", { points: line.join(" "), fill: "none", stroke: color,
        "stroke-width": picked === n ? 4 : 2, opacity: on ? 1 : 0.25 }),
        element("circle", { cx: line[0].split(",")[0], cy: line[0].split(",")[1], r: 3, fill: color, opacity: on ? 1 : 0.25 }));
    });
    svg.append(element("text", { x: (LEFT + WIDE) / 2, y: HIGH - 4, "text-anchor": "middle" }, "tasks learned"));
    const row = rows.at(-1);
    svg.setAttribute("aria-label", row ? `${run.name}: after ${rows.length} tasks, ${withUnit(row[0], data.metric, 0)} on the first one and ` +
      `${withUnit(row.at(-1), data.metric, 0)} on the last` : `${run.name}: nothing learned yet`);
    const waits = live(run) ? ` (${run.matrix.length}/${count})` : "";
    return element("div", {}, element("button", { type: "button", "aria-pressed": String(run.run_id === main),
      title: run.about, onclick: () => { main = run.run_id; follow = live(run); at = Math.min(at, end()); send("main", main); draw(); } }, run.name + waits), svg);
  }

  function leashes() {
    const lines = runs.filter((run) => run.gamma.some((v) => v !== null && v !== undefined));
    if (!lines.length) return [];
    const count = names().length, most = Math.max(...lines.flatMap((run) => run.gamma.filter(Boolean)), 1e-6);
    const across = (i) => LEFT + 10 + ((WIDE - LEFT - 10 - RIGHT) * i) / Math.max(1, count - 1);
    const up = (v) => TOP + ((HIGH - TOP - BOTTOM) * (most - v)) / most;
    const svg = element("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label":
      lines.map((run) => `Mean γ of ${run.name}, task by task: ${run.gamma.map((v) => fixed(v ?? 0)).join(", ")}`).join(". ") });
    for (const v of [0, most]) svg.append(element("line", { x1: LEFT + 10, x2: WIDE - RIGHT, y1: up(v), y2: up(v), stroke: "var(--line)" }),
      element("text", { x: LEFT + 5, y: up(v) + 5, "text-anchor": "end" }, fixed(v)));
    lines.forEach((run, k) => {
      const known = run.gamma.slice(0, data.hold ? 1 : at || undefined).map((v, i) => [v, i]).filter(([v]) => v !== null && v !== undefined);
      svg.append(element("polyline", { points: known.map(([v, i]) => `${across(i)},${up(v)}`).join(" "), fill: "none", stroke: run.color,
        "stroke-width": 2.5, "stroke-dasharray": k ? "7 4" : "none" }), ...known.map(([v, i]) => element("circle", { cx: across(i), cy: up(v), r: 3, fill: run.color })));
    });
    svg.append(element("text", { x: (LEFT + WIDE) / 2, y: HIGH - 4, "text-anchor": "middle" }, "task"));
    const dashed = lines.slice(1).map((run) => run.name).join(", ");
    return [element("div", {}, element("p", { class: "note" }, `Mean γ of ${lines[0].name}${dashed ? `; dashed: ${dashed}` : ""}`), svg)];
  }

  function sentence() {
    const run = chosen();
    if (trouble) return trouble;
    if (live(run) && !run.matrix.length) return run.status === "queued" ? "Waiting for a free worker." : `${run.name}: the first task is being learned.`;
    if (run.error) return run.error;
    const row = run.matrix[last() - 1];
    if (!row) return "Nothing learned yet.";
    const first = `on the first task ${withUnit(row[0], data.metric)}`;
    const before = last() > 1 ? `, ${withUnit(run.matrix[0][0], data.metric)} when it was new` : "";
    return `${run.name}, after ${last()} of ${names().length} tasks: ${first}${before}.`;
  }

  function draw() {
    if (ends || !runs.length) return;
    const focused = root.getRootNode().activeElement, label = focused?.getAttribute?.("aria-label") ?? focused?.textContent;
    root.classList.toggle("dark", Boolean(data.dark));
    matrix();
    character();
    strip.replaceChildren(...runs.map(chart), ...leashes());
    change(slider, { max: Math.max(1, end()) });
    slider.value = Math.max(1, last());
    slider.disabled = play.disabled = Boolean(data.hold) || end() < 2;
    shown.textContent = `${last()} of ${names().length}`;
    slider.setAttribute("aria-valuetext", shown.textContent);
    const text = sentence();
    if (says.textContent !== text) says.textContent = text;
    about.textContent = `${chosen().name}: ${chosen().about}`;
    if (label && !root.contains(focused)) // the button was drawn anew: the keyboard stays on it
      [...root.querySelectorAll("button")].find((b) => (b.getAttribute("aria-label") ?? b.textContent) === label)?.focus();
  }

  function stop() { clearInterval(timer); timer = 0; play.textContent = "▶ Replay"; }
  function toggle() {
    if (timer) { stop(); return; }
    follow = false;
    if (last() >= end()) at = 1;
    draw();
    play.textContent = "❚❚ Pause";
    timer = setInterval(() => { if (at >= end()) stop(); else { at += 1; draw(); } }, PAUSE);
  }
  slider.addEventListener("input", () => { stop(); at = Number(slider.value); follow = at >= end(); draw(); });
  receive();
  draw();
  return {
    update(next) {
      const held = data.hold && !next.hold;
      if (next.main !== data.main) [main, follow, at, picked] = [next.main, true, 0, -1];
      data = next;
      receive();
      if (held && !still()) { at = 1; toggle(); }
      draw();
    },
    end() { ends = true; stop(); stops.forEach((halt) => halt()); },
  };
}

export default component(build);
