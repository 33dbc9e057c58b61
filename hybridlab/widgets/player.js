// A time cursor: play and pause, a slider over the time, the speed, and buttons that go to the event before and after.
// All views that play time use it. `moved(time)` draws the picture at a time; at the end the picture is whole.

import { field, make, number, plain } from "./view.js";

const SECONDS = 6; // of a whole run at speed 1
const PAUSE = 600; // ms between two events for readers who want no motion
const SPEEDS = [["0.25", "speed 1/4"], ["0.5", "speed 1/2"], ["1", "speed 1"], ["2", "speed 2"], ["4", "speed 4"]];

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function buttonOf(label, sign, act) {
  const button = make("button", { type: "button", "aria-label": label, title: label }, sign);
  button.addEventListener("click", act);
  return button;
}

// `label` is the slider's name. `show({ end, events, told, time })` gives the last time, the times at which something happens in ascending
// order, a function that puts a time into words, and the time to go to, which is the end if it is left out. The slider's value is the
// time. Wherever the focus is, except on the speed, arrow keys go to the next event and the one before, Home and End to the first and last
// time. `part()` is the time, or null at the end. `moved` is called once more when the time stops: `playing()` is then false.
export function playerOf(id, label, moved) {
  const slider = make("input", { type: "range", min: 0, step: "any" });
  const output = make("output", { for: id, "aria-live": "off" });
  const speed = make("select", { "aria-label": "Speed" }, ...SPEEDS.map(([value, words]) => make("option", { value }, words)));
  speed.value = "1";
  let [now, end, events, told, frame, timer, before] = [0, 0, [], number, 0, 0, 0];

  // a time that is no event is told with the digits of a thousandth of the run: more would only flicker
  const rounded = (time) => Number(time.toFixed(Math.min(Math.max(3 - Math.floor(Math.log10(end)), 0), 20)));
  const at = (time, tell = Number) => {
    now = Math.min(Math.max(time, 0), end);
    slider.value = now;
    output.textContent = told(now < end ? tell(now) : end);
    slider.setAttribute("aria-valuetext", output.textContent);
    moved(now);
  };
  const playing = () => Boolean(frame || timer);
  const named = () => {
    const [name, sign] = playing() ? ["Pause", "❚❚"] : ["Play", "▶"];
    for (const attribute of ["aria-label", "title"]) play.setAttribute(attribute, name);
    play.textContent = sign;
  };
  const pause = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    [frame, timer] = [0, 0];
    named();
  };
  const stop = () => {
    pause();
    moved(now);
  };
  const next = () => events.find((event) => event > now * (1 + 1e-12)) ?? end;
  const previous = () => events.findLast((event) => event < now * (1 - 1e-12)) ?? 0;
  const tick = (stamp) => {
    const passed = before ? Math.min(stamp - before, 100) / 1000 : 0; // s; a page in the background does not jump
    before = stamp;
    at(now + (passed * Number(speed.value) * end) / SECONDS, rounded);
    if (now >= end) return stop();
    frame = requestAnimationFrame(tick);
  };
  const jump = () => {
    at(next());
    if (now >= end) return stop();
    timer = setTimeout(jump, PAUSE / Number(speed.value));
  };
  const start = () => {
    if (!(end > 0)) return;
    before = 0;
    if (now >= end) at(0);
    if (still()) timer = setTimeout(jump, PAUSE);
    else frame = requestAnimationFrame(tick);
    named();
  };
  const go = (time) => {
    pause();
    at(time);
  };
  const play = buttonOf("Play", "▶", () => (playing() ? stop() : start()));
  const [back, on] = [buttonOf("To the event before", "‹", () => go(previous())), buttonOf("To the next event", "›", () => go(next()))];
  slider.addEventListener("input", () => {
    pause();
    at(Number(slider.value), rounded);
  });
  const element = make("div", { class: "player", role: "group", "aria-label": "Play the time" }, play, back, on);
  element.append(speed, field(id, label, slider, output));
  const keys = { ArrowRight: next, ArrowUp: next, ArrowLeft: previous, ArrowDown: previous, Home: () => 0, End: () => end };
  element.addEventListener("keydown", (event) => {
    if (!Object.hasOwn(keys, event.key) || !plain(event) || event.target === speed) return;
    event.preventDefault();
    go(keys[event.key]());
  });

  const show = (given) => {
    pause();
    ({ end, events, told } = given);
    element.hidden = !(end > 0);
    slider.max = end;
    at(given.time ?? end);
  };
  const part = () => (now < end ? Number(now.toPrecision(9)) : null);
  return { element, show, go, start, pause, playing, part, now: () => now, end: () => end };
}
