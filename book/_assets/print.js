// Paper is white: a page in dark colours is printed in the light ones.
(() => {
  const page = document.documentElement;
  let onScreen = page.dataset.theme;
  addEventListener("beforeprint", () => {
    onScreen = page.dataset.theme;
    page.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    page.dataset.theme = onScreen;
  });
})();
