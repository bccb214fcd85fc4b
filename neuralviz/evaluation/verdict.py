"""What an evaluation says, in a few sentences: who is ahead, by how much, how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.bootstrap import paired_interval
from neuralviz.evaluation.yardsticks import MOST_DIGITS, yardsticks_of
from neuralviz.maps.shares import paired_share_interval
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.measured import Measured
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick

Name = Callable[[str], str]
_LEVEL = 10.0**-MOST_DIGITS / 2  # values that differ by less are written alike, and are level


@dataclass(frozen=True)
class Lead:
    """How far a method is ahead of another on the same data.

    Attributes:
        first, second: labels of the methods.
        value: by how much the first is better, 0 or more.
        interval: of the value, at 95%, on the same data: of k-NN accuracy exact, else by paired
            bootstrap; None where nobody knows.
    """

    first: str
    second: str
    value: float
    interval: tuple[float, float] | None

    @property
    def is_level(self) -> bool:
        """Whether there is no difference to speak of."""
        return abs(self.value) < _LEVEL

    @property
    def is_decided(self) -> bool:
        """Whether the data decide that the first is better: the interval is above 0."""
        return self.interval is not None and self.interval[0] > 0


@dataclass(frozen=True, eq=False)
class _Measured:
    """A method that a yardstick can be laid to."""

    label: str
    value: float
    measured: Measured


def leads(results: Results, data: int, yardstick: Yardstick) -> list[Lead]:
    """How far each method is ahead of each that is not better, the best methods first."""
    ranked = _ranked(results, data, yardstick)
    return [
        _lead(yardstick, first, second)
        for place, first in enumerate(ranked)
        for second in ranked[place + 1 :]
    ]


def verdict(
    results: Results, data: int, yardstick: Yardstick | None = None, name: Name = str
) -> str:
    """What a data set says of the methods, in one to four short sentences.

    Args:
        results: as far as they are.
        data: number of the data set.
        yardstick: by which methods are compared; by default the main one of the data.
        name: marks the label of a method in the sentence; has to escape it where it is markup.

    Returns:
        The sentences; empty while nothing is measured.
    """
    finished = yardsticks_of(results, data)
    if not finished:
        cells = [cell for (of_data, _), cell in results.cells.items() if of_data == data]
        return "No method could be measured on these data." if cells else ""
    by = yardstick or finished[0]
    ranked = _ranked(results, data, by)
    if not ranked:
        return f"No method has a {by.title} on these data."
    on = by.things(results.data[data], ranked[0].measured)
    if len(ranked) == 1:
        said = [_alone(by, ranked[0], on, name)]
    else:
        found = [_lead(by, ranked[0], other) for other in ranked[1:]]
        why = by.why_no_interval(results.data[data], results.plan.settings.resamples)
        said = _compared(by, found, on, why, name)
        said.append(_better_elsewhere(results, data, by, ranked[0], finished, name))
    said += [_beside_guessing(by, ranked, on, name), _left_out(results, data, ranked, name)]
    return " ".join(filter(None, said))


def other_winner(results: Results, others: Mapping[str, Results], name: Name = str) -> str:
    """A sentence where the same texts have another winner when they are asked another question.

    Args:
        results: of one data set.
        others: what else is known, each of one data set, by what the texts are asked for.
        name: as of `verdict`.

    Returns:
        Of the first that has another winner for certain; empty where there is none.
    """
    (data,) = results.data
    for question, other in others.items():
        if other.data[0].digest_of_texts != data.digest_of_texts or other.plan == results.plan:
            continue
        yardsticks = [yardsticks_of(one, 0)[:1] for one in (results, other)]
        if not all(yardsticks):
            continue
        here, there = (
            _ranked(one, 0, by) for one, (by,) in zip((results, other), yardsticks, strict=True)
        )
        found = [_lead(yardsticks[1][0], there[0], one) for one in there[1:]]
        lead = next((one for one in found if one.second == here[0].label), None)
        if lead is not None and lead.is_decided:
            is_best = all(one.is_decided for one in found)
            what = "is the best" if is_best else f"beats {name(lead.second)}"
            return f"Ask the same texts for their {question}, and {name(lead.first)} {what}."
    return ""


def written_lead(by: Yardstick, lead: Lead) -> tuple[str, str]:
    """A lead with its unit, and its interval without; empty where nobody knows it."""
    scale, unit = (100, " percentage points") if by.is_share else (1, "")
    numbers = [scale * one for one in (lead.value, *(lead.interval or ()))]
    shown = [one for one in numbers if abs(one) >= scale * _LEVEL]
    fewest = 1 if by.is_share else 2
    most = MOST_DIGITS - 2 if by.is_share else MOST_DIGITS
    digits = next(
        (n for n in range(fewest, most) if all(round(abs(one), n) for one in shown)), most
    )
    value, *bounds = (number(one, f".{digits}f") for one in numbers)
    if by.is_share and float(f"{abs(numbers[0]):.{digits}f}") == 1:
        unit = " percentage point"
    return value + unit, " to ".join(bounds)


def _ranked(results: Results, data: int, by: Yardstick) -> list[_Measured]:
    """The methods that have a value, the best first; of equal ones the first asked for."""
    found = [
        _Measured(label, by.read(measured), measured)
        for _, label, measured in results.finished(data)
        if np.isfinite(by.read(measured))
    ]
    return sorted(found, key=lambda one: -by.sign * one.value)


def _lead(by: Yardstick, first: _Measured, second: _Measured) -> Lead:
    bounds = None
    drawn = [one.measured.resampled.get(by.name) for one in (first, second)]
    if by.measure == "neighbours":
        bounds = paired_share_interval(first.measured.hits, second.measured.hits)
    elif drawn[0] is not None and drawn[1] is not None:
        bounds = paired_interval(by.sign * drawn[0], by.sign * drawn[1])
    return Lead(first.label, second.label, by.sign * (first.value - second.value), bounds)


def _compared(
    by: Yardstick, found: Sequence[Lead], on: str, why_unsure: str, name: Name
) -> list[str]:
    """The best method beside the others."""
    best, runner_up = name(found[0].first), name(found[0].second)
    level = [lead for lead in found if lead.is_level]
    undecided = [lead for lead in found if not lead.is_decided]
    value, bounds = written_lead(by, found[0])
    if level:
        names = _listed([best, *(name(lead.second) for lead in level)])
        rest = _beaten([lead for lead in found if lead.is_decided], by, name, "They beat")
        return [f"{names} are level in {by.title} on these {on}.", rest]
    if not undecided:
        if len(found) == 1:
            return [
                f"{best} beats {runner_up} by {value} (95% interval: {bounds}) in {by.title} on "
                f"these {on}."
            ]
        return [
            f"{best} is the best of {len(found) + 1} methods in {by.title} on these {on}.",
            f"It beats the runner-up, {runner_up}, by {value} (95% interval: {bounds}).",
        ]
    if found[0].interval is None:
        return [
            f"{best} is ahead of {runner_up} by {value} in {by.title} on these {on}, but "
            f"{why_unsure}."
        ]
    beaten = _beaten([lead for lead in found if lead.is_decided], by, name, "It beats")
    if len(found) == 1 or len(undecided) == 1:
        value, bounds = written_lead(by, undecided[0])
        return [
            f"These {on} do not decide between {best} and {name(undecided[0].second)}: {best} is "
            f"ahead by {value} in {by.title}, but the 95% interval of the difference, {bounds}, "
            "includes 0.",
            beaten,
        ]
    names = _listed([name(lead.second) for lead in undecided])
    return [
        f"{best} is ahead in {by.title}, but these {on} do not decide between it and {names}: "
        "the 95% intervals of the differences include 0.",
        beaten,
    ]


def _beaten(decided: Sequence[Lead], by: Yardstick, name: Name, begin: str) -> str:
    if not decided:
        return ""
    if len(decided) > 1:
        return f"{begin} the other {len(decided)} methods."
    value, bounds = written_lead(by, decided[0])
    return f"{begin} {name(decided[0].second)} by {value} (95% interval: {bounds})."


def _alone(by: Yardstick, one: _Measured, on: str, name: Name) -> str:
    bounds = by.interval(one.measured)
    sure = ""
    if bounds is not None:
        sure = f" (95% interval: {by.write(bounds[0])} to {by.write(bounds[1])})"
    value = by.write(one.value)
    label = name(one.label)
    if by.measure == "triplets":
        return f"{label} breaks {value} of these {on}{sure}; chance would break half of them."
    if by.measure == "pairs":
        return f"{label} gets {value} of these {on} wrong{sure}; chance gets half of them wrong."
    if one.measured.neighbours is not None and by.measure == "neighbours":
        k = one.measured.neighbours.k
        voters = f"{k} nearest neighbours vote" if k > 1 else "nearest neighbour votes"
        return (
            f"With {label}, the {voters} for the right label of {value} of these {on}{sure}; "
            "always guessing the most frequent label is right for "
            f"{by.write(by.chance(one.measured))}."
        )
    return f"{label} has a {by.title} of {value}{sure} on these {on}."


def _beside_guessing(by: Yardstick, ranked: Sequence[_Measured], on: str, name: Name) -> str:
    """A sentence where not even the best method is clearly better than guessing."""
    best = ranked[0]
    bounds = by.interval(best.measured)
    chance = by.chance(best.measured)
    if bounds is None:
        return ""
    worst = bounds[0] if by.sign > 0 else bounds[1]
    if by.sign * (worst - chance) > 0:
        return ""
    who = "Not even the best method is" if len(ranked) > 1 else "It is not"
    return f"{who} clearly better than {by.of_guessing(best.measured)}."


def _better_elsewhere(
    results: Results,
    data: int,
    by: Yardstick,
    best: _Measured,
    others: Sequence[Yardstick],
    name: Name,
) -> str:
    """Which method beats the best one for certain by another measure; the first such measure."""
    for other in others:
        if other.measure == by.measure:
            continue
        ranked = _ranked(results, data, other)
        here = next((one for one in ranked if one.label == best.label), None)
        if here is None or ranked[0].label == best.label:
            continue
        lead = _lead(other, ranked[0], here)
        if lead.is_decided and not lead.is_level:
            value, bounds = written_lead(other, lead)
            return (
                f"In {other.title}, {name(lead.first)} beats {name(best.label)} by {value} "
                f"(95% interval: {bounds})."
            )
    return ""


def _left_out(results: Results, data: int, ranked: Sequence[_Measured], name: Name) -> str:
    """Methods of which nothing is said, and why."""
    there = {one.label for one in ranked}
    failed: list[str] = []
    missing: list[str] = []
    for at, row in enumerate(results.rows):
        if row.label not in there:
            (failed if (data, at) in results.cells else missing).append(name(row.label))
    said = []
    if failed:
        said.append(f"{_listed(failed)} could not be measured.")
    if missing:
        said.append(f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} not finished.")
    return " ".join(said)


def _listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``, ``a, b and 3 others``."""
    if len(names) > 4:
        names = [*names[:2], f"{len(names) - 2} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
