// An error explorer: controls, the picture, a sentence and tables of how exact all-reduced means are, and at which price in bytes.
// Above it stand view.js and the files error_explorer_*.js; together they are one module.

const KEY =
  "Points are measured, lines are the law for normal numbers; filled points and full lines are the ring, hollow points and dashed lines one shot. " +
  "The slider moves the marker; so does a tap on the picture.";

function render({ model, el }) {
  const root = rootIn(el, "errors");
  const id = freshId();
  const measured = model.get("measured");
  const shown = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (name, value) => {
    if (JSON.stringify(value) === JSON.stringify(model.get(name))) return;
    model.set(name, value);
    model.save_changes();
  };
  const controls = controlsOf(id, pick);
  const picture = pictureOf((ranks) => pick("ranks", ranks));
  const figures = figuresOf();
  const told = make("p", { class: "told", role: "status" });
  root.append(...controls.elements, picture.element, make("p", { class: "key" }, KEY), told, ...figures.elements);

  const show = () => {
    const now = shown();
    const series = seriesOf(measured, now);
    if (!measured.ranks.includes(now.ranks)) throw new Error(`${now.ranks} ranks were not measured`);
    controls.show(measured, now);
    picture.draw(measured, now, series);
    figures.draw(measured, now, series);
    told.textContent = sentence(measured, now, series);
  };
  return keepDrawn(model, root, SETTING, show, picture.stop).end;
}

export default { render };
