// A film of timelines: one schedule after the other fills in, while the bubble ratio and the memory are counted above it.

import { pipelineOf } from "./orders.js";
import { playerOf } from "./player.js";
import { nameIn, numberFrom, orNull } from "./setting.js";
import { shareRow } from "./share.js";
import { costsOf, figuresUntil, timed } from "./timed.js";
import { kindSamples, idleSample, sorted } from "./timeline.js";
import { pictureOf } from "./timeline_explorer_picture.js";
import { summary, timeIn } from "./timeline_words.js";
import { counted, freshId, make, number, rootIn, sayDamaged } from "./view.js";

function timelinesOf({ schedules, devices, microbatches, costs, unit, kinds }) {
  const sizes = `${counted(devices, "device")}, ${counted(microbatches, "microbatch")}`;
  const timelines = schedules.map(({ title, orders }) => timed(pipelineOf(orders), costsOf(costs, devices), { title, sizes, unit, kinds }));
  if (!timelines.every(({ makespan }) => makespan > 0)) throw new Error("a time is missing");
  return timelines;
}

// The heads of the panels: a name, and the figures up to a time. `show(times)` tells what holds at a time of each timeline.
function headsOf(timelines) {
  const words = [timelines[0].unit ? `time, ${timelines[0].unit}` : "time", "bubble ratio", "most activations on a device"];
  const figures = timelines.map(() => words.map(() => make("b")));
  timelines.forEach((timeline, place) => {
    const counts = words.map((word, each) => make("span", {}, `${word} `, figures[place][each]));
    timeline.head = make("p", { class: "title" }, make("strong", {}, timeline.title), ...counts);
  });
  return (times) => {
    timelines.forEach((timeline, place) => {
      const { bubble, most } = figuresUntil(timeline, times[place]);
      const texts = times[place] > 0 ? [number(Number(times[place].toFixed(1))), bubble.toFixed(3), number(most)] : ["", "", ""];
      texts.forEach((text, each) => {
        if (figures[place][each].textContent !== text) figures[place][each].textContent = text;
      });
      timeline.head.classList.toggle("begun", times[place] > 0);
    });
  };
}

// Starts the film once, when half of it is in sight; for readers who want no motion, never.
function startInSight(element, player) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return () => {};
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    observer.disconnect();
    player.start();
  }, { threshold: 0.5 });
  observer.observe(element);
  return () => observer.disconnect();
}

function render({ model, el }) {
  const [root, id] = [rootIn(el, "film"), freshId()];
  try {
    const timelines = timelinesOf(model.get("data"));
    const lengths = timelines.map(({ makespan }) => makespan);
    const begins = lengths.map((_, place) => lengths.slice(0, place).reduce((sum, each) => sum + each, 0));
    const end = begins.at(-1) + lengths.at(-1);
    const timesAt = (time) => lengths.map((length, place) => Math.min(Math.max(time - begins[place], 0), length));
    const notice = () => model.page?.notice();
    const picture = pictureOf(id, () => {}, true, notice);
    const tell = headsOf(timelines);
    const player = playerOf(`${id}-time`, "Time", (time) => {
      picture.moveTime(timesAt(time));
      tell(timesAt(time));
      if (!player.playing()) notice();
    });
    const look = {
      made: { time: null, chosen: "", left: 0 },
      rules: () => ({
        time: orNull(numberFrom(0, end)), chosen: nameIn(picture.has, "an operation of the picture, such as 0F0"), left: numberFrom(0, end),
      }),
      read: () => ({ time: player.part(), ...picture.look() }),
      show: ({ time, ...kept }) => {
        if (time !== null || kept.chosen) leave(); // else it still starts by itself
        player.go(time ?? end);
        picture.showLook(kept);
      },
    };
    const row = shareRow(model, [], () => ({}), { look });
    const told = (time) => {
      const place = begins.findLastIndex((begin) => begin < time || begin === 0);
      return `${timelines[place].title}: ${timeIn(timelines[place], Number((time - begins[place]).toFixed(1)))}`;
    };
    const events = sorted(timelines.flatMap(({ ops }, place) => ops.flatMap((op) => [begins[place] + op.start, begins[place] + op.end])));
    const kinds = new Set(timelines.flatMap(({ ops }) => ops.map(({ kind }) => kind)));
    const samples = [...kindSamples(timelines[0].kinds, (kind) => kinds.has(kind)), idleSample()];
    const legend = make("ul", { class: "legend" }, ...samples, make("li", {}, timelines[0].sizes));
    const spoken = make("p", { class: "unseen" }, timelines.map(summary).join(" "));
    root.append(player.element, picture.element, legend, picture.told, row, spoken);
    picture.draw(timelines);
    player.show({ end, events, told });
    const leave = startInSight(picture.element, player);
    const finish = () => player.go(end); // paper shows the end
    addEventListener("beforeprint", finish);
    return () => {
      leave();
      removeEventListener("beforeprint", finish);
      player.pause();
      picture.stop();
    };
  } catch (error) {
    console.warn("picture:", error);
    sayDamaged(root, "picture", "drawn");
  }
}

export default { render };
