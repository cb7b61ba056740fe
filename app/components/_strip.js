// What the network must read, a row of pictures for each set, and what it says of each at the moment that is shown.
// The right answer has a tick; a wrong one has a cross and stands in a box, so that nobody needs colours to tell.
const HEADS = { home: "It learns to read these", shift: "and should still read these", task: "tasks, one after another" };

function strip(place) {
  let sheet = null, roles = {}, cells = [], rows = [];

  function set(next, run) {
    const known = sheet === next && roles === run.measures.roles;
    [sheet, roles] = [next, run.measures.roles];
    place.style.display = sheet ? "" : "none";
    if (!sheet || known) return;
    const { columns, sets, labels, classes } = sheet;
    let head = "";
    cells = [];
    rows = [];
    place.replaceChildren(...sets.flatMap((name, y) => {
      const role = roles[name] ?? "shift", begins = role !== head;
      head = role;
      const row = labels[y].map((label, x) => {
        const said = element("span", { class: "said" });
        const picture = element("span", { class: "tile", title: `This is ${classes[label]}`,
          style: `background-image: url(data:image/webp;base64,${sheet.sheet}); background-size: ${100 * columns}% ${100 * sets.length}%; ` +
            `background-position: ${columns > 1 ? (100 * x) / (columns - 1) : 0}% ${sets.length > 1 ? (100 * y) / (sets.length - 1) : 0}%` });
        cells.push({ said, label, y, x });
        return element("span", { class: "cell" }, picture, said);
      });
      const node = element("div", { class: "set", role: "img" }, element("span", { class: "name" }, role === "home" ? "home" : name),
        ...(y ? [] : [element("span", { class: "key" }, "✓ right, ", element("b", {}, "✗ wrong"))]), element("span", { class: "row" }, row));
      rows.push({ node, name, right: 0, said: [] });
      return [...(begins ? [element("p", { class: "head", title: "Test pictures: it is trained on none of these themselves" }, HEADS[role] ?? role)] : []), node];
    }));
  }

  // `answers`: set to numbers of classes; undefined before the first ones
  function draw(answers, step) {
    if (!sheet) return;
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
  return { set, draw };
}
