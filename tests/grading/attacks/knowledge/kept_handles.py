"""Give back what came in an earlier call, and call it again."""

# %% below
kept = []


def keeping(*given):
    kept.extend(each for each in given if callable(each) or type(each).__name__ == "Handle")
    results = []
    for each in kept:
        for wanted in ((), (0, 0, 0), (0, 0, 0, 0), given):
            try:
                results.append(each(*wanted))
            except Exception:
                pass
    return (0.0, results) if results else (kept or list(given))


claim(1, keeping)
