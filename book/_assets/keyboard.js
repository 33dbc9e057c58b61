// For readers without a mouse.
(() => {
  // The keyboard reaches each box that scrolls sideways. The theme does this for code and tables, this script for the others.
  const see = () => {
    for (const box of document.querySelectorAll(".math-block, p math, li math, figure, .cell_output, .live-widget")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("load", see);
  addEventListener("resize", see);

  // On a narrow page the sidebars are dialogs; closing one returns the focus to the button that opened it.
  addEventListener("DOMContentLoaded", () => {
    for (const side of ["primary", "secondary"]) {
      const back = () => document.querySelector(`.${side}-toggle`)?.focus();
      document.getElementById(`pst-${side}-sidebar-modal`)?.addEventListener("close", back);
    }
  });
})();
