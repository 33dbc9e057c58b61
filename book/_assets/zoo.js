// The page of open problems: sorts and filters the table, shows the schedules of a row, and judges an order that a reader hands in.
// The address keeps what the reader chose: zoo.html?state=open&class=chunks#even-4x8-m2. Without this script there is the whole table.
// The orders of an instance come from zoo/NAME.js beside this script, and the explorer and the judge from zoo/views.js, on first use
// (book/_ext/zoo_page.py). They are scripts, because a page from a file may load nothing else. The explorer of a row has a link with what it
// shows, #view:even-4x8-m2?p2p=1, and a line that embeds it, as every view of the site (live_widgets.js).

(() => {
  const { Model, Page, asked, standAlone } = window.hybridlabViews;
  const FOLDER = new URL("zoo/", document.currentScript.src);
  const FAILED = "A part of the site could not be loaded. Reload the page.";
  const MISSING = "This page has no instance of this name.";
  const YOURS = "your order";

  // ---- scripts on demand ----

  const given = new Map(); // name -> what its script gives
  const loading = new Map(); // name -> promise of it
  window.hybridlabZoo = { give: (name, value) => given.set(name, value) };

  function load(name) {
    if (!loading.has(name)) {
      const script = document.createElement("script");
      script.src = new URL(`${name}.js`, FOLDER);
      loading.set(name, new Promise((done, failed) => {
        script.onload = () => (given.has(name) ? done(given.get(name)) : failed(new Error(`${name}.js gave nothing`)));
        script.onerror = () => failed(new Error(`${name}.js could not be loaded`));
      }));
      loading.get(name).catch(() => loading.delete(name)); // the next try loads it again
      document.head.append(script);
    }
    return loading.get(name);
  }

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  // ---- views ----

  // A place for an explorer. The returned function shows another one there, or none.
  function stage(box) {
    let end = () => {};
    return (views, state, page) => {
      end();
      end = () => {};
      box.replaceChildren();
      if (!state) return;
      if (!document.getElementById("zoo-views")) document.head.append(element("style", { id: "zoo-views", textContent: views.style }));
      end = views.explorer.render({ model: new Model(state, page), el: box });
    };
  }

  // The explorer of an instance with a reader's order in it, beside the best one.
  function withOrder({ explorer, devices, microbatches, chunks }, orders) {
    const { data, schedule } = explorer;
    const pipelines = { ...data.pipelines, [[YOURS, devices, microbatches, chunks].join("/")]: { orders } };
    const schedules = [{ name: YOURS, title: YOURS, chunks: [chunks] }, ...data.schedules];
    return { ...explorer, data: { ...data, schedules, pipelines }, schedule: YOURS, compare: schedule };
  }

  // ---- the table ----

  function tableOf(zoo) {
    const body = zoo.querySelector("tbody");
    const rows = [...body.rows];
    const heads = [...zoo.querySelectorAll("thead th")];
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    const value = (row, place) => row.cells[place].dataset.value;
    let shown = { place: -1, down: false };

    const sort = (place) => {
      const down = shown.place === place && !shown.down;
      shown = { place, down };
      const sign = down ? -1 : 1;
      body.append(...[...rows].sort((one, other) => sign * compare(value(one, place), value(other, place))));
      heads.forEach((head, each) => head.setAttribute("aria-sort", each !== place ? "none" : down ? "descending" : "ascending"));
    };
    heads.forEach((head, place) => {
      const button = element("button", { type: "button" }, ...head.childNodes);
      button.addEventListener("click", () => sort(place));
      head.append(button);
      head.setAttribute("aria-sort", "none");
    });

    const column = (key) => heads.findIndex((head) => head.dataset.key === key);
    const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const show = (wanted) => {
      const text = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (row) =>
        ["class", "state"].every((key) => !wanted[key] || value(row, column(key)) === wanted[key]) && text.every((word) => words.get(row).includes(word));
      for (const row of rows) row.hidden = !fits(row);
      return `${rows.filter((row) => !row.hidden).length} of ${rows.length} instances are shown.`;
    };
    const mark = (name) => {
      for (const row of rows) {
        if (row.id === name) row.setAttribute("aria-current", "true");
        else row.removeAttribute("aria-current");
      }
    };
    return { rows, values: (key) => [...new Set(rows.map((row) => value(row, column(key))))], show, mark };
  }

  // The controls above the table. `changed(wanted)` shows the rows that fit and returns a sentence.
  function filterOf(table, changed) {
    const select = (key, all) => {
      const options = table.values(key).map((each) => element("option", { value: each, textContent: each }));
      return element("select", { name: key }, element("option", { value: "", textContent: all }), ...options);
    };
    const fields = { class: select("class", "all"), state: select("state", "all"), text: element("input", { type: "search", name: "text" }) };
    const told = element("output", {});
    const labels = [["class", "Class"], ["state", "State"], ["text", "Words in the row"]];
    const parts = labels.map(([key, label]) => element("label", {}, element("span", { textContent: label }), fields[key]));
    const form = element("form", { className: "zoo-filter" }, ...parts, told);
    const wanted = () => Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.value]));
    const apply = () => (told.textContent = changed(wanted()));
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    const put = (values) => {
      for (const [key, field] of Object.entries(fields)) {
        const value = values.get(key) ?? "";
        field.value = value;
        if (field.value !== value) field.value = ""; // a select has no such option
      }
      apply();
    };
    return { form, put };
  }

  // The address with these choices; those that are empty are left out.
  function keep(wanted) {
    const address = new URL(location.href);
    for (const [key, value] of Object.entries(wanted)) {
      if (value) address.searchParams.set(key, value);
      else address.searchParams.delete(key);
    }
    if (address.href !== location.href) history.replaceState(history.state, "", address);
  }

  // ---- the schedules of a row ----

  function rowView(zoo) {
    const heading = element("h3", { tabIndex: -1 });
    const [facts, files, note] = [element("table"), element("p"), element("p")];
    note.setAttribute("role", "status");
    const section = element("section", { className: "zoo-row", hidden: true }, heading, note, element("div", { className: "zoo-facts" }, facts), files);
    section.setAttribute("aria-label", "Schedules of an instance");
    zoo.append(section);
    const page = new Page("", note, false);
    const put = stage(page.box);
    const fileLink = (folder, name) => element("a", { href: new URL(`${folder}/${name}.json`, FOLDER), download: `${name}.json`, textContent: `${folder.slice(0, -1)} as JSON` });
    let wanted = "";

    // Opens the row of an instance, or says that there is none.
    const open = async (name, known) => {
      const scroll = () => asked()?.alone || section.scrollIntoView({ block: "start" }); // not around the frame of another page
      wanted = name;
      page.close();
      page.place = `:${name}`;
      section.hidden = false;
      heading.textContent = name;
      note.textContent = known ? "Loading ..." : "";
      put(null, null);
      for (const part of [facts, files]) part.replaceChildren();
      scroll();
      heading.focus({ preventScroll: true });
      if (!known) return page.say(MISSING);
      try {
        const [views, row] = await Promise.all([load("views"), load(name)]);
        if (wanted !== name) return; // the reader has opened another row
        put(views, row.explorer, page);
        facts.replaceChildren(element("tbody", {}, ...row.about.map(([head, text]) => {
          const named = element("th", { textContent: head, scope: "row" });
          return element("tr", {}, named, element("td", { textContent: text }));
        })));
        files.replaceChildren("Files: ", fileLink("instances", name), ", ", fileLink("records", name), ".");
        note.textContent = "";
        scroll(); // a browser that opens an address scrolls to the row once more
      } catch (error) {
        console.warn("zoo:", error);
        if (wanted !== name) return;
        note.textContent = "";
        page.say(FAILED);
      }
    };
    return { page, open };
  }

  // ---- check an order ----

  function checking(form, names) {
    const [select, area, answer, how, box] = ["select", "textarea", ".zoo-answer", ".zoo-how", ".zoo-order"].map((part) => form.querySelector(part));
    select.append(...names.map((name) => element("option", { value: name, textContent: name })));
    form.hidden = false;
    const put = stage(box);
    let [judged, count] = ["", 0]; // the last instance and text that were judged

    const clear = () => {
      answer.replaceChildren();
      delete answer.dataset.verdict;
      how.hidden = true;
      put(null, null);
    };
    const judge = async () => {
      const [name, text] = [select.value, area.value];
      const turn = ++count;
      clear();
      answer.textContent = "Checking ...";
      try {
        const [views, row] = await Promise.all([load("views"), load(name)]);
        if (turn !== count) return;
        const model = new Model({ instance: row, text });
        views.judge.render({ model, el: answer });
        const verdict = model.get("verdict");
        how.hidden = verdict.code !== "new best";
        how.querySelector(".zoo-command").textContent = `hybridlab zoo record ${name} order.txt --by "YOUR NAME" --how "YOUR METHOD" > ${name}.json`;
        if (verdict.orders) put(views, withOrder(row, verdict.orders));
      } catch (error) {
        console.warn("zoo:", error);
        if (turn === count) answer.replaceChildren(element("p", { textContent: FAILED }));
      }
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      judged = select.value + area.value;
      judge();
    });
    form.addEventListener("input", () => {
      if (judged && judged !== select.value + area.value) clear(); // an old verdict does not stand beside a new order
      judged = "";
    });
    return (name) => {
      if (!area.value) select.value = name;
    };
  }

  // ---- the page ----

  addEventListener("DOMContentLoaded", () => {
    const [zoo, form] = [document.querySelector(".zoo"), document.querySelector(".zoo-check")];
    if (!zoo || !form) return;
    zoo.classList.add("scripted");
    const table = tableOf(zoo);
    const filter = filterOf(table, (wanted) => {
      keep(wanted);
      return table.show(wanted);
    });
    zoo.prepend(filter.form);
    filter.put(new URLSearchParams(location.search));
    const { page, open } = rowView(zoo);
    const choose = checking(form, table.rows.map((row) => row.id));

    const follow = async () => {
      const link = asked();
      const name = link ? link.place.replace(":", "") : location.hash.slice(1);
      const row = table.rows.find(({ id }) => id === name);
      table.mark(row?.id);
      if (row?.hidden) filter.put(new Map());
      if (row) choose(name);
      if (row || link) await open(name, row);
    };
    zoo.addEventListener("click", ({ target }) => {
      const link = target.closest("th[scope=row] a");
      if (link && link.hash === location.hash) follow(); // the address does not change
    });
    addEventListener("hashchange", follow);
    follow().then(() => asked()?.alone && standAlone(page));
  });
})();
