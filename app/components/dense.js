// A scene, the truth, what a network says of every pixel, and where it is wrong. One dial turns the camera or the damage.
const PAUSE = 700; // milliseconds for each place of the dial when it plays
const FAR = 60; // degrees: the error map is full from here on
const OFF = 30; // degrees from which a direction counts as far off
const MIDDLE = 128, REACH = 127, IGNORED = 255; // see ftp/lab/map_sheets.py
const WIDE = 430, HIGH = 150, LEFT = 36, RIGHT = 18, TOP = 10, BOTTOM = 42;
const LABELLED = 9; // places: of more, every other has its label
const STEP = 20; // of the chart's scale, which fits the scene
const DRAG = 22; // pixels for each place of the dial
const MOVED = { azimuth: "camera moved round the scene", elevation: "camera raised", roll: "camera tilted" };
const DASHES = { solid: "none", dash: "9 6", dot: "2 5", dashdot: "9 5 2 5", longdash: "14 6", longdashdot: "14 5 2 5" };
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const mixed = (from, to, part) => from.map((v, i) => Math.round(v + (to[i] - v) * part));
const signed = (value) => `${value < 0 ? "\u2212" : value > 0 ? "+" : ""}${Math.abs(value)}`; // a hyphen is no minus, and lines break at it
const capital = (text) => text[0].toUpperCase() + text.slice(1);

async function pixelsOf(text) {
  const image = new Image();
  image.src = `data:image/webp;base64,${text}`;
  await image.decode();
  const canvas = element("canvas", { width: image.naturalWidth, height: image.naturalHeight });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

// one tile of a sheet: a function of x, y and colour
function tileOf(sheet, number, side, across) {
  const left = (number % across) * side, top = Math.floor(number / across) * side;
  return (x, y, colour = 0) => sheet.data[4 * ((top + y) * sheet.width + left + x) + colour];
}

// colours of a tile, made as large as the picture; bilinear, as the network does it
function enlarged(tile, small, side) {
  if (small === side) return tile;
  const place = Array.from({ length: side }, (_, i) => {
    const at = clamp(((i + 0.5) * small) / side - 0.5, 0, small - 1), low = Math.floor(at);
    return [low, Math.min(low + 1, small - 1), at - low];
  });
  return (x, y, colour) => {
    const [left, right, u] = place[x], [up, down, v] = place[y];
    return (1 - v) * ((1 - u) * tile(left, up, colour) + u * tile(right, up, colour)) + v * ((1 - u) * tile(left, down, colour) + u * tile(right, down, colour));
  };
}

function direction(tile, x, y) {
  const parts = [0, 1, 2].map((c) => (tile(x, y, c) - MIDDLE) / REACH), length = Math.hypot(...parts);
  return length > 1e-6 ? parts.map((v) => v / length) : [0, 0, 0];
}

const degrees = (a, b) => (360 / Math.PI) * Math.atan2(Math.hypot(...a.map((v, i) => v - b[i])), Math.hypot(...a.map((v, i) => v + b[i])));
const spoken = ([x, y, z]) => [[Math.abs(x), x > 0 ? "right" : "left"], [Math.abs(y), y > 0 ? "up" : "down"], [Math.abs(z), z > 0 ? "toward you" : "away"]]
  .filter(([much]) => much > 0.38).sort((a, b) => b[0] - a[0]).map(([, way]) => way).join(" and ") || "nowhere";

function build(root, first, send) {
  let data = first, sheets = null, asked = "", cross = null, timer = 0, later = 0, ends = false, trouble = "", own = { run: "", said: [] };
  let waiting = null; // the damage that the address names, until there is a guess
  let dropped = ""; // the damage that turning the camera has taken off: scenes were recorded with one or the other
  const at = { ...data.start };
  const panels = ["picture", "truth", "said", "wrong"].map((name) => {
    const canvas = element("canvas", { class: `map ${name}`, role: "img" });
    const mark = element("div", { class: "cross" }), title = element("figcaption");
    return { name, canvas, mark, title, figure: element("figure", {}, title, element("div", { class: "frame" }, canvas, mark)) };
  });
  const strip = element("div", { class: "strip", role: "group", "aria-label": "Scene" });
  const cameras = element("div", { class: "choices", role: "group", "aria-label": "Camera" });
  const damages = element("div", { class: "choices", role: "group", "aria-label": "Damage" });
  const dial = element("input", { type: "range", step: 1, min: 0 });
  const shown = element("strong");
  const play = element("button", { type: "button", onclick: toggle }, "▶ Play");
  const held = element("span", { class: "note" }, "Guess first.");
  const four = element("div", { class: "four", tabindex: 0, role: "group", "aria-label": "Picture, truth, prediction and errors. The arrow keys move a cross over all four." }, panels.map((p) => p.figure));
  const says = element("p", { class: "says", "aria-live": "polite" });
  const here = element("p", { class: "note here" });
  const legend = element("div", { class: "legend" });
  const about = element("p", { class: "about" });
  const methods = element("div", { class: "methods", role: "group", "aria-label": "Method" });
  const plane = element("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img" });
  root.append(
    element("div", { class: "top" }, strip, element("div", { class: "turn" },
      element("div", { class: "kinds" }, element("span", {}, "Camera"), cameras, element("span", {}, "Damage"), damages),
      element("div", { class: "dial" }, dial, shown, play))),
    four, legend, says, here, element("div", { class: "below" }, methods, plane, about));

  const turned = () => data.dials.find((d) => d.name === at.dial);
  const state = () => turned().states[at.place];
  const run = () => data.runs.find((r) => r.method === at.method);
  const isCamera = (d) => d.unit === "°";
  const label = (d, place) => (isCamera(d) ? `${signed(d.values[place])}°` : d.values[place] ? String(d.values[place]) : "clean");
  const start = (d) => d.values.indexOf(0);
  const scoreOf = (r, number) => r.scores[at.scene][number];

  // what makes no sense here, such as a method of another task, is as in the beginning
  function settle() {
    if (!data.scene_list[at.scene]) at.scene = 0;
    if (!run()) at.method = data.runs.at(-1).method;
    if (!turned()) [at.dial, at.place] = [data.dials[0].name, start(data.dials[0])];
    if (data.hold && !isCamera(turned())) {
      waiting = { dial: at.dial, place: at.place };
      [at.dial, at.place] = [data.dials[0].name, start(data.dials[0])];
    } else if (waiting && !data.hold) {
      Object.assign(at, waiting);
      waiting = null;
    }
    at.place = clamp(at.place, 0, turned().values.length - 1);
  }

  async function answerOf(address) {
    const reply = await fetch(address), news = await reply.json();
    if (!reply.ok) throw new Error(news.error);
    return news;
  }

  async function load() {
    const address = `/api/dense/${data.world}/${data.task}/${at.scene}`, yours = data.runs.find((r) => r.run_id)?.run_id ?? "", wanted = address + yours;
    if (wanted === asked) { draw(); return; }
    asked = wanted;
    try {
      const news = await answerOf(address);
      if (yours && own.run !== yours) own = { run: yours, said: (await answerOf(`/api/run/${yours}/pixels`)).said };
      const texts = [news.picture, news.truth, ...news.said, ...(yours ? [own.said[at.scene]] : [])];
      const [picture, truth, ...said] = await Promise.all(texts.map(pixelsOf));
      if (ends || asked !== wanted) return;
      [sheets, trouble] = [{ picture, truth, said }, ""];
    } catch (error) {
      if (ends || asked !== wanted) return;
      [asked, trouble] = ["", `These pictures did not come (${error.message}); choose the scene once more.`];
    }
    draw();
  }

  // a camera's dial in the place of damage takes the damage off
  function toCamera(d) {
    if (!isCamera(turned()) && at.place) dropped = turned().title;
    waiting = null;
    [at.dial, at.place] = [d.name, start(d)];
  }

  // choices are buttons that stay the same, so that the keyboard stays on them
  function choices() {
    strip.replaceChildren(...data.scene_list.map((scene, n) => element("button", { type: "button", class: "thumb", title: scene.about, "aria-label": scene.title,
      style: `background-image: url(data:image/webp;base64,${data.thumbs}); background-size: ${100 * data.across}% ${100 * Math.ceil(data.scene_list.length / data.across)}%; ` +
        `background-position: ${(100 * (n % data.across)) / (data.across - 1)}% ${data.scene_list.length > data.across ? (100 * Math.floor(n / data.across)) / (Math.ceil(data.scene_list.length / data.across) - 1) : 0}%`,
      onclick: () => { at.scene = n; dropped = ""; stop(); load(); rest(); } }, element("span", {}, scene.name))));
    for (const [group, fits] of [[cameras, isCamera], [damages, (d) => !isCamera(d)]]) {
      group.replaceChildren(...data.dials.filter(fits).map((d) => element("button", { type: "button", "data-name": d.name, onclick: () => {
        stop();
        if (isCamera(d)) toCamera(d);
        else [at.dial, at.place, dropped] = [d.name, Math.max(at.dial === d.name ? at.place : 0, 3), ""];
        draw(); rest();
      } }, isCamera(d) ? d.short : capital(d.title))));
    }
    damages.append(held);
    methods.replaceChildren(...data.runs.map((r) => element("button", { type: "button", "data-name": r.method, onclick: () => { at.method = r.method; draw(); rest(); } },
      element("svg", { viewBox: "0 0 34 8", class: "line", "aria-hidden": "true" }, element("line", { x1: 0, x2: 34, y1: 4, y2: 4, stroke: data.dark ? r.dark : r.light, "stroke-width": 4, "stroke-dasharray": DASHES[r.dash] ?? "none" })),
      element("span", { class: "who" }, r.name), element("span", { class: "numbers" }))));
  }

  function paint() {
    const side = data.side, number = state(), chosen = data.runs.indexOf(run());
    const picture = tileOf(sheets.picture, number, side, data.across), truth = tileOf(sheets.truth, data.poses[number], side, data.across);
    const small = run().side, said = enlarged(tileOf(sheets.said[chosen], number, small, data.across), small, side);
    const colors = data.colors.map(rgb), [right, wrong, light, grey] = [data.look.right, data.look.wrong, data.look.hatch, data.look.ignored].map(rgb);
    const drawn = panels.map(({ canvas }) => {
      if (canvas.width !== side) [canvas.width, canvas.height] = [side, side];
      return canvas.getContext("2d").createImageData(side, side);
    });
    let counted = 0, bad = 0, total = 0;
    for (let y = 0; y < side; y += 1) for (let x = 0; x < side; x += 1) {
      const place = 4 * (y * side + x), put = (n, color) => { drawn[n].data.set([...color, 255], place); };
      const hatch = (x + y) % 4 < 2 ? grey : light;
      put(0, [picture(x, y, 0), picture(x, y, 1), picture(x, y, 2)]);
      if (data.classes.length) {
        const is = truth(x, y), says = said(x, y);
        put(1, is === IGNORED ? hatch : colors[is]);
        put(2, colors[says] ?? grey);
        put(3, is === IGNORED ? hatch : is === says ? right : wrong);
        if (is !== IGNORED) { counted += 1; bad += is !== says; }
      } else {
        const known = truth(x, y, 0) + truth(x, y, 1) + truth(x, y, 2) > 0, says = direction(said, x, y), is = direction(truth, x, y), apart = degrees(says, is);
        put(1, known ? [truth(x, y, 0), truth(x, y, 1), truth(x, y, 2)] : hatch);
        put(2, says.map((v) => Math.round(MIDDLE + REACH * v)));
        put(3, known ? mixed(right, wrong, Math.min(1, apart / FAR)) : hatch);
        if (known) { counted += 1; bad += apart > OFF; total += apart; }
      }
    }
    panels.forEach(({ canvas }, n) => canvas.getContext("2d").putImageData(drawn[n], 0, 0));
    four.dataset.counted = counted; // for whoever reads the page by program
    four.dataset.bad = bad;
    four.dataset.angle = counted ? total / counted : "";
    return { counted, bad, truth, said };
  }

  function draw() {
    if (ends) return;
    settle();
    const d = turned(), camera = isCamera(d), number = state(), scene = data.scene_list[at.scene], value = scoreOf(run(), number);
    for (const button of strip.children) button.setAttribute("aria-pressed", String(button === strip.children[at.scene]));
    for (const button of [...cameras.children, ...damages.querySelectorAll("button")]) button.setAttribute("aria-pressed", String(button.dataset.name === at.dial));
    for (const button of damages.querySelectorAll("button")) button.disabled = Boolean(data.hold);
    held.style.display = data.hold ? "" : "none";
    change(dial, { max: d.values.length - 1, "aria-label": camera ? capital(d.title) : `Severity of ${d.title}` });
    dial.value = at.place;
    shown.textContent = camera ? label(d, at.place) : at.place ? `${label(d, at.place)} of ${d.values.length - 1}` : "clean";
    dial.setAttribute("aria-valuetext", shown.textContent);
    [...methods.children].forEach((button, n) => {
      const own = scoreOf(data.runs[n], number);
      button.setAttribute("aria-pressed", String(button.dataset.name === at.method));
      button.querySelector(".numbers").textContent = own === null ? "–" : withUnit(own, data.metric, 1);
    });
    chart(d);
    about.textContent = data.standing;
    if (trouble) { says.textContent = trouble; return; }
    if (!sheets) { says.textContent = "The pictures are on their way."; return; }
    const drawn = paint();
    const off = dropped ? [`${dropped} off again`] : [], turn = d.values[at.place] ? [`the ${MOVED[d.name] ?? d.title} by ${label(d, at.place)}`] : [];
    const changes = camera ? [...off, ...turn] : at.place ? [`${d.title} at severity ${at.place}`] : [];
    const taken = changes.length ? `with ${changes.join(" and ")}` : "on the untouched picture";
    const names = { picture: "Picture", truth: "Truth", said: `${run().name} says`, wrong: data.classes.length ? "Wrong pixels" : "Angle to the truth" };
    for (const p of panels) {
      p.title.textContent = names[p.name];
      p.canvas.setAttribute("aria-label", `${names[p.name]}: ${scene.title}, ${taken}`);
    }
    const share = drawn.counted ? `${fixed((100 * drawn.bad) / drawn.counted, 0)}\u00a0% of the pixels ${data.classes.length ? "wrong" : `off by more than ${OFF}°`}` : "";
    const score = value === null ? `${capital(scene.name)}: ${data.nothing}` : `${run().name} ${taken}: ${withUnit(value, data.metric, 1)} ${data.metric.name}, ${share}.`;
    const coming = waiting ? data.dials.find((known) => known.name === waiting.dial) : null;
    says.textContent = coming ? `${score} ${capital(coming.title)} comes after your guess.` : score;
    probe(drawn);
  }

  // the cross over all four, and in words what is under it
  function probe(drawn) {
    for (const { mark } of panels) {
      mark.style.display = cross ? "" : "none";
      if (cross) Object.assign(mark.style, { left: `${(100 * (cross[0] + 0.5)) / data.side}%`, top: `${(100 * (cross[1] + 0.5)) / data.side}%` });
    }
    if (!cross) { here.textContent = ""; return; }
    const [x, y] = cross, name = (n) => data.classes[n] ?? `label ${n}`;
    if (data.classes.length) {
      const is = drawn.truth(x, y), says = drawn.said(x, y);
      here.textContent = is === IGNORED ? `Here: not counted. The network says ${name(says)}.` : `Here: ${name(is)}${is === says ? ", and the network says so too" : `, but the network says ${name(says)}`}.`;
    } else {
      const is = direction(drawn.truth, x, y), says = direction(drawn.said, x, y), known = [0, 1, 2].some((c) => drawn.truth(x, y, c));
      here.textContent = known ? `Here the surface faces ${spoken(is)}. The network says ${spoken(says)}, ${fixed(degrees(is, says), 0)}° off.` : `Here: not counted. The network says ${spoken(says)}.`;
    }
  }

  function chart(d) {
    const last = d.values.length - 1, across = (n) => LEFT + ((WIDE - LEFT - RIGHT) * n) / last;
    const low = data.metric.low, most = Math.max(1, ...data.runs.flatMap((r) => r.scores[at.scene].filter((v) => v !== null)));
    const high = Math.min(data.metric.high, STEP * Math.ceil(most / STEP)), up = (v) => TOP + ((HIGH - TOP - BOTTOM) * (high - clamp(v, low, high))) / (high - low);
    plane.replaceChildren();
    for (const v of [low, (low + high) / 2, high]) plane.append(element("line", { x1: LEFT, x2: WIDE - RIGHT, y1: up(v), y2: up(v), stroke: "var(--line)" }),
      element("text", { x: LEFT - 6, y: up(v) + 5, "text-anchor": "end" }, String(v)));
    d.values.forEach((_, n) => { if (last < LABELLED || n % 2 === 0) plane.append(element("text", { x: across(n), y: HIGH - BOTTOM + 17, "text-anchor": "middle" }, label(d, n))); });
    const name = `${isCamera(d) ? d.title : `severity of ${d.title}`}; ${axisName(data.metric, "").trim()}`;
    plane.append(element("text", { x: (LEFT + WIDE) / 2, y: HIGH - 5, "text-anchor": "middle" }, name),
      element("line", { x1: across(at.place), x2: across(at.place), y1: TOP, y2: HIGH - BOTTOM, stroke: "var(--st-primary-color)", "stroke-width": 3 }));
    for (const r of [...data.runs].sort((a, b) => (a.method === at.method) - (b.method === at.method))) {
      const values = d.states.map((number) => scoreOf(r, number)), color = data.dark ? r.dark : r.light, strong = r.method === at.method;
      if (values.some((v) => v === null)) continue;
      plane.append(element("polyline", { points: values.map((v, n) => `${across(n)},${up(v)}`).join(" "), fill: "none", stroke: color, "stroke-width": strong ? 4 : 1.8,
        "stroke-dasharray": DASHES[r.dash] ?? "none" }), element("circle", { cx: across(at.place), cy: up(values[at.place]), r: strong ? 6 : 4, fill: color }));
    }
    const value = scoreOf(run(), state());
    plane.setAttribute("aria-label", value === null ? `No score: ${data.nothing}` :
      `Every method along the dial, ${name}. ${run().name} goes from ${withUnit(scoreOf(run(), 0), data.metric, 1)} to ${withUnit(value, data.metric, 1)} here.`);
  }

  function legends() {
    const chip = (style, text, why = {}) => element("span", { class: "entry", ...why }, element("span", { class: "chip", style }), text);
    const rim = { title: data.not_counted };
    const grey = `background: repeating-linear-gradient(135deg, ${data.look.ignored} 0 3px, ${data.look.hatch} 3px 6px)`;
    if (data.classes.length) {
      legend.replaceChildren(...data.classes.map((name, n) => chip(`background: ${data.colors[n]}`, name)), chip(grey, "not counted", rim));
      return;
    }
    const ball = element("canvas", { width: 44, height: 44, class: "ball", role: "img", "aria-label": "A ball in these colours" }), context = ball.getContext("2d"), pixels = context.createImageData(44, 44);
    for (let y = 0; y < 44; y += 1) for (let x = 0; x < 44; x += 1) {
      const u = (x - 21.5) / 21.5, v = (21.5 - y) / 21.5, rest = 1 - u * u - v * v;
      if (rest > 0) pixels.data.set([u, v, Math.sqrt(rest)].map((part) => MIDDLE + REACH * part).concat(255), 4 * (44 * y + x));
    }
    context.putImageData(pixels, 0, 0);
    legend.replaceChildren(element("span", { class: "entry" }, ball, "as on this ball: red to the right, green up, blue toward you"),
      element("span", { class: "entry" }, "0°", element("span", { class: "ramp", style: `background: linear-gradient(90deg, ${data.look.right}, ${data.look.wrong})` }), `${FAR}° and more`), chip(grey, "not counted", rim));
  }

  const soon = painter(draw);
  function rest() {
    clearTimeout(later);
    // the turn makes it news where the hand rests once more at the place that the browser's Back has left
    later = setTimeout(() => send("rested", { ...at, ...waiting, turn: data.turn }), 300);
  }
  function set(place) { waiting = null; at.place = clamp(place, 0, turned().values.length - 1); soon(); rest(); }
  function stop() { clearInterval(timer); timer = 0; play.textContent = "▶ Play"; }
  function toggle() {
    if (timer) { stop(); return; }
    const last = turned().values.length - 1;
    if (at.place === last) set(0);
    play.textContent = "❚❚ Pause";
    timer = setInterval(() => { if (at.place === last) stop(); else set(at.place + 1); }, still() ? 2 * PAUSE : PAUSE);
  }
  dial.addEventListener("input", () => { stop(); set(Number(dial.value)); });

  // dragging the picture turns the camera; a mere click leaves all as it is
  let drag = null;
  const picture = panels[0].canvas;
  picture.addEventListener("pointerdown", (event) => {
    const d = isCamera(turned()) ? turned() : data.dials.find(isCamera);
    stop();
    drag = { x: event.clientX, y: event.clientY, camera: d, place: d.name === at.dial ? at.place : start(d) };
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const { camera } = drag, far = camera.name === "elevation" ? event.clientY - drag.y : drag.x - event.clientX;
    const place = clamp(drag.place + Math.round(far / DRAG), 0, camera.values.length - 1);
    if (camera.name !== at.dial && place !== drag.place) toCamera(camera);
    if (camera.name === at.dial && place !== at.place) set(place);
  });
  for (const name of ["pointerup", "pointercancel"]) picture.addEventListener(name, () => { drag = null; });

  for (const { canvas } of panels) {
    canvas.addEventListener("pointermove", (event) => {
      if (drag) return;
      const box = canvas.getBoundingClientRect();
      cross = [event.clientX - box.left, event.clientY - box.top].map((v, i) => clamp(Math.floor((v / (i ? box.height : box.width)) * data.side), 0, data.side - 1));
      soon();
    });
    canvas.addEventListener("pointerleave", () => { cross = null; soon(); });
  }
  four.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || event.target !== four) return;
    event.preventDefault();
    const [x, y] = cross ?? [data.side / 2, data.side / 2];
    cross = [x + step[0], y + step[1]].map((v) => clamp(v, 0, data.side - 1));
    soon();
  });
  four.addEventListener("blur", () => { cross = null; soon(); });

  settle(); choices(); legends(); load();
  return {
    update(next) {
      const who = (sent) => sent.runs.map((r) => r.method + r.run_id).join(), other = who(next) !== who(data);
      const anew = other || ["world", "task", "dark"].some((key) => data[key] !== next[key]);
      if (other || next.world !== data.world || next.task !== data.task) sheets = null;
      if (next.turn !== data.turn) { // not by the hand: it was the browser's Back, or another task
        Object.assign(at, next.start);
        [waiting, dropped] = [null, ""];
        clearTimeout(later);
        stop();
      }
      data = next;
      settle();
      if (anew) { choices(); legends(); }
      load();
    },
    end() { ends = true; soon.cancel(); stop(); clearTimeout(later); },
  };
}

export default component(build);
