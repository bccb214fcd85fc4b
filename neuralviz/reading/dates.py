"""Columns of dates: ISO 8601, and days with points or slashes, with or without a time."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
from pyarrow import compute

# How the year, the month and the day follow each other, with what is between them.
_DAY = r"(\d{1,2})"
_FORMS = {
    "y-m-d": (r"(\d{4})-(\d\d)-(\d\d)", r"\1-\2-\3"),
    "y/m/d": (rf"(\d{{4}})/{_DAY}/{_DAY}", r"\1-0\2-0\3"),
    "d.m.y": (rf"{_DAY}\.{_DAY}\.(\d{{4}})", r"\3-0\2-0\1"),
    "d/m/y": (rf"{_DAY}/{_DAY}/(\d{{4}})", r"\3-0\2-0\1"),
    "m/d/y": (rf"{_DAY}/{_DAY}/(\d{{4}})", r"\3-0\1-0\2"),
}
_TIME = r"([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?"
_PADDED = (r"-0(\d\d)", r"-\1")  # a day that had two figures
_ZONES = {"": None, " with zone": "UTC"}  # of times: none, or one behind each of them
_MICROSECONDS_A_DAY = 24 * 60 * 60 * 1e6
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


def date_forms(values: pa.Array) -> frozenset[str]:
    """The ways in which all ``values``, trimmed strings without blank ones, may be dates.

    Times with a zone and times without one are different ways.
    """
    if not len(values):
        return frozenset()
    return frozenset(
        form + zone
        for form, (pattern, _) in _FORMS.items()
        for zone in _ZONES
        if re.fullmatch(pattern + _TIME, values[0].as_py())
        and _parse(values, form + zone) is not None
    )


def read_days(values: pa.Array) -> np.ndarray:
    """[text] float64 days since 1970 (UTC) of a column of dates, NaN where it is null.

    Raises ValueError where the column is not of dates, or where day and month may be exchanged.
    """
    (form,) = date_forms(values.drop_null())
    times = _parse(values, form)
    assert times is not None
    days = times.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return days / _MICROSECONDS_A_DAY


def count_days(day: date) -> int:
    """Days since 1970, as `read_days`."""
    return day.toordinal() - _FIRST.toordinal()


def find_day(days: float) -> date:
    """The day in which a time since 1970 is."""
    return date.fromordinal(math.floor(days) + _FIRST.toordinal())


def write_day(days: float, *, with_time: bool = False) -> str:
    """``2024-03-01``, or ``2024-03-01 12:30``."""
    moment = (_FIRST + timedelta(days=days)).replace(tzinfo=None)
    return moment.isoformat(" ", "minutes") if with_time else moment.date().isoformat()


def _parse(values: pa.Array, form: str) -> pa.Array | None:
    """Times in microseconds since 1970; None where a value is no date of this form."""
    form, *zone = form.partition(" ")
    pattern, iso = _FORMS[form]
    written = compute.replace_substring_regex(values, f"^{pattern}", iso)
    if "0" in iso:
        written = compute.replace_substring_regex(written, *_PADDED)
    try:
        return written.cast(pa.timestamp("us", _ZONES["".join(zone)]))
    except pa.ArrowInvalid:
        return None
