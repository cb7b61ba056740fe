// Answers side by side: every set is a column, every network a row; alpha moves the answers, once a frame.
const TOP = 3;

// the candidates of a cell at alpha, best first: [label, value]; between two computed alphas values are interpolated
function ranked(cell, alphas, alpha) {
  let i = alphas.findIndex((a) => a >= alpha - 1e-9);
  if (i < 0) i = alphas.length - 1;
  const t = i === 0 ? 1 : (alpha - alphas[i - 1]) / (alphas[i] - alphas[i - 1]);
  const rows = cell.labels.map((label, n) => [label, mix(cell.values[n], i, t)]);
  return rows.sort((a, b) => b[1] - a[1]).slice(0, TOP);
}
const mix = (values, i, t) => (i === 0 ? values[0] : values[i - 1] + t * (values[i] - values[i - 1]));
const isComputed = (alphas, alpha) => alphas.some((a) => Math.abs(a - alpha) < 1e-6);

function build(root, data, send) {
  const dial = alphaDial({ alpha: data.alpha, step: 0.01, digits: 2 }, draw, send);
  const began = Date.now(); // clicks of another visit of this page are no clicks of this one
  let latest = data, cells = [], sums = [], clicks = 0, made = "";
  const asked = element("div", { class: "asked" });
  root.append(element("div", { class: "scrub" }, dial.play, element("label", {}, dial.caption,
    element("span", { class: "line" }, "0: pre-trained", dial.slider, "1: fine-tuned"))), asked);

  const count = () => latest.things.length;
  // the place of a thing on a sheet of so many pictures in a row
  function placed(node, url, thing, across) {
    const rows = Math.ceil(count() / across);
    Object.assign(node.style, { backgroundImage: `url("${url}")`, backgroundSize: `${100 * across}% ${100 * rows}%`,
      backgroundPosition: `${(100 * (thing % across)) / (across - 1)}% ${(100 * Math.floor(thing / across)) / Math.max(1, rows - 1)}%` });
  }
  const sheet = (name) => `/api/sheet/${encodeURIComponent(latest.world)}/${encodeURIComponent(name)}?v=${latest.version}`;
  const isRight = (label) => latest.targets.includes(label);

  function cell(network, n, color) {
    const list = element("ol"), all = element("div", { class: "all numbers" });
    const waits = latest.hold && network.fixed === null;
    const box = element("div", { class: "cell", style: `--mine: ${color}` }, element("div", { class: "who" }, network.name),
      waits ? element("div", { class: "held", title: "guess first" }, "?") : list, waits ? "" : all);
    const lines = Array.from({ length: waits ? 0 : TOP }, () => {
      const what = element("span", { class: "what" }), much = element("span", { class: "much numbers" });
      if (latest.words) {
        const button = element("button", { type: "button", onclick: () => pick(line.label) });
        const line = { label: 0, much, button, item: element("li", {}, button, much) };
        return line;
      }
      const fill = element("div", { class: "fill" });
      return { what, much, fill, item: element("li", {}, fill, what, much) };
    });
    list.append(...lines.map((line) => line.item));
    cells.push({ network, n, lines, all });
    return box;
  }

  // everything that stays while alpha moves
  function prepare() {
    const dark = isDark(root);
    cells = [];
    sums = latest.networks.map(() => element("div", { class: "sum numbers" }));
    const colors = latest.networks.map((network) => (dark ? network.dark : network.light));
    const names = element("div", { class: "names", "aria-hidden": "true" }, element("span"), latest.networks.map((network, k) =>
      element("div", { style: `--mine: ${colors[k]}` }, element("strong", {}, network.name), sums[k])));
    const sets = latest.sets.map((name, n) => {
      const head = element("div", { class: "head", title: latest.titles[n] });
      if (!latest.words) {
        const picture = element("div", { class: "picture", role: "img", "aria-label": `${latest.things[latest.targets[0]]}, ${latest.titles[n]}` });
        placed(picture, sheet(name), latest.targets[0], latest.across);
        head.append(picture);
      }
      head.append(latest.titles[n]);
      return element("div", { class: "set", role: "group", "aria-label": latest.titles[n] }, head,
        latest.networks.map((network, k) => cell(network, n, colors[k])));
    });
    asked.classList.toggle("words", latest.words);
    asked.style.setProperty("--sets", latest.sets.length);
    asked.style.setProperty("--networks", latest.networks.length);
    const strip = latest.words ? "" : palette(), before = asked.querySelector(".palette")?.scrollLeft;
    asked.replaceChildren(element("div", { class: "sets" }, names, sets), strip);
    if (strip) strip.scrollLeft = before ?? strip.querySelector("[aria-checked=true]").offsetLeft - strip.clientWidth / 2;
  }

  function palette() {
    const all = latest.things.map((name, thing) => {
      const chosen = isRight(thing);
      const button = element("button", { type: "button", role: "radio", "aria-checked": String(chosen), "aria-label": name, title: name,
        tabindex: chosen ? 0 : -1, onclick: () => pick(thing) });
      placed(button, sheet("tiles"), thing, latest.tiles);
      return button;
    });
    const box = element("div", { class: "palette", role: "radiogroup", "aria-label": "Pick an emoji" }, all);
    box.addEventListener("keydown", (event) => {
      const from = all.indexOf(root.getRootNode().activeElement);
      if (from < 0) return;
      const same = (side) => all.filter((b) => b[side] === all[0][side]).length;
      const [right, down] = all[1].offsetTop === all[0].offsetTop ? [1, same("offsetTop")] : [same("offsetLeft"), 1]; // on a phone column by column
      const step = { ArrowRight: right, ArrowLeft: -right, ArrowDown: down, ArrowUp: -down, Home: -from, End: all.length - 1 - from }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const to = clamp(from + step, 0, all.length - 1);
      all.forEach((button, n) => button.setAttribute("tabindex", n === to ? 0 : -1));
      all[to].focus();
    });
    return box;
  }

  function pick(thing) {
    clicks += 1;
    send("picked", [thing, clicks, began]);
  }

  function draw() {
    dial.hold(latest.hold);
    const firsts = latest.networks.map(() => 0);
    for (const { network, n, lines, all } of cells) {
      const alpha = network.fixed ?? dial.alpha, about = isComputed(latest.alphas, alpha) ? "" : "≈ ";
      if (!lines.length) continue;
      const rows = ranked(network.cells[n], latest.alphas, alpha);
      if (isRight(rows[0][0])) firsts[latest.networks.indexOf(network)] += 1;
      lines.forEach((line, k) => {
        const [label, value] = rows[k], name = latest.things[label];
        line.item.classList.toggle("right", isRight(label));
        if (latest.words) {
          if (line.label !== label || !line.drawn) placed(line.button, sheet(latest.sets[n]), label, latest.across);
          [line.label, line.drawn] = [label, true];
          change(line.button, { "aria-label": name, title: `${name}: ask for this picture` });
          line.much.textContent = fixed(value);
        } else {
          line.fill.style.width = `${100 * value}%`;
          line.what.textContent = (isRight(label) ? "✓ " : "") + name;
          line.item.title = name;
          line.much.textContent = `${fixed(100 * value, 0)} %`;
        }
      });
      if (latest.words) all.textContent = latest.things[rows[0][0]];
      else all.textContent = `all ${count()}: ${about}${fixed(rightShare(network, n, alpha), 0)} %`;
    }
    const said = latest.networks.map((network, k) => (latest.hold && network.fixed === null ? "?" : latest.targets.length
      ? `${latest.words ? "first" : "right"} in ${firsts[k]} of ${latest.sets.length}` : ""));
    sums.forEach((node, k) => { node.textContent = said[k]; });
    dial.say(latest.networks.map((network, k) => `${network.name}: ${said[k] || "see below"}`).join(". "));
  }

  function rightShare(network, n, alpha) {
    const { alphas } = latest;
    let i = alphas.findIndex((a) => a >= alpha - 1e-9);
    if (i < 0) i = alphas.length - 1;
    return (100 * mix(network.right[n], i, i === 0 ? 1 : (alpha - alphas[i - 1]) / (alphas[i] - alphas[i - 1]))) / count();
  }

  const looks = () => `${isDark(root)} ${JSON.stringify({ ...latest, alpha: 0 })}`;
  prepare(); draw();
  made = looks();
  return {
    update(next) {
      const focused = root.getRootNode().activeElement, label = focused?.getAttribute?.("aria-label");
      latest = next;
      const now = looks();
      if (now === made) return; // a button that is made anew under a finger would lose its click
      made = now;
      prepare(); draw();
      if (label && !root.contains(focused)) // the button was drawn anew: the keyboard stays on it
        [...root.querySelectorAll("button")].find((b) => b.getAttribute("aria-label") === label)?.focus();
    },
    end: dial.end,
  };
}

export default component(build);
