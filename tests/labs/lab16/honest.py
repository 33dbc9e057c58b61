"""Lab 16's build with each twist, as a student writes it from the clause: a walk in rounds that puts all messages into one order."""

from collections.abc import Callable, Mapping
from typing import Any

Function = Callable[..., Any]
Told = tuple[str, str, int]  # a verb, an operation, and the other rank


def walked(lines: list[list[str]], source_of: Mapping[str, str], rank: int) -> list[Told]:
    """Return what a rank does if all ranks run the orders round by round; ranks count from 0."""
    home = {op: place for place, line in enumerate(lines) for op in line}
    at, made, told = [0] * len(lines), set(), []
    while any(place < len(line) for place, line in zip(at, lines, strict=True)):
        heads = [line[place] for place, line in zip(at, lines, strict=True) if place < len(line)]
        turn = [op for op in heads if op not in source_of or source_of[op] in made]
        if not turn:
            raise RuntimeError("deadlock")
        for op in turn:
            if op in source_of:
                ends = home[source_of[op]], home[op]
                if rank == ends[0]:
                    told.append(("send", source_of[op], ends[1]))
                elif rank == ends[1]:
                    told.append(("receive", source_of[op], ends[0]))
        for op in turn:
            at[home[op]] += 1
            made.add(op)
            if home[op] == rank:
                told.append(("run", op, -1))
    return told


def texts(told: list[Told], first: int = 0) -> list[str]:
    between = {"send": "to", "receive": "from"}
    return [f"run {op}" if verb == "run" else f"{verb} {op} {between[verb]} {peer + first}" for verb, op, peer in told]


def split(orders: list[str]) -> list[list[str]]:
    return [line.split() for line in orders]


def turned_lines(orders: list[str]) -> list[list[str]]:
    return split(orders)[::-1]


def turned_round(readers: Mapping[str, str]) -> dict[str, str]:
    return {reader: source for source, reader in readers.items()}


def as_tuples(told: list[Told]) -> list[tuple[Any, ...]]:
    return [each[:2] if each[0] == "run" else each for each in told]


def last_rank_first(orders: list[str], needs: dict[str, str], rank: int) -> Any:
    return texts(walked(turned_lines(orders), needs, rank))


def tuples(orders: list[str], needs: dict[str, str], rank: int) -> Any:
    return as_tuples(walked(split(orders), needs, rank))


def who_needs_it(orders: list[str], readers: dict[str, str], rank: int) -> Any:
    return texts(walked(split(orders), turned_round(readers), rank))


def ranks_from_1(orders: list[str], needs: dict[str, str], rank: int) -> Any:
    return texts(walked(split(orders), needs, rank - 1), first=1)


def named_by_reader(orders: list[str], needs: dict[str, str], rank: int) -> Any:
    readers = turned_round(needs)
    return texts([(verb, op if verb == "run" else readers[op], peer) for verb, op, peer in walked(split(orders), needs, rank)])


def lists_of_operations(orders: list[list[str]], needs: dict[str, str], rank: int) -> Any:
    return texts(walked(orders, needs, rank))


def last_action_first(orders: list[str], needs: dict[str, str], rank: int) -> Any:
    return texts(walked(split(orders), needs, rank))[::-1]


def own_inputs_too(orders: list[str], needs: dict[str, str], rank: int) -> Any:
    home = {op: place for place, line in enumerate(split(orders)) for op in line}
    return texts(walked(split(orders), {op: source for op, source in needs.items() if home[op] != home[source]}, rank))


def last_rank_first_tuples(orders: list[str], needs: dict[str, str], rank: int) -> Any:
    return as_tuples(walked(turned_lines(orders), needs, rank))


def who_needs_it_last_action_first(orders: list[str], readers: dict[str, str], rank: int) -> Any:
    return who_needs_it(orders, readers, rank)[::-1]


def lists_of_operations_ranks_from_1(orders: list[list[str]], needs: dict[str, str], rank: int) -> Any:
    return texts(walked(orders, needs, rank - 1), first=1)


SOLUTIONS: dict[tuple[str, str], Function] = {
    ("lab16.t4", "last-rank-first"): last_rank_first,
    ("lab16.t4", "tuples"): tuples,
    ("lab16.t4", "who-needs-it"): who_needs_it,
    ("lab16.t4", "ranks-from-1"): ranks_from_1,
    ("lab16.t4", "named-by-reader"): named_by_reader,
    ("lab16.t4", "lists-of-operations"): lists_of_operations,
    ("lab16.t4", "last-action-first"): last_action_first,
    ("lab16.t4", "own-inputs-too"): own_inputs_too,
    ("lab16.t4", "last-rank-first-and-tuples"): last_rank_first_tuples,
    ("lab16.t4", "who-needs-it-and-last-action-first"): who_needs_it_last_action_first,
    ("lab16.t4", "lists-of-operations-and-ranks-from-1"): lists_of_operations_ranks_from_1,
}
