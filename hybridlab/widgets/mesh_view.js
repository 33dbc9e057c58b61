// A mesh view: the sizes and the rank to choose, the picture, and what it shows in words and as a table.
// Above it stand view.js, mesh_words.js and mesh_picture.js; together they are one module.

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
  const labels = { stages: "Stages, K", replicas: "Replicas, D", rank: "Rank" };
  const controls = SETTING.map((name) => selectOf(`${id}-${name}`, labels[name], (value) => pick(name, Number(value))));
  const fields = make("div", { class: "fields", role: "group", "aria-label": "Mesh" }, ...controls.map((each) => each.element));
  const picture = pictureOf((rank) => pick("rank", rank));
  const [words, groups] = [make("p", { class: "told", role: "status" }), make("p", { class: "groups" })];
  const table = make("table");
  root.append(fields, make("p", { class: "hint" }, HINT), picture.element, words, groups, table);

  const show = () => {
    const [now, data] = [setting(), model.get("data")];
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
