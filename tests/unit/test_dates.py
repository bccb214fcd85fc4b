"""Dates are recognised as a whole column, and become the days that pandas counts."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from neuralviz.maps.opened import TextFilter
from neuralviz.reading.dates import count_days, find_day, read_days, write_day
from neuralviz.reading.texts import ReadTexts
from neuralviz.store.corpora import CorpusStore, find_kinds, name_kind

ORIGIN = pd.Timestamp("1970-01-01")
COLUMNS = {
    "%Y-%m-%d": ("2024-02-29", "1969-12-31"),
    "%Y-%m-%dT%H:%M:%S": ("2024-02-29T12:30:00", "2024-03-01T00:00:01"),
    "%Y/%m/%d": ("2024/2/9", "2023/12/31"),
    "%d.%m.%Y": ("1.2.2024", "31.12.2023"),
    "%d/%m/%Y": ("01/02/2024", "31/12/2023"),
    "%m/%d/%Y %H:%M": ("01/02/2024 08:15", "12/31/2023 23:59"),
}
OTHERS = {
    "day and month may be exchanged": ("01/02/2024", "11/12/2023"),
    "no such day": ("2024-02-30", "2024-01-01"),
    "a year": ("2024", "2023"),
    "a time": ("12:30", "14:00"),
    "two forms": ("2024-01-31", "31.01.2024"),
    "a word": ("2024-01-31", "soon"),
    "versions": ("1.2.3", "1.2.4"),
    "blank": ("", " "),
}


@pytest.mark.parametrize("form", COLUMNS)
def test_days_are_those_of_pandas(form: str):
    column = COLUMNS[form]
    assert name_kind([find_kinds([*column, "", " "])]) == "date"
    days = read_days(pa.array([*column, None]))
    expected = (pd.to_datetime(list(column), format=form) - ORIGIN) / pd.Timedelta(days=1)
    np.testing.assert_allclose(days[:-1], expected, rtol=1e-12)
    assert np.isnan(days[-1])


@pytest.mark.parametrize("name", OTHERS)
def test_what_may_be_something_else_is_no_date(name: str):
    assert name_kind([find_kinds(OTHERS[name])]) != "date"


def test_the_parts_of_a_column_decide_together():
    unclear, clear = find_kinds(["01/02/2024"]), find_kinds(["31/01/2024"])
    assert name_kind([unclear, None, clear]) == "date"
    assert name_kind([unclear, find_kinds(["1.5"])]) == "text"
    zoned = find_kinds(["2024-01-01T00:00:00+02:00", "2024-01-01T00:00:00Z"])
    assert name_kind([zoned]) == "date"
    assert name_kind([zoned, find_kinds(["2024-01-01 10:00"])]) == "text"


def test_a_column_of_dates_is_saved_as_written_and_filtered_by_day(store: CorpusStore):
    written = ("31.12.2023", "", "01.02.2024", "3.2.2024")
    corpus = store.add("c", ReadTexts(tuple("abcd"), labels={"opened": written}))
    assert corpus.column("opened").kind == "date"
    assert store.labels(corpus, "opened").tolist() == list(written)
    days = store.days(corpus, "opened")
    assert [write_day(day) for day in days[[0, 2, 3]]] == ["2023-12-31", "2024-02-01", "2024-02-03"]
    only = TextFilter(ranges={"opened": (date(2024, 2, 1), date(2024, 2, 2))})
    codes = lambda _: pytest.fail("no labels are asked for")  # noqa: E731
    assert only.within(codes, lambda _: days, 4).tolist() == [False, False, True, False]
    sentence = "1 of 4 texts: opened is 2024-02-01 to 2024-02-02"
    assert only.describe(1, 4) == sentence


def test_a_day_lasts_until_midnight():
    assert count_days(date(1970, 1, 2)) == 1
    assert find_day(1.999) == date(1970, 1, 2)
    assert find_day(-0.5) == date(1969, 12, 31)
    assert write_day(0.5, with_time=True) == "1970-01-01 12:00"
    assert write_day(count_days(date(1, 1, 1))) == "0001-01-01"
