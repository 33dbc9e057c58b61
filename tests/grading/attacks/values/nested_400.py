"""Hand in and return lists nested 400 deep."""

# %% below
answer = []
for _ in range(400):
    answer = [answer]
claim(answer, lambda *given: answer)
claim((answer, {"A": answer}), lambda *given: {"0F0": (answer, answer)})
