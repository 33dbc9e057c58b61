// The cursor in the picture of a step: the row of its rank, the time, what runs then, and who sends to whom.

// An arrow from the lane of one rank, at the height `y0`, to that of another, bent so that the two of a hop stand side by side.
function arrowOf(frame, [y0, y1], at, bend, name) {
  const x = Math.min(Math.max((at - frame.from) * frame.scale, 0), frame.pixels);
  const way = Math.sign(y1 - y0);
  const line = make("path", { d: `M${round(x)} ${y0}Q${round(x + bend)} ${(y0 + y1) / 2} ${round(x)} ${y1 - 5 * way}` });
  const head = make("path", { class: "head", d: `M${round(x)} ${y1}l${round(-4 + bend / 8)} ${-8 * way}h8Z` });
  return make("g", { class: `arrow ${name}` }, line, head, make("circle", { cx: round(x), cy: y0, r: 3 }));
}

function arrowsOf(frame, { op, time: at, sends, receives, hops }) {
  const [messages, ring] = [frame.message, frame.hop].map((lane) => (from, to) => [from, to].map((rank) => lane(rank) + frame.lane / 2));
  const out = [...sends, ...receives].map(({ from, to, start, end }) => arrowOf(frame, messages(from, to), (start + end) / 2, 12, "sent"));
  const goes = [op, op?.partner].filter((each) => Number.isInteger(each?.peer));
  out.push(...goes.map(({ rank, peer, end }) => arrowOf(frame, messages(rank, peer), end, 12, "later")));
  for (const { rank, peer, from, start, end } of hops) {
    const [early, late] = [0.75 * start + 0.25 * end, 0.25 * start + 0.75 * end];
    out.push(arrowOf(frame, ring(rank, peer), late, 26, "sent"), arrowOf(frame, ring(from, rank), early, -26, "got"));
  }
  return out;
}

// Marks in the picture what a rank does at a moment: its row, the time, what runs, and who sends to whom.
function markMoment(step, frame, plot, moment) {
  const { under, over } = plot;
  const { own, op, sends, receives, hops, time: at } = moment;
  const x = round(Math.max((at - frame.from) * frame.scale, 0));
  const wide = { x: -LEFT + 1, width: Math.ceil(LEFT + frame.pixels + RIGHT) - 2, height: frame.pitch - 2 };
  const row = (rank, name) => make("rect", { class: name, y: frame.top(rank) - 3.5, rx: 3, ...wide });
  const line = make("path", { class: "cursor", d: `M${x} -1V${frame.floor + 3}` });
  const point = make("path", { class: "point", d: `M${x - 5} ${frame.top(own.rank) - 7}h10l-5 6Z` });
  over.replaceChildren(...(at < frame.from ? [] : [line, point, ...arrowsOf(frame, moment)]));
  const takes = new Set([...sends.map(({ to }) => to), ...hops.map(({ peer }) => peer)]);
  const gives = new Set([...receives.map(({ from }) => from), ...hops.map(({ from }) => from)]);
  const peers = [...new Set([...takes, ...gives])].map((rank) => row(rank, "row peer"));
  under.replaceChildren(row(own.rank, "row"), ...peers);
  for (const item of plot.running ?? []) item.shape?.classList.remove("now");
  plot.running = [op, op?.partner, ...sends, ...receives, ...hops].filter(Boolean);
  for (const item of plot.running) item.shape?.classList.add("now");
  for (const each of step.ranks) {
    const role = (takes.has(each.rank) ? 1 : 0) + (gives.has(each.rank) ? 2 : 0);
    each.name.classList.toggle("here", each === own);
    each.role.textContent = ["", "receives", "sends", "both"][role] || `${step.held > 1 ? "device" : "stage"} ${each.device}`;
    each.role.classList.toggle("peer", role > 0);
  }
}
