"""Test operations: each has a kind, a stage, a microbatch, and one form as text."""

from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st

from hybridlab import Kind, Op


@given(st.sampled_from(Kind), st.integers(0, 999_999_999), st.integers(0, 999_999_999))
def test_an_operation_is_read_as_it_is_written(kind: Kind, stage: int, microbatch: int) -> None:
    op = Op(kind, stage, microbatch)
    assert Op.parse(str(op)) == op
    assert str(op) == f"{stage}{kind.value}{microbatch}"


def test_an_operation_is_a_value() -> None:
    assert Op.parse("2F0") == Op(Kind.F, 2, 0) == ("F", 2, 0)
    assert len({Op.parse("2F0"), Op(Kind.F, 2, 0), Op.parse("2B0")}) == 2
    assert Op.parse("12W345") == Op(kind=Kind.W, stage=12, microbatch=345)
    assert Op.parse("002F07") == Op(Kind.F, 2, 7)
    assert isinstance(Op.parse("0I0").kind, Kind)


def test_the_four_kinds_and_their_words() -> None:
    assert [kind.value for kind in Kind] == ["F", "B", "I", "W"]
    assert [kind.words for kind in Kind] == ["forward", "backward", "input gradient", "weight gradient"]
    assert [str(kind) for kind in Kind] == list("FBIW")


@in_turn(
    "text, words",
    [
        ("0F3", "the forward of microbatch 3 on stage 0"),
        ("1B0", "the backward of microbatch 0 on stage 1"),
        ("2I7", "the input gradient of microbatch 7 on stage 2"),
        ("5W1", "the weight gradient of microbatch 1 on stage 5"),
    ],
)
def test_an_operation_in_words_of_the_field(text: str, words: str) -> None:
    assert Op.parse(text).words == words
