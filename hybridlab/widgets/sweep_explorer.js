// A sweep explorer: controls, a legend of boxes, the picture, a sentence, and the numbers as a table.
// Above it stand view.js, chart.js and the files sweep_explorer_*.js; together they are one module.

function render({ model, el }) {
  const root = rootIn(el, "sweep");
  const id = freshId();
  // `value` may be a function of what holds now
  const change = (name, value) => {
    const [now, next] = [model.get(name), typeof value === "function" ? value(model.get(name)) : value];
    if (JSON.stringify(now) === JSON.stringify(next)) return;
    model.set(name, next);
    model.save_changes();
  };
  let parts;
  const setUp = () => {
    const controls = controlsOf(id, model.get("data"), change);
    const picture = pictureOf((x) => change("at", x));
    const figures = figuresOf();
    const told = make("p", { class: "told", role: "status" });
    root.append(controls.fields, picture.element, controls.lines, controls.scales, told, ...figures.elements);
    return { controls, picture, figures, told };
  };
  const show = () => {
    parts ??= setUp();
    const shown = Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
    const reading = readingOf(model.get("data"), shown);
    parts.controls.show(shown);
    parts.picture.draw(reading);
    parts.figures.draw(reading);
    parts.told.textContent = sentence(reading);
  };
  return keepDrawn(model, root, SETTING, show, () => parts?.picture.stop()).end;
}

export default { render };
