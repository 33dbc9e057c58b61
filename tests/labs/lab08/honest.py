"""Lab 8's build with each twist, as a student writes it from the clause: threads that take messages out of a common mailbox."""

from collections.abc import Callable
from threading import Condition, Thread
from typing import Any

Function = Callable[..., Any]


class Mailbox:
    """Messages by the operation that needs them. A device that would wait for ever gets an error."""

    def __init__(self, devices: int, ready: list[str]) -> None:
        self.news = Condition()
        self.messages: dict[str, Any] = dict.fromkeys(ready)
        self.wanted: dict[int, str] = {}
        self.alive = devices

    def take(self, device: int, name: str) -> Any:
        with self.news:
            self.wanted[device] = name
            while name not in self.messages:
                if len(self.wanted) == self.alive and not any(each in self.messages for each in self.wanted.values()):
                    raise RuntimeError(f"deadlock at {name}")
                self.news.wait()
            del self.wanted[device]
            return self.messages.pop(name)

    def put(self, name: str | None, message: Any) -> None:
        with self.news:
            if name:
                self.messages[name] = message
            self.news.notify_all()

    def leave(self, device: int) -> None:
        with self.news:
            self.wanted.pop(device, None)
            self.alive -= 1
            self.news.notify_all()


def ran(lines: list[list[str]], work: Function, is_lost: Function) -> list[Any]:
    """Run the operations of each device in a thread of its own, and return the sums of their gradients."""
    box = Mailbox(len(lines), [name for name in lines[0] if name.startswith("0F")])
    sums: list[Any] = [0.0] * len(lines)
    errors: list[Exception] = []

    def run(device: int) -> None:
        try:
            for name in lines[device]:
                to, output, gradient = work(name, box.take(device, name))
                sums[device] = sums[device] + gradient
                if not is_lost(name):
                    box.put(to, output)
        except Exception as why:  # raised again below
            errors.append(why)
        finally:
            box.leave(device)

    threads = [Thread(target=run, args=(device,)) for device in range(len(lines))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sums


def split(orders: list[str]) -> list[list[str]]:
    return [line.split() for line in orders]


def last_device_first(orders: list[str], work: Function, lost: list[str]) -> Any:
    return ran(split(orders)[::-1], work, lambda name: name in lost)


def lists_of_names(orders: list[list[str]], work: Function, lost: list[str]) -> Any:
    return ran(orders, work, lambda name: name in lost)


def message_first(orders: list[str], work: Function, lost: list[str]) -> Any:
    return ran(split(orders), lambda name, message: work(message, name), lambda name: name in lost)


def gradient_first(orders: list[str], work: Function, lost: list[str]) -> Any:
    def there(name: str, message: Any) -> Any:
        gradient, to, output = work(name, message)
        return to, output, gradient

    return ran(split(orders), there, lambda name: name in lost)


def output_first(orders: list[str], work: Function, lost: list[str]) -> Any:
    def there(name: str, message: Any) -> Any:
        output, to, gradient = work(name, message)
        return to, output, gradient

    return ran(split(orders), there, lambda name: name in lost)


def delivered(orders: list[str], work: Function, arriving: list[str]) -> Any:
    return ran(split(orders), work, lambda name: name not in arriving)


def last_gradient_first(orders: list[str], work: Function, lost: list[str]) -> Any:
    return list(reversed(ran(split(orders), work, lambda name: name in lost)))


def count(orders: list[str]) -> int:
    return len({name.split("F")[1] for line in orders for name in line.split() if "F" in name})


def means(orders: list[str], work: Function, lost: list[str]) -> Any:
    return [each / count(orders) for each in ran(split(orders), work, lambda name: name in lost)]


def last_device_first_delivered(orders: list[str], work: Function, arriving: list[str]) -> Any:
    return ran(split(orders)[::-1], work, lambda name: name not in arriving)


def message_first_means(orders: list[str], work: Function, lost: list[str]) -> Any:
    return [each / count(orders) for each in message_first(orders, work, lost)]


def lists_of_names_last_gradient_first(orders: list[list[str]], work: Function, lost: list[str]) -> Any:
    return ran(orders, work, lambda name: name in lost)[::-1]


SOLUTIONS: dict[tuple[str, str], Function] = {
    ("lab08.t5", "last-device-first"): last_device_first,
    ("lab08.t5", "message-first"): message_first,
    ("lab08.t5", "delivered"): delivered,
    ("lab08.t5", "gradient-first"): gradient_first,
    ("lab08.t5", "means"): means,
    ("lab08.t5", "lists-of-names"): lists_of_names,
    ("lab08.t5", "last-gradient-first"): last_gradient_first,
    ("lab08.t5", "output-first"): output_first,
    ("lab08.t5", "last-device-first-and-delivered"): last_device_first_delivered,
    ("lab08.t5", "message-first-and-means"): message_first_means,
    ("lab08.t5", "lists-of-names-and-last-gradient-first"): lists_of_names_last_gradient_first,
}
