"""What an evaluation says of methods, and what its views show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from neuralviz.embedders.specs import short_labels
from neuralviz.evaluation import results as numbers
from neuralviz.evaluation.correlation import REVERSE
from neuralviz.evaluation.data import DataSet, LabelledData, ScoredData
from neuralviz.evaluation.probing import Confusion
from neuralviz.evaluation.probing_tasks import TASKS, ProbingTask
from neuralviz.evaluation.results import Results, Yardstick
from neuralviz.evaluation.rows import Row
from neuralviz.evaluation.yardsticks import (
    RankedMethod,
    best_first,
    compute_lead,
    rank_methods,
    ranks_away,
    yardsticks_of,
)
from neuralviz.headlines import (
    NO_INTERVAL,
    SIGNIFICANT,
    Entry,
    Headline,
    Measured,
    Name,
    begin,
    explain_interval,
    explain_prediction,
    join_names,
    most_and_least,
    predict_labels,
    write_range,
    write_values,
)
from neuralviz.maps.shares import compute_chance
from neuralviz.words import many, number, percent

_BY_SCORES = ("correlations", "pairs")  # measures of people's scores
_BY_LABELS = ("neighbours", "probe")
_BROKEN = {
    "pairs": ("the dissimilar pair is rated as more similar in", "comparison"),
    "triplets": ("the text of another group is nearer in", "triplet"),
}
FAR = 0.25  # of all ranks: a pair that is no further from its own is not far off
SIMILARITY_IN_SHORT = "**Cosine similarity**: how similar two texts are by a method (1: alike)."
YARDSTICKS_IN_SHORT = {
    "probe": "A **probe** is a small network that learns from the labels of other texts.",
    "correlations": "A correlation of 1 is people's order of the pairs, 0 is chance.",
    "pairs": "A **comparison** is of a similar and a dissimilar pair; it is wrong unless the "
    "similar pair is rated as more similar.",
    "read-back": "**Read-back** guesses ten words of a text from its embedding alone.",
    "triplets": "A **triplet** is a text, one of its group, and one of another group; it is "
    "**broken** (wrong) unless the one of its group is nearer.",
}
CONFUSED_IN_SHORT = {
    "neighbours": explain_prediction("label", "Taken for"),
    "probe": f"**Taken for**: what a probe predicts. {YARDSTICKS_IN_SHORT['probe']}",
}
FEW_TEXTS = 5  # times the nearest texts; of fewer, these are not worse than guessing
_FIGURES_NOUN = 16  # characters of one that stands in a figure
_LONGEST_NOUN = 30  # characters of a column's name that stands in a sentence


def describe_verdict(
    results: Results,
    data: int,
    yardstick: Yardstick | None = None,  # by default the main one of the data
    name: Name = str,  # marks up and escapes a method's label
    quote: Name = str,  # the same for a user's other words
    *,
    is_over: bool = True,  # else methods without a result may still get one
) -> str:
    """What a data set says of the methods measured so far; empty before any is."""
    finished = yardsticks_of(results, data)
    if not finished:
        failed = any(cell.failed for (number, _), cell in results.cells.items() if number == data)
        return "No method could be measured on these data." if failed else ""
    yardstick = yardstick or finished[0]
    ranked = rank_methods(results, data, yardstick)
    if not ranked:
        return f"No method has a {yardstick.title} on these data."
    name = short_name(results, name)
    rows = [row for n, row in enumerate(results.rows) if is_over or (data, n) in results.cells]
    measured = replace(
        _describe_measured(results.data[data], ranked[0].measured, yardstick, quote),
        others=tuple(method.value for method in ranked),
    )
    sentences = [
        _compare(yardstick, ranked, measured, name, _label_noun(results.data[data], quote)),
        _describe_words_alone(yardstick, ranked),
        _describe_left_out(rows, ranked, name),
    ]
    return " ".join(filter(None, sentences))


def _compare(
    yardstick: Yardstick, ranked: Sequence[RankedMethod], measured: Measured, name: Name, noun: str
) -> str:
    """Who is ahead, and whether that is better than guessing."""
    entries = [Entry(name(method.label), method.value) for method in ranked]
    sides = [_side_of_guessing(yardstick, method) for method in ranked]
    guessing = _describe_guessing(yardstick, ranked[0].measured, noun)
    if set(sides) == {"worse"}:
        subject = f"The method {entries[0].name} is"
        if len(ranked) > 1:
            subject = f"All methods, even {entries[0].name}, are"
        reverse = f" {REVERSE}" if yardstick.measure in _BY_SCORES else ""
        value = measured.write(ranked[0].value)
        return f"{subject} significantly worse than {guessing}: {value}.{reverse}"
    is_level = sides[0] not in ("better", "unknown")
    if len(ranked) == 1:
        bounds = ranked[0].measured.interval(yardstick.name)
        measured = replace(measured, guessing="" if is_level else measured.guessing)
        headline = Headline(measured, entries[0], interval=bounds, reason=NO_INTERVAL)
    else:
        headline = Headline.rank(
            measured, entries, lambda i, j: compute_lead(yardstick, ranked[i], ranked[j]).interval
        )
    sentence = headline.write_sentence()
    if not is_level:
        return sentence
    subject = "Not even the best method is" if len(ranked) > 1 else "That is not"
    return f"{sentence} {subject} significantly better than {guessing}."


def _side_of_guessing(yardstick: Yardstick, method: RankedMethod) -> str:
    """Whether a method's whole interval is ``better`` or ``worse`` than guessing, or neither."""
    bounds = method.measured.interval(yardstick.name)
    chance = yardstick.compute_chance(method.measured)
    if bounds is None:
        return "unknown"
    leads = [yardstick.sign * (bound - chance) for bound in bounds]
    result = method.measured.find_result(yardstick.measure)
    # no text is its own neighbour, so most others of a few texts have another label than it
    can_be_worse = yardstick.measure != "neighbours" or result.n >= FEW_TEXTS * result.k
    return "better" if min(leads) > 0 else "worse" if max(leads) < 0 and can_be_worse else "level"


def _describe_guessing(yardstick: Yardstick, measured: numbers.Measured, noun: str) -> str:
    reached = _write_value(yardstick, yardstick.compute_chance(measured))
    if yardstick.measure in _BY_LABELS:
        return f"always guessing the most frequent {noun} ({reached})"
    if yardstick.measure == "read-back":
        return f"always guessing the ten most frequent words ({reached})"
    return f"chance ({reached})" if yardstick.is_share else "chance (0)"


def _describe_measured(
    data: DataSet, measured: numbers.Measured, yardstick: Yardstick, quote: Name
) -> Measured:
    """What a yardstick measures, in the words of the headline."""
    noun, result = _label_noun(data, quote), measured.find_result(yardstick.measure)
    chance = _write_value(yardstick, yardstick.compute_chance(measured))
    if yardstick.measure in _BY_LABELS:
        question = TASKS[data.task].question if isinstance(data, ProbingTask) else ""
        clause = f"a probe tells {question or f'which {noun} a text has'} for"
        if result.k:
            clause = predict_labels(noun, result.k)
        guessing = f"always guessing the most frequent {noun} reaches {chance}"
        return Measured(clause, many(result.n, "text"), "of", True, guessing)
    if yardstick.measure == "read-back":
        guessing = f"the ten most frequent words find {chance}"
        clause = "ten guesses from each embedding find"
        return Measured(clause, f"{many(result.n, 'word')} of the texts", "of", True, guessing)
    if yardstick.measure in _BROKEN:
        clause, unit = _BROKEN[yardstick.measure]
        return Measured(clause, many(result.total, unit), "of", True, f"chance is {chance}")
    if isinstance(data, ScoredData):
        pairs = many(len(data.scores), "pair")
        return Measured(f"the {yardstick.title} with people's scores is", pairs)
    return Measured(f"the {yardstick.title} is", many(len(measured.products), "phrase"))


def _label_noun(data: DataSet, quote: Name) -> str:
    noun = data.columns.get("label", "label")
    if len(noun) > _LONGEST_NOUN:
        noun = f"{noun[:_LONGEST_NOUN]}…"
    return quote(noun if noun.replace("_", "").replace(" ", "").isalnum() else f"“{noun}”")


def _write_value(yardstick: Yardstick, value: float) -> str:
    return write_values([value], yardstick.is_share)[0]


def _describe_words_alone(yardstick: Yardstick, ranked: Sequence[RankedMethod]) -> str:
    """What a probe reaches without embeddings, where no method is better."""
    probe = ranked[0].measured.probe if yardstick.measure == "probe" else None
    if probe is None or probe.tfidf is None or probe.tfidf < ranked[0].value:
        return ""
    reached = _write_value(yardstick, probe.tfidf)
    return (
        f"Logistic regression on the words alone (TF-IDF) reaches {reached}, as much as the best "
        "method or more."
    )


def _describe_left_out(rows: Sequence[Row], ranked: Sequence[RankedMethod], name: Name) -> str:
    """Which methods are missing from the verdict: they failed, or are not finished."""
    ranked_labels = {method.label for method in ranked}
    missing = [name(row.label) for row in rows if row.label not in ranked_labels]
    return f"Left out: {join_names(missing)}." if missing else ""


def describe_worst(data: DataSet, measured: numbers.Measured, label: str, quote: Name) -> str:
    """A sentence on the worst case of all; empty where there is none.

    ``label`` of the method is marked up already; ``quote`` shortens and escapes a text.
    """
    if isinstance(data, ScoredData) and len(measured.products):
        return _describe_worst_pair(data, measured, label, quote)
    if worst := measured.worst_triplets:
        anchor, positive, negative = (
            quote(data.texts[rows[0]]) for rows in (worst.anchor, worst.positive, worst.negative)
        )
        return (
            f"With {label}, {anchor} is no nearer to {positive}, which is in its group, than to "
            f"{negative}, which is not."
        )
    for miss in measured.outvoted[:1]:
        return (
            f"With {label}, the nearest texts predict {quote(miss.voted)} for "
            f"{quote(data.texts[miss.text])}; it is labelled {quote(miss.label)}."
        )
    return ""


def _describe_worst_pair(
    data: ScoredData, measured: numbers.Measured, label: str, quote: Name
) -> str:
    away = ranks_away(data, measured)
    worst = int(np.abs(away).argmax())
    if abs(away[worst]) < FAR * len(data.scores):
        return f"With {label}, every pair ranks about where people rank it."
    first, second = (quote(data.texts[side[worst]]) for side in (data.first, data.second))
    cosine, rest = measured.products[worst], np.delete(measured.products, worst)
    if away[worst] < 0:
        rank = f"below {(rest > cosine).mean():.0%} of the other pairs"
    else:
        rank = f"above {(rest < cosine).mean():.0%} of the other pairs"
    return (
        f"People and {label} disagree most on {first} and {second}: people's score is "
        f"{number(float(data.scores[worst]))}, the cosine similarity "
        f"{number(float(cosine), '.2f')}, {rank}."
    )


def describe_separation(
    results: Results, data: int, yardstick: Yardstick, name: Name = str, quote: Name = str
) -> str:
    """How far the best method keeps similar from dissimilar texts; empty where there are none."""
    for label, measured in best_first(results, data, yardstick):
        sides = measured.same, measured.diff
        if all(map(len, sides)):
            means = [number(float(products.mean(dtype=np.float64)), ".2f") for products in sides]
            same, other = name_kinds(results.data[data], quote)
            of_kinds = f"{means[0]} for {same}, {means[1]} for {other}"
            if means[0] == means[1]:
                of_kinds = f"{means[0]} both for {same} and for {other}"
            method = short_name(results, name)(label)
            return f"With {method}, the average cosine similarity is {of_kinds}."
    return ""


def name_kinds(data: DataSet, quote: Name) -> tuple[str, str]:
    """The pairs that count as similar, and those that count as dissimilar."""
    if isinstance(data, ScoredData):
        return (
            f"pairs scored {data.similar:g} or higher",
            f"pairs scored {data.dissimilar:g} or lower",
        )
    noun = _label_noun(data, quote) if isinstance(data, LabelledData) else "group"
    return f"pairs of the same {noun}", "other pairs"


def title_yardstick(data: DataSet, measured: numbers.Measured, yardstick: Yardstick) -> str:
    """What a yardstick's figure shows; a share has the words of the verdict."""
    if not yardstick.is_share or yardstick.measure == "read-back":
        return begin(yardstick.title)
    clause = _describe_measured(data, measured, yardstick, _shorten_noun).clause
    return begin(clause.removesuffix(" for").removesuffix(" in"))


def _shorten_noun(noun: str) -> str:
    return noun if len(noun) <= _FIGURES_NOUN else "label"


def explain_terms(
    results: Results, data: int, yardstick: Yardstick, quote: Name, verdict: str
) -> str:
    """What the labels and the measure of a verdict are, in a few words each."""
    measured_data, noun = results.data[data], _label_noun(results.data[data], quote)
    terms = []
    if isinstance(measured_data, LabelledData) and not isinstance(measured_data, ProbingTask):
        values = join_names([quote(value) for value in sorted(set(measured_data.labels))])
        terms.append(f"{begin(noun)}: {values}.")
    if yardstick.measure == "neighbours":
        terms.append(explain_prediction(noun))
    lower = "↓: lower is better." * (yardstick.sign < 0)
    terms += [YARDSTICKS_IN_SHORT.get(yardstick.measure, ""), lower, explain_interval(verdict)]
    return " ".join(filter(None, terms))


def explain_shared_errors(results: Results, data: int) -> str:
    """What the first figure of shared errors shows; markdown."""
    measure = next(iter(results.compared[data].overlaps))
    return f"{YARDSTICKS_IN_SHORT[measure]} Shares are of the errors of the method with fewer."


def explain_rows(results: Results, name: Name, label: str = "") -> str:
    """What a method is, or all of them."""
    labels = [label] if label else [row.label for row in results.rows]
    methods = join_names(list(map(short_name(results, name), labels)))
    return f"{methods}: {'a way' if len(labels) == 1 else 'ways'} to turn a text into numbers."


def describe_pairs(data: ScoredData, measured: numbers.Measured, label: str) -> str:
    """How people score what a method, whose label is marked up, holds for most similar, or least.

    Empty where the method does not follow people's scores significantly.
    """
    bounds = measured.interval("spearman")
    if bounds is None or bounds[0] <= 0 or len(data.scores) < 6:
        return ""
    ordered = data.scores[np.argsort(measured.products, kind="stable")]
    n = len(ordered) // 3
    low, high = (number(float(part.mean()), ".2f") for part in (ordered[:n], ordered[-n:]))
    return (
        f"With {label}, people's mean score is {high} for the third of the pairs with the highest "
        f"cosine similarities, {low} for the third with the lowest."
    )


def find_confused(confusion: Confusion) -> tuple[int, int] | None:
    """Row and column, after `merge_rarest`, of the single labels confused significantly most."""
    matrix = confusion.merge_rarest()
    is_single = np.isin(matrix.labels, confusion.labels)
    missed = matrix.counts * ~np.eye(len(matrix.labels), dtype=bool)
    n_own, n_taken = matrix.counts.sum(axis=1), missed.sum(axis=0)
    n_others = n_own.sum() - n_own
    excess = missed - np.outer(n_own, n_taken / np.maximum(n_others, 1))
    excess[~np.outer(is_single, is_single)] = -np.inf
    row, column = divmod(int(excess.argmax()), len(n_own))
    n, of_own, of_others = int(missed[row, column]), int(n_own[row]), int(n_others[column])
    chance = compute_chance(n, of_own, int(n_taken[column]), of_others)
    return None if chance * excess.size > SIGNIFICANT else (row, column)


def describe_confusion(confusion: Confusion, label: str, quote: Name) -> str:
    """How often the most confused label is taken for another one; empty where none stands out."""
    place, matrix = find_confused(confusion), confusion.merge_rarest()
    if place is None:
        return ""
    label_of, label_to = (quote(matrix.labels[i]) for i in place)
    n = int(matrix.counts[place[0]].sum())
    share = percent(int(matrix.counts[place]) / n)
    return f"With {label}, {share} of the {many(n, 'text')} of {label_of} are taken for {label_to}."


def describe_followed_quality(
    results: Results, data: int, yardstick: Yardstick, name: Name, quote: Name
) -> str:
    """Which quality of paraphrases the best method follows best; empty where none is measured."""
    for label, measured in best_first(results, data, yardstick):
        maps = [map_ for map_ in measured.paraphrases if np.isfinite(map_.kendall_c).any()]
        if not maps:
            continue
        means = [float(np.nanmean(quality_map.kendall_c)) for quality_map in maps]
        label, high, low = short_name(results, name)(label), np.argmax(means), np.argmin(means)
        spreads = _spread_by_chance(maps[high]), _spread_by_chance(maps[low])
        if means[high] < _critical(len(maps)) * spreads[0]:
            return f"By tau-c, {label} follows no quality significantly."
        n_pairs = len(maps) * (len(maps) - 1)
        if n_pairs and means[high] - means[low] < _critical(n_pairs) * np.hypot(*spreads):
            levels = write_range(means)
            return f"By tau-c, {label} follows all qualities about equally ({levels})."
        entries = [Entry(quote(map_.quality), mean) for map_, mean in zip(maps, means, strict=True)]
        alike = "all qualities equally ({})"
        ranking = most_and_least(entries, "qualities", "most closely ({})", alike)
        return f"By tau-c, {label} follows {ranking}."
    return ""


def _critical(n_tests: int) -> float:
    """Standard deviations that the largest of so many normal values exceeds by chance in 5%."""
    return NormalDist().inv_cdf(1 - SIGNIFICANT / n_tests)


def _spread_by_chance(quality_map: numbers.QualityMap) -> float:
    """Standard deviation of a mean tau of independent orders (Kendall 1938)."""
    n = quality_map.n[np.isfinite(quality_map.kendall_c)]
    return float(np.sqrt((2 * (2 * n + 5) / (9 * n * (n - 1))).sum()) / len(n))


def describe_shared_errors(results: Results, data: int, name: Name = str) -> str:
    """Which two methods make the most different errors; empty where no two make any."""
    name, compared = short_name(results, name), results.compared.get(data)
    overlaps = {} if compared is None else compared.overlaps
    for measure, overlap in overlaps.items():
        share = np.where(np.eye(len(overlap.share), dtype=bool), np.nan, overlap.share)
        if compared is None or not np.isfinite(share).any():
            continue
        places = np.unravel_index(int(np.nanargmin(share)), share.shape)
        low, high = sorted(places, key=lambda row: int(overlap.shared[row, row]))
        better, worse = (name(results.rows[compared.rows[row]].label) for row in (low, high))
        n_broken = int(overlap.shared[low, low])
        if n_broken == 1:
            continue
        broken = many(n_broken, _BROKEN[measure][1])
        written = f"{share[low, high]:.0%}"
        of_pairs = [f"{one:.0%}" for one in share[np.triu_indices(len(share), 1)]]
        is_least = len(of_pairs) > 1 and of_pairs.count(written) == 1
        beginning = f"The errors of {better} and {worse} differ most: of" if is_least else "Of"
        return (
            f"{beginning} the {broken} that {better} gets wrong, {worse} also gets {written} wrong."
        )
    return ""


def short_name(results: Results, name: Name = str) -> Name:
    """``name`` for the short labels of the methods; see `short_labels`."""
    labels = [row.label for row in results.rows]
    short = dict(zip(labels, short_labels(labels), strict=True))
    return lambda label: name(short[label])
