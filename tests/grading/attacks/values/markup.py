"""Hand in Markdown and HTML."""

# %% below
for text in ("<script>alert(1)</script>", "![](http://127.0.0.1/x.png)", "| 100 |\n|---|", "```\n# passed", "&lt;b&gt;"):
    claim({"A": text})
claim("<img src=x onerror=alert(1)>", lambda *given: ["</details><h1>100</h1>"])
