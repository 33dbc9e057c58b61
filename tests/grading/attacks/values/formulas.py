"""Hand in formulas of a spreadsheet."""

# %% below
for text in ('=HYPERLINK("http://127.0.0.1:' + PORT + '","100")', "@SUM(1)", "+1", "-1+1", "=cmd|' /C calc'!A0", "\t=1"):
    claim(text, lambda *given: [text])
