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
