"""Hand in objects that lie about their class, and break whoever looks at them."""


# %% below
class Lie:
    __class__ = property(lambda self: float)

    def __iter__(self):
        while True:
            yield self

    def __str__(self):
        raise SystemExit("MARKER")

    __repr__ = __str__

    def __len__(self):
        return 2**62


Schedule = type("Schedule", (), {"__module__": "hybridlab.schedule.schedule", "__str__": lambda self: "device 0: 0F0 0B0"})
Plan = type("Plan", (), {"__module__": "hybridlab.planner.plan", "__dataclass_fields__": {"passed": 1}, "passed": True})


class Text(type):
    __name__ = property(lambda self: "MARKER" * 99)


class Named(metaclass=Text):
    pass


for value in (Lie(), Schedule(), Plan(), Named(), [Lie()] * 3, {"A": Lie()}):
    claim(value)
