from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core import units
from model_core.units import Dimension, QuantityError, exact_text, format_quantity, parse_quantity

ALL = [d for d in vars(units).values() if isinstance(d, Dimension)]


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("50 GB/s", units.BYTES_PER_S, 50e9),
        ("400 Gb/s", units.BYTES_PER_S, 50e9),
        ("400Gbit/s", units.BYTES_PER_S, 50e9),
        ("1.2 TB/s", units.BYTES_PER_S, 1.2e12),
        ("1,200 GB/s", units.BYTES_PER_S, 1.2e12),
        ("32 GiB", units.BYTES, 32 * 2**30),
        ("80GB", units.BYTES, 80e9),
        ("275 TFLOP/s", units.FLOPS_PER_S, 275e12),
        ("1.979 PFLOPS", units.FLOPS_PER_S, 1.979e15),
        ("30 ms", units.SECONDS, 0.03),
        ("1 µs", units.SECONDS, 1e-6),
        ("1us", units.SECONDS, 1e-6),
        ("2k", units.COUNT, 2000),
        ("540.4B", units.COUNT, 540.4e9),
        ("30 %", units.RATIO, 0.3),
        (".5", units.RATIO, 0.5),
        ("1e12", units.BYTES_PER_S, 1e12),
        (7, units.SECONDS, 7.0),
    ],
)
def test_that_quantities_are_read(text: str | float, dimension: Dimension, value: float) -> None:
    assert parse_quantity(text, dimension) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("50 apples", units.BYTES_PER_S),
        ("GB/s", units.BYTES_PER_S),
        ("", units.SECONDS),
        ("1e400", units.SECONDS),
        ("nan", units.RATIO),
        ("inf s", units.SECONDS),
        ("50 GB", units.BYTES_PER_S),
        ("50 gb/s", units.BYTES_PER_S),
        ("1.2.3 GB", units.BYTES),
        (True, units.COUNT),
        (math.inf, units.BYTES),
    ],
)
def test_that_other_texts_are_refused_with_examples(text: str | float, dimension: Dimension) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text, dimension)
    assert str(caught.value)


def test_that_a_wrong_unit_is_named_with_what_would_be_right() -> None:
    with pytest.raises(
        QuantityError, match=r"'apples' is not a unit of bandwidth; write for instance 50 GB/s"
    ):
        parse_quantity("50 apples", units.BYTES_PER_S)


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (50e9, units.BYTES_PER_S, "50 GB/s"),
        (32 * 2**30, units.BYTES, "32 GiB"),
        (0.0285, units.SECONDS, "28.5 ms"),
        (2.3e-6, units.SECONDS, "2.3 µs"),
        (540_356_640_768, units.COUNT, "540.36 B"),
        (2048, units.COUNT, "2,048"),
        (0.142, units.RATIO, "14.2 %"),
        (7440.2, units.TOKENS_PER_S, "7,440 tok/s"),
        (0.0281, units.CHIP_SECONDS, "28.1 chip·ms"),
        (85.2, units.SECONDS, "85.2 s"),
        (1234.0, units.SECONDS, "1,234 s"),
        (0.0, units.SECONDS, "0 s"),
        (math.nan, units.SECONDS, "—"),
        (math.inf, units.SECONDS, "∞"),
    ],
)
def test_that_quantities_are_written_for_people(value: float, dimension: Dimension, text: str) -> None:
    assert format_quantity(value, dimension) == text


def test_that_exact_text_takes_the_prefix_that_is_exact() -> None:
    assert exact_text(80e9, units.BYTES) == "80 GB"
    assert exact_text(2039e9, units.BYTES_PER_S) == "2,039 GB/s"
    assert exact_text(32 * 2**30, units.BYTES) == "32 GiB"


@given(st.floats(1e-9, 1e18), st.sampled_from(ALL))
def test_that_exact_text_reads_back_as_the_same_number(value: float, dimension: Dimension) -> None:
    assert parse_quantity(exact_text(value, dimension), dimension) == value


@given(st.floats(1e-9, 1e18), st.sampled_from(ALL))
def test_that_shown_text_reads_back_within_its_digits(value: float, dimension: Dimension) -> None:
    shown = format_quantity(value, dimension, 4)
    assert parse_quantity(shown, dimension) == pytest.approx(value, rel=1e-2, abs=1e-9)


@given(st.text(max_size=30), st.sampled_from(ALL))
def test_that_any_text_is_read_or_refused(text: str, dimension: Dimension) -> None:
    with contextlib.suppress(QuantityError):
        assert math.isfinite(parse_quantity(text, dimension))
