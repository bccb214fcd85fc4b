"""Values of tables as text, and texts as numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from numbers import Integral, Real
from typing import Any

_FORMULA = re.compile("'*[-=+@\t\r]")  # what may run, or what `escape_formula` made of it
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+")
_WITH_POINT = re.compile(r"\d\.\d")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_PERCENT = re.compile(r"(?<=\d)\s*[%\uff05]$")


def escape_formula(text: str) -> str:
    """A CSV cell, with an apostrophe in front if a spreadsheet would run it as a formula."""
    return f"'{text}" if _may_run(text) else text


def restore_formula(text: str) -> str | None:
    """The text before `escape_formula`; None if that would have written it otherwise."""
    if not _may_run(text):
        return text
    return text[1:] if text[0] == "'" and _may_run(text[1:]) else None


def _may_run(text: str) -> bool:
    if not text or text[0] not in "'=+-@\t\r" or not _FORMULA.match(text):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def cell_text(value: Any) -> str:
    """A value as a person would write it; empty for None and NaN."""
    # 1.0 is ``1``, true ``true``, a day ``2024-05-01``, a duration of a day ``24:00:00``, nested
    # JSON
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Real) and not isinstance(value, Integral):
        number = float(value)
        if math.isnan(number):
            return ""
        return str(int(number)) if number.is_integer() and abs(number) <= 2**53 else str(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=cell_text)
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _write_duration(value)
    return str(value)


def _write_duration(value: timedelta) -> str:
    """Hours, minutes and seconds; hours may exceed 24, as in spreadsheets."""
    seconds, rest = divmod(abs(value), timedelta(seconds=1))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if value < timedelta() else ""
    nanoseconds = getattr(rest, "nanoseconds", 0)  # of a duration of pandas
    fraction = f".{rest.microseconds:06}{nanoseconds:03}".rstrip("0") if rest else ""
    return f"{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"


def finite_number(text: str) -> float | None:
    """The number that a text states; None if it is not a finite one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None  # 1_000 is a name


def parse_numbers(column: Sequence[str]) -> list[float | None]:
    """[row] the numbers of a column; None for other values."""
    # decimal commas, true minus signs, or percentages throughout (80% is 80); where only some are,
    # the majority counts
    written = [value.strip().replace("\u2212", "-") for value in column]
    bare = [_PERCENT.sub("", value).strip() for value in written]
    has_sign = [value != text for value, text in zip(written, bare, strict=True)]
    parts_decimals = any(
        _WITH_COMMA.fullmatch(value) and not _THOUSANDS.fullmatch(value) for value in bare
    )
    if parts_decimals and not any(map(_WITH_POINT.search, bare)):
        bare = [v.replace(",", ".") if _WITH_COMMA.fullmatch(v) else v for v in bare]
    numbers = [finite_number(value) for value in bare]
    shares = [sign for number, sign in zip(numbers, has_sign, strict=True) if number is not None]
    are_shares = 2 * sum(shares) > len(shares)
    return [
        number if sign == are_shares else None
        for number, sign in zip(numbers, has_sign, strict=True)
    ]
