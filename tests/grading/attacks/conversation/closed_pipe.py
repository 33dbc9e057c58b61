"""Close the pipe of the replies, or put another file in its place, and go on."""

# %% below
import gc
import os

worker = next(each for each in gc.get_objects() if type(each).__name__ == "Worker")
inside = type(worker).do_run.__globals__

claim(1)
os.close(worker._replies)
os.dup2(os.open("/tmp/replies", os.O_RDWR | os.O_CREAT), worker._replies)
while True:
    pass
