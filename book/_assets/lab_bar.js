// On a phone JupyterLite shows the notebook alone, without the list of files beside it.
if (matchMedia("(max-width: 48rem)").matches) document.querySelector(".lab-bar-run").href += "&mode=single-document";

// On a page opened as a file a browser cannot run JupyterLite, which loads files over the network, and it shows a notebook's text in
// place of saving it. So the button "run" explains this, and "download" takes the notebook from a script beside it.
if (location.protocol === "file:") {
  const bar = document.querySelector(".lab-bar");

  bar.querySelector(".lab-bar-run").addEventListener("click", (event) => {
    event.preventDefault();
    bar.querySelector(".lab-bar-refusal").textContent =
      "A browser runs notebooks only on pages that come from a server, and this page is a file. " +
      "Run “make serve” and open the address that it prints, or open the published site.";
  });

  const link = bar.querySelector("a[download]");
  const save = () => {
    const copy = document.createElement("a");
    copy.href = URL.createObjectURL(new Blob([window.notebookText], { type: "application/x-ipynb+json" }));
    copy.download = link.download;
    copy.click();
    setTimeout(() => URL.revokeObjectURL(copy.href), 60000); // ms: the download has started by then
  };
  link.addEventListener("click", (event) => {
    event.preventDefault();
    if (window.notebookText) return save();
    const script = document.createElement("script");
    script.src = `${link.getAttribute("href")}.js`;
    script.onload = save;
    document.head.append(script);
  });
}
