// A time cursor: play and pause, a slider over the time, the speed, and buttons that go to the event before and after.
// All views that play time use it. `moved(time)` draws the picture at a time; at the end the picture is whole.

import { field, make, number } from "./view.js";

const SECONDS = 6; // of a whole run at speed 1
const TICKS = 1000; // places of the slider
const PAUSE = 600; // ms between two events for readers who want no motion
const SPEEDS = [["0.25", "slower, 1/4"], ["0.5", "slow, 1/2"], ["1", "normal"], ["2", "fast, 2"], ["4", "faster, 4"]];

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function buttonOf(label, sign, act) {
  const button = make("button", { type: "button", "aria-label": label, title: label }, sign);
  button.addEventListener("click", act);
  return button;
}

// `label` is the slider's name. `show({ end, events, told })` gives the last time, the times at which something happens in ascending
// order, and a function that puts a time into words; the cursor goes to the end.
export function playerOf(id, label, moved) {
  const slider = make("input", { type: "range", min: 0, max: TICKS, step: 1 });
  const output = make("output", { for: id, "aria-live": "off" });
  const speed = make("select", { "aria-label": "Speed" }, ...SPEEDS.map(([value, words]) => make("option", { value }, words)));
  speed.value = "1";
  let [now, end, events, told, frame, timer, before] = [0, 0, [], number, 0, 0, 0];

  const at = (time) => {
    now = Math.min(Math.max(time, 0), end);
    slider.value = end > 0 ? Math.round((now / end) * TICKS) : TICKS;
    output.textContent = told(now);
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
  const next = () => events.find((event) => event > now * (1 + 1e-12)) ?? end;
  const previous = () => events.findLast((event) => event < now * (1 - 1e-12)) ?? 0;
  const tick = (stamp) => {
    const passed = before ? Math.min(stamp - before, 100) / 1000 : 0; // s; a page in the background does not jump
    before = stamp;
    at(now + (passed * Number(speed.value) * end) / SECONDS);
    if (now >= end) return pause();
    frame = requestAnimationFrame(tick);
  };
  const jump = () => {
    at(next());
    if (now >= end) return pause();
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
  const play = buttonOf("Play", "▶", () => (playing() ? pause() : start()));
  const [back, on] = [buttonOf("To the event before", "‹", () => go(previous())), buttonOf("To the next event", "›", () => go(next()))];
  slider.addEventListener("input", () => go((Number(slider.value) / TICKS) * end));
  slider.addEventListener("keydown", (event) => {
    const to = { ArrowRight: next, ArrowUp: next, ArrowLeft: previous, ArrowDown: previous }[event.key];
    if (!to || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(to());
  });
  const element = make("div", { class: "player", role: "group", "aria-label": "Play the time" }, play, back, on);
  element.append(field(id, label, slider, output), speed);

  const show = (given) => {
    pause();
    ({ end, events, told } = given);
    element.hidden = !(end > 0);
    at(end);
  };
  return { element, show, go, start, pause, now: () => now, end: () => end };
}
