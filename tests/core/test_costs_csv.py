"""Test how measured times are read from a CSV file, and the sentences for files that are wrong."""

from pathlib import Path

import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome
from profiles import examples

from hybridlab import Costs, HybridLabError

GOOD = "time,stage 0,stage 1\nforward,10,12\nbackward,20,24\n"


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "times.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@in_turn(
    "text, wanted",
    [
        (GOOD, Costs(forward=[10, 12], backward=[20, 24])),
        (GOOD + "weight_share,0.25,0.5\n", Costs(forward=[10, 12], backward=[20, 24], weight_share=[0.25, 0.5])),
        (GOOD + "weight_gradient,5,12\np2p,0.5,\n", Costs(forward=[10, 12], backward=[20, 24], weight_share=[0.25, 0.5], p2p=0.5)),
        (
            "t,a,b\nforward,10,12\ninput_gradient,15,12\nweight_gradient,5,12",
            Costs(forward=[10, 12], backward=[20, 24], weight_share=[0.25, 0.5]),
        ),
        ("t,a,b,c\nforward,1,2,3\nbackward,1,2,3\np2p,4,5,\n", Costs(forward=[1, 2, 3], backward=[1, 2, 3], p2p_between=[4, 5])),
        (GOOD.replace("12", '"12"'), Costs(forward=[10, 12], backward=[20, 24])),
        ("\ufeff" + GOOD.replace("\n", "\r\n\r\n"), Costs(forward=[10, 12], backward=[20, 24])),
        (GOOD.replace(",", " , ").replace("forward", "Forward"), Costs(forward=[10, 12], backward=[20, 24])),
        ("t,a,b,,\nforward,10,12,,\nbackward,20,24,,\n,,,,\n", Costs(forward=[10, 12], backward=[20, 24])),
    ],
)
def test_times_are_read(text: str, wanted: Costs, tmp_path: Path) -> None:
    assert Costs.from_csv(written(tmp_path, text)) == wanted
    assert Costs.from_csv(str(written(tmp_path, text)), unit="us").unit == "us"


def test_columns_are_devices_or_stages(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert (Costs.from_csv(path).devices, Costs.from_csv(path, per="stage").stages) == (2, 2)


@in_turn(
    "text, code, words",
    [
        ("t,stage 0,stage 1\nforward,10,\nbackward,20,24", "missing-time", "line 2, column 3: there is no time of forward for stage 1"),
        ("t,a,b\n\nforward,10,12\nbackward,20", "missing-time", "line 4, column 3: there is no time of backward for b"),
        (GOOD.replace("12", "twelve"), "not-a-number", "line 2, column 3: 'twelve' is not a number"),
        (GOOD.replace("12", "-1"), "negative", "line 2, column 3: forward is a finite number of zero or more, not -1"),
        (GOOD.replace("12", "nan"), "not-finite", "line 2, column 3"),
        (GOOD.replace("12", "1e300"), "too-large", "line 2, column 3"),
        (GOOD.replace("forward", "forwards"), "unknown-name", "line 2, column 1: unknown kind of time 'forwards': did you mean 'forward'?"),
        (GOOD + "forward,1,2", "duplicate-name", "line 4, column 1: there is a line forward already"),
        (GOOD.replace("12", "12,13"), "ragged", "line 2 has 4 cells, but line 1 has 3"),
        ("", "empty", "is empty"),
        ("\n \n,,\n", "empty", "is empty"),
        ("time\nforward", "empty", "line 1 names no stages"),
        ("t,a\nforward,1", "missing-time", "there is no line backward"),
        ("t,a\nbackward,1", "missing-time", "there is no line forward"),
        ("t,a\nforward,1\ninput_gradient,1", "missing-time", "without a line weight_gradient"),
        (GOOD + "input_gradient,1,2\nweight_gradient,1,2", "conflicting-arguments", "two lines say the same"),
        (GOOD + "weight_share,1,0.5\nweight_gradient,1,2", "conflicting-arguments", "two lines say the same"),
        (GOOD + "weight_share,1,2", "out-of-range", "line 4, column 3: weight_share is a part of the backward"),
        (GOOD + "weight_gradient,1,25", "out-of-range", "in column 3 it takes 25 of 24"),
        (GOOD + "p2p,2,6", "wrong-length", "line 4, column 3: 2 stages have 1 link: leave the last cell of p2p empty"),
        ("t,a,b,c\nforward,1,2,3\nbackward,1,2,3\np2p,4,5,6", "wrong-length", "line 4, column 4: 3 stages have 2 links"),
        ("t,a,b,c\nforward,1,2,3\nbackward,1,2,3\np2p,,5,", "missing-time", "line 4, column 2"),
        ("t;a;b\nforward;1;2", "ragged", "semicolons"),
        (b"t,a\nforward,\xff", "not-text", "UTF-8"),
        ('t,a\nforward,"1', "not-text", "is not a CSV"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_column(text: str | bytes, code: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(HybridLabError) as refused:
        Costs.from_csv(written(tmp_path, text))
    assert (refused.value.code, words in str(refused.value)) == (code, True), refused.value


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HybridLabError, match="No such file"):
        Costs.from_csv(tmp_path / "none.csv")
    with pytest.raises(HybridLabError, match="directory"):
        Costs.from_csv(tmp_path)
    with pytest.raises(HybridLabError, match="10,000,000 bytes"):
        Costs.from_csv(written(tmp_path, b"0" * 10_000_001))


@examples(200)
@given(st.text(alphabet='time,forwardbck_p2"0123456789.-;\n\r\t \ufeff', max_size=200))
def test_any_text_is_read_or_refused_in_a_sentence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    outcome(Costs.from_csv, written(tmp_path_factory.mktemp("times"), text))
