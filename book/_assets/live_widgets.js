// Draws the widgets of a page that has no kernel. The page holds the state of the widgets at the time when the book was built. The
// state of an anywidget includes its code and styles, so no request to another host is needed. Widgets of other kinds (sliders that
// call Python) say that they need a notebook. A widget that cannot be drawn is replaced by a sentence; the others are still drawn.
// The fragment of the page's address can name a view by its place on the page, and what it shows: #view2?stages=4&rank=3. The page of
// #embed2?stages=4&rank=3 has this view alone, for a frame in another page. The page of open problems (zoo.js) uses the same model and the
// same links for the views that it makes later; there a view has a name: #view:even-4x8-m2?p2p=1.

(() => {
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';
  const DAMAGED = "The data of this widget are missing or damaged, so it cannot be drawn. Reload the page.";

  // The part of the Jupyter widget model that a view uses; changes reach only the listeners on this page.
  class Model {
    constructor(state, page) {
      this.state = { ...state };
      this.page = page; // none, if no address can bring the view
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
      this.page?.follow(); // there is no kernel that could save them
    }
    send() {} // there is no answer, so a view knows that it has no kernel
  }

  // ---- links ----

  const CALM = 300; // ms after the reader's last change, because browsers refuse to change the address very often

  // What the page's address asks for: the place of a view, "1" for the first or ":" and a name, the words of its link, and whether it shall
  // stand alone. Null for addresses of another kind.
  function asked() {
    const [found, kind, place, query] = /^#(view|embed)(\d+|:[^?]+)(?:\?(.*))?$/.exec(location.hash) ?? [];
    return found ? { place, query: query ?? "", alone: kind === "embed" } : null;
  }

  // The page as a view knows it, in `model.page`. The model of a notebook has no page.
  class Page {
    constructor(place, view, several) {
      Object.assign(this, { place, several, words: null, written: "", taking: true, note: null });
      this.box = document.createElement("div");
      this.box.className = "live-widget";
      view.after(this.box);
    }
    // A view calls this before it draws. `words` has the functions of the view's own script that read a link and write one.
    open(words) {
      if (this.words) return; // a second view of the same model
      this.words = words;
      this.take();
    }
    // Another view will be drawn in this place.
    close() {
      clearTimeout(Page.timer);
      this.words = null;
      this.say("");
    }
    // Sets the view to what the address asks for, if it names this view. What cannot be shown is told, and the address is set right.
    async take() {
      if (!this.words) return;
      this.taking = true;
      try {
        const wanted = asked();
        const told = wanted?.place === this.place ? await this.words.take(wanted.query) : await "";
        if (told) this.say(told);
        if (told) this.write();
        this.written = this.words.query();
      } catch (error) {
        console.warn("link:", error); // the view itself says that its data are damaged
      }
      this.taking = false;
    }
    // The address of the page with what the view shows now.
    link(kind = "view") {
      return `${location.href.split("#")[0]}#${kind}${this.place}?${this.words.query()}`;
    }
    write() {
      history.replaceState(history.state, "", this.link(asked()?.alone ? "embed" : "view"));
      this.written = this.words.query();
    }
    // The address follows what the reader changes.
    follow() {
      if (!this.words) return;
      this.say("");
      clearTimeout(Page.timer);
      Page.timer = setTimeout(() => this.write(), CALM);
    }
    // A view calls this when what only the page has, such as the zoom, may have changed.
    notice() {
      if (this.words && !this.taking && this.words.query() !== this.written) this.follow();
    }
    // The heading above the view, and the name of the page.
    title() {
      const above = (heading) => heading.compareDocumentPosition(this.box) & Node.DOCUMENT_POSITION_FOLLOWING;
      const heading = [...document.querySelectorAll("h2, h3, h4, h5, h6")].findLast(above);
      const words = [...(heading?.childNodes ?? [])].filter((node) => !node.classList?.contains("headerlink"));
      return [words.map((node) => node.textContent).join(""), document.title].filter(Boolean).join(", ");
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
    const linked = pages.filter((page) => page.words);
    const page = linked.find(({ place }) => place === wanted?.place) ?? linked[0];
    if (!wanted || !page) return;
    const missing = `The link leads to view ${wanted.place} of this page, and no view of this number has a setting.`;
    if (page.place !== wanted.place) {
      page.say(missing);
      page.write();
    }
    if (!wanted.alone) page.show(); // in a frame this would also scroll the page around the frame
  }

  // Shows only the view that the address names, and below it the way to the whole page. All else is hidden, because scripts look for it.
  function standAlone(page) {
    const title = page?.title() ?? document.title;
    const [content, way, link] = ["main", "p", "a"].map((tag) => document.createElement(tag));
    Object.assign(link, { href: location.href.split("#")[0], textContent: document.title, target: "_blank" });
    link.addEventListener("click", () => page?.words && (link.href = page.link()));
    way.append(page ? "From " : "This page has no such view: ", link);
    content.append(...(page ? [page.box] : []), way);
    content.style.padding = "0 0.5rem";
    way.style.padding = "0 0.375rem"; // as the view
    for (const part of document.body.children) part.style.setProperty("display", "none", "important");
    document.body.append(content);
    document.title = title;
    document.documentElement.style.visibility = ""; // live_widgets.py hides the page until here
  }

  async function main() {
    const views = [...document.querySelectorAll(VIEW)];
    if (!views.length) return;
    const states = whole(Object.assign({}, ...[...document.querySelectorAll(STATE)].map((script) => parsed(script).state)));
    const widgets = new Map(); // model id -> promise of its module and model
    const all = views.map((view, place) => new Page(`${place + 1}`, view, views.length > 1));
    const ids = views.map((view) => parsed(view).model_id);
    const wanted = asked();
    const pages = wanted?.alone ? all.filter(({ place }) => place === wanted.place) : all;
    if (wanted?.alone) standAlone(pages[0]);
    addEventListener("hashchange", () => {
      for (const page of pages) page.say("");
      for (const page of pages) page.take();
      arrive(pages);
    });
    await Promise.all(pages.map((page) => draw(page, ids[page.place - 1], states[ids[page.place - 1]], widgets)));
    const [how] = performance.getEntriesByType("navigation");
    if (how?.type === "navigate") arrive(pages); // otherwise, the browser scrolls to where the reader was
  }

  window.hybridlabViews = { Model, Page, asked, standAlone };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", main);
  else main();
})();
