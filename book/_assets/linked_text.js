// Linked text. A term of the glossary shows its entry while it is pointed at or has the focus. An operation such as 2F0 in the text lights
// its box in the explorer of its section. A link such as #view?devices=4 sets the explorer of its section.

(() => {
  const OPERATION = /^\d+[FBIW]\d+$/;
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';

  // ---- the glossary ----

  function entries() {
    try {
      return JSON.parse(document.getElementById("glossary-entries")?.textContent ?? "{}");
    } catch {
      return {};
    }
  }

  function explainTerms() {
    const known = entries();
    const box = Object.assign(document.createElement("div"), { id: "glossary-entry", className: "glossary-entry", hidden: true });
    box.setAttribute("role", "tooltip");
    document.body.append(box);
    let shown = null;
    const hide = () => {
      shown?.removeAttribute("aria-describedby");
      shown = null;
      box.hidden = true;
    };
    const show = (link, text) => {
      hide();
      shown = link;
      box.textContent = text;
      box.hidden = false;
      link.setAttribute("aria-describedby", box.id);
      const { left, bottom, top } = link.getBoundingClientRect();
      const { width, height } = box.getBoundingClientRect();
      const under = bottom + height + 8 < innerHeight ? bottom + 4 : top - height - 4;
      box.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - width - 8)) + scrollX}px`;
      box.style.top = `${under + scrollY}px`;
    };
    for (const link of document.querySelectorAll('article a[href*="glossary.html#term-"]')) {
      const text = known[decodeURIComponent(link.hash.slice(1))];
      if (!text) continue;
      for (const event of ["mouseenter", "focus"]) link.addEventListener(event, () => show(link, text));
      link.addEventListener("blur", hide);
      link.addEventListener("mouseleave", ({ relatedTarget }) => relatedTarget !== box && hide());
    }
    box.addEventListener("mouseleave", hide); // the entry itself can be pointed at, to read or to copy it
    document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  }

  // ---- text that is linked to the explorer of its section ----

  // The smallest section around an element that has an explorer.
  function explorerNear(element) {
    for (let part = element.closest("section"); part; part = part.parentElement?.closest("section")) {
      if (part.tagName === "SECTION" && part.querySelector("h1")?.parentElement === part) return null; // the whole page
      const found = part.querySelector(".hybridlab-explorer");
      if (found) return found;
    }
    return null;
  }

  function lightOperations() {
    for (const code of document.querySelectorAll("article code:not(pre code)")) {
      if (!OPERATION.test(code.textContent.trim()) || code.closest("a, .hybridlab-view") || !explorerNear(code)) continue;
      const light = (op, keep = false) => {
        const detail = { op, keep };
        return explorerNear(code)?.querySelector(".picture")?.dispatchEvent(new CustomEvent("hybridlab:light", { detail }));
      };
      const text = code.textContent.trim();
      code.classList.add("op-chip");
      for (const [name, value] of [["tabindex", 0], ["role", "button"], ["aria-label", `${text}, show it in the picture`]]) {
        code.setAttribute(name, value);
      }
      for (const event of ["mouseenter", "focus"]) code.addEventListener(event, () => light(text));
      for (const event of ["mouseleave", "blur"]) code.addEventListener(event, () => light(null));
      const keep = () => {
        explorerNear(code)?.querySelector(".picture")?.scrollIntoView({ block: "nearest" });
        light(text, true);
      };
      code.addEventListener("click", keep);
      code.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        keep();
      });
    }
  }

  // Gives links to "the view of this section" the place of the view on the page, as live_widgets.js reads it.
  function setExplorers() {
    const views = [...document.querySelectorAll(VIEW)];
    for (const link of document.querySelectorAll('article a[href^="#view?"]')) {
      const explorer = explorerNear(link);
      const place = views.findIndex((view) => view.nextElementSibling?.contains(explorer)) + 1;
      if (explorer && place) link.href = link.getAttribute("href").replace("#view?", `#view${place}?`);
    }
  }

  const main = () => {
    explainTerms();
    lightOperations();
    setExplorers();
  };
  const drawn = () => {
    const views = document.querySelectorAll(VIEW).length;
    if (document.querySelectorAll(".live-widget > *").length >= views) return main();
    setTimeout(drawn, 50);
  };
  drawn();
})();
