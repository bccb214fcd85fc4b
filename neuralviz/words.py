"""Counts, names and lists as words."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import reprlib
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import regex

_COUNTS = dict(enumerate("two three four five six seven eight nine ten".split(), 2))
_NAMED_LINES = 5  # at most
_MOST_DECIMALS = 6
# a word; letters of scripts that put no space between words are words of their own
WORD = regex.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[\w\p{M}]+(?:['’][\w\p{M}]+)*"
)
FUNCTION_WORDS = frozenset(
    "about after all also am an and any are as at be been before but by can could did do does down "
    "for from had has have he her here him his how if in into is it its just me more most my no "
    "nor not of off on once only or other our out over own per same she should since so some such "
    "than that the their them then there these they this those through to too under until up us "
    "very was we were what when where which while who whose why will with would yet you".split()
)
_TERMS = re.compile(r'"([^"]+)"|(\S+)')


def free_name(name: str, used_names: Iterable[str], mark: str = "") -> str:
    """``name``, else a free ``name (2)`` or ``name (mark)``, …"""
    unavailable = set(used_names)
    marks = itertools.chain([mark], (f"{mark} {n}" for n in itertools.count(2)))
    numbers = map(str, itertools.count(2))
    bracketed = (f"{name} ({inner})" for inner in (marks if mark else numbers))
    candidates = itertools.chain([name], bracketed)
    return next(free for free in candidates if free not in unavailable)


def many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def joined(names: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``; ``last`` replaces *and*."""
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def printable_line(text: str) -> str:
    """``text`` on one line, without unprintable characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def counted(n: int) -> str:
    """``two`` … ``ten``; other numbers in figures."""
    return _COUNTS.get(n, f"{n:,}")


def number(value: float, spec: str = "g") -> str:
    """A number in a format such as ``+.2f``, with a minus sign; zero after rounding has no sign."""
    text = format(value, spec)
    if not text.strip("+-0.,%"):
        return text.lstrip("+-")
    return f"−{text[1:]}" if text.startswith("-") else text


def choose_format(values: Sequence[float]) -> str:
    """A format with as many decimals for all values: two digits of the middle one, not of 0."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    decimals = 1 - math.floor(math.log10(statistics.median(sizes))) if sizes else 2
    return f".{max(decimals, 0)}f" if decimals <= _MOST_DECIMALS else ".1e"


def percent(share: float, digits: int = 0) -> str:
    """A share as whole percent; only exactly 1 is ``100%``, only exactly 0 is ``0%``."""
    if 0.995 <= share < 1:
        return f"{min(99.9, 100 * share):.1f}%"
    if 0 < share <= 0.005:
        return f"{share:.1%}" if share >= 0.0005 else "less than 0.1%"
    return f"{share:.{digits}%}"


def write_guess(probability: float) -> str:
    """As percent, below 10% with a decimal: ``60%``, ``3.7%``."""
    return percent(probability, int(probability < 0.0995))


def write_loss(loss: float) -> str:
    """``3.37``, ``12.3``."""
    return number(loss, "#.3g").rstrip(".")


def about_seconds(seconds: float) -> str:
    """``about 40 s``, ``about 3 min`` or ``about 2 h``."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.0f} h"


def why_above_100(shares: Iterable[float]) -> str:
    """A sentence if any share of a sum exceeds 100% as displayed; else empty."""
    if not any(round(share, 3) > 1 for share in shares):
        return ""
    return "Some shares exceed 100% because others are negative: they pulled the other way."


def name_lines(lines: Sequence[int], unit: str = "line") -> str:
    """The first few line numbers: ``line 2``, ``lines 2, 5, 9 …``."""
    named = ", ".join(f"{line:,}" for line in lines[:_NAMED_LINES])
    return f"{unit}{'s' * (len(lines) != 1)} {named}" + " …" * (len(lines) > _NAMED_LINES)


def name_texts(places: Sequence[int]) -> str:
    """``text 3``, ``texts 1, 2, 3, 4, 5 and 12 more``, from indices that start at 0."""
    named = [f"{place + 1:,}" for place in places[:_NAMED_LINES]]
    more = len(places) - len(named)
    return f"text{'s' * (len(places) != 1)} {joined([*named, *[f'{more:,} more'] * (more > 0)])}"


def name_pairs(pairs: Sequence[Sequence[int]]) -> str:
    """``texts 1 and 3``, of two ``texts 1 and 3 as well as 2 and 4``; of more how many."""
    if len(pairs) > 2:
        return f"{len(pairs):,} pairs"
    names = [joined([f"{place + 1:,}" for place in pair]) for pair in pairs]
    return f"texts {' as well as '.join(names)}"


def search_terms(query: str) -> tuple[str, ...]:
    """The lower-case terms that a text must contain: words, and phrases in quotation marks."""
    folded = query.casefold().replace("“", '"').replace("”", '"')
    return tuple(quoted or word for quoted, word in _TERMS.findall(folded))


class ShortRepr:
    """A one-line ``repr`` for dataclasses: shapes of arrays, long values cut short, no None."""

    def __repr__(self) -> str:
        parts = []
        for entry in dataclasses.fields(self):  # type: ignore[arg-type]
            content = getattr(self, entry.name)
            if content is not None:
                parts.append(f"{entry.name}={_shorten_value(content)}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _shorten_value(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    return reprlib.repr(value)
