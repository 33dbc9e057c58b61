// Draws the widgets of a page that has no kernel. The page holds the state of the widgets at the time when the book was built. The
// state of an anywidget includes its code and styles, so no request to another host is needed. Widgets of other kinds (sliders that
// call Python) say that they need a notebook. A widget that cannot be drawn is replaced by a sentence; the others are still drawn.
// The fragment of the page's address can name a view by its place on the page, and the view's setting: #view2?stages=4&rank=3.

(() => {
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';
  const DAMAGED = "The data of this widget are missing or damaged, so it cannot be drawn. Reload the page.";

  // The part of the Jupyter widget model that a view uses; changes reach only the listeners on this page.
  class Model {
    constructor(state, page) {
      this.state = { ...state };
      this.page = page;
      page.model = this;
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
    save_changes() {
      this.page.follow(); // there is no kernel that could save them
    }
    send() {} // there is no answer, so a view knows that it has no kernel
  }

  // ---- the setting of a view as words of a link ----

  const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const isText = (value) => typeof value === "string";
  const isParts = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  // [name, value] of every part of a setting. The parts of a trait that is an object have names of their own, such as chosen.p2p.
  const partsOf = (state, names) =>
    names.flatMap((name) => {
      const value = state[name];
      return isParts(value) ? Object.entries(value).map(([key, part]) => [`${name}.${key}`, part]) : [[name, value]];
    });

  // A list has semicolons between its items, and a list of one number ends with a semicolon.
  function worded(value) {
    if (!Array.isArray(value)) return String(value);
    const items = value.map((item) => String(item).replaceAll("%", "%25").replaceAll(";", "%3B"));
    return items.length === 1 && !isText(value[0]) ? `${items};` : items.join(";");
  }

  const numberIn = (word) => (NUMBER.test(word) && Number.isFinite(Number(word)) ? Number(word) : undefined);

  function numbersIn(word) {
    if (!word.includes(";")) return numberIn(word);
    const numbers = word.replace(/;$/, "").split(";").map(numberIn);
    return numbers.includes(undefined) ? undefined : numbers;
  }

  // The value of a word in the type of `sample`, which is the value that the author gave to this part. Undefined for other types. Where the
  // author gave one number, null and a list of numbers are read, too; where the author left a text empty, a number; where null, anything.
  function valueIn(word, sample) {
    if (word === "null" && (sample === null || typeof sample === "number")) return null;
    if (sample === null) return numbersIn(word) ?? word;
    if (typeof sample === "boolean") return ["true", "false"].includes(word) ? word === "true" : undefined;
    if (isText(sample)) return (sample ? undefined : numberIn(word)) ?? word;
    if (!Array.isArray(sample) || !sample.every(isText)) return numbersIn(word);
    return word ? word.split(";").map((item) => item.replaceAll("%3B", ";").replaceAll("%25", "%")) : [];
  }

  // The new values of the traits that a link sets, or a sentence that says what is wrong with the link. `made` has the author's values.
  function settingIn(query, names, made, now) {
    const samples = new Map(partsOf(made, names));
    const setting = {};
    for (const [name, word] of new URLSearchParams(query)) {
      const known = [...samples.keys()].join(", ");
      if (!samples.has(name)) return { fault: `The link sets \u201c${name}\u201d, but this view has only ${known}.` };
      const value = valueIn(word, samples.get(name));
      if (value === undefined) return { fault: `The link sets ${name} to \u201c${word}\u201d, which is a value of another type.` };
      const [trait, ...key] = name.split(".");
      setting[trait] = key.length ? { ...(setting[trait] ?? now[trait]), [key.join(".")]: value } : value;
    }
    return { setting };
  }

  // ---- links ----

  const CALM = 300; // ms after the reader's last change, because browsers refuse to change the address very often
  const NOT_SHOWN = "This view cannot show the setting of the link.";
  const UNCHANGED = " The view is as it was without the link.";

  // What the page's address asks for: the place of a view, counted from 1, and its setting. Null for addresses of another kind.
  function asked() {
    const found = /^#view(\d+)(?:\?(.*))?$/.exec(location.hash);
    return found && { place: Number(found[1]), query: found[2] ?? "" };
  }

  // The page as a view knows it, in `model.page`. The model of a notebook has no page.
  class Page {
    constructor(place, view, several) {
      Object.assign(this, { place, several, names: [], made: null, before: null, note: null, model: null });
      this.box = document.createElement("div");
      this.box.className = "live-widget";
      view.after(this.box);
    }
    // A view calls this before it draws. `names` are the traits of its setting; they get the values in the address if it names this view.
    open(names) {
      if (this.made) return; // a second view of the same model
      this.names = names;
      this.made = { ...this.model.state };
      this.take();
    }
    take() {
      if (!this.made || asked()?.place !== this.place) return;
      const { setting, fault } = settingIn(asked().query, this.names, this.made, this.model.state);
      if (fault) return this.say(fault + UNCHANGED);
      this.before = Object.fromEntries(Object.keys(setting).map((name) => [name, this.model.get(name)]));
      this.model.set(setting);
      queueMicrotask(() => (this.before = null)); // the view has drawn its new setting
    }
    // A view calls this if it cannot draw its setting. Returns whether a link had set it; then the view has its old setting again.
    undo() {
      const before = this.before;
      this.before = null;
      if (!before || !Object.keys(before).length) return false;
      this.model.set(before);
      this.say(NOT_SHOWN + UNCHANGED);
      return true;
    }
    // The address of the page with the present setting.
    link() {
      const words = new URLSearchParams(partsOf(this.model.state, this.names).map(([name, value]) => [name, worded(value)]));
      const readable = String(words).replace(/%(2C|2F|3A|3B|40)/g, decodeURIComponent); // a fragment may have , / : ; @
      return `${location.href.split("#")[0]}#view${this.place}?${readable}`;
    }
    // The address follows what the reader changes.
    follow() {
      if (!this.names.length) return;
      this.say("");
      clearTimeout(Page.timer);
      Page.timer = setTimeout(() => history.replaceState(history.state, "", this.link()), CALM);
    }
    say(sentence) {
      this.note?.remove();
      this.note = sentence ? noteOf(sentence) : null;
      this.note?.setAttribute("role", "alert");
      if (this.note) this.box.prepend(this.note);
    }
    // Scrolls to the view, and opens the folds in which it stands.
    show() {
      for (let fold = this.box.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
      this.box.scrollIntoView();
    }
  }

  // ---- widgets ----

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

  async function initialised(state, page) {
    addStyles(state._css);
    if (!loaded.has(state._esm)) loaded.set(state._esm, moduleOf(state._esm));
    const module = await loaded.get(state._esm);
    const model = new Model(state, page);
    await module.initialize?.({ model, ...rest() });
    return { module, model };
  }

  function noteOf(...words) {
    const note = document.createElement("p");
    note.className = "live-widget-note";
    note.append(...words);
    return note;
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

  async function draw(page, id, entry, widgets) {
    if (entry?.model_module && entry.model_module !== "anywidget") return page.box.replaceChildren(noteOf(...needsNotebook()));
    try {
      if (!entry?.state?._esm) throw new Error("its state is not on the page");
      if (!widgets.has(id)) widgets.set(id, initialised(entry.state, page)); // one model behind all its views, as in a notebook
      const { module, model } = await widgets.get(id);
      await module.render({ model, el: page.box, ...rest() });
    } catch (error) {
      console.warn("widget", id, error);
      page.box.replaceChildren(noteOf(DAMAGED));
    }
  }

  // A script or a style sheet that several widgets have is with the first of them; the others name that widget.
  function whole(states) {
    for (const { state } of Object.values(states)) {
      for (const name of ["_esm", "_css"]) if (state?.[name]?.as) state[name] = states[state[name].as]?.state?.[name];
    }
    return states;
  }

  // Shows the view that the address names. If the page has no such view with a setting, the first one that has a setting says so.
  function arrive(pages) {
    const wanted = asked();
    const linked = pages.filter((page) => page.names.length);
    const page = linked.find(({ place }) => place === wanted?.place) ?? linked[0];
    if (!wanted || !page) return;
    const missing = `The link leads to view ${wanted.place} of this page, and no view of this number has a setting.`;
    if (page.place !== wanted.place) page.say(missing);
    page.show();
  }

  async function main() {
    const states = whole(Object.assign({}, ...[...document.querySelectorAll(STATE)].map((script) => parsed(script).state)));
    const widgets = new Map(); // model id -> promise of its module and model
    const views = [...document.querySelectorAll(VIEW)];
    const pages = views.map((view, place) => new Page(place + 1, view, views.length > 1));
    const ids = views.map((view) => parsed(view).model_id);
    addEventListener("hashchange", () => {
      for (const page of pages) page.say("");
      for (const page of pages) page.take();
      arrive(pages);
    });
    await Promise.all(pages.map((page, place) => draw(page, ids[place], states[ids[place]], widgets)));
    const [how] = performance.getEntriesByType("navigation");
    if (how?.type === "navigate") arrive(pages); // otherwise, the browser scrolls to where the reader was
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", main);
  else main();
})();
