// What the network must read, a row of pictures for each set, and what it says of each at the moment that is shown.
// The right answer has a tick; a wrong one has a cross and stands in a box, so that nobody needs colours to tell.
// Where it says something of every pixel, its map stands beside the picture, and then the truth.
const HEADS = { home: "It learns to read these", shift: "and should still read these", task: "tasks, one after another" };
const MAP_HEADS = { ...HEADS, home: "It learns to see these", shift: "and should still see these" };

// the tile of a sheet of pictures: `across` in a row, `down` rows
function cut(source, x, y, across, down) {
  return { backgroundImage: `url(data:image/webp;base64,${source})`, backgroundSize: `${100 * across}% ${100 * down}%`,
    backgroundPosition: `${across > 1 ? (100 * x) / (across - 1) : 0}% ${down > 1 ? (100 * y) / (down - 1) : 0}%` };
}

function strip(place) {
  let sheet = null, roles = {}, cells = [], rows = [];

  function cell(label, x, y) {
    const { columns, sets, classes, truths } = sheet, said = element("span", { class: "said" });
    const picture = element("span", { class: "tile", ...(truths ? {} : { title: `This is ${classes[label]}` }) });
    Object.assign(picture.style, cut(sheet.sheet, x, y, columns, sets.length));
    cells.push({ said, label, y, x });
    if (!truths) return element("span", { class: "cell" }, picture, said);
    const truth = element("span", { class: "tile" });
    Object.assign(truth.style, cut(truths, x, y, columns, sets.length));
    return element("span", { class: "cell" }, picture, said, truth);
  }

  function set(next, run) {
    const known = sheet === next && roles === run.measures.roles;
    [sheet, roles] = [next, run.measures.roles];
    place.style.display = sheet ? "" : "none";
    if (!sheet || known) return;
    const { columns, sets, labels, truths } = sheet;
    place.classList.toggle("mapped", Boolean(truths));
    delete place.dataset.step;
    let head = "";
    cells = [];
    rows = [];
    const key = truths ? element("span", { class: "key" }, "picture, what it says, truth") : element("span", { class: "key" }, "✓ right, ", element("b", {}, "✗ wrong"));
    place.replaceChildren(...sets.flatMap((name, y) => {
      const role = roles[name] ?? "shift", begins = role !== head;
      head = role;
      const row = Array.from({ length: truths ? columns : labels[y].length }, (_, x) => cell(labels[y][x], x, y));
      const node = element("div", { class: "set", role: "img" }, element("span", { class: "name" }, role === "home" ? "home" : name),
        ...(y ? [] : [key]), element("span", { class: "row" }, row));
      rows.push({ node, name, right: 0, said: [] });
      return [...(begins ? [element("p", { class: "head", title: "Test pictures: it is trained on none of these themselves" }, (truths ? MAP_HEADS : HEADS)[role] ?? role)] : []), node];
    }));
  }

  // `now`: the evaluation with the answers; undefined before the first ones
  function draw(now) {
    if (!sheet) return;
    if (sheet.truths) { drawMaps(now); return; }
    const { answers, step } = now ?? {};
    for (const row of rows) Object.assign(row, { right: 0, said: [] });
    for (const { said, label, y, x } of cells) {
      const answer = answers?.[rows[y].name]?.[x], right = answer === label;
      said.textContent = answer === undefined ? "" : `${right ? "✓" : "✗"}${sheet.classes[answer]}`;
      said.title = answer === undefined ? "" : `The network says ${sheet.classes[answer]}: ${right ? "right" : "wrong"}`;
      said.classList.toggle("wrong", answer !== undefined && !right);
      rows[y].right += right;
      if (answer !== undefined) rows[y].said.push(sheet.classes[answer]);
    }
    for (const { node, name, right, said } of rows) change(node, { "aria-label": said.length
      ? `${name}: ${right} of ${said.length} pictures read rightly at step ${step}; it says ${said.join(", ")}` : `${name}: pictures` });
  }

  function drawMaps(now) {
    if (place.dataset.step === String(now?.step)) return; // pictures are decoded again when they are set again
    place.dataset.step = String(now?.step);
    for (const { said, y, x } of cells) {
      const map = now?.maps[rows[y].name];
      if (map) Object.assign(said.style, cut(map, x, 0, sheet.columns, 1));
      else said.style.backgroundImage = "none";
    }
    for (const { node, name } of rows) change(node, { "aria-label": now ? `${name}: pictures, and beside each what the network says of every pixel at step ${now.step}` : `${name}: pictures` });
  }
  return { set, draw };
}
