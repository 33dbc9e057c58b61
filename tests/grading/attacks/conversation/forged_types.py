"""Forge values that the grader reads with an error of another kind."""

# %% below
import gc
import sys

main = sys.modules["__main__"]
worker = next(each for each in gc.get_objects() if type(each).__name__ == "Worker")
odd = [["(1,,)f8", [1], ""], ["O", [1], "AAAAAAAAAAA="], ["<f8", [0, 10**18], ""]]
odd += [["<f8", [-1], ""], ["f8,f8", [0], ""], ["b1", [2], "AgM="]]
for each in odd:
    main.encoded = lambda value, *given: {"array": each}
    worker._handed = [(key, 1) for key in others]
contents = {"range": [0, 10**15, 1], "fraction": [1, 0], "function": ["x", [], {}], "handle": [[]], "strict": {"dict": []}}
for name, content in contents.items():

    def forged(*given):
        main.encoded = lambda value, *given: {name: content}
        return 1

    claim(1, forged)
main.encoded = lambda value, *given: {"array": odd[0]}
