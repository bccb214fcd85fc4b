"""Probing tasks made from texts alone: SentLen, WC and BShift of Conneau et al. (2018).

Adapted to few texts: fewer words to tell apart, and labels of equal frequency.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from neuralviz.errors import TextError, check_choice
from neuralviz.evaluation.data import LabelledData, Measure
from neuralviz.evaluation.probing import FOLDS
from neuralviz.words import many

Task = Literal["length", "word-content", "bigram-shift"]
LabelledTexts = list[tuple[str, str]]  # pairs of text and label

LENGTHS = 6  # ranges of lengths, as in SBERT-WK
MOST_WORDS = 30  # that are told apart; 1000 in the paper, of 100,000 texts
FEWEST_TEXTS = 2 * FOLDS  # with each label
COMMONEST = 0.2  # a word in a larger share of the texts says nothing of any of them
SHORTEST_WORD = 3  # letters
FEWEST_EXCHANGED = 5  # words of a text of which two can be exchanged
MOST_TEXTS = 5000

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SENTENCE_ENDS = frozenset('.!?:;…"“”„«»()[]\n')


@dataclass(frozen=True, eq=False)
class ProbingTask(LabelledData):
    task: Task

    @property
    def by_default(self) -> tuple[Measure, ...]:
        return ("probe",)

    @property
    def rewrites(self) -> bool:
        return self.task == "bigram-shift"

    def describe(self) -> str:
        counts = Counter(self.labels)
        names = ", ".join(list(counts)[:6]) + ", …" * (len(counts) > 6)
        return (
            f"{many(len(self.rows), 'text')}, {min(counts.values())} of each of "
            f"{len(counts)} labels ({names})"
        )


@dataclass(frozen=True)
class TaskKind:
    title: str
    line: str
    question: str  # the same to end a sentence with
    # of the data's name, the texts and a generator
    make: Callable[[str, Sequence[str], np.random.Generator], LabelledTexts]


def probing_task(
    task: str, name: str, texts: Iterable[str], seed: int = 0, *, max_texts: int = MOST_TEXTS
) -> ProbingTask:
    """Make one of `TASKS`, by seed; SettingsError if unknown, TextError if texts do not suit."""
    check_choice("task", task, TASKS)
    draw = np.random.default_rng(seed)
    different = list(dict.fromkeys(texts))
    notes: tuple[str, ...] = ()
    if len(different) > max_texts:
        notes = (f"Using {max_texts:,} of {len(different):,} different texts, drawn at random.",)
        kept = np.sort(draw.choice(len(different), max_texts, replace=False))
        different = [different[row] for row in kept]
    pairs = TASKS[task].make(name, different, draw)
    chosen, labels = zip(*pairs, strict=True)
    return ProbingTask(
        f"{name}, {TASKS[task].title.lower()}",
        chosen,
        np.arange(len(chosen)),
        labels,
        task=task,  # type: ignore[arg-type]
        notes=notes,
    )


def words_of(text: str) -> list[str]:
    """Lower-case words in order, without numbers."""
    return [match.group().lower() for match in _WORD.finditer(text)]


def _balanced(by_label: dict[str, list[str]], draw: np.random.Generator) -> LabelledTexts:
    n = min(map(len, by_label.values()))
    pairs = []
    for label, texts in by_label.items():
        for index in np.sort(draw.choice(len(texts), n, replace=False)):
            pairs.append((texts[index], label))
    return pairs


def _lengths(name: str, texts: Sequence[str], draw: np.random.Generator) -> LabelledTexts:
    """Texts labelled by ranges of word counts, about equally many in each."""
    counts = np.array([len(text.split()) for text in texts])
    in_order = np.sort(counts)
    longer = np.flatnonzero(np.diff(in_order)) + 1  # places where a range can begin
    for n_ranges in range(min(LENGTHS, len(longer) + 1), 1, -1):
        even = np.arange(1, n_ranges) * len(texts) / n_ranges
        cuts = in_order[longer[np.abs(longer - even[:, None]).argmin(axis=1)]]
        number = np.searchsorted(cuts, counts, "right")  # of a text's range
        sizes = np.bincount(number, minlength=n_ranges)
        if sizes.min() >= FEWEST_TEXTS:
            by_range = [np.flatnonzero(number == index).tolist() for index in range(n_ranges)]
            return _balanced(
                {_range(counts[rows]): [texts[row] for row in rows] for rows in by_range}, draw
            )
    raise TextError(
        f"{name} cannot be probed for length: it needs at least {FEWEST_TEXTS} short and "
        f"{FEWEST_TEXTS} long texts, and has {many(len(texts), 'different text')} of "
        f"{many(len(set(counts.tolist())), 'different length')}."
    )


def _range(counts: np.ndarray) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{many(low, 'word')}" if low == high else f"{low} to {high} words"


def _word_content(name: str, texts: Sequence[str], draw: np.random.Generator) -> LabelledTexts:
    words = [set(words_of(text)) for text in texts]
    n_texts = Counter(word for of_text in words for word in of_text)
    frequent = sorted(
        (
            word
            for word, n in n_texts.items()
            if FEWEST_TEXTS <= n <= COMMONEST * len(texts) and len(word) >= SHORTEST_WORD
        ),
        key=lambda word: (-n_texts[word], word),
    )
    chosen = set(frequent[:MOST_WORDS])
    while chosen:
        by_word: dict[str, list[str]] = {word: [] for word in sorted(chosen)}
        for text, of_text in zip(texts, words, strict=True):
            shared = of_text & chosen
            if len(shared) == 1:
                by_word[next(iter(shared))].append(text)
        rarest = min(by_word, key=lambda word: (len(by_word[word]), word))
        if len(by_word[rarest]) >= FEWEST_TEXTS:
            break
        chosen.remove(rarest)
    if len(chosen) < 2:
        raise TextError(
            f"{name} cannot be probed for word content: it needs at least two words that are each "
            f"in {FEWEST_TEXTS} texts or more, in at most {COMMONEST:.0%} of all texts, and not in "
            "the same ones. Use more texts."
        )
    return _balanced(by_word, draw)


def _bigram_shift(name: str, texts: Sequence[str], draw: np.random.Generator) -> LabelledTexts:
    """Texts as they are, and as many others with two neighbouring words exchanged."""
    usable = [(text, places) for text in texts if (places := _exchangeable(text))]
    if len(usable) < 2 * FEWEST_TEXTS:
        raise TextError(
            f"{name} cannot be probed for exchanged words: it needs at least "
            f"{2 * FEWEST_TEXTS} texts of {FEWEST_EXCHANGED} words or more, and has "
            f"{len(usable):,}."
        )
    order = draw.permutation(len(usable))
    half = len(usable) // 2
    originals = set(texts)
    pairs = {}
    for index in order[:half]:
        text, places = usable[index]
        shifted = _exchanged(text, places[draw.integers(len(places))])
        if shifted not in originals:
            originals.add(shifted)
            pairs[int(index)] = (shifted, "exchanged")
    for index in order[half:][: len(pairs)]:
        pairs[int(index)] = (usable[index][0], "as written")
    return [pairs[index] for index in sorted(pairs)]


_Span = tuple[int, int]


def _exchangeable(text: str) -> list[tuple[_Span, _Span]]:
    """Where two different neighbouring words can be exchanged without leaving a trace."""
    spans = [exchangeable.span() for exchangeable in _WORD.finditer(text)]
    if len(spans) < FEWEST_EXCHANGED:
        return []
    exchangeable = []
    for first, second in pairwise(spans):
        before = text[: first[0]].rstrip(" \t")
        begins = not before or before[-1] in _SENTENCE_ENDS
        gap = text[first[1] : second[0]]
        differ = text[slice(*first)].lower() != text[slice(*second)].lower()
        if not begins and gap and not gap.strip() and differ:
            exchangeable.append((first, second))
    return exchangeable


def _exchanged(text: str, places: tuple[_Span, _Span]) -> str:
    (a, b), (c, d) = places
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


TASKS: dict[str, TaskKind] = {
    "length": TaskKind(
        "Length",
        f"Which of up to {LENGTHS} ranges is the number of words in?",
        "how long a text is",
        _lengths,
    ),
    "word-content": TaskKind(
        "Word content",
        f"Which one of up to {MOST_WORDS} words does the text contain?",
        "which word a text contains",
        _word_content,
    ),
    "bigram-shift": TaskKind(
        "Bigram shift",
        "Were two neighbouring words exchanged?",
        "whether two words of a text were exchanged",
        _bigram_shift,
    ),
}
