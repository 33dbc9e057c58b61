"""Test how measured times are read from spreadsheets of any country, and the sentences for files that are wrong or unclear."""

import csv
import io
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from babel import Locale
from babel.numbers import format_decimal
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome
from profiles import examples

from hybridlab import Costs, HybridLabError

GOOD = "time in ms,device 0,device 1\nforward,10,12\nbackward,20,24\n"
TWO = Costs(forward=[10, 12], backward=[20, 24])


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "times.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@in_turn(
    "text, wanted",
    [
        (GOOD, TWO),
        (GOOD + "weight_share,0.25,0.5\n", Costs(forward=[10, 12], backward=[20, 24], weight_share=[0.25, 0.5])),
        (GOOD + "weight_gradient,5,12\np2p,0.5,\n", Costs(forward=[10, 12], backward=[20, 24], weight_share=[0.25, 0.5], p2p=0.5)),
        (
            GOOD + "weight_share for all,0.25,\np2p_between,3,\n",
            Costs(forward=[10, 12], backward=[20, 24], weight_share=0.25, p2p_between=[3]),
        ),
        (
            "ms,d0,d1\nF,10,12\nI,15,12\nw,5,12",
            Costs(forward=[10, 12], backward=[20, 24], weight_share=[0.25, 0.5]),
        ),
        ("t/ms,d0,d1,d2\nforward,1,2,3\nb,1,2,3\np2p,4,5,\n", Costs(forward=[1, 2, 3], backward=[1, 2, 3], p2p_between=[4, 5])),
        (
            GOOD + "p2p from device 0,,3\np2p from rank 1,4,0\n",
            Costs(forward=[10, 12], backward=[20, 24], p2p_between=[[0, 3], [4, 0]]),
        ),
        (GOOD.replace("12", '"12"'), TWO),
        ("\ufeff" + GOOD.replace("\n", "\r\n\r\n"), TWO),
        (GOOD.replace("\n", "\r"), TWO),
        (GOOD.replace(",", " , ").replace("forward", "Forward"), TWO),
        ("[ms],d0,d1,,\nforward,10,12,,\nbackward,20,24,,\n,,,,\n", TWO),
        ("time in seconds,stage 1,stage 2\nF,1,2\nB,2,3", Costs(forward=[1, 2], backward=[2, 3], unit="s", per="stage")),
        ("slots,microbatch 0,microbatch 1\nF,1,2\nB,2,3", Costs(forward=[1, 2], backward=[2, 3], unit=None, per="microbatch")),
        # a line in its own unit
        (GOOD.replace("backward,20,24", "backward in s,0.02,0.024") + "p2p (µs),500,", Costs(forward=[10, 12], backward=[20, 24], p2p=0.5)),
        ("time,d0,d1\nF ms,10,12\nB ms,20,24", TWO),
        # a Markdown table, and tables with a line for each device or stage
        ("| ms | d0 | d1 |\n|---|--:|:-:|\n| forward | 10 | 12 |\n| **backward** | 20 | 24 |\n", TWO),
        ("device,forward (ms),backward (ms)\n0,10,20\n1,12,24\n", TWO),
        ("|rank, ms|F|B|p2p (us)|\n|-|-|-|-|\n|0|10|20|500|\n|1|12|24||", Costs(forward=[10, 12], backward=[20, 24], p2p=0.5)),
        (
            "ms;forward for all;backward;p2p from device 0;p2p from device 1\nGPU 0;10;20,5;;2,5\nGPU 1;;24;3;",
            Costs(forward=10, backward=[20.5, 24], p2p_between=[[0, 3], [2.5, 0]]),
        ),
        (GOOD + "weight_gradient in ms,0.02,0.024", Costs(forward=[10, 12], backward=[20, 24], weight_share=0.001)),
    ],
)
def test_times_are_read(text: str, wanted: Costs, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with path.open(encoding="utf-8") as file, path.open("rb") as raw:
        assert Costs.from_csv(path) == Costs.from_csv(str(path)) == Costs.from_csv(file) == Costs.from_csv(raw) == wanted
    assert Costs.from_csv(path).p2p_between is None or wanted.p2p_between is not None


GERMAN = "Zeit in µs;Gerät 0;Gerät 1\r\nforward;{};{}\r\nbackward;{};{}\r\n"


@in_turn(
    "content",
    [
        # Excel in Germany: CSV in the code page of Windows, CSV UTF-8, and Unicode text; numbers plain or as shown with thousands
        GERMAN.format("10,5", "1234,5", "20", "2400").encode("cp1252"),
        b"\xef\xbb\xbf" + GERMAN.format("10,5", "1.234,5", "20", "2.400").encode(),
        GERMAN.format("10,5", "1.234,5", "20", "2.400").replace(";", "\t").encode("utf-16"),
        b"sep=;\r\n" + GERMAN.format("10,5", "1234,5", "20", "2400").encode("cp1252"),
        # Excel and LibreOffice in France, where spaces that do not break stand between thousands
        "temps en µs;d0;d1\r\nF;10,5;1\u00a0234,5\r\nB;20;2\u00a0400\r\n".encode("cp1252"),
        "temps en µs;d0;d1\nF;10,5;1\u202f234,5\nB;20;2\u202f400\n".encode(),
        # Switzerland: semicolons, points and apostrophes
        "Zeit (µs);d0;d1\r\nF;10.5;1'234.5\r\nB;20;2\u2019400\r\n".encode(),
        # Excel and LibreOffice in England and in the United States; LibreOffice can put quotation marks around all cells
        b'\xef\xbb\xbftime (us),d0,d1\r\nF,10.5,"1,234.5"\r\nB,20,"2,400"\r\n',
        b'"time (us)","a","b"\n"F","10.5","1234.5"\n"B","20.0","2.4e3"\n',
        # Google Sheets puts commas between cells in every country
        'Zeit (µs),d0,d1\r\nF,"10,5","1234,5"\r\nB,20,2400\r\n'.encode(),
        b"# measured on Monday; 4 GPUs\nus\td0\td1\n#F\t1\t1\nF\t10,5\t1234,5\nB\t20,0\t2400,0\n",
        b'us,"a;b","c;d"\nF,10.5,1234.5\nB,20,2400',
    ],
)
def test_spreadsheets_of_every_country_are_read(content: bytes, tmp_path: Path) -> None:
    costs = Costs.from_csv(written(tmp_path, content), per="device")
    assert (costs.forward.tolist(), costs.backward.tolist(), costs.unit) == ([10.5, 1234.5], [20, 2400], "us")


COUNTRIES = (
    *(
        "en_US",
        "en_IN",
        "en_ZA",
        "de_DE",
        "de_AT",
        "de_CH",
        "fr_FR",
        "fr_CH",
        "it_IT",
        "es_ES",
        "pt_PT",
        "pt_BR",
        "nl_NL",
        "sv_SE",
        "pl_PL",
    ),
    *("ru_RU", "tr_TR", "id_ID", "ja_JP", "zh_CN"),
)


@in_turn("country", COUNTRIES)
def test_numbers_of_every_country_are_read_or_asked_about(country: str) -> None:
    """The notations are those of the Unicode consortium, which babel holds."""
    rng = Random(country)  # noqa: S311  # the same in every run
    decimal = Locale.parse(country).number_symbols["latn"]["decimal"]
    asked: list[str] = []
    for shown, separator in list(product((None, "0.###", "#,##0.00", "#,##0.000"), (";" if decimal == "," else ",", "\t"))) * 4:
        shortest, digits = 10 ** rng.uniform(1, 6), rng.randint(0, 2)
        times = [round(shortest * rng.uniform(1, 3), digits) for _ in range(4)]
        cells = [format_decimal(time, shown, country, numbering_system="latn") for time in times]
        file = io.StringIO()
        csv.writer(file, delimiter=separator).writerows([["time (us)", "d0", "d1"], ["F", *cells[:2]], ["B", *cells[2:]]])
        file.seek(0)
        try:
            costs = Costs.from_csv(file)
        except HybridLabError as why:
            asked.append(why.code)
        else:
            assert [*costs.forward, *costs.backward] == times, cells
    assert set(asked) <= {"ambiguous"}
    assert len(asked) < 8  # of 32


@in_turn(
    "text, words",
    [
        ("ms;a\nF;12.400\nB;20.125", "line 2, column 2: 12.400 can be 12.4 or 12400: save the file with commas"),
        ("ms;a\nF;10.5\nB;20,125", "line 3, column 2: 20,125 can be 20.125 or 20125"),
        ('ms,a\nF,"1,234"\nB,20', "line 2, column 2: 1,234 can be 1.234 or 1234"),
        ("ms\ta\nF\t12.400\nB\t20.125", "12.400 can be 12.4 or 12400"),
        ("ms\ta\nF\t12,4\nB\t20.125", "20.125 can be 20.125 or 20125"),
        ("ms;d0;d1\nF;10,5;12\nB;20.5;24", "line 2, column 2: 10,5 has a decimal comma, but line 3, column 2: 20.5 has a decimal point"),
        ("ms,d0,d1\nF,10,12\nB,0.020,0.024", "line 3, column 3: backward is 0.024, but forward is 10 in line 2, column 2"),
        ("ms,d0,d1\nF,0.010,0.012\nB,20,24", "line 2, column 3: forward is 0.012, but backward is 20"),
        ("ms,d0,d1\nF,10,0.012\nB,20,24", "line 2, column 3: forward is 0.012, but forward is 10 in line 2, column 2"),
        ("ms,d0,d1\nF,10,12\nB,20,24\np2p,5000,", "line 4, column 2: p2p is 5000, but backward is 24"),
        ("ms,d0,d1\nF,10,12\nI,10,12\nW,0.01,0.012", "write 'weight_gradient in ms' into line 4, column 1"),
        ("ms or s,a\nF,1\nB,2", "line 1, column 1: 'ms or s' names 2 units"),
    ],
)
def test_what_can_be_read_in_two_ways_is_asked_about(text: str, words: str) -> None:
    with pytest.raises(HybridLabError) as refused:
        Costs.from_csv(io.StringIO(text))
    assert (refused.value.code, words in str(refused.value)) == ("ambiguous", True), refused.value


def test_the_unit_and_the_columns_are_those_of_the_file() -> None:
    bare = "t,a,b\nforward,10,12\nbackward,20,24\n"
    for text, wrong, code, words in [
        (bare, {}, "no-unit", "its first cell is 't', not 'time in ms'; write the unit there, or give unit="),
        (bare.replace("forward", "forward in s").replace("backward", "backward in ms"), {}, "no-unit", ""),
        (bare, {"unit": "h"}, "unknown-name", "not 'h'"),
        (GOOD, {"unit": "s"}, "conflicting-arguments", "unit='s' contradicts the file, whose first cell is 'time in ms'"),
        (GOOD, {"per": "stage"}, "conflicting-arguments", "per='stage' contradicts the file"),
        (GOOD, {"per": "row"}, "unknown-name", "per"),
        (GOOD.replace("ms", "ms per stage"), {}, "no-per", "'device 0, device 1' are devices, stages or microbatches"),
        (bare, {"unit": "s"}, "no-per", "'a, b' are devices, stages or microbatches: write 'time in ms per stage' into its first cell"),
        (bare.replace("t,", "stage,"), {"unit": "s", "per": "device"}, "conflicting-arguments", "whose first line is 'stage, a, b'"),
        ("ms per stage,1,0\nF,1,2\nB,1,2", {}, "wrong-order", "line 1, column 2: the names are '1, 0': sort them"),
        (GOOD.replace("device 1", "device 2"), {}, "wrong-order", "sort them"),
        ("ms,rank 1,rank 10,rank 2\nF,1,2,3\nB,1,2,3", {}, "wrong-order", "'rank 1, rank 10, rank 2'"),
        (bare.replace("backward", "backward in s"), {"unit": "slots"}, "different-units", "line 3, column 1: backward is in s"),
    ]:
        with pytest.raises(HybridLabError) as refused:
            Costs.from_csv(io.StringIO(text), **wrong)
        assert (refused.value.code, words in str(refused.value)) == (code, True), refused.value
    assert Costs.from_csv(io.StringIO(bare), unit="slots", per="stage").unit is None
    assert Costs.from_csv(io.StringIO(bare), unit="us", per="stage") == Costs(forward=[10, 12], backward=[20, 24], unit="us", per="stage")


@in_turn(
    "first, names, per",
    [
        *(("time in ms", f"{word} 0,{word} 1", "device") for word in ("device", "Device", "GPU", "rank", "d", "Ranks")),
        *(("time in ms", f"{word} 0,{word} 1", "stage") for word in ("stage", "STAGE", "pipeline stage", "s")),
        *(("time in ms", f"{word}1,{word}2", "microbatch") for word in ("microbatch ", "micro-batch ", "Micro batch #", "mb ", "MB")),
        ("time in ms", "d0,d1", "device"),
        ("time in ms", "s0,s1", "stage"),
        ("time in ms", "GPU0: embedding,GPU1", "device"),
        ("time in ms", "embedding (stage_0),head (stage_1)", "stage"),
        ("time in ms", "first stage,last stage", "stage"),
        ("time in s", "all stages", "stage"),
        ("time in ms per device", "0,1", "device"),
        ("per GPU, in ms".replace(",", ""), "0,1", "device"),
        ("time in ms per stage", "0,1", "stage"),
        ("ms for each of the stages", "Embedding,Head", "stage"),
        ("Stage (ms)", "a,b", "stage"),
        ("time per microbatch in ms", "0,1", "microbatch"),
        ("ms per micro-batch", "0,1", "microbatch"),
        ("time of a microbatch in ms", "stage 0,stage 1", "stage"),
        ("time in ms per stage", "embedding,stage 1", "stage"),
        ("time in ms", "embedding,stage 1", "stage"),
        # one time is for every device
        ("time in ms", "all", "device"),
        ("time in ms", "Layers", "device"),
        # nothing is stated, or two things are
        ("time in ms", "0,1", None),
        ("time in s", "0,1", None),
        ("time in ms", "Embedding,Head", None),
        ("time in ms", "layer 0,layer 1", None),
        ("time in ms", "device 0,stage 1", None),
        ("ms per stage and microbatch", "0,1", None),
        ("ms per stage", "GPU 0,GPU 1", None),
        ("ms per stage", "mb 0,mb 1", None),
    ],
)
def test_what_has_the_times_is_read_or_asked_about(first: str, names: str, per: str | None) -> None:
    rows = [[first, *names.split(",")], ["forward", *"12"[: 1 + names.count(",")]], ["backward", *"34"[: 1 + names.count(",")]]]
    turned = [list(column) for column in zip(*rows, strict=True)]  # a line for each device is read as well as a column
    for table in (rows, turned):
        for text in ("".join(",".join(row) + "\n" for row in table), "".join(f"| {' | '.join(row)} |\n" for row in table)):
            if per:
                assert Costs.from_csv(io.StringIO(text)).per == per
            else:
                with pytest.raises(HybridLabError, match="are devices, stages or microbatches") as refused:
                    Costs.from_csv(io.StringIO(text))
                assert refused.value.code == "no-per"
                assert Costs.from_csv(io.StringIO(text), per="stage" if "GPU" not in names else "device").per in ("device", "stage")


@st.composite
def any_costs(draw: st.DrawFn) -> Costs:
    """Draw costs of one setting that a file can hold. Their times can differ by a factor of a million."""
    count = draw(st.integers(1, 4))
    per, unit = draw(st.sampled_from(["device", "stage", "microbatch"])), draw(st.sampled_from(["s", "ms", "us", None]))
    time = st.sampled_from([0.0, 1 / 3, 0.001, 12.345, 1000.0, 1e6, 1e-7]) | st.floats(0, 1e9)

    def row(of: Any) -> Any:
        return draw(of | st.lists(of, min_size=count, max_size=count))

    links = draw(st.sampled_from(["p2p"] if per == "microbatch" or count == 1 else ["p2p", "list", "matrix"]))
    latency: dict[str, Any] = {"p2p": draw(time)} if links == "p2p" else {}
    if links == "list":
        latency["p2p_between"] = draw(st.lists(time, min_size=count - 1, max_size=count - 1))
    if links == "matrix":
        square = np.array(draw(st.lists(time, min_size=count**2, max_size=count**2))).reshape(count, count)
        latency["p2p_between"] = square * (1 - np.eye(count))
    shares = st.floats(0, 1)
    return Costs(forward=row(time), backward=row(time), weight_share=row(shares), overlap=draw(shares), unit=unit, per=per, **latency)


@examples(200)
@given(any_costs())
def test_what_is_written_is_read_back_equal(costs: Costs) -> None:
    text = costs.to_csv()
    assert Costs.from_csv(io.StringIO(text)) == costs
    as_in_germany = text.replace(",", ";").replace(".", ",")
    assert Costs.from_csv(io.BytesIO(as_in_germany.encode("utf-16"))) == costs
    rows = [line.split(",") for line in text.splitlines()]
    for table in (rows, [list(column) for column in zip(*rows, strict=True)]):
        assert Costs.from_csv(io.StringIO("".join(";".join(row) + "\n" for row in table))) == costs
        head, *rest = [f"| {' | '.join(row)} |\n" for row in table]
        assert Costs.from_csv(io.StringIO("".join([head, "|---" * len(table[0]) + "|\n", *rest]))) == costs


def test_a_file_says_its_unit_and_its_columns() -> None:
    text = Costs(forward=[0.01, 0.012], backward=0.02, p2p_between=[0.001], unit="s", per="stage").to_csv()
    assert text.splitlines() == [
        "time in s,stage 0,stage 1",
        "forward,0.01,0.012",
        "backward for all,0.02,",
        "weight_share for all,0.5,",
        "p2p_between,0.001,",
    ]
    assert Costs(forward=1, backward=2000, unit=None).to_csv().splitlines()[:2] == ["time in slots,all devices", "forward in slots,1.0"]
    for costs, code in [
        (Costs(forward=[[1], [2]], backward=3), "several-settings"),
        (Costs(forward=[1, 2], backward=3, per="microbatch", p2p_between=[1, 2]), "does-not-fit"),
    ]:
        with pytest.raises(HybridLabError) as refused:
            costs.to_csv()
        assert refused.value.code == code


@in_turn(
    "text, code, words",
    [
        ("ms,stage 0,stage 1\nforward,10,\nbackward,20,24", "missing-time", "line 2, column 3: there is no time of forward for stage 1"),
        ("ms,d0,d1\n\nforward,10,12\nbackward,20", "missing-time", "line 4, column 3: there is no time of backward for d1"),
        (GOOD.replace("12", "twelve"), "not-a-number", "line 2, column 3: 'twelve' is not a number"),
        (GOOD.replace("12", "1_2"), "not-a-number", "line 2, column 3: '1_2' is not a number"),
        (GOOD.replace("12", "1.2.3"), "not-a-number", "line 2, column 3: '1.2.3' is not a number"),
        (GOOD.replace("12", "-1"), "negative", "line 2, column 3: forward is a finite number of zero or more, not -1"),
        (GOOD.replace("12", "\u22121"), "negative", "line 2, column 3"),
        (GOOD.replace("12", "nan"), "not-finite", "line 2, column 3"),
        (GOOD.replace("12", "1e300"), "too-large", "line 2, column 3"),
        (GOOD.replace("forward", "forwards"), "unknown-name", "line 2, column 1: unknown kind of time 'forwards': did you mean 'forward'?"),
        (GOOD + "forward,1,2", "duplicate-name", "line 4, column 1: forward is given already"),
        (GOOD + "f,1,2", "duplicate-name", "line 4, column 1: forward is given already"),
        (GOOD.replace("12", "12,13"), "ragged", "line 2 has 4 cells, but line 1 has 3"),
        ("", "empty", "is empty"),
        ("\n \n,,\n", "empty", "is empty"),
        ("0F0,0B0\n1F0,1B0\n", "not-a-time", "Schedule.from_csv reads it"),
        ("stage,forward (ms),backward (ms)\n0,10,x\n1,12,24", "not-a-number", "line 2, column 3: 'x' is not a number"),
        ("stage,forward (ms),backward (ms)\n0,10,20\n1,12", "missing-time", "line 3, column 3: there is no time of backward for stage 1"),
        ("stage,forward (ms),head (ms)\n0,10,20", "unknown-name", "line 1, column 3: unknown kind of time 'head'"),
        ("stage,forward (ms)\n0,10", "missing-time", "there are no times of backward"),
        ("slots per microbatch,0,1\nF,10\nB,20,24", "missing-time", "line 2, column 3: there is no time of forward for microbatch 1"),
        ("time\nforward", "empty", "line 1 names no devices and no stages"),
        ("time,forward", "empty", "line 1 names no devices and no stages"),
        ("forward (ms),10,12\nbackward (ms),20,24", "empty", "line 1 names no devices and no stages"),
        (GOOD.replace("device 1", "Sum"), "not-a-place", "line 1, column 3: 'Sum' is no device, no stage and no microbatch"),
        ("stage,F (ms),B (ms)\n0,1,2\n1,2,3\ntotal,3,5", "not-a-place", "line 4, column 1: 'total' is no device"),
        ("ms,a\nforward,1", "missing-time", "there are no times of backward"),
        ("ms,a\nbackward,1", "missing-time", "there are no times of forward"),
        ("ms,a\nforward,1\ninput_gradient,1", "missing-time", "without weight_gradient"),
        (GOOD + "input_gradient,1,2\nweight_gradient,1,2", "conflicting-arguments", "two kinds of time say the same"),
        (GOOD + "weight_share,1,0.5\nweight_gradient,1,2", "conflicting-arguments", "two kinds of time say the same"),
        (GOOD + "p2p,1,\np2p_between,2,", "conflicting-arguments", "several lines say the latency"),
        (GOOD + "weight_share,1,2", "out-of-range", "line 4, column 3: weight_share is a part of the backward"),
        (GOOD + "weight_gradient,1,25", "out-of-range", "line 4, column 3: weight_gradient cannot exceed backward, but it takes 25 of 24"),
        (GOOD + "p2p,2,6", "wrong-length", "line 4, column 3: 2 devices have 1 link: leave the last cell empty"),
        (GOOD + "weight_share for all,0.5,0.5", "wrong-length", "line 4, column 3: weight_share has one value for all"),
        (GOOD + "overlap,0.5,0.5", "wrong-length", "line 4, column 3: overlap has one value for all"),
        ("ms,d0,d1,d2\nforward,1,2,3\nbackward,1,2,3\np2p,4,5,6", "wrong-length", "line 4, column 4: 3 devices have 2 links"),
        ("ms,d0,d1,d2\nforward,1,2,3\nbackward,1,2,3\np2p,,5,", "missing-time", "line 4, column 2"),
        (GOOD + "p2p from device 0,0,1", "missing-time", "give a line for each device"),
        (GOOD + "p2p from device 0,0,1\np2p from device 1,,0", "missing-time", "line 5, column 2"),
        (GOOD + "p2p from device 0,5,1\np2p from device 1,1,0", "not-zero", "diagonal"),
        ("ms,d0,d1\nforward,1,2\nbackward;1;2", "ragged", "line 2 has a comma after its first cell, but line 3 has a semicolon"),
        ("ms,d0,d1\nforward,10,5,12,5\nbackward,20,24", "ragged", "line 2 has 5 cells"),
        (b"t,a\nforward,\x81", "not-text", "UTF-8"),
        (GOOD.encode("utf-16-le"), "not-text", "UTF-8"),
        (b"PK\x03\x04...", "not-text", "is a workbook (xlsx or ods) or another zip file"),
        ('t,a\nforward,"1', "not-text", "is not a CSV"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_column(text: str | bytes, code: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(HybridLabError) as refused:
        Costs.from_csv(written(tmp_path, text))
    assert (refused.value.code, words in str(refused.value)) == (code, True), refused.value


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    closed = written(tmp_path, GOOD).open(encoding="utf-8")
    closed.close()
    for source, code, words in [
        (tmp_path / "none.csv", "not-found", "No such file"),
        (tmp_path, "not-found", "directory"),
        ("a\0b", "not-found", "null"),
        (written(tmp_path, b"0" * 10_000_001), "too-large", "10,000,000 bytes"),
        (closed, "not-found", "closed"),
        (GOOD, "wrong-type", "is a text: give io.StringIO(text)"),
        (None, "wrong-type", "not None"),
        (3, "wrong-type", "not 3"),
        (b"x", "wrong-type", "not b'x'"),
        ([GOOD], "wrong-type", "a path or an open file"),
    ]:
        with pytest.raises(HybridLabError) as refused:
            Costs.from_csv(source)
        assert (refused.value.code, words in str(refused.value)) == (code, True), refused.value


@examples(200)
@given(st.text(alphabet='timesforwardbck_p2"0123456789.-;#,|\n\r\t \ufeff', max_size=200), st.sampled_from([None, "stage"]))
def test_any_text_is_read_or_refused_in_a_sentence(text: str, per: str | None) -> None:
    outcome(Costs.from_csv, io.StringIO(text), unit="ms", per=per)
