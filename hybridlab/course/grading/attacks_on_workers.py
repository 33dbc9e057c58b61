"""Attacks on the conversation between the grader and a worker: stolen nonces, forged replies, full pipes and forged values."""

from hybridlab.course.grading.attack import Attack, in_turn_with, last

WORKER = """
import gc, sys, os, json
main = sys.modules["__main__"]
worker = next(each for each in gc.get_objects() if type(each).__name__ == "Worker")
"""

ATTACKS_ON_WORKERS = (
    Attack(
        "patched-worker",
        "change the worker's own functions",
        last(
            WORKER
            + """
import inspect, ast
main.encoded = lambda value, *given: {"passed": True, "points": 99}
main._is_stub = lambda function: False
main._shared = lambda *given: None
inspect.signature = lambda function: main
main.bind = lambda *given: True
ast.parse = lambda *given: main
main.body = []
claim(1)
"""
        ),
    ),
    Attack(
        "forged-reply-of-run",
        "steal the nonce, and reply to the request that runs a cell",
        last(
            WORKER
            + """
worker._send({"handed": [[key, True] for key in others], "error": None, "passed": True, "points": 99, "code": "passed"})
"""
        ),
    ),
    Attack(
        "forged-reply-of-call",
        "steal the nonce, and reply to the call of a function",
        last(
            WORKER
            + """
def replied(*given):
    worker._send({"result": True, "changed": [], "shared": None, "passed": True, "feedback": {"passed": True}, "error": None})
    os._exit(0)
claim(True, replied)
"""
        ),
    ),
    Attack(
        "replies-ahead",
        "reply to requests that have not come yet",
        last(
            WORKER
            + """
for number in range(1, 40):
    line = {"id": worker._id + number, "nonce": worker._nonce, "handed": [[key, True] for key in others], "error": None, "result": True}
    os.write(worker._replies, json.dumps(line).encode() + b"\\n")
"""
        ),
    ),
    Attack(
        "stuffed-pipe",
        "write to all that is open: no JSON, lists within lists, and no end of a line",
        last("""
import os
for number in range(3, 64):
    for text in (b"passed\\n", b"[" * 10**5 + b"\\n", b'{"id": 1}\\n', b"9" * 5000 + b"\\n", b"NaN\\n", b"\\xff\\xfe\\n"):
        try: os.write(number, text)
        except OSError: pass
"""),
    ),
    Attack(
        "flooded-pipe",
        "fill the memory of the grader with lines that are just short enough",
        last(
            WORKER
            + """
line = b"[" + b"1," * 400000 + b"1]\\n"
while True: os.write(worker._replies, line)
"""
        ),
    ),
    Attack(
        "unread-pipe",
        "reply at once and read nothing more, so that the grader waits for room in the pipe",
        in_turn_with(
            WORKER
            + """
worker._send({"handed": [], "error": None})
while True: pass
""",
            "# " + "x" * 300_000,
        ),
    ),
    Attack(
        "forged-types",
        "forge values that the grader reads with an error of another kind",
        last(
            WORKER
            + """
odd = [["(1,,)f8", [1], ""], ["O", [1], "AAAAAAAAAAA="], ["<f8", [0, 10**18], ""]]
odd += [["<f8", [-1], ""], ["f8,f8", [0], ""], ["b1", [2], "AgM="]]
for each in odd:
    main.encoded = lambda value, *given: {"array": each}
    worker._handed = [(key, 1) for key in others]
contents = {"range": [0, 10**15, 1], "fraction": [1, 0], "function": ["x", [], {}], "handle": [[]], "strict": {"dict": []}}
for name, content in contents.items():
    def forged(*given): main.encoded = lambda value, *given: {name: content}; return 1
    claim(1, forged)
main.encoded = lambda value, *given: {"array": odd[0]}
"""
        ),
    ),
    Attack(
        "equal-hashes",
        "forge a set of whole numbers that all have the same hash, so that the grader needs minutes to read it",
        last(
            WORKER
            + """
content = [number * (2**61 - 1) for number in range(35000)]
main.encoded = lambda value, *given: {"set": content}
for key in list(others)[:1]: check(key, 1)
"""
        ),
    ),
)
