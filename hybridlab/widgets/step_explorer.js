// A step explorer: controls, a legend, the picture of one training step on all ranks, its cursor in words, the figures as a table.
// Above it stand view.js, two of the files timeline_*.js and the files step_explorer_*.js; together they are one module.

const HINT =
  "Click or tap a place in the picture, or drag over it, to read what that rank does then. From the keyboard: Tab to the picture, " +
  "left and right to the moments of a rank, up and down to other ranks; or use the two controls.";

function render({ model, el }) {
  const root = rootIn(el, "step");
  const id = freshId();
  const data = model.get("data");
  const setting = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (changes) => {
    const next = { ...setting(), ...changes };
    if (next.rank >= next.devices * next.replicas) next.rank = 0;
    for (const each of SETTING) if (next[each] !== model.get(each)) model.set(each, next[each]);
    model.save_changes();
  };
  let [parts, drawn, step, ringsOnly] = [null, null, null, false];

  const build = () => {
    const controls = settingOf(id, data, (name, value) => pick({ [name]: value }));
    const picture = pictureOf(id, (rank, time) => pick({ rank, time }));
    const zoom = (only) => {
      [ringsOnly, drawn] = [only, null];
      show();
    };
    const cursor = cursorOf(id, data.unit, pick, zoom);
    const [legend, table] = [make("ul", { class: "legend" }), make("table")];
    const told = make("p", { class: "told", role: "status" });
    root.append(controls.element, legend, picture.element, cursor.element, told, make("p", { class: "hint" }, HINT), table);
    return { controls, picture, cursor, legend, table, told };
  };
  const drawStep = (now) => {
    step = stepOf(data, now);
    if (!step.all_reduce) ringsOnly = false;
    parts.controls.show(now);
    parts.legend.replaceChildren(...legendOf(step));
    parts.picture.draw(step, ringsOnly);
    parts.table.replaceChildren(...(step.refusal ? [] : figuresOf(data, now)));
  };
  const show = () => {
    parts ??= build();
    const now = setting();
    const key = keyOf(data, now);
    if (key !== drawn) drawStep(now);
    drawn = key;
    if (step.refusal) {
      parts.cursor.show(step);
      return (parts.told.textContent = "");
    }
    const moment = momentOf(step, now.rank, Math.min(now.time, step.makespan));
    parts.cursor.show(step, moment, ringsOnly);
    parts.picture.mark(moment);
    parts.told.replaceChildren(make("strong", {}, headOf(step, moment)), ` ${sentence(step, moment)}`);
  };
  return keepDrawn(model, root, SETTING, show, () => parts?.picture.stop()).end;
}

export default { render };
