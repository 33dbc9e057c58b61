// Draws the widgets of a page that has no kernel. The page holds the state of the widgets at the time when the book was built. The
// state of an anywidget includes its code and styles, so no request to another host is needed. Widgets of other kinds (sliders that
// call Python) say that they need a notebook. A widget that cannot be drawn is replaced by a sentence; the others are still drawn.

(() => {
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';
  const DAMAGED = "The data of this widget are missing or damaged, so it cannot be drawn. Reload the page.";

  // The part of the Jupyter widget model that a view uses; changes reach only the listeners on this page.
  class Model {
    constructor(state) {
      this.state = { ...state };
      this.listeners = []; // [event, listener], in the order of registration
    }
    get(name) {
      return this.state[name];
    }
    set(name, value) {
      const changes = typeof name === "string" ? { [name]: value } : name;
      const changed = Object.keys(changes).filter((each) => this.state[each] !== changes[each]);
      Object.assign(this.state, changes);
      for (const each of changed) this.emit(`change:${each}`, this.state[each]);
      if (changed.length) this.emit("change");
    }
    on(events, listener) {
      for (const event of events.split(" ")) this.listeners.push([event, listener]);
    }
    off(events, listener) {
      const named = events?.split(" ");
      const stays = ([event, each]) => (named && !named.includes(event)) || (listener && each !== listener);
      this.listeners = this.listeners.filter(stays);
    }
    emit(event, ...values) {
      for (const [each, listener] of [...this.listeners]) if (each === event) listener(this, ...values);
    }
    save_changes() {} // there is no kernel to save them to
    send() {} // there is no answer, so a view knows that it has no kernel
  }

  // The other arguments that anywidget passes to a view. A page ends all its views at once, so the signal is never sent.
  const rest = () => ({
    signal: new AbortController().signal,
    experimental: { invoke: () => Promise.reject(new Error("there is no kernel behind this page")) },
  });

  const loaded = new Map(); // code -> promise of its module: two widgets of one class load it once
  const styles = new Set();

  async function moduleOf(code) {
    const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    try {
      const { default: exported } = await import(address);
      return typeof exported === "function" ? await exported() : exported;
    } finally {
      URL.revokeObjectURL(address);
    }
  }

  function addStyles(css) {
    if (!css || styles.has(css)) return;
    styles.add(css);
    const element = document.createElement("style");
    element.textContent = css;
    document.head.append(element);
  }

  async function initialised(state) {
    addStyles(state._css);
    if (!loaded.has(state._esm)) loaded.set(state._esm, moduleOf(state._esm));
    const module = await loaded.get(state._esm);
    const model = new Model(state);
    await module.initialize?.({ model, ...rest() });
    return { module, model };
  }

  function say(box, ...words) {
    const note = document.createElement("p");
    note.className = "live-widget-note";
    note.append(...words);
    box.replaceChildren(note);
  }

  function needsNotebook() {
    const link = document.createElement("a");
    link.href = `${document.documentElement.dataset.content_root ?? ""}book/start.html`;
    link.textContent = "How to start one";
    return ["This control needs a running notebook. ", link, "."];
  }

  // a damaged script counts as an empty one
  function parsed(script) {
    try {
      return JSON.parse(script.textContent) ?? {};
    } catch {
      return {};
    }
  }

  async function draw(view, states, widgets) {
    const box = document.createElement("div");
    box.className = "live-widget";
    view.after(box);
    const id = parsed(view).model_id;
    const entry = states[id];
    if (entry?.model_module && entry.model_module !== "anywidget") return say(box, ...needsNotebook());
    try {
      if (!entry?.state?._esm) throw new Error("its state is not on the page");
      if (!widgets.has(id)) widgets.set(id, initialised(entry.state)); // one model behind all its views, as in a notebook
      const { module, model } = await widgets.get(id);
      await module.render({ model, el: box, ...rest() });
    } catch (error) {
      console.warn("widget", id, error);
      say(box, DAMAGED);
    }
  }

  function main() {
    const states = Object.assign({}, ...[...document.querySelectorAll(STATE)].map((script) => parsed(script).state));
    const widgets = new Map(); // model id -> promise of its module and model
    for (const view of document.querySelectorAll(VIEW)) draw(view, states, widgets);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", main);
  else main();
})();
