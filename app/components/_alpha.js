// The way from W0 to W: a slider, its number, and a button that glides along it. `draw` runs at most once a frame, and
// the page hears of alpha once it rests.
const GLIDE = 5000; // milliseconds from alpha 0 to 1
const REST = 250; // milliseconds

function alphaDial({ alpha, step, digits }, draw, send) {
  const slider = element("input", { type: "range", min: 0, max: 1, step, "aria-label": "α, from W₀ to W" });
  const shown = element("strong", { class: "numbers" });
  const play = element("button", { type: "button", onclick: toggle }, "▶ Glide");
  const caption = element("span", {}, "α, the share of the way from W₀ to W: ", shown);
  const paint = painter(draw);
  let rest = 0, frame = 0, gliding = false;
  const dial = { alpha, slider, play, caption, paint, set, end };

  function tell() {
    clearTimeout(rest);
    rest = setTimeout(() => send("alpha", Number(fixed(dial.alpha, digits))), REST);
  }
  function stop() {
    cancelAnimationFrame(frame);
    gliding = false;
    play.textContent = "▶ Glide";
  }
  function set(value) {
    stop();
    dial.alpha = clamp(value, 0, 1);
    paint();
    tell();
  }
  function toggle() {
    if (gliding) { stop(); tell(); return; }
    if (dial.alpha > 0.999) dial.alpha = 0;
    const from = dial.alpha, began = performance.now();
    gliding = true;
    play.textContent = "❚❚ Pause";
    const go = (now) => {
      dial.alpha = clamp(from + (now - began) / GLIDE, 0, 1);
      draw();
      if (dial.alpha < 1) frame = requestAnimationFrame(go);
      else { stop(); tell(); }
    };
    frame = requestAnimationFrame(go);
  }
  function end() { paint.cancel(); stop(); clearTimeout(rest); }

  dial.hold = (held) => { slider.disabled = play.disabled = Boolean(held); };
  dial.say = (words) => { // the number, and what it means for those who hear the page
    shown.textContent = fixed(dial.alpha, digits);
    slider.value = dial.alpha;
    slider.setAttribute("aria-valuetext", `α ${fixed(dial.alpha, digits)}. ${words}`);
  };
  slider.addEventListener("input", () => set(Number(slider.value)));
  return dial;
}
