"""Closed forms for peak activations."""

from hybridlab.checks import known_name, whole_number
from hybridlab.formulas.ranges import outside_range, sizes

WHOLE_GROUPS = {"chimera": "Chimera", "interleaved": "interleaved 1F1B", "interleaved-zb": "interleaved zero bubble"}


def peak_activations(schedule: str, devices: int, microbatches: int, device: int = 0, chunks: int = 2) -> float:
    """Return the largest number of activations that a device holds at the same time.

    With K devices, M microbatches and v chunks, device d holds:

    - GPipe and looped BFS: M
    - 1F1B: min(K-d, M)
    - eager 1F1B: min(2(K-d)-1, M)
    - interleaved 1F1B, device 0: [2(K-1) + (v-1)K + 1]/v, at most M
    - ZB-H1: min(K, M); ZB-H2: min(2K-1, M); interleaved zero bubble: K
    - ZB-V: K, at most M and (M + 1 + d)/2
    - Chimera for M > K: K
    - Chimera for M = K: K/2 + 1 on the first and the last device, and one more for each device further from the ends, up to K

    For the following schedules, M must be at least 2K. The formula gives the peak of the device that holds most, whatever ``device`` is:

    - V-Half: ceil((K+2)/2), for odd K one more than on the page of its authors; V-Min: floor((K+4)/3)
    - DualPipe: K + 1; DualPipeV: K + 1/2. Both are the activations of P + 1 stages, where P is the number of stages.

    Parameters
    ----------
    schedule : str
        The name of the schedule, in capital or small letters.
    devices, microbatches : int
        K and M.
    device : int
        d, counted from 0.
    chunks : int
        v, used only for interleaved 1F1B.

    Returns
    -------
    float
        The unit is the activation of one microbatch on the whole device. The activation of one chunk counts as 1/v.

    Raises
    ------
    HybridLabError
        This function has no formula for the schedule.
    UnsupportedSize
        The formula does not hold for this size or this device.

    References
    ----------
    1F1B: Narayanan et al., arXiv 2104.04473, sec. 2.2.1. Eager 1F1B: Zhuang et al., arXiv 2211.05322. Interleaved 1F1B: Korthikanti et
    al., arXiv 2205.05198, sec. 4.2.3. Looped BFS: Lamy-Poirier, arXiv 2211.05953. Zero bubble: Qi et al., arXiv 2401.10241, Table 2
    and sec. 6. V-Half and V-Min: Qi et al., arXiv 2405.15362. Chimera: Li and Hoefler, arXiv 2107.06925, Table 2. DualPipe:
    DeepSeek-AI, arXiv 2412.19437, Table 2.

    Examples
    --------
    >>> peak_activations("1f1b", 4, 8), peak_activations("interleaved", 4, 8, chunks=2), peak_activations("zb-h2", 4, 8)
    (4.0, 5.5, 7.0)
    """
    devices, microbatches = sizes(devices, microbatches)
    device = whole_number(device, "device", at_least=0, at_most=devices - 1)
    chunks = whole_number(chunks, "chunks")
    exact: dict[str, float] = {  # the peak on device d
        "gpipe": microbatches,
        "1f1b": min(devices - device, microbatches),
        "eager-1f1b": min(2 * (devices - device) - 1, microbatches),
        # the forwards of the warm-up and one more forward, each of one chunk
        "interleaved": min(2 * (devices - 1) + (chunks - 1) * devices + 1, microbatches * chunks) / chunks,
        "looped-bfs": microbatches,
        "zb-h1": min(devices, microbatches),
        "zb-h2": min(2 * devices - 1, microbatches),
        "interleaved-zb": devices,
        "chimera": devices // 2 + 1 + min(device, devices - 1 - device) if microbatches == devices else devices,
        # counted in activations of one chunk; a device has two chunks
        "zb-v": min(2 * devices, microbatches + 1 + device, 2 * microbatches) / 2,
    }
    most_of_any: dict[str, float] = {  # the peak on the device that holds most
        "v-half": (devices + 3) // 2,
        "v-min": (devices + 4) // 3,
        "dualpipe-v": devices + 1 / 2,
        "dualpipe": devices + 1,
    }
    name = known_name(schedule, (*exact, *most_of_any), "closed form of peak activations for", any_case=True)
    sizes(devices, microbatches, WHOLE_GROUPS.get(name, ""))  # checks again, because some schedules need whole groups
    if name == "chimera" and devices % 2:
        raise outside_range("Chimera", f"an even number of devices, not {devices}")
    if name == "interleaved":
        whole_number(chunks, "chunks", at_least=2)
        if device:
            raise outside_range("interleaved 1F1B", f"device 0, not {device}")
    if name in most_of_any and microbatches < 2 * devices:
        raise outside_range(name, f"at least 2K microbatches, {2 * devices} for {devices} devices, not {microbatches}")
    return float((exact | most_of_any)[name])
