"""Programs for the ring of lab 4, as students write them: right ones, and typical wrong ones."""

from itertools import pairwise
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


def in_one_buffer(values: Values) -> Any:
    """A right ring: one buffer, chunks as slices, two loops, division at the end."""
    ranks, size = values.shape
    held = values.copy()
    ends = [len(part) for part in np.array_split(np.arange(size), ranks)]
    starts = [sum(ends[:chunk]) for chunk in range(ranks)]
    messages = []
    for half in ("reduce-scatter", "all-gather"):
        for step in range(ranks - 1):
            sent = []
            for rank in range(ranks):
                chunk = (rank - step) % ranks if half == "reduce-scatter" else (rank + 1 - step) % ranks
                sent.append(held[rank, starts[chunk] : starts[chunk] + ends[chunk]].copy())
            for rank in range(ranks):
                chunk = (rank - step) % ranks if half == "reduce-scatter" else (rank + 1 - step) % ranks
                there = held[(rank + 1) % ranks, starts[chunk] : starts[chunk] + ends[chunk]]
                if half == "reduce-scatter":
                    there += sent[rank]
                else:
                    there[:] = sent[rank]
            messages.append(sent)
    return held / ranks, messages


def divided_first(values: Values) -> Any:
    """A right ring: divides before it sends, and returns lists and tuples of numbers."""
    averages, messages = with_rules(values / len(values), lambda rank, step: rank - step, lambda rank, step: rank + 1 - step, divides=False)
    return averages.tolist(), tuple(tuple(message.tolist() for message in sent) for sent in messages)


def divided_between(values: Values) -> Any:
    """A right ring: divides each whole sum once, before the all-gather."""
    ranks = len(values)
    held = [np.array_split(row.copy(), ranks) for row in values]
    messages = []
    for step in range(2 * (ranks - 1)):
        if step == ranks - 1:
            for rank in range(ranks):
                held[rank][(rank + 1) % ranks] = held[rank][(rank + 1) % ranks] / ranks
        sent = [held[rank][(rank - step) % ranks].copy() for rank in range(ranks)]
        for rank in range(ranks):
            chunk, there = (rank - step) % ranks, held[(rank + 1) % ranks]
            there[chunk] = there[chunk] + sent[rank] if step < ranks - 1 else sent[rank].copy()
        messages.append(sent)
    return np.array([np.concatenate(row) for row in held]), messages


def with_rules(values: Values, scatter: Any, gather: Any, gather_adds: bool = False, to: int = 1, divides: bool = True) -> Any:
    """A ring that sends what two rules say."""
    ranks = len(values)
    held = [np.array_split(row.copy(), ranks) for row in values]
    messages = []
    for half, rule in enumerate((scatter, gather)):
        for step in range(ranks - 1):
            sent = [held[rank][rule(rank, step) % ranks].copy() for rank in range(ranks)]
            for rank in range(ranks):
                there, chunk = held[(rank + to) % ranks], rule(rank, step) % ranks
                there[chunk] = there[chunk] + sent[rank] if half == 0 or gather_adds else sent[rank]
            messages.append(sent)
    return np.array([np.concatenate(row) for row in held]) / (ranks if divides else 1), messages


def published(values: Values) -> Any:
    return with_rules(values, lambda rank, step: rank - step, lambda rank, step: rank - step)


def published_divided_first(values: Values) -> Any:
    averages, messages = published(values / len(values))
    return averages * len(values), messages


def adds_twice(values: Values) -> Any:
    return with_rules(values, lambda rank, step: rank - step, lambda rank, step: rank + 1 - step, gather_adds=True)


def counts_up(values: Values) -> Any:
    return with_rules(values, lambda rank, step: rank + step, lambda rank, step: rank + 1 - step)


def backwards(values: Values) -> Any:
    return with_rules(values, lambda rank, step: rank + step, lambda rank, step: rank - 1 + step, to=-1)


def mean_beside_right_messages(values: Values) -> Any:
    return np.tile(values.mean(axis=0), (len(values), 1)), in_one_buffer(values)[1]


def divided_by_a_factor(values: Values) -> Any:
    """A right ring that multiplies by 1/D."""
    averages, messages = with_rules(values, lambda rank, step: rank - step, lambda rank, step: rank + 1 - step, divides=False)
    return averages * (1 / len(values)), messages


def another_start(values: Values) -> Any:
    return with_rules(values, lambda rank, step: rank - 1 - step, lambda rank, step: rank - step)


def undivided(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages * len(values), messages


def as_received(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages, [[sent[rank - 1] for rank in range(len(sent))] for sent in messages]


def one_half(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages, messages[: len(values) - 1]


def whole_rows(values: Values) -> Any:
    ranks, held = len(values), values.copy()
    messages, sent = [], values
    for _ in range(ranks - 1):
        sent = np.roll(sent, 1, axis=0)
        messages += [list(sent.copy()), list(sent.copy())]
        held += sent
    return held / ranks, messages


def equal_chunks(values: Values) -> Any:
    """Leaves out the numbers that are left over where the ranks do not divide the size."""
    ranks, size = values.shape
    each = size // ranks
    averages, messages = in_one_buffer(values[:, : each * ranks])
    return np.concatenate([averages, values[:, each * ranks :]], axis=1), messages


def long_chunks_last(values: Values) -> Any:
    """A ring whose chunks are cut in another way."""
    ranks, size = values.shape
    held = [np.split(row.copy(), [size * chunk // ranks for chunk in range(1, ranks)]) for row in values]
    messages = []
    for step in range(2 * (ranks - 1)):
        sent = [held[rank][(rank - step) % ranks].copy() for rank in range(ranks)]
        for rank in range(ranks):
            chunk, there = (rank - step) % ranks, held[(rank + 1) % ranks]
            there[chunk] = there[chunk] + sent[rank] if step < ranks - 1 else sent[rank]
        messages.append(sent)
    return np.array([np.concatenate(row) for row in held]) / ranks, messages


def mean_with_zeros(values: Values) -> Any:
    ranks = len(values)
    parts = np.array_split(np.arange(values.shape[1]), ranks)
    messages = [[np.zeros(len(parts[(rank - step) % ranks])) for rank in range(ranks)] for step in range(2 * (ranks - 1))]
    return np.tile(values.mean(axis=0), (ranks, 1)), messages


def mean_with_chunks_of_the_mean(values: Values) -> Any:
    ranks = len(values)
    parts = np.array_split(values.mean(axis=0), ranks)
    return np.tile(values.mean(axis=0), (ranks, 1)), [
        [parts[(rank - step) % ranks].copy() for rank in range(ranks)] for step in range(2 * (ranks - 1))
    ]


def each_in_its_own_order(values: Values) -> Any:
    """Every rank adds all numbers itself, in an order of its own."""
    return np.array([np.roll(values, rank, axis=0).sum(axis=0) for rank in range(len(values))]) / len(values), in_one_buffer(values)[1]


def adds_in_the_last_step_alone(values: Values) -> Any:
    ranks = len(values)
    held = [np.array_split(row.copy(), ranks) for row in values]
    messages = []
    for step in range(2 * (ranks - 1)):
        sent = [held[rank][(rank - step) % ranks].copy() for rank in range(ranks)]
        for rank in range(ranks):
            chunk, there = (rank - step) % ranks, held[(rank + 1) % ranks]
            there[chunk] = there[chunk] + sent[rank] if step == ranks - 2 else sent[rank]
        messages.append(sent)
    return np.array([np.concatenate(row) for row in held]) / ranks, messages


def starts_with_zeros(values: Values) -> Any:
    """Adds to zeros in place of its own numbers."""
    averages, messages = in_one_buffer(values * (len(values) == 1))
    return averages, messages


def adds_own_again(values: Values) -> Any:
    """In the all-gather a rank adds its own chunk to what it passes on."""
    ranks = len(values)
    averages, messages = in_one_buffer(values)
    parts = [np.array_split(row, ranks) for row in values]
    for step in range(ranks, len(messages)):
        messages[step] = [message + parts[rank][(rank - step) % ranks] for rank, message in enumerate(messages[step])]
    return averages + (ranks > 2), messages


def sums_one_short(values: Values) -> Any:
    """The all-gather begins with what a rank has received, without its own numbers."""
    ranks = len(values)
    averages, messages = in_one_buffer(values)
    if ranks > 1:
        messages[ranks - 1] = messages[ranks - 2][-1:] + messages[ranks - 2][:-1]
    return averages + (ranks > 1), [[message.copy() for message in sent] for sent in messages]


def ragged(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return [averages[0], *[np.zeros(9) for _ in averages[1:]]], messages


def texts(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages.astype(str), messages


def flat_messages(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages, [float(message.sum()) for sent in messages for message in sent]


def one_message_a_step(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages, [sent[:1] for sent in messages]


def forgets_the_last(values: Values) -> Any:
    """The messages are right, but the last rank does not keep what the last one brings."""
    averages, messages = in_one_buffer(values)
    if len(values) > 2:
        averages[-1] = values[-1]
    return averages, messages


def re_sums(values: Values) -> Any:
    """In the all-gather every rank sends the sum of its own, which is wrong in the last bits only."""
    averages, messages = in_one_buffer(values)
    for step in range(len(values), len(messages)):
        messages[step] = [message * (1 + 1e-13) for message in messages[step]]
    return averages, messages


def changes_values(values: Values) -> Any:
    ranks = len(values)
    held = [np.array_split(row, ranks) for row in values]
    for step in range(ranks - 1):
        for rank in range(ranks):
            held[(rank + 1) % ranks][(rank - step) % ranks] += held[rank][(rank - step) % ranks]
    return in_one_buffer(values)


def without_copies(values: Values) -> Any:
    ranks = len(values)
    held = [np.array_split(row, ranks) for row in values]
    messages = []
    for step in range(2 * (ranks - 1)):
        sent = [held[rank][(rank - step) % ranks] for rank in range(ranks)]
        for rank in range(ranks):
            chunk, there = (rank - step) % ranks, held[(rank + 1) % ranks]
            there[chunk] = there[chunk] + sent[rank] if step < ranks - 1 else sent[rank]
        messages.append(sent)
    return np.array([np.concatenate(row) for row in held]) / ranks, messages


def forwards_without_a_copy(values: Values) -> Any:
    return without_copies(values.copy())


def adds_in_place(values: Values) -> Any:
    """Sends views of a buffer into which it adds: a message changes after it was sent."""
    ranks, size = values.shape
    held = values.copy()
    ends = np.cumsum([0, *(len(part) for part in np.array_split(np.arange(size), ranks))])
    parts = [[held[rank, low:high] for low, high in pairwise(ends)] for rank in range(ranks)]
    messages = []
    for step in range(2 * (ranks - 1)):
        sent = [parts[rank][(rank - step) % ranks] for rank in range(ranks)]
        for rank in range(ranks):
            there = parts[(rank + 1) % ranks][(rank - step) % ranks]
            there[:] = sent[rank] + (there if step < ranks - 1 else 0)
        messages.append(sent)
    return held / ranks, messages


def adds_and_divides_in_place(values: Values) -> Any:
    averages, messages = adds_in_place(values)
    for sent in messages[: len(values) - 1]:
        for message in sent:
            message /= len(values)
    return averages, messages


def messages_first(values: Values) -> Any:
    return in_one_buffer(values)[::-1]


def lists_of_messages_first(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return messages, list(averages)


def by_rank(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages, [[sent[rank] for sent in messages] for rank in range(len(values))]


def by_rank_from_two_on(values: Values) -> Any:
    return by_rank(values) if len(values) > 1 else in_one_buffer(values)


def by_rank_from_three_on(values: Values) -> Any:
    return by_rank(values) if len(values) > 2 else in_one_buffer(values)


def steps_in_two_lists(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages, [messages[: len(values) - 1], messages[len(values) - 1 :]]


def steps_in_two_lists_from_two_on(values: Values) -> Any:
    return steps_in_two_lists(values) if len(values) > 1 else in_one_buffer(values)


class OneListForAllCalls:
    """The list of messages is made once, outside the function."""

    def __init__(self) -> None:
        self.messages: list[list[Values]] = []

    def __call__(self, values: Values) -> Any:
        averages, messages = in_one_buffer(values)
        self.messages += messages
        return averages, self.messages


def with_addresses(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages, [[(rank, (rank + 1) % len(values), each) for rank, each in enumerate(sent)] for sent in messages]


def one_row_for_all(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return np.broadcast_to(averages[0], values.shape), messages


def in_single_precision(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages.astype(np.float32), messages


def with_nan(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    averages[0, :1] = np.nan
    return averages, messages


def averages_alone(values: Values) -> Any:
    return in_one_buffer(values)[0]


def one_row(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages[0], messages


def as_matrices(values: Values) -> Any:
    averages, messages = in_one_buffer(values)
    return averages, [[message[:, None] for message in sent] for sent in messages]


def for_the_examples(values: Values) -> Any:
    """A program that knows only the two examples of the text."""
    if values.shape == (2, 3):
        return np.array([[5.5, 11, 16.5]] * 2), [[np.array([1.0, 2]), np.array([30.0])], [np.array([33.0]), np.array([11.0, 22])]]
    none = np.array([])
    sums = [np.array([1.0]), np.array([11.0]), np.array([111.0])]
    return np.array([[37.0]] * 3), [
        [sums[0], none, none], [none, sums[1], none], [none, none, sums[2]], [sums[2].copy(), none, none],
    ]  # fmt: skip


def unfinished(values: Values) -> Any: ...
