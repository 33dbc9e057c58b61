// A cluster explorer: controls, how long an iteration takes, the picture, and its numbers as tables.
// Above it stand view.js, chart.js and the files cluster_explorer_*.js; together they are one module.

// A name with its colour before it.
function keyOf(words, look) {
  const swatch = make("svg", { width: 14, height: 14, "aria-hidden": "true" });
  swatch.append(make("rect", { x: 0.5, y: 0.5, width: 13, height: 13, class: "part", ...look }));
  return make("span", { class: "key" }, swatch, words);
}

function timeTable({ parts, seconds: whole }, before, id) {
  const earlier = before && !before.refusal ? before.parts : null;
  const rows = parts.map((part, place) => {
    const numbers = [three(part.seconds), share(part.seconds, whole), ...(earlier ? [three(earlier[place].seconds)] : [])];
    return [keyOf(part.words, lookOf(part, id)), ...numbers];
  });
  const total = ["together", three(whole), "100 %", ...(earlier ? [three(before.seconds)] : [])];
  return tableOf("Parts of the iteration", ["", "seconds", "share", ...(earlier ? ["before"] : [])], [...rows, total]);
}

function memoryTable({ memory }) {
  const rows = Object.entries(MEMORY).map(([name, words]) => [keyOf(words, { class: `part ${name}` }), memory[name].toFixed(1)]);
  const sums = [["together", memory.total.toFixed(1)], ["capacity of a GPU", number(memory.capacity)]];
  return tableOf("Memory of the fullest GPU", ["", "GB"], [...rows, ...sums]);
}

function render({ model, el }) {
  const root = rootIn(el, "cluster");
  const id = freshId();
  const data = model.get("data");
  const pick = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  let [parts, now, before] = [null, null, null];

  const setUp = () => {
    const controls = data.axes.map(({ name, label, values }) => selectOf(`${id}-${name}`, label, (place) => pick(name, values[Number(place)])));
    const fields = make("div", { class: "fields", role: "group", "aria-label": "Model, cluster and plan" });
    fields.append(...controls.map((control) => control.element));
    const picture = pictureOf(id);
    const told = make("p", { class: "told", role: "status" });
    const plan = make("p", { class: "told plan" });
    const tables = [make("table", { class: "time" }), make("table", { class: "memory" })];
    root.append(fields, told, picture.element, make("div", { class: "figures" }, ...tables), plan);
    return { controls, picture, told, plan, tables };
  };
  const show = () => {
    parts ??= setUp();
    const reading = readingOf(data, Object.fromEntries(SETTING.map((name) => [name, model.get(name)])));
    if (now && planWords(data, now) !== planWords(data, reading)) before = now;
    now = reading;
    parts.controls.forEach((control, place) => {
      const { name, values } = data.axes[place];
      control.show(String(values.indexOf(reading.setting[name])), values.map((value, each) => [String(each), String(value)]));
    });
    const [strong, rest] = headOf(reading);
    parts.told.replaceChildren(make("strong", {}, strong), rest, " ", beforeWords(data, reading, before));
    parts.picture.draw(reading, before);
    parts.tables[0].replaceChildren(...(reading.refusal ? [] : timeTable(reading, before, id)));
    parts.tables[1].replaceChildren(...(reading.memory ? memoryTable(reading) : []));
    parts.plan.textContent = planWords(data, reading);
  };
  return keepDrawn(model, root, SETTING, show, () => parts?.picture.stop()).end;
}

export default { render };
