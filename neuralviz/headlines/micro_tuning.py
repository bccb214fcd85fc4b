"""What a micro-tuning run and its blueprints show: sentences of plain text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.headlines import Entry, begin, most_and_least, write_range, write_times
from neuralviz.words import joined, many, number, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.micro_tuning.blueprints import MaskedInputs
    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.micro_tuning.settings import TuningSettings
    from neuralviz.micro_tuning.walkthrough import Walkthrough


CLOSE_TO_0 = 0.1  # cosine similarities of texts that taught the model different things
QUOTED = 28  # characters of a text
CANCELLED = 1.0  # sum of the negative shares
UNREADABLE = 0.5  # share of a text's tokens that are unknown to the vocabulary


def describe_learning(record: RunRecord, text: int) -> str:
    """What a run has done: its losses until the text is finished, then its predictions."""
    name = _name_text(record, text)
    if text in record.diverged:
        rate = record.settings.learning_rate
        return f"Micro-tuning on {name} diverged at a learning rate of {rate:g}."
    if text not in record.reports:
        return _describe_losses(record, text)
    if record.reports[text].text.unknown.mean() > UNREADABLE:
        return (
            f"The model cannot read {name}: it has no token for most of it. All it learnt "
            "to predict is “[UNK]”, which stands for what it cannot read."
        )
    reports = [report for i, report in record.reports.items() if i not in record.diverged]
    before, after = [r.before for r in reports], [r.after for r in reports]
    sure, sure_after = (
        float(np.mean([p.probability.mean() for p in predictions]))
        for predictions in (before, after)
    )
    loss, loss_after = (
        float(np.mean([p.mean_loss for p in predictions])) for predictions in (before, after)
    )
    n, n_done = len(record.texts), len(reports)
    texts = many(n, "text") if n_done == n else f"{n_done:,} of {many(n, 'text')}"
    words = "words" if record.settings.predict_unmasked else "masked words"
    subject = f"this text's {words}" if n == 1 else f"the {words} of {texts}, on average"
    first, last = _format_loss(loss), _format_loss(loss_after)
    losses = f"loss {first}, then {last}"
    if first != last and loss_after < loss:
        losses = f"the loss fell from {first} to {last}"
    return (
        f"At first the model was {percent(sure)} sure of {subject}; after "
        f"{many(record.settings.epochs, 'epoch')} it is {percent(sure_after)} sure ({losses})."
    )


def _describe_losses(record: RunRecord, text: int) -> str:
    """The first and the last losses of the texts that are under way, as ``text`` is."""
    name = _name_text(record, text)
    if not record.epochs_done(text):
        return begin(f"{name} has not been started.")
    all_curves = [record.loss_curve(i) for i in record.texts_like(text)]
    curves = [curve for curve in map(_select_finite, all_curves) if len(curve)]
    if not curves:
        return begin(f"{name} has not finished its first epoch.")
    first, last = (write_range([curve[i] for curve in curves]) for i in (0, -1))
    subject = "the loss is" if len(curves) == 1 else f"the losses of {len(curves):,} texts are"
    n_done, epochs = max(map(len, curves)) - 1, many(record.settings.epochs, "epoch")
    if not n_done:
        return f"At first {subject} {first}."
    return f"After {n_done:,} of {epochs}, {subject} {last}; at first {first}."


def _name_text(record: RunRecord, text: int) -> str:
    return f"text {text + 1}" if len(record.texts) > 1 else "the text"


def describe_words(record: RunRecord, text: int) -> str:
    """Which words have the largest shares of a text's embedding; empty where they are unknown."""
    report, name = record.reports[text], _name_text(record, text)
    largest = _largest_words(record, text)
    if report.shares is None or not largest:
        return ""
    if float(-report.shares[report.shares < 0].sum()) > CANCELLED:
        names = joined([f"“{word}”" for word, _ in largest[:2]])
        return (
            f"The words of {name} pull the weights in opposite directions: {names} "
            "pushed most, and others pulled back."
        )
    named = joined([f"“{word}” ({percent(share)})" for word, share in largest])
    return (
        f"In {name}, punctuation aside, the largest shares of the change in the weights "
        f"come from {named}."
    )


def _largest_words(record: RunRecord, text: int, n: int = 3) -> list[tuple[str, float]]:
    """The ``n`` words with the largest shares above 0, each once, without punctuation."""
    report = record.reports[text]
    if report.shares is None:
        return []
    shares: dict[str, float] = {}
    spelt: dict[str, str] = {}
    by_word = np.bincount(report.text.words, weights=report.shares).tolist()
    for (start, end), share in zip(report.text.word_spans, by_word, strict=True):
        word = report.text.text[start:end]
        if any(map(str.isalnum, word)):
            spelt.setdefault(word.lower(), word)
            shares[word.lower()] = shares.get(word.lower(), 0.0) + share
    largest = sorted(shares, key=lambda name: -shares[name])[:n]
    return [(spelt[name], shares[name]) for name in largest if shares[name] > 0]


def describe_progress(record: RunRecord) -> str:
    """How many texts are finished, under way and not started; empty for a finished run."""
    n, n_finished = len(record.texts), len(record.reports)
    n_begun = len(record.started_texts) - n_finished
    if n_finished == n:
        return ""
    epoch = f"epoch {record.epochs_reached:,} of {record.settings.epochs:,}"
    states = {
        "finished": n_finished,
        f"under way ({epoch})": n_begun,
        "not started": n - n_finished - n_begun,
    }
    counts = [f"{count:,} {state}" for state, count in states.items() if count]
    return f"Of {many(n, 'text')}: {joined(counts)}."


def _describe_settings(settings: TuningSettings) -> dict[str, str]:
    masks = ", ".join(map(str, settings.blueprints))
    return {
        "epochs": f"{settings.epochs:,}",
        "learning rate": f"{settings.learning_rate:g}",
        "layers": f"{len(settings.layers):,}",
        "precision": settings.precision_in_words,
        "masks": "none" if settings.predict_unmasked else masks,
    }


def compare_with_earlier(record: RunRecord, earlier: RunRecord, numbers: tuple[int, int]) -> str:
    """How a run differs from an earlier one on the same texts."""
    settings, before = (_describe_settings(run.settings) for run in (record, earlier))
    differences = [f"{k} {v} instead of {before[k]}" for k, v in settings.items() if v != before[k]]
    if settings["layers"] == before["layers"] and record.settings.layers != earlier.settings.layers:
        differences.append("other layers")
    line = "wide line" if earlier.progress == 1 else "wide line, unfinished"
    if not differences:
        return f"Run {numbers[0]} has the same settings as run {numbers[1]} ({line})."
    changes = ", ".join(differences)
    return f"Run {numbers[0]}, compared with run {numbers[1]} ({line}): {changes}."


def describe_similar(vectors: np.ndarray, texts: Sequence[str]) -> str:
    """Which texts are most and least similar, from [text, dim] embeddings of length 1."""
    if len(texts) < 2:
        return ""
    first, second = np.triu_indices(len(texts), 1)
    products = (vectors @ vectors.T)[first, second]
    if np.abs(products).max() < CLOSE_TO_0:
        cosines = write_range(products)
        return f"These texts taught the model different things: cosine similarity {cosines}."
    if len(products) == 1:
        cosine = number(products[0], ".2f")
        return f"The embeddings of the two texts have a cosine similarity of {cosine}."
    quoted = [f"“{first_words(text)}”" for text in texts]
    pairs = [
        Entry(f"{quoted[i]} and {quoted[j]}", float(product))
        for i, j, product in zip(first, second, products, strict=True)
    ]
    alike = "all pairs of texts are about equally similar ({})"
    return begin(f"{most_and_least(pairs, 'are most similar ({})', alike)}.")


def first_words(text: str, at_most: int = QUOTED) -> str:
    """A text's first words, on one line: ``The bank has raised its …``."""
    line = " ".join(text.split())
    if len(line) <= at_most:
        return line
    return f"{line[: at_most + 1].rpartition(' ')[0] or line[:at_most]} …"


def describe_masks(inputs: MaskedInputs) -> str:
    """How often blueprints mask the tokens of a chunk."""
    times = inputs.times_masked
    if not times.all():  # with a shift by j + 1, token j is masked: only the last one may be left
        return "The last token is never masked: the model does not have to predict it."
    inputs_in_words = many(len(inputs.masked), "masked input")
    return f"In {inputs_in_words}, every token is masked {write_times(times)}."


def _format_loss(value: float) -> str:
    """``2.01``, ``0.0048``."""
    return number(value, ".2f" if value >= 0.1 else ".2g")


def _select_finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


TIE = 0.005  # cosine similarities that differ by less look equal with two digits


def describe_steps(walk: Walkthrough) -> list[str]:
    """The nine sentences, the first of which is the result of all steps."""
    related, unrelated = (number(product, ".2f") for product in walk.products)
    n_words, n_inputs = len(walk.text.text.split()), len(walk.inputs.masked)
    often = write_times(walk.inputs.masked.sum(axis=0))
    neighbours = "" if often == "once" else ", each time with other neighbours to guess it from"
    before, after = walk.before.mean_loss, walk.after.mean_loss
    verb = "falls" if after < before else "does not fall"
    n_weights = sum(len(weights) for weights in walk.weights)
    furthest = max(float(np.abs(layer[-1, 0]).max()) for layer in walk.deltas)
    norms = walk.tuning.delta_norm[:, 0].mean(axis=1)
    n_to_half = int((norms >= norms[-1] / 2).argmax()) + 1
    product = (
        f"Text 2 is closer to text 1 ({related}) than text 3 is ({unrelated}), as it should be."
    )
    if abs(walk.products[0] - walk.products[1]) < TIE:
        product = f"Texts 2 and 3 are equally similar to text 1 ({related})."
    elif walk.products[0] < walk.products[1]:
        product = (
            f"Text 3 is closer to text 1 ({unrelated}) than text 2 is ({related}). Would you agree?"
        )
    return [
        f"Nine steps from a text to a number: its similarity to a related text is {related}, to an "
        f"unrelated one {unrelated}.",
        f"{many(n_words, 'word')}, {many(len(walk.text), 'token')}: this is all the model reads.",
        f"{many(n_inputs, 'masked input')}: every token is masked {often}{neighbours}.",
        f"The mean loss {verb}: {before:.2f} nats before, {after:.2f} after "
        f"{many(walk.settings.epochs, 'epoch')}.",
        f"Only {n_weights:,} of the model's weights may change, and none changes by more than "
        f"{math.ceil(100 * furthest) / 100:.2f}.",
        f"After {n_to_half} of {many(len(norms), 'epoch')}, the weights are at least half of the "
        "way.",
        f"The deltas of {many(len(walk.weights), 'layer')}, one after the other, make a vector of "
        f"{n_weights:,} values.",
        f"This is the text's embedding: {n_weights:,} values.",
        product,
    ]
