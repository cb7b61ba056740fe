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
  let asked = 0;
  const paint = () => {
    if (!asked) asked = requestAnimationFrame(() => { asked = 0; draw(); });
  };
  paint.cancel = () => cancelAnimationFrame(asked);
  return paint;
}

// The default export is called at the start and after every rerun of the page: `build` once, then `update`.
const mounted = new WeakMap();
function component(build) {
  return (call) => {
    let own = mounted.get(call.parentElement);
    if (own) {
      own.call = call;
      own.update?.(call.data);
    } else {
      const root = element("div", { class: "root" });
      call.parentElement.append(root);
      own = { call, root };
      Object.assign(own, build(root, call.data, (name, value) => own.call.setStateValue(name, value)));
      mounted.set(call.parentElement, own);
    }
    return () => {
      own.end?.();
      own.root.remove();
      mounted.delete(call.parentElement);
    };
  };
}
