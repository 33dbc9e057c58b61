// Draws the results of a search. Sphinx finds the pages (searchtools.js). This script adds the terms of the glossary, forgives one typing
// error in a word, puts labs before other pages and the library last, and quotes the text of each page.
(() => {
  const LENGTH = 220; // characters of a quotation
  const TO_MARK = "sphinx_highlight_terms"; // where Sphinx leaves the words that the next page marks
  const GROUPS = ["Sections", "Glossary", "Labs", "Pages", "Library"];
  const ASKING = "how what where when which why who do does did can could should i my me we you your".split(" "); // words of a question
  const common = new Set(stopwords); // Sphinx 9 has a set, and earlier versions an array
  const stem = (word) => new Stemmer().stemWord(word);
  const compact = (text) => text.toLowerCase().replace(/[^\p{Letter}\p{Number}]/gu, "");
  const make = (tag, ...content) => {
    const element = document.createElement(tag);
    element.append(...content);
    return element;
  };
  const plain = (html) => new DOMParser().parseFromString(html, "text/html").body.textContent;

  // A page opened as a file cannot fetch other pages, but it can load a script.
  const loaded = () =>
    new Promise((ready) => {
      const script = make("script");
      script.src = `${document.documentElement.dataset.content_root}_static/search_texts.js`;
      script.onload = () => ready(window.searchTexts);
      script.onerror = () => ready({ pages: {}, terms: [] });
      document.head.append(script);
    });

  // --- one typing error ---

  // whether a letter was added, left out or replaced, or two neighbours changed places
  function oneErrorApart(one, other) {
    let start = 0;
    while (start < one.length && one[start] === other[start]) start++;
    let end = 0;
    while (end < Math.min(one.length, other.length) - start && one.at(-1 - end) === other.at(-1 - end)) end++;
    const [left, right] = [one, other].map((word) => word.slice(start, word.length - end));
    return (left.length <= 1 && right.length <= 1) || (left.length === 2 && left === [...right].reverse().join(""));
  }

  const indexed = () => {
    const { terms, titleterms, objects } = Search._index;
    const names = Object.values(objects).flatMap((each) => each.map(([, , , , name]) => name.toLowerCase()));
    return [...new Set([...Object.keys(terms), ...Object.keys(titleterms), ...names])];
  };

  // The word itself, if a page has it or a longer word with it; else the most frequent word that is one typing error away.
  function meant(word, known, texts) {
    if (word.length < 4 || known.some((each) => each.includes(stem(word)) || each.includes(word))) return word;
    if (texts.terms.some(([name]) => compact(name).includes(word))) return word;
    const counts = new Map();
    for (const sections of Object.values(texts.pages)) {
      for (const each of splitQuery(sections.flat().join(" ").toLowerCase())) counts.set(each, (counts.get(each) ?? 0) + 1);
    }
    const near = [...counts].filter(([each]) => oneErrorApart(word, each));
    return near.sort(([, one], [, other]) => other - one)[0]?.[0] ?? word;
  }

  // "allreduce" means "all-reduce", which more pages have.
  function hyphened(word, texts) {
    const spelled = new Map();
    let alone = 0;
    for (const sections of Object.values(texts.pages)) {
      for (const [each] of sections.flat().join(" ").toLowerCase().matchAll(/\p{Letter}+(?:-\p{Letter}+)*/gu)) {
        if (each === word) alone++;
        else if (each.includes("-") && compact(each) === word) spelled.set(each, (spelled.get(each) ?? 0) + 1);
      }
    }
    const [most, count] = [...spelled].sort(([, one], [, other]) => other - one)[0] ?? [word, 0];
    return count > alone ? most : word;
  }

  // The words that say what is looked for: a question also has others, such as "how" and "does".
  function asking(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const said = words.filter((word) => !ASKING.includes(word));
    return (said.some((word) => splitQuery(word).some((part) => !common.has(part))) ? said : words).join(" ");
  }

  // --- what is found ---

  function foundTerms(query, words, { terms }) {
    const whole = compact(query);
    if (!whole) return [];
    const rank = (name) => {
      const parts = splitQuery(name.toLowerCase());
      if (compact(name) === whole || stem(compact(name)) === stem(whole)) return 3;
      if (compact(name).startsWith(whole)) return 2;
      return words.length && words.every((word) => parts.some((part) => part.startsWith(word) || stem(part) === stem(word))) ? 1 : 0;
    };
    const found = terms.map(([title, address, text]) => ({ title, address, text, group: "Glossary", rank: rank(title) })).filter((each) => each.rank);
    return found.sort((one, other) => other.rank - one.rank);
  }

  // The sections whose titles have all words, if these are three or more: they answer a question.
  function foundSections(words, texts) {
    if (words.length < 3) return [];
    const { alltitles, docnames, titles } = Search._index;
    const has = (title) => {
      const stems = splitQuery(title.toLowerCase()).map(stem);
      return words.every((word) => stems.includes(stem(word)));
    };
    const places = Object.entries(alltitles).flatMap(([title, found]) => (has(title) ? found.map(([page, anchor]) => [title, page, anchor]) : []));
    return places.filter(([, , anchor]) => anchor && !anchor.startsWith("term-")).map(([title, page, anchor]) => {
      const address = `${docnames[page]}.html`;
      const pieces = (texts.pages[address] ?? []).filter(([name]) => name === anchor);
      return { title: `${plain(title)} (${plain(titles[page])})`, address: `${address}#${anchor}`, group: "Sections", pieces };
    });
  }

  const groupOf = (page, descr) => (descr || page === "book/api" ? "Library" : page.startsWith("labs/") ? "Labs" : "Pages");

  // One entry for each page, with the sections whose titles match; names of the library have entries of their own.
  function foundPages(query, words, texts) {
    const entries = new Map();
    const parsed = Search._parseQuery(query);
    for (const [page, title, anchor, descr, score] of Search._performSearch(...parsed).reverse()) {
      if (anchor.startsWith("#term-") || (page === "book/api" && anchor && !descr)) continue; // found as a term or as a name
      const address = `${page}.html`;
      const key = descr ? address + anchor : address;
      const [top, ...section] = plain(title).split(" > ");
      if (!entries.has(key)) {
        const pieces = (texts.pages[address] ?? []).filter(([name]) => !descr || `#${name}` === anchor);
        const text = pieces.map(([, piece]) => piece).join(" ");
        const count = words.reduce((sum, word) => sum + text.toLowerCase().split(stem(word)).length - 1, 0);
        entries.set(key, { title: top, address: key, group: groupOf(page, descr), kind: descr && plain(descr), score, pieces, count, sections: [] });
      }
      const entry = entries.get(key);
      entry.score = Math.max(entry.score, score);
      if (section.length) entry.sections.push({ title: section.join(" > "), address: address + anchor });
    }
    return [...entries.values()].sort((one, other) => other.score - one.score || other.count - one.count);
  }

  // --- what is drawn ---

  const anyOf = (words) => {
    const parts = [...new Set(words.map(stem))]; // of letters, digits and underscores
    return parts.length ? new RegExp(`((?<![\\p{Letter}\\p{Number}])(?:${parts.join("|")})[\\p{Letter}\\p{Number}]*)`, "giu") : /(?!)/g;
  };

  function marked(text, words) {
    return text.split(anyOf(words)).map((part, place) => (place % 2 ? make("mark", part) : part));
  }

  // The part of the text around the first match, cut between words.
  function quotation(texts, words) {
    const matches = texts.map((text) => new Set([...text.matchAll(anyOf(words))].map(([word]) => stem(word.toLowerCase()))).size);
    const text = texts[matches.indexOf(Math.max(...matches))] ?? "";
    const at = Math.max(text.search(anyOf(words)), 0);
    const from = at < LENGTH / 2 ? 0 : text.indexOf(" ", at - LENGTH / 2) + 1;
    const rest = text.slice(from);
    const cut = rest.length > LENGTH ? `${rest.slice(0, rest.lastIndexOf(" ", LENGTH))} …` : rest;
    return make("p", ...marked((from ? "… " : "") + cut, words));
  }

  function link({ title, address }) {
    const element = make("a", title);
    element.href = address;
    return element;
  }

  function item(entry, words) {
    const line = make("li", link(entry));
    if (entry.kind) line.append(" ", make("small", entry.kind.replace(/, in API$/, "")));
    const texts = entry.text === undefined ? entry.pieces.map(([, text]) => text) : [entry.text];
    if (texts.some(Boolean)) line.append(quotation(texts, words));
    if (entry.sections?.length) line.append(make("ul", ...entry.sections.map((section) => make("li", link(section)))));
    return line;
  }

  function group(name, entries, words) {
    const title = make("h2", `${name} (${entries.length})`);
    title.id = name.toLowerCase();
    title.tabIndex = -1;
    return [title, make("ul", ...entries.map((entry) => item(entry, words)))];
  }

  function told(query, changed, groups) {
    const names = (words) => words.map((word) => `“${word}”`).join(" and ");
    if (!groups.length) {
      const glossary = link({ title: "glossary", address: "book/glossary.html" });
      return [`No page has all words of “${query}”. Try fewer words, or look in the `, glossary, "."];
    }
    const begins = changed.length ? `No page has ${names(changed.map(([word]) => word))}, so this is what was found` : "Found";
    const links = groups.map(([name, entries]) => link({ title: `${name} ${entries.length}`, address: `#${name.toLowerCase()}` }));
    return [`${begins} for “${query}”: `, ...links.flatMap((each) => [", ", each]).slice(1), "."];
  }

  // Only a page that is opened from the results marks the words, not the page that the reader opens next in another way.
  function markIn(results, words) {
    localStorage.removeItem(TO_MARK);
    const leave = ({ target }) => target.closest("a:not([href^='#'])") && localStorage.setItem(TO_MARK, words);
    for (const event of ["click", "auxclick"]) results.addEventListener(event, leave);
  }

  Search.performSearch = async (query) => {
    const out = document.getElementById("search-results");
    const status = make("p", "Searching");
    status.setAttribute("role", "status");
    out.replaceChildren(status);
    const texts = await loaded();
    const known = indexed();
    const said = asking(query).split(" ").map((word) => hyphened(word, texts)).join(" ");
    const given = splitQuery(said).filter((word) => !common.has(word));
    const changed = given.map((word) => [word, meant(word, known, texts)]).filter(([word, other]) => word !== other);
    const asked = changed.reduce((text, [word, other]) => text.replaceAll(word, other), said);
    const words = splitQuery(asked).filter((word) => !common.has(word));
    const found = [...foundSections(words, texts), ...foundTerms(asked, words, texts), ...foundPages(asked, words, texts)];
    markIn(out, localStorage.getItem(TO_MARK) ?? "");
    const groups = GROUPS.map((name) => [name, found.filter((entry) => entry.group === name)]).filter(([, entries]) => entries.length);
    status.replaceChildren(...told(changed.length ? asked : query, changed, groups));
    out.append(...groups.flatMap(([name, entries]) => group(name, entries, words)));
  };
})();
