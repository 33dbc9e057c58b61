"""Hold texts of schedules that several tests judge: how a text may be laid out, and what is refused with which code and words."""

from hybridlab import build

Refused = tuple[str, str, tuple[str, ...]]  # the text, the code of the error, and words of its sentence

TWO = "device 0: 0F0 0F1 0B0 0B1\ndevice 1: 1F0 1B0 1F1 1B1"
LAID_OUT = [
    TWO,
    TWO + "\n",
    TWO.replace("\n", "\r\n"),
    TWO.replace(" ", "\t"),
    TWO.replace(" ", "   "),
    TWO.upper().replace("DEVICE", "Device"),
    "\n\n" + TWO.replace("\n", "\n\n \n"),
    TWO.replace("device 0:", "").replace("device 1:", ""),
    TWO.replace("device 0:", "device 0 :").replace("device 1: ", "  device 01:"),
    TWO.replace("0F0", "00F000"),
    TWO.replace(" ", "\u00a0"),
    "\ufeff" + TWO,
    build("1f1b", 2, 2).to_csv(),
    TWO.lower(),
    "# my schedule\n" + TWO.replace(" ", ", ").replace("device, ", "device "),
    'sep=;\r"0F0";"0F1";"0B0";"0B1"\r;;;\r"1F0";"1B0";"1F1";"1B1"\r',
    "0UNSHARD,0F0,0SEND_F0,,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n1F0,1B0,1F1,1B1\n",
]

UNREADABLE: list[Refused] = [
    ("", "empty", ("device 0: 0F0 0B0",)),
    ("0F0 0B0\n1F0 1X0", "unknown-operation", ("line 2, column 5", "'1X0'")),
    ("0F0 0G0", "unknown-operation", ("line 1, column 5:", "'0G0'")),
    ("device 0: 0F0 0B0\ndevice 1: 1F0 1y0", "unknown-operation", ("line 2, column 15:", "'1y0'")),
    ("device 0:\t0F0\t0X0", "unknown-operation", ("line 1, column 15:", "'0X0'")),
    ("\n\n  0F0 ?", "unknown-operation", ("line 3, column 7:", "'?'")),
    ("0F0 0B0\r\n1F0 1B\r\n", "unknown-operation", ("line 2, column 5:", "'1B'")),
    ("0F0 0B0\n1F0 1B0 # my schedule", "unknown-operation", ("line 2, column 9:", "'#'")),
    ("0F0,0SEND_F0,0SEND_X0", "unknown-operation", ("line 1, column 14:", "'0SEND_X0'")),
    ("0F0\nsep=;\n0B0", "unknown-operation", ("line 2, column 1:", "'sep='")),
    ("device 1: 0F0 0B0", "wrong-device-number", ("line 1, column 1: device 0", "not device 1")),
    ("device 0: 0F0 0B0\ndevice 0: 1F0 1B0", "wrong-device-number", ("line 2, column 1: device 1", "not device 0")),
    ("device zero: 0F0", "unknown-operation", ("line 1, column 1:", "'device'")),
    (" \n\t\n", "empty", ("text", "device 0: 0F0 0B0")),
]

GOOD = str(build("1f1b", 4, 8))


def without(*removed: str) -> str:
    return " ".join(word for word in GOOD.replace("\n", " \n ").split(" ") if word not in removed)


INCOMPLETE: list[Refused] = [
    (without("2B7"), "missing-backward", ("stage 2", "microbatch 7")),
    (without("3F0"), "missing-forward", ("stage 3", "microbatch 0")),
    (GOOD.replace("2B7", "2I7"), "missing-weight-gradient", ("stage 2", "microbatch 7")),
    (GOOD.replace("2B7", "2W7"), "missing-input-gradient", ("stage 2", "microbatch 7")),
    (GOOD.replace("2B7", "2B7 2B7"), "doubled-operation", ("stage 2", "backward", "microbatch 7 twice")),
    (GOOD.replace("2B7", "2B7 2B7 2B7"), "doubled-operation", ("stage 2", "backward", "microbatch 7 3 times")),
    (GOOD.replace("2B7", "2B7 2W7"), "full-and-split-backward", ("stage 2", "microbatch 7")),
    (GOOD.replace("2B7", "3B7"), "stage-on-two-devices", ("stage 3", "device 2", "device 3")),
    ("0F0 0B0\n2F0 2B0", "missing-stage", ("stage 1", "stage 2", "0, 1, 2")),
    ("0F0 0F2 0B0 0B2", "missing-microbatch", ("microbatch 1", "microbatch 2", "0, 1, 2")),
    ("device 0:", "empty-schedule", ("0F0 0B0",)),
    ("device 0:\ndevice 1: ", "empty-schedule", ("0F0 0B0",)),
    ("0F0 1F0 1B0 0B0\n2F0 2B0", "uneven-stages", ("device 0 holds 2", "device 1 holds 1")),
]

NO_PAIRS: list[Refused] = [
    ("0F0 (0F1;0F2) 0F3 0B0 0B1 0B2 0B3", "not-a-pair", ("(0F1;0F2)", "a forward and a full backward (B)")),
    ("(0F0;0B0)", "not-a-pair", ("(0F0;0B0)", "another stage or microbatch")),
    ("0F0 0F1 (0I0;0W0) 0B1", "not-a-pair", ("(0I0;0W0)",)),
    ("0F0 (0F1;0I0) 0W0 0B1", "not-a-pair", ("(0F1;0I0)",)),
    ("0F0 (0F1;0B0;0B1)", "unknown-operation", ("column 5", "'(0F1;0B0;0B1)'")),
    ("0F0 (0F1;0B0", "unknown-operation", ("column 5", "'(0F1'")),
    ("0F0 (0F1;) 0B0", "unknown-operation", ("column 5", "''")),
    ("0F0 () 0B0", "unknown-operation", ("column 5", "'()'")),
]

TWO_WAYS: list[Refused] = [
    ("0F0 1F1 1B1 0B0\n0F1 1F0 1B0", "missing-backward", ("stage 0", "microbatch 1")),
    ("0F0 0F1 0B0 0B1 1F1 1B1\n1F0 1B0", "stage-on-two-devices", ("stage 1", "device 0 (1F1)", "device 1")),
    ("0F0 1F1 1B1 0B1\n0F1 1F0 1B0 0B0", "stage-on-two-devices", ("stage 0", "device 1 (0F1)", "device 0")),
    ("0F0 1F1 1B1 0B0\n0F1 1F0 1B0 0B1 0F2 0B2", "missing-forward", ("stage 1", "microbatch 2")),
]


def all_around(devices: int) -> str:
    """Return orders with two chunks in which device 0 begins with its second stage, so each device waits for the one before it."""
    first = f"{devices}F0 0F0 {devices}B0 0B0"
    return "\n".join([first, *(f"{each}F0 {each + devices}F0 {each + devices}B0 {each}B0" for each in range(1, devices))])


WAITING = {
    "two devices": "0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0",
    "itself": "1F0 0F0 1B0 0B0",
    "three devices": "0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1\n2F1 2B1 2F0 2B0",
    "pairs": "0F0 (0F1;0B0) 0B1\n1F0 (1F1;1B0) 1B1",
    "all around": all_around(3),
    "many devices": all_around(14),
}
EVERY_TEXT = [*LAID_OUT, *(text for text, _, _ in [*UNREADABLE, *INCOMPLETE, *NO_PAIRS, *TWO_WAYS]), *WAITING.values()]
