"""What maps of a corpus show: sentences of markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from neuralviz.headlines import (
    SIGNIFICANT,
    Measured,
    Name,
    begin,
    explain_interval,
    predict_labels,
    rank_hits,
    write_values,
)
from neuralviz.maps.shares import LEAST_RATIO, compute_chance
from neuralviz.micro_tuning.blanks import describe_blanks
from neuralviz.micro_tuning.events import FilledBlank
from neuralviz.words import joined, many, number, percent

ALIKE = 0.5  # share of the neighbours in common, beyond chance, from which two methods agree
REAL = 0.5  # share of the nearest texts that a label needs for a sentence to be near it
NAMED = 4  # clusters in a sentence
_BY_RANK, _BOUNDS = r"rank correlation (is )?\*\*", r"95% interval(:| is) "  # in no user's words
SURE = 0.05  # of a best guess, from which it tells something
STRICT = 0.01  # of one of clusters with a word: people search often


def describe_label(
    methods: Sequence[str],  # markdown
    label: str,  # column of labels, markdown
    hits: Sequence[np.ndarray],  # by method: [text] is the vote right?
    baseline: float,  # accuracy of always saying the most frequent label
    k: int,
    origin: str = "",  # follows the number of texts, such as “ drawn at random”
) -> str:
    """By which method the nearest texts predict a label best."""
    names = [f"**{method}**" for method in methods]
    guesser = f"always guessing the most frequent {label}"
    guessing = f"{guesser} reaches {write_values([baseline], is_share=True)[0]}"
    sample = many(len(hits[0]), "text") + origin
    clause = predict_labels(label, k)
    share = Measured(clause, sample, "of", True, guessing, guesser, baseline)
    return rank_hits(share, names, hits).write_sentence()


def describe_agreement(
    methods: Sequence[str], share: float, k: int, texts: str, n_others: int
) -> str:
    """How far two methods agree: the mean share, 0 … 1, of ``k`` nearest texts in common.

    Empty where ``k`` are so many of the ``n_others`` that chance brings half in common.
    """
    first, second = methods
    by_chance = k / n_others
    if by_chance > ALIKE:
        return ""
    manner = "in much the same way"
    if share - by_chance < ALIKE * (1 - by_chance):
        manner = "differently"
    overlap = f"share **{percent(share)}** of a text's {many(k, 'nearest text')}"
    return f"The methods **{first}** and **{second}** group {texts} {manner}: they {overlap}."


def describe_disagreement(methods: Sequence[str], share: float, k: int, texts: str) -> str:
    """How far two maps agree on the neighbours of ``texts``, on average."""
    first, second = methods
    return (
        f"On average over {texts}, **{first}** and **{second}** share **{percent(share)}** of a "
        f"text's {many(k, 'nearest text')}."
    )


def explain_maps(terms: str, headline: str) -> str:
    """What is drawn on maps, and the ``terms`` of the headline, in a few words each."""
    points = "Each point is a text; texts that are close together are mostly similar."
    parts = [points, terms.strip()]
    if re.search(_BY_RANK, headline):
        parts.append("**Rank correlation** is 1 where neighbours rank alike, 0 by chance.")
    if re.search(_BOUNDS, headline):
        parts.append(explain_interval(headline))
    return " ".join(filter(None, parts))


def describe_unmade(corpus: str, n_texts: int, methods: str) -> str:
    """What is to be seen before there is a map; names are markdown."""
    return f"There is no map of **{corpus}** ({many(n_texts, 'text')}) by {methods} yet."


def describe_clusters(method: str, names: Sequence[str], sizes: Sequence[int], n_texts: int) -> str:
    """The themes of a corpus: its clusters on a map, the largest first; names are markdown.

    Those that no words distinguish have the name ``""``.
    """
    texts = many(n_texts, "text")
    if not names:
        return f"By **{method}**, these {texts} form no clusters: no group is dense enough."
    form = f"By **{method}**, {sum(sizes):,} of {texts} form {many(len(names), 'cluster')}"
    if not any(names):
        return f"{form}, but no words tell {'them' if len(names) > 1 else 'it'} apart."
    quoted = [quote_cluster(name, n) for name, n in zip(names, sizes, strict=True)]
    if len(names) <= NAMED:
        return f"{form}: {joined(quoted)}."
    n_larger = sum(size > sizes[NAMED] for size in sizes)  # than the first that is not named
    if not n_larger:
        named = [phrase for phrase, name in zip(quoted, names, strict=True) if name]
        return f"{form}, such as {joined(named[:NAMED])}."
    return f"{form}: the largest {'are' if n_larger > 1 else 'is'} {joined(quoted[:n_larger])}."


def join_methods(sentences: Iterable[str]) -> str:
    """Different sentences as paragraphs, and as one sentence where each is by a method."""
    return "\n\n".join(dict.fromkeys(sentences)).replace(".\n\nBy **", "; by **")


def quote_cluster(name: str, n_texts: int) -> str:
    """``*bounce error* (17 texts)``"""
    quoted = f"*{name}*" if name else "one without typical words"
    return f"{quoted} ({many(n_texts, 'text')})"


def describe_trend(
    name: str,  # column or measure, markdown
    trends: Sequence[tuple[str, float]],  # method, markdown, and its correlation, where decided
    ends: Sequence[tuple[str, str]],  # cluster, markdown, and its mean, first that of the highest
    n_texts: int,
    extremes: tuple[str, str] = ("highest", "lowest"),
) -> str:
    """Whether near texts have similar numbers, and which clusters the ends are in; may be empty."""
    if not trends and n_texts:
        values = f"significantly similar values of **{name}**"
        return f"Neighbouring texts do not have {values} ({many(n_texts, 'text')})."
    if not trends:
        return ""
    written = write_values([correlation for _, correlation in trends], is_share=False)
    (first, _), texts = trends[0], many(n_texts, "text")
    similar = f"neighbouring texts have similar values of **{name}**"
    places = ""
    if ends:
        (high, highest), (low, lowest) = ends
        places = f"they are {extremes[0]} in *{high}* ({highest} on average)"
        places += f", {extremes[1]} in *{low}* ({lowest})"
    if len(trends) == 1:
        ending = f": {places}" if places else ""
        return f"By **{first}**, {similar} (rank correlation **{written[0]}**, {texts}){ending}."
    by_method = joined([f"**{v}** by **{m}**" for v, (m, _) in zip(written, trends, strict=True)])
    ending = f" By {first}, {places}." if places else ""
    return f"{begin(similar)}: the rank correlation is {by_method} ({texts}).{ending}"


def describe_matches(
    quoted: str,  # what was searched for, markdown, such as ``“ice” and “snow”``
    n_found: int,
    n_texts: int,  # that were searched
    clusters: Sequence[tuple[str, int, int]],  # name, markdown; texts found in it; texts in it
    method: str = "",  # that they are on the map of, markdown, if it is one of several
) -> str:
    """How many texts contain words, and the cluster with most of them, where it has many more."""
    if not n_found:
        return f"No text contains {quoted}."
    sentence = f"**{n_found:,}** of {many(n_texts, 'text')} contain{'s' * (n_found == 1)} {quoted}"
    name, n_there, size = max(clusters, key=lambda cluster: cluster[1], default=("", 0, 0))
    chance = compute_chance(n_there, n_found, size, n_texts) * len(clusters)
    is_frequent = n_there * n_texts >= LEAST_RATIO * n_found * size
    if name and is_frequent and n_there > max(1, REAL * n_found) and chance <= STRICT:
        part = "all" if n_there == n_found else f"{n_there:,} of them"
        where = f"by **{method}**, " if method else ""
        sentence += f"; {where}{part} are in the cluster {quote_cluster(name, size)}"
    return f"{sentence}."


def describe_landing(
    sentence: str,
    methods: Sequence[str],
    labels: Sequence[Sequence[str]],  # by method, of the nearest texts; ``""`` is none
    name: str,  # column of labels, markdown; empty without one
    nearest: Sequence[str],  # text nearest to the sentence, by method, markdown
    sizes: Mapping[str, int],  # texts by label, of all
    quote: Name = str,  # escapes a label
) -> str:
    """The label that texts near a sentence have more often than by chance, else the nearest text.

    Half of the nearest texts or more have it, and chance, corrected for all labels, is 5% at most.
    """
    near: dict[str, list[str]] = {}
    for method, labels_near in zip(methods, labels, strict=True):
        counts, k = Counter(filter(None, labels_near)).most_common(2), len(labels_near)
        (label, n), (_, next_n) = [*counts, ("", 0), ("", 0)][:2]
        if n > next_n and n >= REAL * k and _is_no_chance(n, labels_near, label, sizes):
            verb = "has" if n == 1 else "have"
            among = f"{n} of its {many(k, 'nearest text')} {verb}"
            if n == k:
                among = f"its {k} nearest texts all have" if k > 1 else "its nearest text has"
            near.setdefault(f"{among} the {name} **{quote(label)}**", []).append(method)
    if near:
        clauses = [f"by {joined(named)}, {claim}" for claim, named in near.items()]
        return f"“{sentence}”: {'; '.join(clauses)}."
    texts = [f"“{text}” by **{method}**" for text, method in zip(nearest, methods, strict=True)]
    if len(nearest) > 1 and len(set(nearest)) == 1:
        texts = [f"“{nearest[0]}”"]
    stop = "" if texts and texts[-1].endswith((".”", "!”", "?”")) else "."
    return f"The text nearest to “{sentence}” is {joined(texts)}{stop}" if texts else ""


def _is_no_chance(n: int, near: Sequence[str], label: str, sizes: Mapping[str, int]) -> bool:
    """Whether so many texts drawn at random would hardly have this label, or any other."""
    n_labelled = len(list(filter(None, near)))
    by_chance = compute_chance(n, n_labelled, sizes[label], sum(sizes.values()))
    return by_chance * len(sizes) <= SIGNIFICANT


def describe_duplicates(n_similar: int, n_texts: int, method: str = "") -> str:
    """How many texts have a near-duplicate, without a full stop; empty where none has."""
    if not n_similar:
        return ""
    start, verb = f"By {method}, " if method else "", "has" if n_similar == 1 else "have"
    return f"{start}**{n_similar:,} of {many(n_texts, 'text')}** {verb} a near-duplicate"


def describe_groups(
    method: str, threshold: float, n_similar: int, sizes: Sequence[int], n_texts: int, rule: str
) -> str:
    """What remains of near-duplicates; ``sizes`` are those of groups, of which one text is kept."""
    reaching = f"a cosine similarity of {number(threshold)}{' or more' * (threshold < 1)}"
    if not n_similar:
        return f"By **{method}**, no two texts have {reaching}."
    n_removed = sum(sizes) - len(sizes)
    group = "each group" if len(sizes) > 1 else "the group"
    return (
        f"By **{method}**, {describe_duplicates(n_similar, n_texts)} ({reaching}); keeping only "
        f"the {rule} text of {group} removes {many(n_removed, 'text')} and leaves "
        f"**{n_texts - n_removed:,}**."
    )


def describe_held_group(
    methods: Sequence[str],  # markdown: the one that holds the group together, and the other
    n_texts: int,
    within: Sequence[float],  # mean standardised cosine of the group's pairs, by method
    phrase: str = "",  # markdown, as are the words
    words: Sequence[str] = (),
    lengths: tuple[int, int] | None = None,  # median words, in the group and outside
) -> str:
    """A group that one method holds together far more than the other, and what its texts share."""
    highest, lowest = (number(mean, ".1f") for mean in within)
    kind = ""
    if lengths:
        kind = "longer " if lengths[0] > lengths[1] else "shorter "
        shared = f"have {lengths[0]:,} words, the others {lengths[1]:,} (medians)"
    if words:
        noun = "word" if len(words) == 1 else "words"
        shared = f"share the {noun} {joined([f'“{word}”' for word in words])}"
    if phrase:
        shared = f"share “{phrase}”"
    first, second = (f"**{method}**" for method in methods)
    return (
        f"**{many(n_texts, kind + 'text')}** are closer together by {first} than by {second}: they "
        f"{shared}.\n\nTheir cosine similarity is above the average of all pairs by {highest} "
        f"standard deviations (usual distances from average) with {first}, {lowest} with {second}."
    )


def describe_answer(blanks: Sequence[FilledBlank], action: str) -> str:
    """What a model puts into blanks after an ``action``, such as *adding the mean …*."""
    best = [blank.after[0] for blank in blanks]
    if any(guess.after >= SURE for guess in best):
        return describe_blanks(blanks, action)
    highest = percent(max(guess.after for guess in best))
    return f"After {action}, the model has no clear guess: its best one has {highest}."
