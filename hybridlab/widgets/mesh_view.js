// A mesh view: the sizes and the rank to choose, a picture of the devices and their messages, and the same in words and as a table.

import { oneOf, wholeFrom } from "./setting.js";
import { shareRow } from "./share.js";
import { counted, freshId, keepDrawn, listed, make, number, plain, rootIn, selectOf } from "./view.js";

// ---- the mesh of a setting, in words and as a table ----

const SETTING = ["stages", "replicas", "rank"];

// The mesh of a setting, as Python computed it. Nothing below depends on how ranks are numbered.
function meshOf(data, { stages, replicas, rank }) {
  const entry = data.meshes[`${stages}/${replicas}`];
  const links = entry.links.map(([kind, sender, receiver, count]) => ({ kind, sender, receiver, count }));
  const places = entry.places.map(([stage, replica], each) => ({ rank: each, stage, replica }));
  const now = places[rank];
  const sound = now && places.length && links.every((link) => places[link.sender] && places[link.receiver]);
  if (!sound) throw new Error("a rank is missing");
  return { stages, replicas, kinds: data.kinds, places, links, now, pipeline: entry.pipelines[now.replica], group: entry.groups[now.stage] };
}

const ranksOf = (ranks) => `${ranks.length === 1 ? "rank" : "ranks"} ${listed(ranks.map(String))}`;

// For each kind of message: the ranks it is sent to, the ranks it is received from, and the number sent in a step.
function trafficOf({ kinds, links, now }) {
  return kinds.map((kind) => {
    const own = links.filter((link) => link.kind === kind.name);
    const sent = own.filter((link) => link.sender === now.rank);
    const received = own.filter((link) => link.receiver === now.rank);
    const count = sent.reduce((sum, link) => sum + link.count, 0);
    return { kind, to: sent.map((link) => link.receiver), from: received.map((link) => link.sender), count };
  });
}

function said(verb, word, traffic, side) {
  const parts = traffic.filter((each) => each[side].length).map((each) => `${each.kind.words} ${word} ${ranksOf(each[side])}`);
  return parts.length ? `It ${verb} ${listed(parts)}.` : `It ${verb} nothing.`;
}

function sentencesOf(mesh) {
  const { now, pipeline, group } = mesh;
  const traffic = trafficOf(mesh);
  const place = `Rank ${now.rank} is stage ${now.stage} of replica ${now.replica}.`;
  const alone = group.length === 1 ? " Its stage has no copy, so there is no ring." : "";
  const first = `${place} ${said("sends", "to", traffic, "to")} ${said("receives", "from", traffic, "from")}${alone}`;
  return [first, `Its pipeline (solid frame): ${ranksOf(pipeline)}. Its stage group (dashed frame): ${ranksOf(group)}.`];
}

// The sample of a kind of message: a short arrow in its style.
function sampleOf(kind) {
  const line = make("path", { class: `link ${kind.name} own`, d: "M1 7H27" });
  const head = make("path", { class: `head ${kind.name}`, d: "M34 7L26 3V11Z" });
  return make("svg", { width: 36, height: 14, "aria-hidden": "true" }, line, head);
}

function tableOf(mesh) {
  const heads = ["Message", "Sends to", "Receives from", "Sends in a step"];
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const who = (ranks) => (ranks.length ? ranksOf(ranks) : "nobody");
  const rows = trafficOf(mesh).map(({ kind, to, from, count }) => {
    const name = make("th", { scope: "row" }, sampleOf(kind), make("b", {}, kind.letter), ` ${kind.words}`);
    return make("tr", {}, name, ...[who(to), who(from), count].map((text) => make("td", {}, String(text))));
  });
  return [make("thead", {}, head), make("tbody", {}, ...rows)];
}

function captionOf(data, { now, stages, replicas }) {
  const sizes = `${counted(stages, "stage")}, ${counted(replicas, "replica")}, ${counted(data.microbatches, "microbatch")} a pipeline`;
  return `Messages of rank ${now.rank}: ${sizes}`;
}

// ---- the picture: a box for each device, a row for each replica, a column for each stage ----

const [BOX, ROW_GAP] = [44, 32]; // px: height of a box, space between rows
const [BEFORE, LANE, EDGE] = [4, 6, 11]; // px: from a box to the left edge of its column, to the lane on its right, to the right edge of its column

function frameOf({ stages, replicas }, width) {
  const wide = width >= 480;
  const [left, right] = [wide ? 72 : 50, EDGE + 4];
  const [least, most] = [BOX, 80];
  const room = width - left - right;
  const box = Math.max(least, Math.min(most, room / (2 * stages)));
  const gap = Math.max(25, Math.min(most, stages > 1 ? (room - stages * box) / (stages - 1) : 0));
  const top = 46;
  const x = (stage) => left + stage * (box + gap);
  const y = (replica) => top + replica * (BOX + ROW_GAP);
  return { wide, left, box, gap, top, x, y, width: x(stages - 1) + box + right, height: y(replicas - 1) + BOX + 36 };
}

// ---- arrows ----

// The points of a message's arrow, and a place for its letter where the letter touches no line.
function pipelineLine(frame, from, to, forward) {
  const middle = frame.y(from.replica) + BOX / 2;
  const between = Math.min(frame.x(from.stage), frame.x(to.stage)) + frame.box;
  const [near, far] = [between + 3, between + frame.gap - 3];
  const y = middle + (forward ? -8 : 8);
  const points = forward ? [[near, y], [far, y]] : [[far, y], [near, y]];
  return { points, letter: [between + (EDGE + frame.gap - BEFORE) / 2, forward ? y - 7 : y + 14] };
}

function ringLine(frame, from, to) {
  const [centre, end] = [frame.x(from.stage) + frame.box / 2, frame.y(from.replica) + BOX + 3];
  const start = frame.y(to.replica) - 3;
  if (start > end) return { points: [[centre, end], [centre, start]], letter: [centre + 10, (start + end) / 2 + 4] };
  const lane = frame.x(from.stage) + frame.box + LANE; // the way from the last replica back to the first
  const points = [[centre, end], [centre, end + 11], [lane, end + 11], [lane, start - 11], [centre, start - 11], [centre, start]];
  return { points, letter: [(centre + lane) / 2, end + 24] };
}

function arrowOf(kind, points, own) {
  const [[x0, y0], [x1, y1]] = points.slice(-2);
  const length = Math.hypot(x1 - x0, y1 - y0);
  const [dx, dy] = [(x1 - x0) / length, (y1 - y0) / length];
  const [long, broad] = own ? [9, 5] : [6, 3.5];
  const [bx, by] = [x1 - long * dx, y1 - long * dy];
  const line = [...points.slice(0, -1), [bx, by]].map(([x, y]) => `${number(x)} ${number(y)}`).join("L");
  const corners = [[x1, y1], [bx - broad * dy, by + broad * dx], [bx + broad * dy, by - broad * dx]];
  const head = corners.map(([x, y]) => `${number(x)} ${number(y)}`).join("L");
  const mine = own ? " own" : "";
  return [make("path", { class: `link ${kind.name}${mine}`, d: `M${line}` }), make("path", { class: `head ${kind.name}${mine}`, d: `M${head}Z` })];
}

// The chosen rank's own arrows are thick and have letters. The other arrows of its pipeline and its ring are thin.
function linksOf(mesh, frame) {
  const { now, places, links, kinds, pipeline, group } = mesh;
  const within = (ranks, link) => ranks.includes(link.sender) && ranks.includes(link.receiver);
  const drawn = links.filter((link) => within(pipeline, link) || within(group, link));
  const mine = (link) => link.sender === now.rank || link.receiver === now.rank;
  return drawn.sort((a, b) => mine(a) - mine(b)).flatMap((link) => {
    const kind = kinds.find((each) => each.name === link.kind);
    const [from, to] = [places[link.sender], places[link.receiver]];
    const line = from.replica === to.replica ? pipelineLine(frame, from, to, from.stage < to.stage) : ringLine(frame, from, to);
    const [x, y] = line.letter.map(number);
    const letter = mine(link) ? [make("text", { class: `letter ${kind.name}`, x, y }, kind.letter)] : [];
    return [...arrowOf(kind, line.points, mine(link)), ...letter];
  });
}

// ---- boxes, names, and the frames of the pipeline and the stage group ----

function namesOf({ stages, replicas, now }, frame) {
  const name = (text, x, y, here) => make("text", { class: here ? "name here" : "name", x: number(x), y: number(y) }, text);
  const heads = Array.from({ length: stages }, (_, stage) => name(`stage ${stage}`, frame.x(stage) + frame.box / 2, 14, stage === now.stage));
  const rows = Array.from({ length: replicas }, (_, replica) => {
    const [x, y, here] = [frame.wide ? 32 : 23, frame.y(replica) + BOX / 2, replica === now.replica];
    if (frame.wide) return [name(`replica ${replica}`, x, y + 4, here)];
    return [name("replica", x, y - 2, here), name(replica, x, y + 12, here)];
  });
  return [...heads, ...rows.flat()];
}

function bandsOf({ now, stages, replicas }, frame) {
  const [x, y] = [frame.x(now.stage) - BEFORE, frame.y(now.replica) - 6];
  const row = { x: frame.left - BEFORE, y, width: frame.x(stages - 1) + frame.box - frame.left + 2 * BEFORE, height: BOX + 12 };
  const column = { x, y: frame.top - 24, width: frame.box + BEFORE + EDGE, height: frame.y(replicas - 1) + BOX - frame.top + 24 + 32 };
  const band = (name, size) => make("rect", { class: `band ${name}`, rx: 6, ...size });
  return [band("group", column), band("pipeline", row)];
}

function boxOf(place, mesh, frame) {
  const { rank, stage, replica } = place;
  const chosen = place === mesh.now;
  const near = stage === mesh.now.stage || replica === mesh.now.replica;
  const [x, y] = [frame.x(stage), frame.y(replica)];
  const told = { role: "radio", "aria-checked": chosen, "aria-label": `rank ${rank}, stage ${stage}, replica ${replica}` };
  const box = make("rect", { x: number(x), y, width: number(frame.box), height: BOX, rx: 5 });
  const text = make("text", { x: number(x + frame.box / 2), y: y + BOX / 2 }, rank);
  return make("g", { class: `device${near ? " near" : ""}`, tabindex: chosen ? 0 : -1, ...told }, box, text);
}

// The picture, one stop of the Tab key; `draw(mesh)` shows a mesh. Choosing a rank calls `pick(rank)`.
function pictureOf(pick) {
  const box = make("div", { class: "picture" });
  let [mesh, boxes, width] = [null, [], 0];

  const draw = (given = mesh) => {
    const focused = box.matches(":focus-within");
    [mesh, width] = [given, box.clientWidth];
    const frame = frameOf(mesh, width || 640);
    boxes = mesh.places.map((place) => boxOf(place, mesh, frame));
    const label = `Devices of ${counted(mesh.stages, "stage")} and ${counted(mesh.replicas, "replica")}, by rank. Arrow keys choose.`;
    const size = { width: number(frame.width), height: frame.height };
    const parts = [...bandsOf(mesh, frame), ...namesOf(mesh, frame), ...linksOf(mesh, frame)];
    const drawing = make("g", { "aria-hidden": "true" }, ...parts);
    box.replaceChildren(make("svg", { role: "radiogroup", "aria-label": label, ...size }, drawing, ...boxes));
    if (focused) boxes[mesh.now.rank].focus();
  };
  const rankAt = (target) => boxes.indexOf(target.closest?.(".device"));
  box.addEventListener("click", (event) => {
    if (rankAt(event.target) < 0) return;
    boxes[rankAt(event.target)].focus();
    pick(rankAt(event.target));
  });
  box.addEventListener("keydown", (event) => {
    const from = plain(event) ? mesh.places[rankAt(event.target)] : null;
    const to = from ? neighbour(mesh.places, from, event.key) : null;
    if (!to) return;
    event.preventDefault();
    pick(to.rank);
  });
  const observer = new ResizeObserver(() => {
    if (mesh && box.clientWidth && box.clientWidth !== width) draw();
  });
  observer.observe(box);
  return { element: box, draw, stop: () => observer.disconnect() };
}

// The device that a key leads to. At the edge of the picture it is the same device; for other keys it is null.
function neighbour(places, from, key) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], " ": [0, 0], Enter: [0, 0] };
  if (key === "Home" || key === "End") return places[key === "Home" ? 0 : places.length - 1];
  if (!steps[key]) return null;
  const [across, down] = steps[key];
  return places.find((place) => place.stage === from.stage + across && place.replica === from.replica + down) ?? from;
}

// ---- the widget ----

const HINT = "Choose a rank: click or tap its box, or Tab to the picture and use the arrow keys.";

function render({ model, el }) {
  const root = rootIn(el, "mesh");
  const id = freshId();
  const setting = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (name, value) => {
    const next = { ...setting(), [name]: value };
    const entry = model.get("data").meshes[`${next.stages}/${next.replicas}`];
    if (!entry.places[next.rank]) next.rank = 0;
    for (const each of SETTING) if (next[each] !== model.get(each)) model.set(each, next[each]);
    model.save_changes();
  };
  const rules = ({ stages, replicas }) => {
    const data = model.get("data");
    return { stages: oneOf(data.stages), replicas: oneOf(data.replicas), rank: wholeFrom(0, stages * replicas - 1) };
  };
  const labels = { stages: "Stages, K", replicas: "Replicas, D", rank: "Rank" };
  const controls = SETTING.map((name) => selectOf(`${id}-${name}`, labels[name], (value) => pick(name, Number(value))));
  const fields = make("div", { class: "fields", role: "group", "aria-label": "Mesh" }, ...controls.map((each) => each.element));
  const picture = pictureOf((rank) => pick("rank", rank));
  const [words, groups] = [make("p", { class: "told", role: "status" }), make("p", { class: "groups" })];
  const table = make("table");
  root.append(fields, shareRow(model, SETTING, rules), make("p", { class: "hint" }, HINT), picture.element, words, groups, table);

  const show = () => {
    const [now, data] = [setting(), model.get("data")];
    if (!model.page && now.rank >= now.stages * now.replicas) return; // Python sends a smaller mesh before the rank
    const mesh = meshOf(data, now);
    const values = [data.stages, data.replicas, mesh.places.map((place) => place.rank)];
    controls.forEach((control, place) => control.show(now[SETTING[place]], values[place].map((each) => [each, each])));
    const [first, second] = sentencesOf(mesh);
    if (words.textContent !== first) words.textContent = first;
    groups.textContent = second;
    table.replaceChildren(make("caption", {}, captionOf(data, mesh)), ...tableOf(mesh));
    picture.draw(mesh);
  };
  return keepDrawn(model, root, SETTING, show, picture.stop).end;
}

export default { render };
