// Draws the widgets of a page that has no kernel. The page holds the state that the widgets had when the book was built;
// an anywidget's state holds its own code and styles too, so nothing else is needed and nothing is asked from outside.
// Widgets of other kinds (sliders that call Python) can only say that they need a notebook.

(() => {
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';

  // The part of the Jupyter widget model that a view uses; changes reach this page's listeners and go no further.
  class Model {
    constructor(state) {
      this.state = { ...state };
      this.listeners = []; // [event, listener], in the order they came
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
    save_changes() {} // nobody to save them for
    send() {}
  }

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
    if (!loaded.has(state._esm)) loaded.set(state._esm, moduleOf(state._esm));
    const module = await loaded.get(state._esm);
    const model = new Model(state);
    await module.initialize?.({ model });
    return { module, model };
  }

  function say(box, sentence) {
    box.className = "live-widget-note";
    box.textContent = sentence;
  }

  function main() {
    const script = document.querySelector(STATE);
    const states = script ? JSON.parse(script.textContent).state : {};
    const widgets = new Map(); // model id -> promise: one model behind all its views, as in a notebook
    for (const view of document.querySelectorAll(VIEW)) {
      const id = JSON.parse(view.textContent).model_id;
      const state = states[id]?.state;
      const box = document.createElement("div");
      box.className = "live-widget";
      view.after(box);
      if (!state?._esm) {
        say(box, "This control works in a running notebook only.");
        continue;
      }
      addStyles(state._css);
      if (!widgets.has(id)) widgets.set(id, initialised(state));
      widgets
        .get(id)
        .then(({ module, model }) => module.render?.({ model, el: box }))
        .catch((error) => {
          say(box, "This picture could not be drawn in this browser.");
          console.error(error);
        });
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", main);
  else main();
})();
