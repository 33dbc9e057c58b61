// For readers without a mouse.
(() => {
  // The keyboard reaches each box that scrolls sideways. An observer is told after the browser has laid out the page, so nothing is laid
  // out twice. (The theme's script for this lays out the page again for each box; finish.py switches it off.)
  const BOXES = "pre, .pst-scrollable-table-container, .math-block, p math, li math, figure, .cell_output, .cell_output > .output, .live-widget";
  const sized = new ResizeObserver((entries) => {
    const boxes = entries.map(({ target }) => [target, target.scrollWidth > target.clientWidth]); // all are read before one changes
    for (const [box, wide] of boxes) {
      if (wide) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  });

  addEventListener("DOMContentLoaded", () => {
    for (const box of document.querySelectorAll(BOXES)) sized.observe(box);
    // On a narrow page the sidebars are dialogs; closing one returns the focus to the button that opened it.
    for (const side of ["primary", "secondary"]) {
      const back = () => document.querySelector(`.${side}-toggle`)?.focus();
      document.getElementById(`pst-${side}-sidebar-modal`)?.addEventListener("close", back);
    }
  });
})();
