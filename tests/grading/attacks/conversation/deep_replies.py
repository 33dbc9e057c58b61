"""Say that the arguments are now lists so deep that they can be read but perhaps not compared."""

# %% below
import gc
import json
import os

worker = next(each for each in gc.get_objects() if type(each).__name__ == "Worker")
inside = type(worker).do_run.__globals__

send = type(worker)._send


def replying(*given):
    depth = 940 + len(calls) % 60
    calls.append(depth)
    deep = "[" * depth + "]" * depth

    def written(reply):
        start = json.dumps({"id": worker._id, "nonce": worker._nonce, "result": 1})[:-1]
        fields = ", ".join(f'"{name}": {deep}' for name in ("arguments", "shared", "warned"))
        os.write(worker._replies, f"{start}, {fields}}}\n".encode())
        worker._send = lambda reply: send(worker, reply)

    worker._send = written
    return 1


calls = []
claim(1, replying)
deep = "[" * 960 + "]" * 960
start = json.dumps({"id": worker._id, "nonce": worker._nonce, "handed": []})[:-1]
worker._send = lambda reply: os.write(worker._replies, f'{start}, "error": {{"name": {deep}, "type": {deep}}}}}\n'.encode())
