// The picture of a mesh: a box for each device, a row for each replica, a column for each stage, and the messages as arrows.

const [BOX, ROW_GAP] = [44, 32]; // px: height of a box, between rows
const [BEFORE, LANE, EDGE] = [4, 6, 11]; // px: from a box to the edge of its column on the left, to its lane and the edge on the right

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

// Where the arrow of a message runs, and where its letter stands: beside it, clear of every line.
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
  const lane = frame.x(from.stage) + frame.box + LANE; // from the last replica back to the first
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

// The messages of the chosen rank with their letters, the others of its pipeline and of its ring as thin lines.
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

// ---- boxes, and what they belong to ----

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

// The picture, one stop of the Tab key; `draw(mesh)` shows a mesh, `pick(rank)` is called for a rank that is chosen.
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

// The device beside one in the picture; at the edge, and for other keys, the device itself or none.
function neighbour(places, from, key) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], " ": [0, 0], Enter: [0, 0] };
  if (key === "Home" || key === "End") return places[key === "Home" ? 0 : places.length - 1];
  if (!steps[key]) return null;
  const [across, down] = steps[key];
  return places.find((place) => place.stage === from.stage + across && place.replica === from.replica + down) ?? from;
}
