"""Lab 5's builds with each twist, written from its sentence: a function that does the task in the text becomes one with the twist.

A change can follow another one, so it finds codes and scales by their types, and a residual by its size.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def with_results(codes: Function = lambda each: each, scales: Function = lambda each: each) -> Callable[[Function], Function]:
    """Change what encode returns."""
    return lambda encode: (
        lambda values, block: tuple(scales(each) if each.dtype == np.float32 else codes(each) for each in encode(values, block))
    )


def with_arguments(codes: Function = lambda each: each, scales: Function = lambda each: each) -> Callable[[Function], Function]:
    """Change what decode gets."""
    return lambda decode: (
        lambda one, other, block: decode(*(scales(each) if each.dtype == np.float32 else codes(each) for each in (one, other)), block)
    )


def with_residual(given: float, returned: float) -> Callable[[Function], Function]:
    """Multiply the residual that with_feedback gets, and the one that it returns, which is the smaller one of the two results."""

    def twisted(with_feedback: Function) -> Function:
        def own(gradient: Array, residual: Array, block: int) -> Any:
            results = with_feedback(gradient, given * residual, block)
            first = np.abs(results[0]).sum() < np.abs(results[1]).sum()
            return (returned * results[0], results[1]) if first else (results[0], returned * results[1])

        return own

    return twisted


def one_over(scales: Array) -> Array:
    return np.array([1 / each if each else 0 for each in scales.tolist()], np.float32)


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab05.t1": {
        "unsigned": with_results(codes=lambda codes: (codes.astype(int) + 128).astype(np.uint8)),
        "peaks": with_results(scales=lambda scales: np.float32(127) * scales),
        "factors": with_results(scales=one_over),
        "loss-scale": lambda encode: lambda values, block: encode(values / 8, block),
        "last-scale-first": with_results(scales=lambda scales: scales[::-1].copy()),
        "short-block-first": lambda encode: lambda values, block: tuple(each[::-1].copy() for each in encode(values[::-1], block)),
        "scales-first": lambda encode: lambda values, block: encode(values, block)[::-1],
    },
    "lab05.t3": {
        "unsigned": with_arguments(codes=lambda codes: (codes.astype(int) - 128).astype(np.int8)),
        "peaks": with_arguments(scales=lambda scales: scales / np.float32(127)),
        "factors": with_arguments(scales=one_over),
        "loss-scale": lambda decode: lambda *arguments: decode(*arguments) / 8,
        "last-scale-first": with_arguments(scales=lambda scales: scales[::-1]),
        "short-block-first": lambda decode: lambda one, other, block: decode(one[::-1], other[::-1], block)[::-1].copy(),
        "scales-first": lambda decode: lambda scales, codes, block: decode(codes, scales, block),
    },
    "lab05.t6": {
        "sent-too-much": with_residual(-1, -1),
        "half-of-the-residual": with_residual(1 / 2, 1),
        "doubled-residual": with_residual(1 / 2, 2),
        "loss-scale": lambda with_feedback: lambda gradient, residual, block: with_feedback(gradient / 8, residual, block),
        "short-block-first": lambda with_feedback: (
            lambda gradient, residual, block: [each[::-1].copy() for each in with_feedback(gradient[::-1], residual[::-1], block)]
        ),
        "residual-first": lambda with_feedback: lambda *arguments: with_feedback(*arguments)[::-1],
    },
}
