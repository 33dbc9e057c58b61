// What a mesh view says: the mesh that its data hold, a rank's links, and both in words and as a table.

const SETTING = ["stages", "replicas", "rank"];

// The mesh of a setting, as Python computed it: nothing below knows how ranks are numbered.
function meshOf(data, { stages, replicas, rank }) {
  const entry = data.meshes[`${stages}/${replicas}`];
  const links = entry.links.map(([kind, sender, receiver, count]) => ({ kind, sender, receiver, count }));
  const places = entry.places.map(([stage, replica], each) => ({ rank: each, stage, replica }));
  const now = places[rank];
  const sound = now && places.length && links.every((link) => places[link.sender] && places[link.receiver]);
  if (!sound) throw new Error("a rank is missing");
  return { stages, replicas, kinds: data.kinds, places, links, now, pipeline: entry.pipelines[now.replica], group: entry.groups[now.stage] };
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

const ranksOf = (ranks) => `${ranks.length === 1 ? "rank" : "ranks"} ${listed(ranks.map(String))}`;

// For each kind of message: whom the rank sends it to, whom it receives it from, how many it sends in a step.
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

// A short piece of the line that stands for a kind of message.
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
