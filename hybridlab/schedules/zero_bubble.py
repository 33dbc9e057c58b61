"""Zero-bubble schedules: the backward split into input gradient and weight gradient."""

import numpy as np

from hybridlab.rows import Ints
from hybridlab.schedules.one_f_one_b import one_f_one_b
from hybridlab.schedules.registry import register


@register(
    "zb-h1",
    title="ZB-H1",
    summary="1F1B with the backward split: device d runs each weight gradient d microbatches late, the rest at the end",
    source="Qi et al., ICLR 2024, arXiv 2401.10241, fig. 3",
)
def zb_h1(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of ZB-H1, shape (3, devices, microbatches).

    Forwards and input gradients stand as in 1F1B. On device d the weight gradient of microbatch i comes right
    after the input gradient of microbatch i + d, the slot where that one would stand if there were one: so the
    last d come at the end.

    >>> zb_h1(2, 2, 1)[1].tolist(), zb_h1(2, 2, 1)[2].tolist()
    ([[6, 10], [4, 8]], [[7, 11], [9, 13]])
    """
    forward, input_gradient = 2 * one_f_one_b(devices, microbatches, 1)
    device = np.arange(devices)[:, None]
    weight_gradient = input_gradient + 4 * device + 1
    return np.stack([forward, input_gradient, weight_gradient])
