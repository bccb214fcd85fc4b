"""What a micro-tuning run and its blueprints show: sentences of plain text."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.similarity import most_similar
from neuralviz.headlines import begin, write_range, write_times
from neuralviz.micro_tuning.blanks import describe_blanks, read_hidden_word
from neuralviz.models import BUNDLED
from neuralviz.models.shared import JUDGES
from neuralviz.words import (
    joined,
    many,
    name_pairs,
    name_texts,
    number,
    percent,
    write_guess,
    write_loss,
)

if TYPE_CHECKING:
    from neuralviz.evaluation.similarity import Similarity
    from neuralviz.micro_tuning.events import MaskedPredictions, RunRecord
    from neuralviz.micro_tuning.settings import MaskedInputs, TuningSettings
    from neuralviz.micro_tuning.walkthrough import Walkthrough

QUOTED = 28  # characters of a text
LONGEST_WORD = 24  # characters of a word in a sentence
NAMED = 3  # words with the largest shares
VISIBLE = 0.005  # size of a share whose bar has a value
MOST_GUESSES = 5  # in a sentence
UNREADABLE = 0.5  # share of a text's tokens that are unknown to the vocabulary
EMBEDDING_IN_SHORT = (
    "A text's **embedding** is the change in the model's weights, the numbers that it computes "
    "with, when it trains on this text alone."
)


def explain_tuning(settings: TuningSettings) -> str:
    """What micro-tuning is, in a sentence of markdown."""
    words = "words" if settings.predict_unmasked else "masked (hidden) words"
    return f"**Micro-tuning** trains the model on one text alone, to predict the text's {words}."


def describe_learning(record: RunRecord, text: int) -> str:
    """How far micro-tuning has lowered a text's loss, as far as it has been measured."""
    name, report = _name_text(record, text), record.reports.get(text)
    if text in record.diverged:
        rate = record.settings.learning_rate
        return f"Micro-tuning on {name} diverged at a learning rate of {rate:g}."
    if report is not None and report.text.unknown.mean() > UNREADABLE:
        return (
            f"The model cannot read {name}: it has no token for most of it. All it learnt "
            "to predict is “[UNK]”, which stands for what it cannot read."
        )
    curve = record.loss_curve(text)
    epochs = np.flatnonzero(np.isfinite(curve)).tolist()
    if not epochs:
        return _describe_first_parts(record, text)
    first, last = (write_loss(curve[epoch]) for epoch in (0, epochs[-1]))
    words = "words" if record.settings.predict_unmasked else "masked words"
    if not epochs[-1]:
        return f"At first, the model's error at the {words} of {name}, called loss, is {first}."
    passes = f"{'passes' if epochs[-1] > 1 else 'a pass'} over {name}"
    way = "fallen" if curve[epochs[-1]] < curve[0] else "risen"
    change = f"has {way} from {first} to {last}" if first != last else f"is still {last}"
    return (
        f"After {many(epochs[-1], 'epoch')} ({passes}), the model's error at the {words}, called "
        f"loss, {change}."
    )


def _describe_first_parts(record: RunRecord, text: int) -> str:
    """The loss at what has been read of a text in its first epoch."""
    name, so_far = _name_text(record, text), record.loss_so_far(text)
    if so_far is None:
        return begin(f"{name} has not finished its first epoch.")
    loss, share = so_far
    return (
        f"The loss of {name} starts at about {number(loss, '.2f')} nats, measured on "
        f"{percent(share)} of its masked words so far."
    )


def _name_text(record: RunRecord, *texts: int) -> str:
    return name_texts(texts) if len(record.texts) > 1 else "the text"


def describe_warnings(record: RunRecord) -> list[str]:
    """What is wrong with a run: it diverged, its loss rose, or its texts look foreign."""
    warnings = []
    if record.diverged:
        warnings.append(
            f"The run diverged on {_name_text(record, *sorted(record.diverged))}: the loss became "
            "infinite or NaN. The last finite weights are shown. Lower the learning rate (the "
            "paper uses 0.01)."
        )
    elif risen := [i for i in record.started_texts if record.loss_rose(i)]:
        warnings.append(
            f"The loss of {_name_text(record, *risen)} rose instead of falling. Lower the learning "
            "rate (the paper uses 0.01)."
        )
    if unread := [i for i, report in record.reports.items() if report.is_hardly_read]:
        warnings.append(warn_of_unread(_name_text(record, *unread), record.model_id))
    return warnings


def warn_of_unread(texts: str, model_id: str) -> str:
    """A warning of ``texts``, such as “text 3”, as of `find_hardly_read`."""
    language = " reads English and" * (JUDGES.get(model_id, model_id) == BUNDLED)
    whose = "their" if texts.startswith("texts ") else "its"
    return f"The model{language} hardly reads {texts}: choose a model that knows {whose} words."


def list_unread(unread: str, hardly_read: Iterable[tuple[str, Collection[int]]]) -> list[str]:
    """What `find_unread` says, and a warning by model of other texts that it hardly reads.

    ``hardly_read`` has places by a model's id, and first those in ``unread``, by an empty one.
    """
    sentences, named = [unread] if unread else [], set[int]()
    for model_id, places in hardly_read:
        if (texts := sorted({*places} - named)) and model_id:
            sentences.append(warn_of_unread(name_texts(texts), model_id))
        named.update(texts)
    return sentences


def describe_words(record: RunRecord, text: int) -> str:
    """The words with the largest shares of a text's embedding; empty where shares are unknown."""
    report = record.reports[text]
    if report.shares is None:
        return ""
    words, shares, _ = report.words
    return describe_shares({_name_text(record, text): (words, shares)})


def describe_shares(by_text: Mapping[str, tuple[Sequence[str], np.ndarray]]) -> str:
    """The words with the largest shares, of either sign, of each text's embedding, three at most.

    ``by_text`` has words and [word] shares by the name of a text. Texts of which many words have
    equal shares are left out; empty if all are.
    """
    named = {name: _name_largest(words, shares) for name, (words, shares) in by_text.items()}
    parts = [f"{joined(list(words))} in {name}" for name, words in named.items() if words]
    if not parts:
        return ""
    is_one = len(parts) == 1 and sum(map(len, named.values())) == 1
    s, verb = ("", "is") if is_one else ("s", "are")
    subject = f"The word{s} with the largest share{s} of the change in the weights"
    return f"{subject} {verb} {', and '.join(parts)}."


def _name_largest(words: Sequence[str], shares_of_places: np.ndarray) -> dict[str, float]:
    """Shares by words as ``“bank” (16% in 2 places)``, the largest first."""
    places: dict[str, list[float]] = {}  # shares by word
    spelling: dict[str, str] = {}
    for word, share in zip(words, shares_of_places.tolist(), strict=True):
        if any(map(str.isalnum, word)):
            spelling.setdefault(word.lower(), word)
            places.setdefault(word.lower(), []).append(share)
    shares = {word: sum(parts) for word, parts in places.items()}
    ordered = sorted(shares, key=lambda word: -abs(shares[word]))
    next_ones = {percent(0), *(percent(abs(shares[word])) for word in ordered[NAMED : NAMED + 1])}

    def name(word: str) -> str:
        n = len(places[word])
        sign = "−" if shares[word] < 0 else ""
        often = f" in {n} places" if n > 1 else ""
        spelt = spelling[word]
        spelt = spelt if len(spelt) <= LONGEST_WORD else f"{spelt[: LONGEST_WORD - 1]}…"
        return f"“{spelt}” ({sign}{percent(abs(shares[word]))}{often})"

    largest = [word for word in ordered[:NAMED] if percent(abs(shares[word])) not in next_ones]
    return {name(word): shares[word] for word in largest}


def describe_progress(record: RunRecord) -> str:
    """How many texts are finished, and how far the next are; empty for a finished run."""
    if len(record.reports) == len(record.texts):
        return ""
    n_finished = f"{len(record.reports):,} of {many(len(record.texts), 'text')} finished"
    return f"{n_finished}, in epoch {record.epoch:,} of {record.settings.epochs:,}."


def describe_settings(settings: TuningSettings) -> dict[str, str]:
    """The settings by name, as figures and comparisons of runs write them."""
    return {
        "layers": ", ".join(short_layer_names(settings.layers)),
        "blueprints": (
            "none: every token is predicted"
            if settings.predict_unmasked
            else ", ".join(map(str, settings.blueprints))
        ),
        "epochs": f"{settings.epochs:,}",
        "learning rate": f"{settings.learning_rate:g}",
        "precision": settings.precision_in_words,
    }


def short_layer_names(names: Sequence[str]) -> list[str]:
    """Layer names without their common parts: ``block 6 · output.dense.bias``."""
    return [_shorten_layer(name.split(".")) for name in names]


def _shorten_layer(parts: list[str]) -> str:
    for place, part in enumerate(parts[:-1]):
        if part.isdigit():
            return f"block {int(part) + 1} · {'.'.join(parts[place + 1 :])}"
    return ".".join(parts[-2:])


def compare_with_earlier(record: RunRecord, earlier: RunRecord, numbers: tuple[int, int]) -> str:
    """How a run differs from an earlier one on the same texts."""
    settings, before = (describe_settings(run.settings) for run in (record, earlier))
    differences = [f"{k} {v} instead of {before[k]}" for k, v in settings.items() if v != before[k]]
    line = "wide line, unfinished" if describe_progress(earlier) else "wide line"
    changes = "; ".join(differences) or "the same settings"
    return f"Run {numbers[0]}, compared with run {numbers[1]} ({line}): {changes}."


def describe_similar(products: Similarity, numbers: Sequence[int]) -> str:
    """Which texts are most similar; ``numbers`` are their places in the run, from 0."""
    values = np.sort(products.of_pairs[np.isfinite(products.of_pairs)])
    if not len(values):
        return ""
    lowest, highest = (number(value, ".2f") for value in values[[0, -1]])
    pairs = most_similar(products).tolist()
    lower = values[: len(values) - len(pairs)]
    named = name_pairs([[numbers[place] for place in pair] for pair in pairs])
    if len(values) == 1:
        return f"The embeddings of {named} have a cosine similarity of {highest}."
    if lowest == highest:
        return f"All pairs of texts have about the same cosine similarity ({highest})."
    rest = "pairs have" if len(lower) > 1 else "pair has"
    return (
        f"{begin(named)} are most similar, with a cosine similarity of {highest}; the other "
        f"{rest} {write_range(lower)}."
    )


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
    return (
        f"Each row is one exercise: over {many(len(inputs.masked), 'row')}, every token is hidden "
        f"{write_times(times)}."
    )


def describe_guesses(tokens: Sequence[str], predictions: MaskedPredictions) -> str:
    """What the model predicts for tokens that are masked together."""
    guesses = []
    for place, token in enumerate(predictions.token[:MOST_GUESSES].tolist()):
        best, share = predictions.words[place][0], percent(float(predictions.shares[place, 0]))
        if best == tokens[token]:
            guesses.append(f"“{best}” ({share}), which is right")
        else:
            right = percent(float(predictions.probability[place]))
            guesses.append(f"“{best}” ({share}) where the text has “{tokens[token]}” ({right})")
    n_more = len(predictions) - len(guesses)
    masked = f"; {n_more:,} more are masked" if n_more else ""
    beginning = "guess for the masked token is"
    if len(predictions) > 1:
        beginning = "guesses for the masked tokens are"
    return f"The model's best {beginning} {joined(guesses)}{masked}."


TIE = 0.005  # cosine similarities that differ by less look equal with two digits


def describe_story(walk: Walkthrough) -> list[str]:
    """Four sentences: a blank, the training, the blank again, two texts compared."""
    guess, losses = walk.blank.before[0], walk.losses
    first, last = map(write_loss, losses[[0, -1]])
    hidden = read_hidden_word(walk.text.text, walk.sentence)
    answer, share = "the model's best guess for the blank is", write_guess(guess.before)
    if hidden.casefold() == guess.token.casefold():
        guessing = f"The model guesses the hidden word, “{hidden}” ({share})."
    elif hidden:
        guessing = f"The hidden word is “{hidden}”; {answer} “{guess.token}” ({share})."
    else:
        guessing = f"{begin(answer)} “{guess.token}” ({share})."
    return [
        guessing,
        f"Then the model trains on this text alone, {many(walk.settings.epochs, 'time')} over: its "
        f"error, called loss, goes from {first} to {last}.",
        describe_blanks([walk.blank], "training"),
        _compare_products(walk),
    ]


def _compare_products(walk: Walkthrough) -> str:
    related, unrelated = (number(product, ".2f") for product in walk.products)
    if abs(walk.products[0] - walk.products[1]) < TIE:
        return f"Texts 2 and 3 are about equally similar to text 1 ({related} and {unrelated})."
    if walk.products[0] < walk.products[1]:
        return f"Text 3 is closer to text 1 ({unrelated}) than text 2 is ({related})."
    return f"Text 2 is closer to text 1 ({related}) than text 3 is ({unrelated})."


def describe_steps(walk: Walkthrough) -> list[str]:
    """The eight sentences, the first of which is the result of all steps."""
    related, unrelated = (number(product, ".2f") for product in walk.products)
    n_words, n_inputs = len(walk.text.text.split()), len(walk.inputs.masked)
    often = write_times(walk.inputs.masked.sum(axis=0))
    before, after = walk.before.mean_loss, walk.after.mean_loss
    n_weights = sum(len(weights) for weights in walk.weights)
    furthest = max(float(np.abs(layer[-1, 0]).max()) for layer in walk.deltas)
    norms = walk.tuning.delta_norm[:, 0].mean(axis=1)
    n_to_half = int((norms >= norms[-1] / 2).argmax()) + 1
    return [
        f"Eight steps from a text to a number: its similarity to text 2 is {related}, to text 3 "
        f"{unrelated}.",
        f"{many(n_words, 'word')}, {many(len(walk.text), 'token')}: this is all the model reads.",
        f"{many(n_inputs, 'masked input')}: every token is masked {often}.",
        f"The mean loss is {before:.2f} nats before, {after:.2f} after "
        f"{many(walk.settings.epochs, 'epoch')}.",
        f"Only {n_weights:,} of the model's weights may change, and none changes by more than "
        f"{math.ceil(100 * furthest) / 100:.2f}.",
        f"After {n_to_half} of {many(len(norms), 'epoch')}, the weights are at least halfway "
        "there.",
        "This is the text's embedding: the normalised deltas of "
        f"{many(len(walk.weights), 'layer')}, joined, {n_weights:,} values.",
        _compare_products(walk),
    ]
