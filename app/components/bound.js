// "Break the bound": three sliders are the input x; can |D x| be made larger than L_d |x|?
const NAMES = ["x₁", "x₂", "x₃"];
const largest = (values) => Math.max(...values.map(Math.abs));

function build(root, data, send) {
  const at = { x: [...data.x], tries: 0, best: 0 };
  let latest = data;
  const sliders = NAMES.map((name, i) => element("input", { type: "range", min: -1, max: 1, step: 0.05, "aria-label": name }));
  const values = NAMES.map(() => element("span", { class: "numbers" }));
  const cells = [0, 1].map(() => NAMES.map(() => element("td")));
  const outs = [0, 1].map(() => element("td"));
  const rows = [0, 1].map((i) => element("tr", {}, element("th", { scope: "row" }, `row ${i + 1}`), cells[i], outs[i]));
  const heads = ["", ...NAMES.map((name) => `times ${name}`), "D x"].map((text) => text ? element("th", { scope: "col" }, text) : element("td"));
  const table = element("table", { class: "numbers" }, element("tr", {}, heads), rows);

  const track = element("rect", { x: 0, y: 22, width: 360, height: 26, rx: 4, fill: "var(--faint)" });
  const bar = element("rect", { x: 0, y: 22, height: 26, rx: 4, fill: "var(--walk)" });
  const limit = element("line", { x1: 360, x2: 360, y1: 12, y2: 58, stroke: "var(--leash)", "stroke-width": 4 });
  const mark = element("polygon", { fill: "var(--st-text-color)" });
  const wall = element("text", { x: 366, y: 40 });
  const gauge = element("svg", { viewBox: "0 0 440 76", role: "img" }, track, bar, limit, mark, wall,
    element("text", { x: 0, y: 14 }, "how strongly D answers this x"));
  const verdict = element("p", { style: "font-weight: 700; min-height: 3em", "aria-live": "polite" });
  const count = element("p", { class: "numbers" });

  root.append(element("div", { class: "two" },
    element("div", {}, NAMES.map((name, i) => element("label", {}, element("span", {}, `${name} = `, values[i]), sliders[i])),
      element("div", { class: "buttons" },
        element("button", { type: "button", onclick: worst }, "Show the worst input"),
        element("button", { type: "button", onclick: again }, "Start again"))),
    element("div", {}, table, gauge, verdict, count)));

  function share() {
    const size = largest(at.x);
    const out = latest.matrix.map((row) => row.reduce((sum, d, i) => sum + d * at.x[i], 0));
    return { out, size, slope: size ? largest(out) / size : 0 };
  }

  function draw() {
    const { out, size, slope } = share(), part = latest.l_d ? slope / latest.l_d : 0;
    at.best = Math.max(at.best, part);
    const lead = Math.abs(out[0]) >= Math.abs(out[1]) ? 0 : 1;
    latest.matrix.forEach((row, i) => {
      row.forEach((d, j) => { cells[i][j].textContent = fixed(d); });
      outs[i].textContent = fixed(out[i]);
      rows[i].className = i === lead ? "lead" : "";
    });
    at.x.forEach((value, i) => { sliders[i].value = value; values[i].textContent = fixed(value); });
    change(bar, { width: 360 * Math.min(1, part) });
    const top = 360 * Math.min(1, at.best);
    change(mark, { points: `${top},50 ${top - 7},62 ${top + 7},62` });
    wall.textContent = `L_d = ${fixed(latest.l_d)}`;
    const percent = part > 1 - 1e-9 ? "100" : fixed(Math.floor(1000 * part) / 10, 1);
    change(gauge, { "aria-label": `${percent} % of the bound L_d = ${fixed(latest.l_d)}` });
    verdict.textContent = size < 1e-9
      ? "No input, no answer. Move a slider."
      : `largest |D x| = ${fixed(largest(out))}, largest |x| = ${fixed(size)}: ${percent}\u00a0% of the bound. ` +
        (part > 1 - 1e-9 ? "Reached, and no x goes beyond it." : "Can you reach it? Can you beat it?");
    count.textContent = `Tries: ${at.tries}. Best share so far: ${at.best > 1 - 1e-9 ? "100" : fixed(Math.floor(1000 * at.best) / 10, 1)}\u00a0%.`;
  }

  const paint = painter(draw);
  let later = 0;
  const tell = () => {
    clearTimeout(later);
    later = setTimeout(() => send("input", at.x.map((value) => Number(fixed(value)))), 200);
  };
  sliders.forEach((slider, i) => {
    slider.addEventListener("input", () => { at.x[i] = Number(slider.value); paint(); });
    slider.addEventListener("change", () => { at.tries += 1; paint(); tell(); });
  });
  function worst() { at.x = [...latest.worst]; at.tries += 1; paint(); tell(); }
  function again() { Object.assign(at, { x: [0.5, 0.5, 0.5], tries: 0, best: 0 }); paint(); tell(); }
  draw();
  return {
    update(next) {
      const other = JSON.stringify(next.matrix) !== JSON.stringify(latest.matrix);
      latest = next;
      if (other) { at.tries = 0; at.best = 0; } // another matrix is another contest
      paint();
    },
    end() { paint.cancel(); clearTimeout(later); },
  };
}

export default component(build);
