// Shows the claims of one verdict. Without this script all are shown, and there is no control.
addEventListener("DOMContentLoaded", () => {
  const rows = [...document.querySelectorAll("tr[data-verdict]")];
  const counts = document.querySelector(".claims-counts");
  if (!rows.length || !counts) return;

  const field = document.createElement("fieldset");
  field.className = "claims-filter";
  field.innerHTML = "<legend>Verdicts to show</legend>";
  const told = document.createElement("output");
  for (const verdict of ["all", "right", "wrong", "depends"]) {
    const label = document.createElement("label");
    label.innerHTML = `<input type="radio" name="claims-verdict" value="${verdict}">${verdict}`;
    field.append(label);
  }
  field.append(told);
  counts.after(field);

  const show = (verdict) => {
    field.querySelector(`[value="${verdict}"]`).checked = true;
    for (const row of rows) row.hidden = verdict !== "all" && row.dataset.verdict !== verdict;
    for (const table of document.querySelectorAll("table.claims")) {
      const some = table.querySelector("tr[data-verdict]:not([hidden])");
      table.hidden = !some;
      table.parentElement.querySelector(".claims-none")?.remove();
      if (!some) table.insertAdjacentHTML("afterend", `<p class="claims-none">No claim with this verdict in this group.</p>`);
    }
    told.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims are shown.`;
  };
  field.addEventListener("change", ({ target }) => show(target.value));
  // a link to a hidden claim shows all claims again
  const follow = () => {
    const row = document.getElementById(location.hash.slice(1));
    if (!row?.hidden) return;
    show("all");
    row.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  show("all");
});
