"""Programs for the build `peaks(orders)` of lab 3, as students write them: a right one and typical wrong ones."""

from hybridlab import Costs, Schedule, simulate


def right_peaks(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        counts = [0]
        for op in line.split():
            counts.append(counts[-1] + ("F" in op) - ("B" in op) - ("W" in op))
        found.append(max(counts))
    return found


def asks_the_simulator(orders: list[str]) -> list[float]:
    timeline = simulate(Schedule.parse("\n".join(orders)), Costs(forward=1, backward=2))
    return timeline.peak_activations.tolist()


def largest_first(orders: list[str]) -> list[int]:
    return sorted(right_peaks(orders), reverse=True)


def compares_too_early(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        held = most = 0
        for op in line.split():
            if "F" in op:
                most = max(most, held)
                held += 1
            elif "I" not in op:
                held -= 1
        found.append(most)
    return found


def never_begins_again(orders: list[str]) -> list[int]:
    found = []
    held = most = 0
    for line in orders:
        for op in line.split():
            held += ("F" in op) - ("B" in op or "W" in op)
            most = max(most, held)
        found.append(most)
    return found


def all_forwards(orders: list[str]) -> list[int]:
    return [line.count("F") for line in orders]


def any_backward_frees(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        held: set[str] = set()
        most = 0
        for op in line.split():
            if "F" in op:
                held.add(op.split("F")[1])
            else:
                held.discard(op.replace("I", "B").replace("W", "B").split("B")[1])
            most = max(most, len(held))
        found.append(most)
    return found


def both_parts_free(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        held = most = 0
        for op in line.split():
            held += 1 if "F" in op else -1
            most = max(most, held)
        found.append(most)
    return found


def full_backwards_alone(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        held = most = 0
        for op in line.split():
            held += ("F" in op) - ("B" in op)
            most = max(most, held)
        found.append(most)
    return found


def last_count(orders: list[str]) -> list[int]:
    return [sum(("F" in op) - ("B" in op or "W" in op) for op in line.split()) for line in orders]


def before_the_first_backward(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        forwards = 0
        for op in line.split():
            if "F" not in op:
                break
            forwards += 1
        found.append(forwards)
    return found


def by_formula(orders: list[str]) -> list[int]:
    microbatches = orders[0].count("F")
    return [min(len(orders) - device, microbatches) for device in range(len(orders))]


def highest_of_all(orders: list[str]) -> list[int]:
    most = max(right_peaks(orders))
    return [most for _ in orders]


def from_the_last(orders: list[str]) -> list[int]:
    found: list[int] = []
    for line in orders:
        found.insert(0, right_peaks([line])[0])
    return found


def second_letter(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        held = most = 0
        for op in line.split():
            held += {"F": 1, "B": -1, "W": -1}.get(op[1], 0)
            most = max(most, held)
        found.append(most)
    return found


def examples_of_the_text(orders: list[str]) -> list[int]:
    return {2: [2, 1], 1: [3]}.get(len(orders), [1] * len(orders))


def one_too_many(orders: list[str]) -> list[int]:
    return [peak + 1 for peak in right_peaks(orders)]


def one_everywhere(orders: list[str]) -> list[int]:
    return [1] * len(orders)


def sets_to_one(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        n = most = 0
        for op in line.split():
            if "F" in op:
                n = 1
            elif "B" in op or "W" in op:
                n -= 1
            most = max(most, n)
        found.append(most)
    return found


def largest_step(orders: list[str]) -> list[int]:
    return [max(("F" in op) - ("B" in op or "W" in op) for op in line.split()) for line in orders]


def longest_run(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        run = most = 0
        for op in line.split():
            run = run + 1 if "F" in op else 0
            most = max(most, run)
        found.append(most)
    return found


def half_each(orders: list[str]) -> list[float]:
    found = []
    for line in orders:
        held = most = 0.0
        for op in line.split():
            held += 1 if "F" in op else -1 if "B" in op else -0.5
            most = max(most, held)
        found.append(most)
    return found


def stage_of_one_digit(orders: list[str]) -> list[int]:
    held, most = [0] * len(orders), [0] * len(orders)
    line_of = {line[0]: place for place, line in reversed([*enumerate(orders)])}
    for op in " ".join(orders).split():
        device = line_of[op[0]]
        held[device] += ("F" in op) - ("B" in op or "W" in op)
        most[device] = max(most[device], held[device])
    return most


def last_character_but_one(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        held = most = 0
        for op in line.split():
            held += {"F": 1, "B": -1, "W": -1}.get(op[-2], 0)
            most = max(most, held)
        found.append(most)
    return found


def last_digit(orders: list[str]) -> list[int]:
    found = []
    for line in orders:
        held: set[str] = set()
        most = 0
        for op in line.split():
            if "F" in op:
                held.add(op[-1])
            elif "I" not in op:
                held.discard(op[-1])
            most = max(most, len(held))
        found.append(most)
    return found


def two_at_most(orders: list[str]) -> list[int]:
    return [min(peak, 2) for peak in right_peaks(orders)]


def one_number(orders: list[str]) -> int:
    return max(right_peaks(orders))


def a_mean(orders: list[str]) -> list[float]:
    return [float("nan") for _ in orders]


def eats_its_argument(orders: list[str]) -> list[int]:
    found = right_peaks(orders)
    orders.clear()
    return found


def first_line_alone(orders: list[str]) -> list[int]:
    return right_peaks(orders)[:1]


def prints_alone(orders: list[str]) -> None:
    right_peaks(orders)
