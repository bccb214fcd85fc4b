"""What an evaluation says, in a few sentences: who is ahead, by how much, how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from neuralviz.evaluation.claims import Claim, Name, format_distinct, join_names, spoken_by
from neuralviz.evaluation.correlation import REVERSE
from neuralviz.evaluation.leads import Lead, RankedMethod, compute_lead, format_lead, rank_methods
from neuralviz.evaluation.yardsticks import yardsticks_of

if TYPE_CHECKING:
    from neuralviz.evaluation.results import Results
    from neuralviz.evaluation.yardsticks import Yardstick

_BY_SCORES = ("correlations", "pairs")  # measures of people's scores


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
        reason = quote(reasons.pop()) if len(reasons) == 1 else ""
        return f"No method could be measured on these data. {reason}".rstrip() if cells else ""
    yardstick = yardstick or finished[0]
    ranked = rank_methods(results, data, yardstick)
    if not ranked:
        return f"No method has a {yardstick.title} on these data."
    name = spoken_by(results, name)
    claim = Claim.from_data(yardstick, results.data[data], ranked[0].measured, quote)
    reason = yardstick.explain_no_interval(results.data[data], results.plan.settings.resamples)
    if len(ranked) == 1:
        is_sure = yardstick.interval(ranked[0].measured) is not None
        sentences = [_alone(claim, ranked[0], name), "" if is_sure else f"But {reason}."]
    elif yardstick.measure in _BY_SCORES and all(
        _is_worse_than_guessing(yardstick, method) for method in ranked
    ):
        sentences = [_all_worse(claim, ranked, name)]  # the scores may well be the other way round
    else:
        sentences = _compared(claim, ranked, reason, name)
        sentences.append(_better_elsewhere(results, data, claim, ranked[0], finished, name))
    sentences += [
        _baselines(yardstick, ranked),
        _beside_guessing(yardstick, ranked, name),
        _left_out(results, data, yardstick, ranked, name),
    ]
    return " ".join(filter(None, sentences))


def describe_other_winner(
    results: Results, results_by_question: Mapping[str, Results], name: Name = str
) -> str:
    """A sentence where the same texts have another winner when they are asked another question.

    Args:
        results: of one data set.
        results_by_question: results of the same texts, each of one data set, by what is asked.
        name: as of `verdict`.

    Returns:
        The sentence on the first other question with a clear other winner; empty without one.
    """
    (data,) = results.data
    name = spoken_by(results, name)
    for question, alternative in results_by_question.items():
        if (
            alternative.data[0].digest_of_texts != data.digest_of_texts
            or alternative.plan == results.plan
        ):
            continue
        yardsticks = [yardsticks_of(outcome, 0)[:1] for outcome in (results, alternative)]
        if not all(yardsticks):
            continue
        ranked, other_ranked = (
            rank_methods(outcome, 0, yardstick)
            for outcome, (yardstick,) in zip((results, alternative), yardsticks, strict=True)
        )
        winner_leads = [
            compute_lead(yardsticks[1][0], other_ranked[0], method) for method in other_ranked[1:]
        ]
        lead = next(
            (candidate for candidate in winner_leads if candidate.second == ranked[0].label), None
        )
        if lead is not None and lead.is_decided:
            is_best = all(candidate.is_decided for candidate in winner_leads)
            predicate = "is the best" if is_best else f"beats {name(lead.second)}"
            return f"Ask the same texts for their {question}, and {name(lead.first)} {predicate}."
    return ""


def _compared(
    claim: Claim, ranked: Sequence[RankedMethod], why_unsure: str, name: Name
) -> list[str]:
    """The best methods beside the others, each of which is spoken of once."""
    yardstick, best = claim.yardstick, ranked[0]
    top = [
        best,
        *(method for method in ranked[1:] if compute_lead(yardstick, best, method).is_level),
    ]
    behind = [(method, _standing(yardstick, top, method)) for method in ranked[len(top) :]]
    beaten, unsure, unknown = (
        [method for method, standing in behind if standing == outcome]
        for outcome in ("beaten", "unsure", "unknown")
    )
    values = format_distinct(yardstick, [method.value for method in ranked])
    entries = {
        method.label: (name(method.label), v) for method, v in zip(ranked, values, strict=True)
    }
    sample = claim.this_sample.capitalize()
    is_level = len(top) > 1
    shared = [best] if is_level or not unsure else [best, *unsure]
    rest = claim.list_others(
        [entries[method.label] for method, _ in behind if method not in shared]
    )
    degree = "best" if len(ranked) > 2 else "better"
    if is_level:
        subject = "They are"
        sentences = [f"{join_names(_names(top, name))} are level: {claim.proof(values[0])}{rest}."]
        if unsure:
            rivals = join_names(_names(unsure, name), "or")
            sentences.append(f"{sample} do not decide whether they are better than {rivals}.")
    elif unsure:
        subject = f"{name(best.label)} is"
        rivals = join_names(_names(shared, name), "or")
        proof = claim.proof(
            claim.list_values([entries[method.label] for method in shared]), again=True
        )
        sentences = [
            f"{sample} do not decide whether {rivals} {claim.describe_success(degree)}: "
            f"{proof}{rest}."
        ]
        sentences.append(_includes_0(yardstick, best, unsure, name, alone=len(ranked) == 2))
    else:
        subject = "It is"
        than = f"better than {name(ranked[1].label)}" if len(ranked) == 2 else degree
        sentences = [
            f"{name(best.label)} {claim.describe_success(than)}: {claim.proof(values[0])}{rest}."
        ]
        if not unknown:
            bounds = _bounds(yardstick, compute_lead(yardstick, best, ranked[1]))
            rival_phrase = "" if len(ranked) == 2 else f" over {name(ranked[1].label)}"
            return [*sentences, f"Its lead{rival_phrase} is clear: {bounds} (95% interval)."]
    if beaten:
        sentences.append(f"{subject} clearly better than {join_names(_names(beaten, name))}.")
    if unknown and len(unknown) == len(behind) and not is_level:
        sentences.append(f"But {why_unsure}.")
    elif unknown:
        too = ", too" if beaten or unsure else ""
        sentences.append(
            f"{subject} ahead of {join_names(_names(unknown, name))}{too}, but {why_unsure}."
        )
    return sentences


def _standing(yardstick: Yardstick, top: Sequence[RankedMethod], rival: RankedMethod) -> str:
    """Whether a method is ``beaten`` by all of the best, or that is ``unsure`` or ``unknown``."""
    top_leads = [compute_lead(yardstick, method, rival) for method in top]
    if all(lead.is_decided for lead in top_leads):
        return "beaten"
    return "unsure" if any(lead.interval is not None for lead in top_leads) else "unknown"


def _includes_0(
    yardstick: Yardstick,
    best: RankedMethod,
    rivals: Sequence[RankedMethod],
    name: Name,
    *,
    alone: bool,
) -> str:
    """Why it is not decided that the best method is ahead of others."""
    best_name = name(best.label)
    rival_leads = [compute_lead(yardstick, best, rival) for rival in rivals]
    is_around_0 = all(
        lead.interval and lead.interval[0] <= 0 <= lead.interval[1] for lead in rival_leads
    )
    if len(rival_leads) > 1:
        predicate = "include 0" if is_around_0 else "are not all clearly above 0"
        return f"The 95% intervals of {best_name}'s leads over them {predicate}."
    rival_phrase = "" if alone else f" over {name(rivals[0].label)}"
    predicate = "includes 0" if is_around_0 else "is not clearly above 0"
    bounds = _bounds(yardstick, rival_leads[0])
    return f"The 95% interval of {best_name}'s lead{rival_phrase}, {bounds}, {predicate}."


def _bounds(yardstick: Yardstick, lead: Lead) -> str:
    """The interval of a lead, with its unit."""
    _, bounds = format_lead(yardstick, lead)
    return f"{bounds} percentage points" if yardstick.is_share else bounds


def _names(methods: Sequence[RankedMethod], name: Name) -> list[str]:
    return [name(method.label) for method in methods]


def _alone(claim: Claim, method: RankedMethod, name: Name) -> str:
    yardstick, label = claim.yardstick, name(method.label)
    bounds = yardstick.interval(method.measured)
    sure = ""
    if bounds is not None:
        sure = f" (95% interval: {yardstick.write(bounds[0])} to {yardstick.write(bounds[1])})"
    value = yardstick.write(method.value)
    match yardstick.measure:
        case "neighbours":
            return (
                f"With {label}, {claim.voters} for the right {claim.noun} of {value} of "
                f"{claim.this_sample}{sure}; always guessing the most frequent {claim.noun} "
                f"is right for {yardstick.write(yardstick.chance(method.measured))}."
            )
        case "probe":
            return (
                f"With {label}, a probe tells {claim.question} for {value} of "
                f"{claim.this_sample}{sure}."
            )
        case "pairs" | "triplets":
            return (
                f"With {label}, {value} of {claim.this_sample} come out wrong{sure}; by chance, "
                "half of them would."
            )
        case _:
            return (
                f"{label} has a {yardstick.title} of {value}{sure} on {claim.this_sample}; "
                f"1 is the same order as {claim.target}, 0 no relation."
            )


def _baselines(yardstick: Yardstick, ranked: Sequence[RankedMethod]) -> str:
    """What a probe's baselines reach without embeddings; empty for other measures."""
    probe = ranked[0].measured.probe
    if yardstick.measure != "probe" or probe is None:
        return ""
    words = ""
    if probe.tfidf is not None:
        words = f", logistic regression on the words (TF-IDF) {yardstick.write(probe.tfidf)}"
    return (
        f"Always guessing the most frequent label reaches {yardstick.write(probe.baseline)}{words}."
    )


def _all_worse(claim: Claim, ranked: Sequence[RankedMethod], name: Name) -> str:
    """The sentence where all methods are clearly worse than guessing, in place of a winner."""
    values = format_distinct(claim.yardstick, [method.value for method in ranked])
    entries = [(name(method.label), value) for method, value in zip(ranked, values, strict=True)]
    return f"No method {claim.describe_success('well')}: {claim.proof(claim.list_values(entries))}."


def _beside_guessing(yardstick: Yardstick, ranked: Sequence[RankedMethod], name: Name) -> str:
    """A sentence where not even the best method is clearly better than guessing.

    Correlations that are clearly negative mostly are of scores that say how different texts are.
    """
    best = ranked[0]
    bounds = yardstick.interval(best.measured)
    chance = yardstick.chance(best.measured)
    if bounds is None:
        return ""
    worst = bounds[0] if yardstick.sign > 0 else bounds[1]
    if yardstick.sign * (worst - chance) > 0:
        return ""
    worse = [method for method in ranked if _is_worse_than_guessing(yardstick, method)]
    guessing = yardstick.describe_guessing(best.measured)
    subject = "Not even the best method is" if len(ranked) > 1 else "It is not"
    sentence = f"{subject} clearly better than {guessing}."
    if not worse:
        return sentence
    if len(worse) == len(ranked):
        subject = "All methods are" if len(ranked) > 1 else "It is"
        sentence = f"{subject} clearly worse than {guessing}."
    else:
        are = "is" if len(worse) == 1 else "are"
        sentence += f" {join_names(_names(worse, name))} {are} clearly worse than that."
    if yardstick.measure in _BY_SCORES:
        sentence += f" {REVERSE}"
    return sentence


def _is_worse_than_guessing(yardstick: Yardstick, method: RankedMethod) -> bool:
    """Whether its whole interval is on the bad side of what guessing reaches."""
    bounds, chance = yardstick.interval(method.measured), yardstick.chance(method.measured)
    return bounds is not None and all(yardstick.sign * (bound - chance) < 0 for bound in bounds)


def _better_elsewhere(
    results: Results,
    data: int,
    claim: Claim,
    best: RankedMethod,
    yardsticks: Sequence[Yardstick],
    name: Name,
) -> str:
    """Which method beats the best one for certain by another measure; the first such measure."""
    for yardstick in yardsticks:
        if yardstick.measure == claim.yardstick.measure:
            continue
        ranked = rank_methods(results, data, yardstick)
        same_method = next((method for method in ranked if method.label == best.label), None)
        if same_method is None or not compute_lead(yardstick, ranked[0], same_method).is_decided:
            continue
        other_claim = replace(
            claim,
            yardstick=yardstick,
            sample=yardstick.describe_sample(results.data[data], same_method.measured),
        )
        first, second = format_distinct(yardstick, [ranked[0].value, same_method.value])
        success = other_claim.describe_success(f"better than {name(best.label)}")
        return (
            f"But {name(ranked[0].label)} {success}: "
            f"{other_claim.proof(first)}; {name(best.label)} {second}."
        )
    return ""


def _left_out(
    results: Results, data: int, yardstick: Yardstick, ranked: Sequence[RankedMethod], name: Name
) -> str:
    """Which methods are missing from the verdict, and why."""
    ranked_labels = {method.label for method in ranked}
    failed: list[str] = []
    undefined: list[str] = []
    missing: list[str] = []
    for index, row in enumerate(results.rows):
        if row.label not in ranked_labels:
            cell = results.cells.get((data, index))
            names = missing if cell is None else undefined if cell.measured else failed
            names.append(name(row.label))
    sentences = []
    if undefined:
        verb = "has" if len(undefined) == 1 else "have"
        sentences.append(f"{join_names(undefined)} {verb} no {yardstick.title} on these data.")
    if failed:
        sentences.append(f"{join_names(failed)} could not be measured.")
    if missing:
        sentences.append(
            f"{join_names(missing)} {'is' if len(missing) == 1 else 'are'} not finished."
        )
    return " ".join(sentences)
