// The cards of the gallery: sorts them by a quantity, and lets a card load its schedule into the explorer of the page.

(() => {
  const cards = document.querySelector(".gallery-cards");
  if (!cards) return;
  const [list, choice, select] = ["ul", ".sort", "select"].map((part) => cards.querySelector(part));
  const inOrder = [...list.children];

  // the place of the explorer among the views of the page, as in the links that live_widgets.js reads
  const views = [...document.querySelectorAll('script[type="application/vnd.jupyter.widget-view+json"]')];
  const section = document.getElementById("other-sizes");
  const place = views.findIndex((view) => section?.contains(view)) + 1;
  if (place) for (const link of cards.querySelectorAll("a[data-setting]")) link.href = `#view${place}?${link.dataset.setting}`;

  choice.hidden = false;
  select.addEventListener("change", () => {
    const value = (card) => Number(card.getAttribute(`data-${select.value}`));
    list.append(...(select.value ? [...inOrder].sort((one, other) => value(one) - value(other)) : inOrder));
  });
})();
