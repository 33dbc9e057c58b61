// The controls of a timeline explorer: one for each part of a setting, with the values that its data hold.
// Where a kernel answers, each number can be typed as well, and every schedule of the library can be chosen.

// What is typed for a part of a setting: its value, or the sentence of what belongs there. The limits are the library's.
function wholeNumber(text, label) {
  const value = Number(text);
  if (text && Number.isInteger(value) && value >= 1 && value <= 1e7) return { value };
  return { fault: `${label}: type a whole number of at least 1${value > 1e7 ? " and at most 10,000,000" : ""}.` };
}

function timeOf(text, label) {
  const value = Number(text);
  if (text && value >= 0 && value <= 1e200) return { value: Number(value.toPrecision(9)) };
  return { fault: `${label}: type a number of zero or more${value > 1e200 ? ", up to 1e200" : ""}.` };
}

function selectOf(id, label, pick) {
  const select = make("select");
  const element = field(id, label, select);
  select.addEventListener("change", () => pick(select.value));
  const show = (value, options) => {
    element.hidden = options.length < 2;
    if (options.map(([name]) => name).join() !== [...select.options].map((option) => option.value).join()) {
      select.replaceChildren(...options.map(([name, title]) => make("option", { value: name }, title)));
    }
    select.value = value;
  };
  return { element, show, focus: () => select.focus() };
}

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

function controlsOf(id, unit, pick) {
  const part = (control, name, label, ...more) => control(`${id}-${name}`, label, ...more, (value) => pick(name, value));
  const controls = {
    schedule: part(selectOf, "schedule", "Schedule"),
    compare: part(selectOf, "compare", "Compare with"),
    devices: part(quantityOf, "devices", "Devices", wholeNumber),
    microbatches: part(quantityOf, "microbatches", "Microbatches", wholeNumber),
    chunks: part(quantityOf, "chunks", "Chunks a device", wholeNumber),
    p2p: part(quantityOf, "p2p", unit ? `Latency, ${unit}` : "Latency", timeOf),
  };
  const elements = Object.values(controls).map((control) => control.element);
  const element = make("div", { class: "fields", role: "group", "aria-label": "Setting" }, ...elements);

  const show = (setting, offers) => {
    const names = [...offers.schedules.values()].map(({ name, title }) => [name, title]);
    const others = names.filter(([name]) => name !== setting.schedule);
    element.classList.toggle("any", offers.live);
    const { chunks, fewest = 1, step = 0 } = offers.schedules.get(setting.schedule);
    controls.schedule.show(setting.schedule, names);
    controls.compare.show(setting.compare, [["", "nothing"], ...others]);
    controls.devices.show(setting.devices, offers.devices, offers.live);
    controls.microbatches.show(setting.microbatches, offers.microbatches, offers.live);
    controls.chunks.show(setting.chunks, chunks, offers.live, { fewest, step });
    controls.p2p.show(setting.p2p, offers.p2p, offers.live, { fewest: 0, step: "any" });
  };
  return { element, show, focus: (name) => controls[name].focus() };
}
