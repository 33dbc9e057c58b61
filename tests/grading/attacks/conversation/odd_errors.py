"""Describe errors in ways that no worker does."""

# %% below
import gc

worker = next(each for each in gc.get_objects() if type(each).__name__ == "Worker")
inside = type(worker).do_run.__globals__
send = type(worker)._send
odd = [None, True, 10**4000, 1e999, "MARKER" * 50, [], {}, eval("[" * 150 + "]" * 150), {"kind": "raises", "type": {}}]
fields = ("kind", "type", "line", "text", "name", "missing")


def replying(*given):
    errors = [{**dict.fromkeys(fields, "raises"), field: each} for field in fields for each in odd] + odd
    error = errors[len(calls) % len(errors)]
    calls.append(error)
    worker._send = lambda reply: send(worker, {**reply, "error": error, "warned": error, "shared": error})
    return 1


calls = []
claim(1, replying)
worker._describe_error = lambda *given: odd[-1]
raise ValueError
