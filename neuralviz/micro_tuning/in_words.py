"""What a micro-tuning run has shown so far, in sentences of plain text. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralviz.micro_tuning.blanks import percent
from neuralviz.words import joined, many, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.micro_tuning.watching import TextReport

ALIKE = 1.05  # of the largest to the smallest change: neurons of one size
CLEARLY_MORE = 1.1  # of a change named to the next one: less is not apart from the rest
NAMED_NEURONS = 2
CLOSE_TO_0 = 0.1  # cosine similarities of texts that have taught different things
QUOTED = 28  # characters of a text
MUCH_SURER = 1.2  # times as sure as before: it shows in the percentages
LOSS_FELL = 0.5  # nats
LEAST_EXPECTED = 4  # one in so many positions, the least likely ones

CANCELLED = 1.0  # sum of the negative shares
UNREADABLE = 0.5  # share of a text's tokens that stand for what the vocabulary has not


def run_point(record: RunRecord, text: int) -> str:
    """What the run has done, from its losses until a text is finished, then from its predictions.

    Args:
        record: what is known of the run.
        text: the one that is looked at, counted from 0.
    """
    if text in record.diverged:
        rate = record.settings.learning_rate
        return f"Micro-tuning on text {text + 1} diverged at a learning rate of {rate:g}."
    if text in record.reports:
        return _describe_learning(record, text)
    if not record.epochs_done(text):
        return f"Text {text + 1} has not been started."
    return _describe_losses(record, text)


def _describe_losses(record: RunRecord, text: int) -> str:
    """The first and the last losses of the texts that are under way, as ``text`` is."""
    all_curves = [record.loss_curve(i) for i in record.alike(text)]
    curves = [curve for curve in map(_select_finite, all_curves) if len(curve)]
    if not curves:
        return f"Text {text + 1} has not finished its first epoch."
    first, last = (_format_range([curve[index] for curve in curves], ".2f") for index in (0, -1))
    is_single = len(curves) == 1
    subject = "the loss" if is_single else f"the losses of {len(curves):,} texts"
    epochs = max(map(len, curves)) - 1
    if not epochs:
        return f"{subject.capitalize()} start{'s' * is_single} at {first}."
    are, began = ("is", "it") if is_single else ("are", "they")
    return (
        f"After {epochs:,} of {many(record.settings.epochs, 'epoch')}, {subject} {are} {last}; "
        f"{began} started at {first}."
    )


def _describe_learning(record: RunRecord, text: int) -> str:
    if record.reports[text].text.unknown.mean() > UNREADABLE:
        return (
            f"The model cannot read text {text + 1}: it has no token for most of it. All it learnt "
            "to predict is “[UNK]”, which stands for what it cannot read."
        )
    reports = [report for i, report in record.reports.items() if i not in record.diverged]
    before, after = (
        float(np.mean([getattr(report.predictions, moment).mean() for report in reports]))
        for moment in ("before", "after")
    )
    words = "words" if record.settings.predict_unmasked else "masked words"
    sure, subject = "sure", f"this text's {words}"
    n = len(record.texts)
    if n > 1:
        total = "" if len(reports) == n else f" of {n:,}"
        texts = f"{len(reports):,}{total} texts" if total else many(len(reports), "text")
        sure, subject = "sure, on average,", f"the {words} of {texts}"
    epochs = many(record.settings.epochs, "epoch")
    sentence = (
        f"At first the model was {percent(before)} {sure} of {subject}; after {epochs} it is "
        f"{percent(after)} sure"
    )
    if after < MUCH_SURER * before and (unlikely := _describe_least_expected(reports)):
        sentence += f". But {unlikely}"
    elif after <= before:
        sentence += f": it has not learnt {'it' if n == 1 else 'them'}"
    caused = _two_authors(record, text)
    if caused and n > 1:
        caused = f"In text {text + 1}, {caused}"
    return f"{sentence}. {caused[:1].upper()}{caused[1:]}".rstrip()


def _describe_least_expected(reports: Sequence[TextReport]) -> str:
    """How much likelier the words are that were least likely, to explain how far the loss fell.

    Empty where it hardly fell. A mean probability shows little of that: likely words decide it.
    """
    positions = [report.predictions for report in reports]
    first, last = (
        float(np.mean([getattr(predictions, moment).mean() for predictions in positions]))
        for moment in ("loss_before", "loss_after")
    )
    before, after = (
        np.concatenate([getattr(predictions, moment) for predictions in positions])
        for moment in ("loss_before", "loss_after")
    )
    least = np.argsort(-before, kind="stable")[: max(1, len(before) // LEAST_EXPECTED)]
    factor = float(np.exp(np.mean(before[least] - after[least])))
    if first - last < LOSS_FELL or factor < 2:
        return ""
    times = "over 1,000" if factor > 1000 else number(factor, ".0f" if factor >= 3 else ".1f")
    return (
        f"the words that it expected least are {times} times as likely, and the loss fell from "
        f"{first:.1f} to {last:.1f}"
    )


def words_point(record: RunRecord, text: int) -> str:
    """Which words have the largest shares of a text's embedding; empty where they are not known."""
    largest = _authors(record, text, 3)
    if not largest:
        return ""
    if _cancels(record, text):
        names = joined([f"“{word}”" for word, _ in largest[:2]])
        return (
            f"The words of text {text + 1} pull the weights in opposite directions: {names} "
            "pushed most, and others pulled back."
        )
    (first, share), *rest = largest
    aside = ", punctuation aside," if _largest_mark(record, text) > share else ","
    leader = f"“{first}” ({percent(share)} of the change)"
    if not rest:
        return f"In text {text + 1}{aside} the word that changed the weights most is {leader}."
    named = joined([leader, *(f"“{word}” ({percent(share)})" for word, share in rest)])
    return f"In text {text + 1}{aside} the words that changed the weights most are {named}."


def _two_authors(record: RunRecord, text: int) -> str:
    """The words of the two largest shares; empty where they are not known, or there are no two."""
    largest = _authors(record, text, 2)
    if len(largest) < 2 or _cancels(record, text):
        return ""
    named = joined([f"“{word}”" for word, _ in largest])
    share = percent(sum(share for _, share in largest))
    return f"{named} caused {share} of the change in its weights."


def _cancels(record: RunRecord, text: int) -> bool:
    """Whether words pulled so far the other way that shares of a whole would say nothing."""
    shares = record.reports[text].shares
    return shares is not None and float(-shares[shares < 0].sum()) > CANCELLED


def _shares(record: RunRecord, text: int) -> list[tuple[str, float]]:
    """The words and marks of a text, as they come, with their shares; empty where not known."""
    report = record.reports[text]
    if report.shares is None:
        return []
    shares = np.bincount(report.text.words, weights=report.shares).tolist()
    words = [report.text.text[start:end] for start, end in report.text.word_spans]
    return list(zip(words, shares, strict=True))


def _is_mark(word: str) -> bool:
    return not any(map(str.isalnum, word))


def _largest_mark(record: RunRecord, text: int) -> float:
    """The largest share of punctuation and the like; 0 where there is none."""
    return max((share for word, share in _shares(record, text) if _is_mark(word)), default=0.0)


def _authors(record: RunRecord, text: int, n: int) -> list[tuple[str, float]]:
    """The ``n`` words of the largest shares above 0, and these; each word once."""
    shares: dict[str, float] = {}
    spelt: dict[str, str] = {}
    for word, share in _shares(record, text):
        if not _is_mark(word):
            spelt.setdefault(word.lower(), word)
            shares[word.lower()] = shares.get(word.lower(), 0.0) + share
    largest = sorted(shares, key=lambda name: -shares[name])[:n]
    return [(spelt[name], shares[name]) for name in largest if shares[name] > 0]


def describe_progress(record: RunRecord) -> str:
    """How many texts are finished, which are half-learnt, which not started; empty of a whole run.

    A text with all its epochs on which there is no report is neither finished nor half-learnt.
    """
    n, epochs = len(record.texts), record.settings.epochs
    n_finished = len(record.reports)
    if n_finished == n:
        return ""
    sentences = []
    if n_finished:
        sentences.append(
            f"{n_finished:,} of {many(n, 'text')} {_is_or_are(range(n_finished))} finished."
        )
    by_epoch: dict[int, list[int]] = {}
    for text in sorted(set(range(n)) - set(record.reports)):
        by_epoch.setdefault(record.epochs_done(text), []).append(text)
    missing = by_epoch.pop(0, [])
    for epoch, texts in by_epoch.items():
        if epoch < epochs:
            subject = f"{_name_texts(texts)} {_is_or_are(texts)} half-learnt"
            reached = "it has" if len(texts) == 1 else "they have"
            sentences.append(f"{subject}: {reached} reached epoch {epoch:,} of {epochs:,}.")
        else:
            sentences.append(
                f"{_name_texts(texts)} {_has_or_have(texts)} no word shares and predictions."
            )
    if missing:
        sentences.append(f"{_name_texts(missing)} {_has_or_have(missing)} not been started.")
    return " ".join(sentences)


def describe_differences(settings: TuningSettings, earlier: TuningSettings) -> str:
    """``20 epochs instead of 10, learning rate 0.02 instead of 0.01``; empty where nothing does."""
    differences = []
    if settings.epochs != earlier.epochs:
        differences.append(f"{many(settings.epochs, 'epoch')} instead of {earlier.epochs:,}")
    if settings.learning_rate != earlier.learning_rate:
        differences.append(
            f"learning rate {settings.learning_rate:g} instead of {earlier.learning_rate:g}"
        )
    n, m = len(settings.layers), len(earlier.layers)
    if n != m:
        differences.append(f"{many(n, 'layer')} instead of {m}")
    elif settings.layers != earlier.layers:
        differences.append("other layers")
    if settings.predict_unmasked != earlier.predict_unmasked:
        with_masks = "masks instead of none"
        differences.append("no masks" if settings.predict_unmasked else with_masks)
    elif settings.blueprints != earlier.blueprints and not settings.predict_unmasked:
        blueprints, earlier_blueprints = (
            ", ".join(map(str, run_settings.blueprints)) for run_settings in (settings, earlier)
        )
        differences.append(f"blueprints {blueprints} instead of {earlier_blueprints}")
    if settings.precision_in_words != earlier.precision_in_words:
        differences.append(
            f"precision {settings.precision_in_words} instead of {earlier.precision_in_words}"
        )
    return ", ".join(differences)


def compare_with_earlier(record: RunRecord, earlier: RunRecord, numbers: tuple[int, int]) -> str:
    """How a run differs from an earlier one on the same texts, in settings and in result.

    Args:
        record, earlier: the two.
        numbers: theirs.
    """
    differs = describe_differences(record.settings, earlier.settings) or "the same settings"
    line_note = "wide line" if earlier.progress == 1 else "wide line, unfinished"
    sentence = f"Run {numbers[0]} has {differs}, compared with run {numbers[1]} ({line_note})."
    are_over = record.progress == earlier.progress == 1
    curves = [
        (_select_finite(record.loss_curve(i)), _select_finite(earlier.loss_curve(i)))
        for i in range(len(record.texts))
    ]
    curve_pairs = [(a, b, min(len(a), len(b))) for a, b in curves if len(a) and len(b)]
    if curve_pairs:
        ends = [(a[-1], b[-1]) if are_over else (a[n - 1], b[n - 1]) for a, b, n in curve_pairs]
        new_loss, old_loss = np.mean(ends, axis=0)
        kind = "Its loss" if len(ends) == 1 else "Its mean loss"
        suffix = "" if are_over else " at the same epoch"
        loss, before = (_format_loss(value) for value in (new_loss, old_loss))
        if loss != before:
            sentence += f" {kind} is {loss} instead of {before}{suffix}."
        elif np.isclose(new_loss, old_loss, rtol=1e-4):
            sentence += f" {kind} is the same{suffix}: {loss}."
        else:
            sentence += f" {kind} is nearly the same{suffix}: {loss}."
    if not are_over:
        return sentence
    common = sorted(set(record.started()) & set(earlier.started()))
    if common and record.settings.layers == earlier.settings.layers:
        embeddings, earlier_embeddings = (
            run.embeddings()[[run.started().index(i) for i in common]] for run in (record, earlier)
        )
        cosines = (embeddings * earlier_embeddings).sum(axis=1).tolist()
        phrase = "The two embeddings have" if len(common) == 1 else "A text's two embeddings have"
        sentence += f" {phrase} a cosine similarity of {_format_range(cosines, '.2f')}."
    return sentence


def neurons_point(delta: np.ndarray, layer: str) -> str:
    """Which neurons of a layer changed most, from its delta [dim]; empty while there is none."""
    sizes = np.abs(delta)
    if not np.isfinite(delta).all() or not sizes.max(initial=0.0):
        return ""
    if len(delta) > 2 and sizes.max() <= ALIKE * sizes.min():
        size = number(sizes.mean(), ".2g")
        return f"After one step every neuron has moved by about {size}: its sign is the gradient's."
    if not neurons_stand_out(delta):
        written = ".3f" if sizes.max() >= 0.01 else ".2g"
        low, high, highest = (number(size, written) for size in np.quantile(sizes, [0.25, 0.75, 1]))
        if low == highest:
            return f"No neuron of {layer} stands out: most of {len(delta):,} changed by {highest}."
        return (
            f"No neuron of {layer} stands out: half of all {len(delta):,} changed by {low} to "
            f"{high}, the most by {highest}."
        )
    first, *rest = np.argsort(-sizes)[:NAMED_NEURONS].tolist()
    named = [f"{neuron} ({number(delta[neuron], '+.3f')})" for neuron in (first, *rest)]
    noun = "Neurons" if rest else "Neuron"
    return f"{noun} {' and '.join(named)} of {layer} changed most."


def neurons_stand_out(delta: np.ndarray) -> bool:
    """Whether the largest changes of a delta [dim] are clearly apart from all others."""
    sizes = np.sort(np.abs(delta))[::-1]
    if len(sizes) <= NAMED_NEURONS:
        return True
    return bool(sizes[NAMED_NEURONS - 1] >= CLEARLY_MORE * sizes[NAMED_NEURONS])


def similar_point(vectors: np.ndarray, texts: Sequence[str]) -> str:
    """Which texts are most and which least similar, or that all have taught different things.

    Args:
        vectors: [text, dim] their embeddings, of length 1.
        texts: [text] as they were given; their first words are quoted.
    """
    if len(texts) < 2:
        return ""
    products = vectors @ vectors.T
    first, second = np.triu_indices(len(texts), 1)
    pair_products = products[first, second]

    def pair(index: int) -> str:
        names = joined([f"“{first_words(texts[i])}”" for i in (first[index], second[index])])
        return f"{names} ({number(pair_products[index], '.2f')})"

    if np.abs(pair_products).max() < CLOSE_TO_0:
        cosines = _format_range(pair_products.tolist(), ".2f")
        noun = "cosine similarity" if len(pair_products) == 1 else "cosine similarities"
        return f"These texts taught the model different things: {noun} {cosines}, close to 0."
    if len(pair_products) == 1:
        cosine = number(pair_products[0], ".2f")
        return f"The embeddings of the two texts have a cosine similarity of {cosine}."
    highest, lowest = int(pair_products.argmax()), int(pair_products.argmin())
    return f"The most similar are {pair(highest)}, the least {pair(lowest)}."


def first_words(text: str, at_most: int = QUOTED) -> str:
    """A text's first words, on one line: ``The bank has raised its …``."""
    line = " ".join(text.split())
    if len(line) <= at_most:
        return line
    beginning = line[: at_most + 1].rpartition(" ")[0] or line[:at_most]
    return f"{beginning} …"


def _format_loss(value: float) -> str:
    """``2.01``, ``0.0048``."""
    return number(value, ".2f" if value >= 0.1 else ".2g")


def _select_finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def _format_range(values: Sequence[float], spec: str) -> str:
    """``2.24 to 2.92``, or one number where both ends read alike."""
    low, high = (number(end, spec) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _name_texts(texts: Sequence[int]) -> str:
    """``Text 4``, ``Texts 4 and 5``, ``Texts 4 to 19``; they follow each other."""
    first, last = texts[0] + 1, texts[-1] + 1
    if first == last:
        return f"Text {first:,}"
    return f"Texts {first:,} {'and' if last == first + 1 else 'to'} {last:,}"


def _is_or_are(texts: Sequence[int]) -> str:
    return "is" if len(texts) == 1 else "are"


def _has_or_have(texts: Sequence[int]) -> str:
    return "has" if len(texts) == 1 else "have"
