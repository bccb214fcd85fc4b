"""What an evaluation says, in a few sentences: who is ahead, by how much, how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.bootstrap import paired_interval
from neuralviz.evaluation.claims import Claim, Name, listed, spoken_by, written
from neuralviz.evaluation.correlation import REVERSE
from neuralviz.evaluation.yardsticks import MOST_DIGITS, yardsticks_of
from neuralviz.maps.shares import paired_share_interval
from neuralviz.words import number

if TYPE_CHECKING:
    from neuralviz.evaluation.measured import Measured
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick

_BY_SCORES = ("correlations", "pairs")  # measures of people's scores
_LEVEL = 10.0**-MOST_DIGITS / 2  # values that differ by less are written alike, and are level


@dataclass(frozen=True)
class Lead:
    """How far a method is ahead of another on the same data.

    Attributes:
        first, second: labels of the methods.
        value: by how much the first is better, 0 or more.
        interval: of the value, at 95%, on the same data: of accuracies exact, else by paired
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
        return not self.is_level and self.interval is not None and self.interval[0] >= _LEVEL


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
    results: Results,
    data: int,
    yardstick: Yardstick | None = None,
    name: Name = str,
    quote: Name = str,
) -> str:
    """What a data set says of the methods, in a few short sentences that anybody understands.

    Args:
        results: as far as they are.
        data: number of the data set.
        yardstick: by which methods are compared; by default the main one of the data.
        name: marks the label of a method in the sentence; has to escape it where it is markup.
        quote: escapes other words of a user.

    Returns:
        The sentences; empty while nothing is measured.
    """
    finished = yardsticks_of(results, data)
    if not finished:
        cells = [cell for (of_data, _), cell in results.cells.items() if of_data == data]
        reasons = {cell.error for cell in cells}
        why = quote(reasons.pop()) if len(reasons) == 1 else ""
        return f"No method could be measured on these data. {why}".rstrip() if cells else ""
    by = yardstick or finished[0]
    ranked = _ranked(results, data, by)
    if not ranked:
        return f"No method has a {by.title} on these data."
    name = spoken_by(results, name)
    claim = Claim.of(by, results.data[data], ranked[0].measured, quote)
    why = by.why_no_interval(results.data[data], results.plan.settings.resamples)
    if len(ranked) == 1:
        is_sure = by.interval(ranked[0].measured) is not None
        said = [_alone(claim, ranked[0], name), "" if is_sure else f"But {why}."]
    elif by.measure in _BY_SCORES and all(_is_worse_than_guessing(by, one) for one in ranked):
        said = [_all_worse(claim, ranked, name)]  # the scores may well be the other way round
    else:
        said = _compared(claim, ranked, why, name)
        said.append(_better_elsewhere(results, data, claim, ranked[0], finished, name))
    said += [
        _baselines(by, ranked),
        _beside_guessing(by, ranked, name),
        _left_out(results, data, by, ranked, name),
    ]
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
    name = spoken_by(results, name)
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
    if first.measured.accuracy_of(by.measure) is not None:
        hits = first.measured.right(by.measure), second.measured.right(by.measure)
        bounds = paired_share_interval(*hits) if len(hits[0]) == len(hits[1]) > 0 else None
    elif drawn[0] is not None and drawn[1] is not None:
        bounds = paired_interval(by.sign * drawn[0], by.sign * drawn[1])
    return Lead(first.label, second.label, by.sign * (first.value - second.value), bounds)


def _compared(claim: Claim, ranked: Sequence[_Measured], why_unsure: str, name: Name) -> list[str]:
    """The best methods beside the others, each of which is spoken of once."""
    by, best = claim.by, ranked[0]
    top = [best, *(one for one in ranked[1:] if _lead(by, best, one).is_level)]
    behind = [(one, _standing(by, top, one)) for one in ranked[len(top) :]]
    beaten, unsure, unknown = (
        [one for one, standing in behind if standing == wanted]
        for wanted in ("beaten", "unsure", "unknown")
    )
    values = written(by, [one.value for one in ranked])
    told = {one.label: (name(one.label), v) for one, v in zip(ranked, values, strict=True)}
    these = claim.these.capitalize()
    is_level = len(top) > 1
    shared = [best] if is_level or not unsure else [best, *unsure]
    rest = claim.beside([told[one.label] for one, _ in behind if one not in shared])
    degree = "best" if len(ranked) > 2 else "better"
    if is_level:
        who = "They are"
        said = [f"{listed(_names(top, name))} are level: {claim.proof(values[0])}{rest}."]
        if unsure:
            rivals = listed(_names(unsure, name), "or")
            said.append(f"{these} do not decide whether they are better than {rivals}.")
    elif unsure:
        who = f"{name(best.label)} is"
        rivals = listed(_names(shared, name), "or")
        proof = claim.proof(claim.each([told[one.label] for one in shared]), again=True)
        said = [f"{these} do not decide whether {rivals} {claim.does(degree)}: {proof}{rest}."]
        said.append(_includes_0(by, best, unsure, name, alone=len(ranked) == 2))
    else:
        who = "It is"
        than = f"better than {name(ranked[1].label)}" if len(ranked) == 2 else degree
        said = [f"{name(best.label)} {claim.does(than)}: {claim.proof(values[0])}{rest}."]
        if not unknown:
            bounds = _bounds(by, _lead(by, best, ranked[1]))
            over = "" if len(ranked) == 2 else f" over {name(ranked[1].label)}"
            return [*said, f"Its lead{over} is clear: {bounds} (95% interval)."]
    if beaten:
        said.append(f"{who} clearly better than {listed(_names(beaten, name))}.")
    if unknown and len(unknown) == len(behind) and not is_level:
        said.append(f"But {why_unsure}.")
    elif unknown:
        too = ", too" if beaten or unsure else ""
        said.append(f"{who} ahead of {listed(_names(unknown, name))}{too}, but {why_unsure}.")
    return said


def _standing(by: Yardstick, top: Sequence[_Measured], other: _Measured) -> str:
    """Whether a method is ``beaten`` by all of the best, or that is ``unsure`` or ``unknown``."""
    found = [_lead(by, one, other) for one in top]
    if all(lead.is_decided for lead in found):
        return "beaten"
    return "unsure" if any(lead.interval is not None for lead in found) else "unknown"


def _includes_0(
    by: Yardstick, best: _Measured, others: Sequence[_Measured], name: Name, *, alone: bool
) -> str:
    """Why it is not decided that the best method is ahead of others."""
    who = name(best.label)
    found = [_lead(by, best, other) for other in others]
    is_around_0 = all(one.interval and one.interval[0] <= 0 <= one.interval[1] for one in found)
    if len(found) > 1:
        where = "include 0" if is_around_0 else "are not all clearly above 0"
        return f"The 95% intervals of {who}'s leads over them {where}."
    over = "" if alone else f" over {name(others[0].label)}"
    where = "includes 0" if is_around_0 else "is not clearly above 0"
    return f"The 95% interval of {who}'s lead{over}, {_bounds(by, found[0])}, {where}."


def _bounds(by: Yardstick, lead: Lead) -> str:
    """The interval of a lead, with its unit."""
    _, bounds = written_lead(by, lead)
    return f"{bounds} percentage points" if by.is_share else bounds


def _names(methods: Sequence[_Measured], name: Name) -> list[str]:
    return [name(one.label) for one in methods]


def _alone(claim: Claim, one: _Measured, name: Name) -> str:
    by, label = claim.by, name(one.label)
    bounds = by.interval(one.measured)
    sure = ""
    if bounds is not None:
        sure = f" (95% interval: {by.write(bounds[0])} to {by.write(bounds[1])})"
    value = by.write(one.value)
    match by.measure:
        case "neighbours":
            return (
                f"With {label}, {claim.voters} for the right {claim.noun} of {value} of "
                f"{claim.these}{sure}; always guessing the most frequent {claim.noun} is right for "
                f"{by.write(by.chance(one.measured))}."
            )
        case "probe":
            return f"With {label}, a probe tells {claim.asked} for {value} of {claim.these}{sure}."
        case "pairs" | "triplets":
            return (
                f"With {label}, {value} of {claim.these} come out wrong{sure}; by chance, half of "
                "them would."
            )
        case _:
            return (
                f"{label} has a {by.title} of {value}{sure} on {claim.these}; 1 is the same order "
                f"as {claim.followed}, 0 no relation."
            )


def _baselines(by: Yardstick, ranked: Sequence[_Measured]) -> str:
    """What is reached without any embedding, of a probe; empty of others."""
    probe = ranked[0].measured.probe
    if by.measure != "probe" or probe is None:
        return ""
    words = ""
    if probe.tfidf is not None:
        words = f", logistic regression on the words (TF-IDF) {by.write(probe.tfidf)}"
    return f"Always guessing the most frequent label reaches {by.write(probe.baseline)}{words}."


def _all_worse(claim: Claim, ranked: Sequence[_Measured], name: Name) -> str:
    """What is said of methods that are all clearly worse than guessing, in place of a winner."""
    values = written(claim.by, [one.value for one in ranked])
    told = [(name(one.label), value) for one, value in zip(ranked, values, strict=True)]
    return f"No method {claim.does('well')}: {claim.proof(claim.each(told))}."


def _beside_guessing(by: Yardstick, ranked: Sequence[_Measured], name: Name) -> str:
    """A sentence where not even the best method is clearly better than guessing.

    Correlations that are clearly negative mostly are of scores that say how different texts are.
    """
    best = ranked[0]
    bounds = by.interval(best.measured)
    chance = by.chance(best.measured)
    if bounds is None:
        return ""
    worst = bounds[0] if by.sign > 0 else bounds[1]
    if by.sign * (worst - chance) > 0:
        return ""
    worse = [one for one in ranked if _is_worse_than_guessing(by, one)]
    guessing = by.of_guessing(best.measured)
    who = "Not even the best method is" if len(ranked) > 1 else "It is not"
    said = f"{who} clearly better than {guessing}."
    if not worse:
        return said
    if len(worse) == len(ranked):
        who = "All methods are" if len(ranked) > 1 else "It is"
        said = f"{who} clearly worse than {guessing}."
    else:
        are = "is" if len(worse) == 1 else "are"
        said += f" {listed(_names(worse, name))} {are} clearly worse than that."
    if by.measure in _BY_SCORES:
        said += f" {REVERSE}"
    return said


def _is_worse_than_guessing(by: Yardstick, one: _Measured) -> bool:
    """Whether its whole interval is on the bad side of what guessing reaches."""
    bounds, chance = by.interval(one.measured), by.chance(one.measured)
    return bounds is not None and all(by.sign * (bound - chance) < 0 for bound in bounds)


def _better_elsewhere(
    results: Results,
    data: int,
    claim: Claim,
    best: _Measured,
    others: Sequence[Yardstick],
    name: Name,
) -> str:
    """Which method beats the best one for certain by another measure; the first such measure."""
    for other in others:
        if other.measure == claim.by.measure:
            continue
        ranked = _ranked(results, data, other)
        here = next((one for one in ranked if one.label == best.label), None)
        if here is None or not _lead(other, ranked[0], here).is_decided:
            continue
        about = replace(claim, by=other, things=other.things(results.data[data], here.measured))
        first, second = written(other, [ranked[0].value, here.value])
        return (
            f"But {name(ranked[0].label)} {about.does(f'better than {name(best.label)}')}: "
            f"{about.proof(first)}; {name(best.label)} {second}."
        )
    return ""


def _left_out(
    results: Results, data: int, by: Yardstick, ranked: Sequence[_Measured], name: Name
) -> str:
    """Methods of which nothing is said, and why."""
    there = {one.label for one in ranked}
    failed: list[str] = []
    undefined: list[str] = []
    missing: list[str] = []
    for at, row in enumerate(results.rows):
        if row.label not in there:
            cell = results.cells.get((data, at))
            of = missing if cell is None else undefined if cell.measured else failed
            of.append(name(row.label))
    said = []
    if undefined:
        have = "has" if len(undefined) == 1 else "have"
        said.append(f"{listed(undefined)} {have} no {by.title} on these data.")
    if failed:
        said.append(f"{listed(failed)} could not be measured.")
    if missing:
        said.append(f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} not finished.")
    return " ".join(said)
