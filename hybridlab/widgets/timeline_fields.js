// A field to choose a number with: one of a few, or any.

// A slider over the values at hand; with `live`, below a field that takes any.
function quantityOf(id, label, read, pick) {
  const slider = make("input", { type: "range", min: 0, step: 1 });
  const output = make("output", { for: id, "aria-live": "off" }); // the slider itself says its value
  const typed = make("input", { type: "number", id: `${id}-any`, "aria-describedby": `${id}-fault` });
  const fault = make("p", { class: "fault", id: `${id}-fault`, role: "alert" });
  const element = field(id, label, slider, output);
  let [values, shown] = [[], null];

  const tell = (sentence) => {
    fault.textContent = sentence;
    typed.setAttribute("aria-invalid", Boolean(sentence));
  };
  slider.addEventListener("input", () => pick(values[Number(slider.value)]));
  typed.addEventListener("change", () => {
    const answer = read(typed.value.trim(), label);
    tell(answer.fault ?? "");
    if (!answer.fault) pick(answer.value);
  });
  const open = () => {
    element.querySelector("label").htmlFor = typed.id;
    slider.setAttribute("aria-label", `${label}, slider`);
    output.replaceWith(typed);
    element.append(fault);
  };
  const show = (value, offered, live, rule = { fewest: 1, step: 1 }) => {
    if (live && !typed.isConnected) open();
    values = sorted([...offered, value]);
    slider.hidden = values.length < 2;
    element.hidden = slider.hidden && !(live && rule.step);
    slider.max = values.length - 1;
    slider.value = values.indexOf(value);
    slider.setAttribute("aria-valuetext", number(value));
    output.textContent = number(value);
    for (const [name, limit] of [["min", rule.fewest], ["step", rule.step]]) typed.setAttribute(name, limit);
    if (value === shown) return; // what is being typed stays
    [typed.value, shown] = [value, value];
    tell("");
  };
  return { element, show, focus: () => (typed.isConnected ? typed : slider).focus() };
}
