"""The sentence above a view: a value, its rival, and whether their difference is significant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from neuralviz.embedders.specs import METHODS
from neuralviz.maps.shares import paired_share_interval, wilson_interval
from neuralviz.words import counted, joined, number

Bounds = tuple[float, float]
Name = Callable[[str], str]

WRITTEN_ALIKE = 0.00005  # values that differ by less
SIGNIFICANT = 0.05  # level of a test
MOST_NAMED = 5  # methods; further ones are only counted
UNSURE = "no interval tells whether the difference is significant"
NO_INTERVAL = "no interval tells how sure that is"
COSINE_IN_SHORT = (
    "**Cosine similarity** tells how similar two texts are (1: alike, 0 or less: unrelated)."
)
INTERVAL_IN_SHORT = "The **95% interval** is the likely range of the true value"
METHOD_LINES = {  # with fewer terms than `METHODS` has, and true of all options
    "neural": "the change in the numbers inside a model (its weights) when it trains on the text",
    "mean": "the average of the lists of numbers that a model makes of the words",
    "sbert-wk": "an average of the lists of numbers that a model makes of the words; a word counts "
    "more if some of the model's steps change its list much and others little",
    "gradient": "the direction of the first, tiny step of training on the text",
}


class Entry(NamedTuple):
    """A method, layer or the like with its value."""

    name: str  # marked up already
    value: float


@dataclass(frozen=True)
class Measured:
    """The words around a measured value."""

    clause: str  # before the value, such as “the Spearman correlation is”
    sample: str  # such as “48 pairs”
    link: str = "on"  # between the value and the sample
    is_share: bool = False  # written as a percentage
    guessing: str = ""  # such as “chance is 50.0%”; empty where that is obvious
    guesser: str = ""  # such as “always guessing the most frequent topic”
    guess: float = -np.inf  # the share that it reaches
    others: tuple[float, ...] = ()  # further values in the figure, which has as many digits

    def write(self, value: float, *rivals: Entry) -> str:
        """The clause with a value, followed by its rivals'."""
        values = [value, *(entry.value for entry in rivals), *self.others]
        first, *written = write_values(values, self.is_share)
        parts = [f"{v} with {rival.name}" for v, rival in zip(written, rivals, strict=False)]
        if len(parts) >= MOST_NAMED:
            parts[MOST_NAMED - 2 :] = [f"worse with {len(parts) - MOST_NAMED + 2} others"]
        ending = f", against {joined(parts)}" if parts else ""
        return f"{self.clause} {first} {self.link} {self.sample}{ending}"


@dataclass(frozen=True)
class Headline:
    """Which entry is ahead of which rivals, and whether that is significant."""

    measured: Measured
    best: Entry
    rivals: tuple[Entry, ...] = ()  # level with or not told apart from the best; else the next one
    outcome: Literal["alone", "ahead", "level", "undecided", "unknown"] = "alone"
    interval: Bounds | None = None  # 95%, of the lead over a single rival, or of the best alone
    rest: tuple[Entry, ...] = ()  # further entries, all of which the best is ahead of
    reason: str = ""  # why the outcome is unknown (under way if empty), or why there is no interval
    own_interval: Bounds | None = None  # 95%, of the best

    @classmethod
    def rank(
        cls,
        measured: Measured,
        entries: Sequence[Entry],
        interval: Callable[[int, int], Bounds | None],  # 95%, of the first's lead over the second
        reason: str = UNSURE,
    ) -> Headline:
        """The headline of two or more entries, the best first."""
        places = range(1, len(entries))
        top = [0, *(i for i in places if abs(entries[i].value - entries[0].value) < WRITTEN_ALIKE)]
        standings = {
            i: _judge([interval(first, i) for first in top]) for i in places if i not in top
        }
        unsure, unknown, ahead = (
            [i for i, standing in standings.items() if standing == outcome]
            for outcome in ("undecided", "unknown", "ahead")
        )
        outcome: Literal["ahead", "level", "undecided", "unknown"] = "ahead"
        rivals = ahead[:1]
        if unsure:
            outcome, rivals = "undecided", [*top[1:], *unsure]
        elif len(top) > 1:
            outcome, rivals = "level", top[1:]
        elif unknown:
            outcome, rivals = "unknown", unknown[:1]
        rest = [] if unknown else [i for i in ahead if i not in rivals]
        named = [entries[i].value for i in (0, *rivals, *rest)]
        return cls(
            replace(measured, others=(*measured.others, *named)),
            entries[0],
            tuple(entries[i] for i in rivals),
            outcome,
            interval(0, rivals[0]) if len(rivals) == 1 else None,
            tuple(entries[i] for i in rest),
            reason,
        )

    def write_sentence(self) -> str:
        """The values, then in a paragraph of its own how sure they are: a sentence each."""
        best, measured, rivals = self.best, self.measured, self.rivals
        if self.outcome == "alone":
            doubt = f"the 95% interval is {self._write_bounds()}" if self.interval else self.reason
            guessing = measured.guessing
            if self.interval and self.interval[0] <= measured.guess:
                guessing = f"that is not significantly better than {self._name_guess()}"
            sentences = [f"With {best.name}, {measured.write(best.value)}", doubt, guessing]
        elif self.outcome == "level":
            names = join_names([best.name, *(entry.name for entry in rivals)])
            both = "both " if len(rivals) == 1 else ""
            sentences = [f"With {both}{names}, {measured.write(best.value)}", self._describe_rest()]
        else:
            named = (*rivals, *self.rest) if self.outcome == "ahead" else rivals
            result = f"With {best.name}, {measured.write(best.value, *named)}"
            sentences = [result, *self._describe_difference()]
        sentences.append(self._describe_guessing())
        first, *rest = (f"{begin(sentence)}." for sentence in sentences if sentence)
        return "\n\n".join(filter(None, [first, " ".join(rest)]))

    def _describe_difference(self) -> list[str]:
        bounds = f" (95% interval: {self._write_bounds()})" if self.interval else ""
        if self.outcome == "unknown":
            return [self.reason or "work is still under way"]
        if self.outcome == "ahead":
            first_bounds = bounds.replace("interval", "interval of the first", 1)
            quantity = "both" if len(self.rest) == 1 else "all"
            are_all = f"{quantity} differences are significant{first_bounds}"
            return [are_all if self.rest else f"the difference is significant{bounds}"]
        verb = "difference is" if len(self.rivals) == 1 else "differences are"
        return [f"the {verb} not significant{bounds}", self._describe_rest()]

    def _describe_guessing(self) -> str:
        """That the best is not significantly better than guessing, where that is so."""
        if self.own_interval is None or self.own_interval[0] > self.measured.guess:
            return ""
        return f"not even the best method is significantly better than {self._name_guess()}"

    def _name_guess(self) -> str:
        (guess,) = write_values([self.measured.guess], self.measured.is_share)
        return f"{self.measured.guesser} ({guess})"

    def _describe_rest(self) -> str:
        if not self.rest:
            return ""
        values = [*(entry.value for entry in self.rest), *self.measured.others]
        rest = zip(self.rest, write_values(values, self.measured.is_share), strict=False)
        names = join_names([f"{entry.name} ({value})" for entry, value in rest])
        return f"the difference from {names} is significant"

    def _write_bounds(self) -> str:
        assert self.interval is not None
        is_share = self.measured.is_share
        if self.outcome == "alone":
            return " to ".join(write_values(self.interval, is_share))
        _, bounds = write_lead(0, self.interval, is_share)
        return f"{bounds} percentage points" if is_share else bounds


def plain_headline(sentence: str) -> str:
    """A headline without bold type and paragraphs."""
    return sentence.replace("**", "").replace("\n\n", " ")


def _judge(intervals: Sequence[Bounds | None]) -> str:
    """The outcome for an entry, given the intervals of the lead of each of the best over it."""
    if all(bounds is not None and bounds[0] >= WRITTEN_ALIKE for bounds in intervals):
        return "ahead"
    return "undecided" if any(intervals) else "unknown"


def compare_two(
    measured: Measured, first: Entry, second: Entry, bounds: Bounds | None, reason: str = UNSURE
) -> str:
    """The sentence on two entries; ``bounds`` are of the lead of the first."""
    if second.value > first.value + WRITTEN_ALIKE:
        first, second = second, first
        bounds = bounds and (-bounds[1], -bounds[0])
    headline = Headline.rank(measured, [first, second], lambda *_: bounds, reason)
    return begin(headline.write_sentence())


def rank_hits(measured: Measured, names: Sequence[str], hits: Sequence[np.ndarray]) -> Headline:
    """The headline of shares of the same texts; ``hits`` tell which texts each method got right."""
    if len(names) == 1:
        bounds = wilson_interval(float(hits[0].sum()), len(hits[0]))
        return Headline(measured, Entry(names[0], float(hits[0].mean())), interval=bounds)
    order = sorted(range(len(names)), key=lambda i: -hits[i].mean())

    def interval(i: int, j: int) -> Bounds | None:
        first, second = hits[order[i]], hits[order[j]]  # lengths differ while methods are under way
        return paired_share_interval(first, second) if len(first) == len(second) else None

    entries = [Entry(names[i], float(hits[i].mean())) for i in order]
    best = hits[order[0]]
    headline = Headline.rank(measured, entries, interval, reason="")
    return replace(headline, own_interval=wilson_interval(float(best.sum()), len(best)))


def predict_labels(label: str, k: int) -> str:
    """``the ten nearest texts predict the topic correctly for``, before a share of texts."""
    subject = "nearest text predicts" if k == 1 else f"{counted(k)} nearest texts predict"
    return f"the {subject} the {label} correctly for"


def explain_prediction(label: str, term: str = "Predicted") -> str:
    return f"**{term}**: the most frequent {label} of a text's nearest (most similar) texts."


def most_and_least(
    entries: Sequence[Entry],
    noun: str,  # what the entries are, in the plural
    predicate: str = "most ({})",
    alike: str = "all about equally ({})",
    spec: str = ".2f",
) -> str:
    """``a most (0.91), b and c least (0.12)``, or ``alike`` where all are written alike."""
    values = [entry.value for entry in entries]
    high, low = (number(value, spec) for value in (max(values), min(values)))
    if len(entries) == 1:
        return f"{entries[0].name} ({high})"
    if high == low:
        return alike.format(high)
    highest, lowest = (
        [entry.name for entry in entries if number(entry.value, spec) == end] for end in (high, low)
    )
    return (
        f"{_name_ties(highest, noun)} {predicate.format(high)}, {_name_ties(lowest, noun)} least "
        f"({low})"
    )


def _name_ties(names: Sequence[str], noun: str) -> str:
    """Names with equal values, or how many there are where a list of them is hard to read."""
    if len(names) > MOST_NAMED or (len(names) > 1 and any(" and " in name for name in names)):
        return f"{len(names):,} {noun}"
    return joined(names)


def write_range(values: Sequence[float] | np.ndarray, spec: str = ".2f") -> str:
    """``2.24 to 2.92``, or one number where both ends are written alike."""
    low, high = (number(end, spec) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def write_times(counts: np.ndarray) -> str:
    """How often things happen: ``once``, ``7 times``, ``6 to 7 times``."""
    often = write_range(counts, ",.0f")
    return "once" if often == "1" else f"{often} times"


def explain_methods(methods: Iterable[str], name: Name = "**{}**".format) -> str:
    """What methods are, in a few words each; nothing of unknown ones."""
    named_methods = dict.fromkeys(method for method in methods if method in METHODS)
    lines = {method: re.split("[;.,]", METHODS[method].line)[0] for method in named_methods}
    lines = {method: line[0].lower() + line[1:] for method, line in lines.items()}
    return " ".join(
        f"{name(method)}: {METHOD_LINES.get(method, line)}." for method, line in lines.items()
    )


def explain_interval(sentence: str) -> str:
    """What a 95% interval and a significant difference are, where a sentence names either."""
    if "significant" in sentence:
        zero = "a difference is **significant** where its interval does not contain 0"
        return f"{INTERVAL_IN_SHORT}; {zero}."
    return f"{INTERVAL_IN_SHORT}." if "95% interval" in sentence else ""


def begin(sentence: str) -> str:
    """Capitalise a sentence, also behind the asterisks of bold print."""
    start = 2 if sentence.startswith("**") else 0
    return sentence[:start] + sentence[start : start + 1].upper() + sentence[start + 1 :]


def join_names(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b, c, d and 2 others``."""
    n_named = len(names) if len(names) <= MOST_NAMED else MOST_NAMED - 1
    ending = [f"{len(names) - n_named} others"] if len(names) > n_named else []
    return joined([*names[:n_named], *ending])


def write_values(values: Sequence[float], is_share: bool) -> list[str]:
    """Values with enough digits that those that differ look different."""
    scale, unit, low, high = (100, "%", 0, 2) if is_share else (1, "", 2, 4)
    written = [[f"{number(scale * v, f'.{n}f')}{unit}" for v in values] for n in range(high + 1)]
    n_distinct = len(set(written[high]))

    def is_exact(row: list[str]) -> bool:
        """Whether values that differ look different, and only 0 and 1 like 0% and 100%."""
        ends = [v for v, text in zip(values, row, strict=True) if text in ("0%", "100%")]
        return len(set(row)) == n_distinct and all(v in (0, 1) for v in ends)

    return next(filter(is_exact, written[low:]), written[high])


def write_lead(value: float, bounds: Bounds | None, is_share: bool) -> tuple[str, str]:
    """A lead with its unit, and its interval without, empty where unknown."""
    scale, low, high = (100, 0, 2) if is_share else (1, 2, 4)
    numbers = [scale * bound for bound in (value, *(bounds or ()))]
    nonzero = [bound for bound in numbers if abs(bound) >= scale * WRITTEN_ALIKE]
    enough = (
        n
        for n in range(low, high)
        if all(round(abs(bound), n) for bound in nonzero)
        and len({round(bound, n) for bound in numbers[1:]}) == len(set(numbers[1:]))
    )
    digits = next(enough, high)
    lead, *written = (number(bound, f".{digits}f") for bound in numbers)
    unit = ""
    if is_share:
        unit = " percentage point" if float(lead) == 1 else " percentage points"
    return lead + unit, " to ".join(written)
