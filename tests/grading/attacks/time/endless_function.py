"""Never return."""


# %% below
def endless(*given):
    while True:
        pass


for key in list(others)[-1:]:
    check(key, endless)
