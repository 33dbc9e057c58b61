// A mesh view: the sizes and the rank to choose, the picture, and what it shows in words and as a table.
// Above it stand view.js, mesh_words.js and mesh_picture.js; together they are one module.

const HINT = "Choose a rank: click or tap its box, or Tab to the picture and use the arrow keys.";

function selectOf(id, label, pick) {
  const select = make("select");
  const element = field(id, label, select);
  select.addEventListener("change", () => pick(Number(select.value)));
  const show = (value, values) => {
    element.hidden = values.length < 2;
    if (values.join() !== [...select.options].map((option) => option.value).join()) {
      select.replaceChildren(...values.map((each) => make("option", { value: each }, String(each))));
    }
    select.value = value;
  };
  return { element, show };
}

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
  const labels = { stages: "Stages, K", replicas: "Replicas, D", rank: "Rank" };
  const controls = SETTING.map((name) => selectOf(`${id}-${name}`, labels[name], (value) => pick(name, value)));
  const fields = make("div", { class: "fields", role: "group", "aria-label": "Mesh" }, ...controls.map((each) => each.element));
  const picture = pictureOf((rank) => pick("rank", rank));
  const [words, groups] = [make("p", { class: "told", role: "status" }), make("p", { class: "groups" })];
  const table = make("table");
  root.append(fields, make("p", { class: "hint" }, HINT), picture.element, words, groups, table);

  const show = () => {
    const [now, data] = [setting(), model.get("data")];
    const mesh = meshOf(data, now);
    const values = [data.stages, data.replicas, mesh.places.map((place) => place.rank)];
    controls.forEach((control, place) => control.show(now[SETTING[place]], values[place]));
    const [first, second] = sentencesOf(mesh);
    if (words.textContent !== first) words.textContent = first;
    groups.textContent = second;
    table.replaceChildren(make("caption", {}, captionOf(data, mesh)), ...tableOf(mesh));
    picture.draw(mesh);
  };
  const guarded = () => {
    try {
      show();
    } catch (error) {
      console.warn("mesh view:", error);
      stop();
      sayDamaged(root, "picture", "drawn");
    }
  };
  let due = false; // several traits change at once: draw once
  const soon = () => {
    if (!due) queueMicrotask(() => ((due = false), guarded()));
    due = true;
  };
  const events = SETTING.map((name) => `change:${name}`);
  const stop = () => {
    picture.stop();
    for (const event of events) model.off?.(event, soon);
  };
  for (const event of events) model.on(event, soon);
  guarded();
  return stop;
}

export default { render };
