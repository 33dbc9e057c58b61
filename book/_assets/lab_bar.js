// A page opened as a file cannot start JupyterLite, whose scripts ask for files by the network: say so instead of a dead page.
for (const link of document.querySelectorAll(".lab-bar-run")) {
  link.addEventListener("click", (event) => {
    if (location.protocol !== "file:") return;
    event.preventDefault();
    link.closest(".lab-bar").querySelector(".lab-bar-refusal").textContent =
      "A browser runs notebooks only on pages that come from a server, and this page is a file. " +
      "Run “make serve” and open the address that it prints, or open the published site.";
  });
}
