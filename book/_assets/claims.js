// Shows the claims of one verdict, and leaves out groups without such a claim. The page's address keeps the choice: claims.html?verdict=wrong.
// Without this script all claims are shown, and there is no control.
addEventListener("DOMContentLoaded", () => {
  const rows = [...document.querySelectorAll("tr[data-verdict]")];
  const counts = document.querySelector(".claims-counts");
  if (!rows.length || !counts) return;

  const VERDICTS = ["all", "right", "wrong", "depends"];
  const field = document.createElement("fieldset");
  field.className = "claims-filter";
  field.innerHTML = "<legend>Verdicts to show</legend>";
  const told = document.createElement("output");
  for (const verdict of VERDICTS) {
    const label = document.createElement("label");
    label.innerHTML = `<input type="radio" name="claims-verdict" value="${verdict}">${verdict}`;
    field.append(label);
  }
  field.append(told);
  counts.after(field);

  // groups: each table with its fold, then each section that holds tables; an entry in the contents of the page goes with its section
  const tables = [...document.querySelectorAll("table.claims")];
  const cells = tables.map((table) => table.closest(".cell"));
  const sections = [...document.querySelectorAll("article section section")].filter((section) => section.querySelector("table.claims"));
  const entryOf = ({ id }) => document.querySelector(`.page-toc a[href="#${CSS.escape(id)}"]`)?.closest("li");

  const show = (verdict) => {
    field.querySelector(`[value="${verdict}"]`).checked = true;
    for (const row of rows) {
      row.hidden = verdict !== "all" && row.dataset.verdict !== verdict;
      const readings = row.nextElementSibling;
      if (readings?.matches(".readings")) readings.hidden = row.hidden;
    }
    for (const group of [...cells, ...sections]) {
      group.hidden = !group.querySelector("tr[data-verdict]:not([hidden])");
      entryOf(group)?.toggleAttribute("hidden", group.hidden);
    }
    told.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims are shown.`;
  };
  const store = (verdict, hash) => {
    const address = new URL(location.href);
    if (verdict === "all") address.searchParams.delete("verdict");
    else address.searchParams.set("verdict", verdict);
    address.hash = hash;
    history.replaceState(null, "", address);
  };
  field.addEventListener("change", ({ target }) => {
    show(target.value);
    store(target.value, "");
  });
  // a link to a hidden claim or section shows all claims again
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest("[hidden]")) return;
    show("all");
    store("all", location.hash);
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  const asked = new URLSearchParams(location.search).get("verdict");
  show(VERDICTS.includes(asked) ? asked : "all");
  follow();
});
