"""Give the compiler more than it can take."""

# %% instead
cells += [
    CodeCell(first_lines + source + "\n")
    for source in (
        "x = " + "(" * 20_000 + ")" * 20_000,
        "x = " + "-" * 200_000 + "1",
        "x = " + "+".join(["1"] * 60_000),
        "x = " + "[" * 150 + "]" * 150,
        "claim(1, eval('lambda *given: ' + '1 if 1 else ' * 5000 + '1'))",
        "x = " + "f'{" * 100 + "1" + "}'" * 100 + "\0",
    )
]
