// What the hand-drawn components share. It is put in front of each of them.
const SVG = "http://www.w3.org/2000/svg";

// An element with attributes, listeners (on...) and children; text is always text, never HTML.
function element(tag, attributes = {}, ...children) {
  const drawn = ["svg", "g", "path", "line", "circle", "rect", "polygon", "polyline", "text"].includes(tag);
  const node = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children.flat());
  return node;
}

function change(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
// a value with its unit, for sentences: a degree sign stands close, a percent sign does not
const withUnit = (value, metric, digits = 0) =>
  `${value.toFixed(digits)}${metric.unit === "°" || !metric.unit ? "" : "\u00a0"}${metric.unit}`;
// the title of an axis: where lower is better, it says so
const axisName = (metric, place) => `${place} ${metric.name} (${[metric.unit, metric.higher_is_better ? "" : "lower is better"]
  .filter(Boolean).join(", ")})`;
// how full a bar is, in percent of what the metric can be
const share = (value, metric) => (100 * (value - metric.low)) / (metric.high - metric.low);
const better = (metric, a, b) => (metric.higher_is_better ? a >= b : a <= b);

// two digits, and never "-0.00"
const fixed = (value, digits = 2) => (Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value).toFixed(digits);

function isDark(host) {
  const probe = element("span", { style: "color: var(--st-background-color)" });
  host.append(probe);
  const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  probe.remove();
  return red + green + blue < 384;
}

// Drawing happens at most once a frame, however many events come.
function painter(draw) {
  let frame = 0;
  const paint = () => {
    if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw(); });
  };
  paint.cancel = () => cancelAnimationFrame(frame);
  return paint;
}

// The default export is called at the start and after every rerun of the page: `build` once, then `update`.
const mounted = new WeakMap();
function component(build) {
  return (call) => {
    let instance = mounted.get(call.parentElement);
    if (instance) {
      instance.call = call;
      instance.root.classList.toggle("dark", isDark(instance.root)); // the colours of the palette, see _look.py
      instance.update?.(call.data);
    } else {
      const root = element("div", { class: "root" });
      call.parentElement.append(root);
      root.classList.toggle("dark", isDark(root));
      instance = { call, root };
      Object.assign(instance, build(root, call.data, (name, value) => instance.call.setStateValue(name, value)));
      mounted.set(call.parentElement, instance);
    }
    return () => {
      if (instance.call !== call) return; // Streamlit may end a call that a rerun overtook after the next one has begun
      instance.end?.();
      instance.root.remove();
      mounted.delete(call.parentElement);
    };
  };
}
