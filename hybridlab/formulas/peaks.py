"""Closed forms of peak activations, in microbatches of the whole device."""

from hybridlab.checks import known_name, whole_number
from hybridlab.formulas.ranges import outside, sizes

WHOLE_GROUPS = {"chimera": "Chimera", "interleaved": "interleaved 1F1B", "interleaved-zb": "interleaved zero bubble"}


def peak_activations(schedule: str, devices: int, microbatches: int, device: int = 0, chunks: int = 2) -> float:
    """Return the most activations ``device`` holds at once, in microbatches of the whole device.

    GPipe and looped BFS M (Lamy-Poirier, arXiv 2211.05953); 1F1B min(K-d, M) (Narayanan et al., arXiv 2104.04473, sec. 2.2.1);
    eager 1F1B min(2(K-d)-1, M) (Zhuang et al., arXiv 2211.05322); interleaved on device 0 [2(K-1) + (v-1)K + 1]/v, at most M
    (Korthikanti et al., arXiv 2205.05198, sec. 4.2.3). On every device: ZB-H1 min(K, M), ZB-H2 min(2K-1, M), ZB-V K, but
    at most M and (M + 1 + d)/2 (Qi et al., arXiv 2401.10241, Table 2 and sec. 6); interleaved zero bubble K. Chimera
    K, and of one group, M = K, from K/2 + 1 on the first and last device up to K in the middle (Li and Hoefler, arXiv
    2107.06925, Table 2).

    For M >= 2K the most of any device: V-Half ceil((K+2)/2) and V-Min floor((K+4)/3) (Qi et al., arXiv 2405.15362); DualPipe
    K + 1 and DualPipeV K + 1/2, both P + 1 stages of P (DeepSeek-AI, arXiv 2412.19437, Table 2). ``chunks`` counts for
    interleaved alone.

    >>> peak_activations("1f1b", 4, 8), peak_activations("interleaved", 4, 8, chunks=2), peak_activations("zb-h2", 4, 8)
    (4.0, 5.5, 7.0)
    """
    devices, microbatches = sizes(devices, microbatches)
    device = whole_number(device, "device", at_least=0, at_most=devices - 1)
    chunks = whole_number(chunks, "chunks")
    exact: dict[str, float] = {
        "gpipe": microbatches,
        "1f1b": min(devices - device, microbatches),
        "eager-1f1b": min(2 * (devices - device) - 1, microbatches),
        "interleaved": min(2 * (devices - 1) + (chunks - 1) * devices + 1, microbatches * chunks) / chunks,
        "looped-bfs": microbatches,
        "zb-h1": min(devices, microbatches),
        "zb-h2": min(2 * devices - 1, microbatches),
        "interleaved-zb": devices,
        "chimera": devices // 2 + 1 + min(device, devices - 1 - device) if microbatches == devices else devices,
        "zb-v": min(2 * devices, microbatches + 1 + device, 2 * microbatches) / 2,
    }
    most_of_any: dict[str, float] = {
        "v-half": (devices + 3) // 2,
        "v-min": (devices + 4) // 3,
        "dualpipe-v": devices + 1 / 2,
        "dualpipe": devices + 1,
    }
    name = known_name(schedule, (*exact, *most_of_any), "closed form of peak activations for", any_case=True)
    sizes(devices, microbatches, WHOLE_GROUPS.get(name, ""))
    if name == "chimera" and devices % 2:
        raise outside("Chimera", f"an even number of devices, not {devices}")
    if name == "interleaved":
        whole_number(chunks, "chunks", at_least=2)
        if device:
            raise outside("interleaved 1F1B", f"device 0, not {device}")
    if name in most_of_any and microbatches < 2 * devices:
        raise outside(name, f"at least 2K microbatches, {2 * devices} for {devices} devices, not {microbatches}")
    return float((exact | most_of_any)[name])
