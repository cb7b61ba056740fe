// The network as a row of layers, early ones left: each is tied to its anchor W₀ at the bottom by a leash of length γ
// (the line with a bar at its end), and has walked some of it (the filled column).
const NET = { high: 372, left: 34, right: 14, top: 46, base: 318 };

// the part of the network that a tensor belongs to: its name up to the first number, or its first word
function blockOf(layer) {
  const parts = layer.split("."), at = parts.findIndex((part) => /^\d+$/.test(part));
  return at > 0 ? parts.slice(0, at + 1).join(".") : parts[0].replace(/_?(norm|bn)\d*$/, "");
}

function network(place, choose) {
  const svg = element("svg", { role: "img", class: "net", "aria-label": "The network; its layers come with the first numbers." });
  place.append(svg);
  let layers = [], columns = [], top = 1, across = 760, counted = 0, scale = null;

  const up = (value) => NET.base - (NET.base - NET.top) * Math.min(1.02, value / top);
  // the longest leash, or the farthest walk, of the whole run so far: the scale stays while it is replayed
  const longest = (run) => Math.max(1e-6, ...run.points.map((p) => Math.max(...p.distance, ...p.gamma.map((g) => g ?? 0))));

  function set(run, chosen, look) {
    layers = run.layers;
    [top, counted] = [longest(run), run.points.length];
    across = clamp(place.clientWidth || 760, 340, 760); // on a phone the letters stay large and the columns get thin
    change(svg, { viewBox: `0 0 ${across} ${NET.high}` });
    const wide = (across - NET.left - NET.right) / Math.max(1, layers.length);
    const x = (i) => NET.left + (i + 0.5) * wide, thick = Math.max(2, wide * 0.62);
    svg.replaceChildren();
    const blocks = [];
    layers.forEach((name, i) => {
      const block = blockOf(name);
      if (blocks.at(-1)?.name === block) blocks.at(-1).last = i;
      else blocks.push({ name: block, first: i, last: i });
    });
    for (const { name, first, last } of blocks) {
      const width = (last - first + 1) * wide - 4;
      svg.append(element("rect", { x: x(first) - wide / 2 + 2, y: NET.top - 10, width, height: NET.base - NET.top + 16, rx: 6,
        fill: look.text, "fill-opacity": 0.045 }));
      if (width > 20) svg.append(element("text", { x: (x(first) + x(last)) / 2, y: NET.base + 24, "text-anchor": "middle",
        fill: look.text, "font-size": 13 }, width > 7 * name.length ? name : name.split(".").at(-1)));
    }
    svg.append(element("line", { x1: NET.left - 8, x2: across - NET.right, y1: NET.base, y2: NET.base, stroke: look.muted, "stroke-width": 1.5 }),
      element("text", { x: NET.left - 14, y: NET.base + 5, "text-anchor": "end", fill: look.text, "font-size": 14, "font-weight": 700 }, "W₀"),
      element("text", { x: NET.left, y: NET.base + 46, fill: look.text, "font-size": 13 }, "← picture comes in"),
      element("text", { x: across - NET.right, y: NET.base + 46, "text-anchor": "end", fill: look.text, "font-size": 13 }, "answer goes out →"));
    scale = element("text", { x: NET.left - 6, y: NET.top + 4, "text-anchor": "end", fill: look.muted, "font-size": 12 });
    svg.append(scale, element("line", { x1: NET.left - 4, x2: across - NET.right, y1: NET.top, y2: NET.top, stroke: look.muted,
      "stroke-width": 1, "stroke-dasharray": "2 5" }));
    columns = layers.map((name, i) => {
      const color = colorAt(look, i, layers.length), dim = chosen && chosen !== name ? 0.25 : 1;
      const walked = element("rect", { x: x(i) - thick / 2, width: thick, fill: color, opacity: 0.85 * dim });
      const leash = element("line", { x1: x(i), x2: x(i), y1: NET.base, stroke: color, "stroke-width": 1.6, opacity: dim });
      const end = element("line", { x1: x(i) - thick / 2, x2: x(i) + thick / 2, stroke: color, "stroke-width": 3, opacity: dim });
      const tip = document.createElementNS(SVG, "title");
      const hit = element("rect", { x: x(i) - wide / 2, width: wide, y: NET.top - 10, height: NET.base - NET.top + 20,
        fill: "transparent", style: "cursor: pointer", onclick: () => choose(name) });
      hit.append(tip);
      svg.append(walked, leash, end, hit);
      return { walked, leash, end, tip, name };
    });
    legend(look, run);
  }

  function legend(look, run) {
    const showsGamma = hasGamma(run) || !run.points.length;
    const text = (x, y, words) => element("text", { x, y: y + 5, fill: look.text, "font-size": 13.5 }, words);
    const narrow = across < 560, [x, y] = narrow ? [NET.left + 5, 28] : [300, 16], first = narrow ? 9 : 16; // one line or two
    svg.append(element("rect", { x: NET.left, y: first - 7, width: 11, height: 13, fill: look.depth[0], opacity: 0.85 }),
      text(NET.left + 17, first, "how far a layer has walked from W₀"));
    if (showsGamma) svg.append(element("line", { x1: x, x2: x, y1: y - 6, y2: y + 7, stroke: look.depth[0], "stroke-width": 1.6 }),
      element("line", { x1: x - 5, x2: x + 5, y1: y - 6, y2: y - 6, stroke: look.depth[0], "stroke-width": 3 }),
      text(x + 12, y, "the end of its leash γ, which training lets out"));
    else svg.append(text(x + 12, y, "this method has no leash"));
  }

  function draw(point, run) {
    const words = [];
    if (run.points.length > counted) [top, counted] = [longest(run), run.points.length]; // a run under way walks farther
    if (scale) scale.textContent = run.points.length ? top.toFixed(top < 10 ? 2 : 0) : "";
    columns.forEach(({ walked, leash, end, tip, name }, i) => {
      const far = point?.distance[i] ?? 0, gamma = point?.gamma[i] ?? null, display = gamma === null ? "none" : "";
      change(walked, { y: up(far), height: Math.max(0, NET.base - up(far)) });
      for (const node of [leash, end]) node.style.display = display;
      if (gamma !== null) { change(leash, { y2: up(gamma) }); change(end, { y1: up(gamma), y2: up(gamma) }); }
      tip.textContent = gamma === null ? `${name}: ${far.toFixed(3)} from W₀`
        : `${name}: γ ${gamma.toFixed(3)}, ${far.toFixed(3)} from W₀ (${Math.round((100 * far) / Math.max(gamma, 1e-9))} % of its leash)`;
    });
    if (point) {
      const far = point.distance, most = far.indexOf(Math.max(...far));
      words.push(`At step ${point.step}, ${layers[most]} is farthest from its anchor, ${far[most].toFixed(2)} away.`);
    }
    change(svg, { "aria-label": `The network, ${layers.length} layers, early ones left, each on its leash. ${words.join(" ")}` });
  }
  return { set, draw };
}
