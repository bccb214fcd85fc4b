"""What the views of layer dynamics and a ladder of frozen features show: plain text, markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralviz.evaluation.best_layer import best_layer, interval_of_difference, reversed_median
from neuralviz.evaluation.bootstrap import seem_reversed
from neuralviz.evaluation.correlation import REVERSE
from neuralviz.evaluation.ladder_results import (
    FLOOR,
    LINEAR,
    NEURAL,
    SENTENCE,
    best_line,
    ladder_lines,
    lead_interval,
)
from neuralviz.headlines import (
    COSINE_IN_SHORT,
    METHOD_LINES,
    Entry,
    Headline,
    Measured,
    Name,
    begin,
    compare_two,
    explain_interval,
    most_and_least,
    write_lead,
    write_range,
    write_values,
)
from neuralviz.layers.settings import POOLING_NAMES
from neuralviz.training.similarity.settings import RUNG_NAMES, Rung
from neuralviz.words import counted, joined, many, number, percent

if TYPE_CHECKING:
    from neuralviz.evaluation.best_layer import BestLayer, MeasuredPooling
    from neuralviz.evaluation.ladder_results import Ladder, LadderLine
    from neuralviz.layers.geometry import FollowedWord
    from neuralviz.layers.words import TokenWeights
    from neuralviz.micro_tuning.lens import Lens

NAMED = 3  # words of each kind
LONGEST = 24  # characters of a word
SAME_IMPORTANCE = 1e-6
CLEARLY = 0.05  # cosines that differ by less are not told apart


def describe_best_layer(
    by_layer: Mapping[str, Sequence[MeasuredPooling]],
    *,
    is_whole: bool = True,  # all layers are measured
) -> tuple[str, BestLayer | None]:
    """Which layer follows people's scores best, compared with the last one; also that layer."""
    best = best_layer(by_layer, "spearman")
    n_pairs = next((len(layers[0].scores) for layers in by_layer.values() if layers), 0)
    pairs = many(n_pairs, "sentence pair")
    if best is None:
        return f"Spearman is undefined for every layer on {pairs}.", None
    median = reversed_median(by_layer, "spearman") if is_whole else None
    if median is not None:
        return (
            f"No layer follows people's scores: the median Spearman correlation of all layers is "
            f"{number(median, '.2f')} on {pairs}. {REVERSE}"
        ), best
    measured = Measured("the Spearman correlation with people's scores is", pairs)
    layer_name = f"the last layer ({best.layer})" if best.is_last else f"layer {best.layer}"
    winner = Entry(f"the {POOLING_NAMES[best.pooling]} in {layer_name}", best.value)
    if best.rival is None:
        return Headline(measured, winner).write_sentence(), best
    layers, rival = by_layer[best.pooling], best.rival
    bounds, reason = None, ""
    if is_whole:
        bounds = interval_of_difference(layers[best.layer], layers[rival], "spearman")
        reason = f"{pairs} are too few to tell whether the difference is significant"
    rival_name = "the last layer" if rival == len(layers) - 1 else f"layer {rival}"
    second = Entry(rival_name, best.rival_value)
    return compare_two(measured, winner, second, bounds, reason), best


def explain_lens(before: Lens, after: Lens | None, position: int) -> str:
    """What the figure of a token shows, and the terms of its headline; plain text."""
    sentence = "The model guesses the hidden word from the others, anew after each of its"
    if not before.has_head:
        sentence = (
            "Each token (a word, a piece of one, or a sign) has a list of numbers in the embedding "
            "table. Cosine similarity: 1: alike, 0 or less: unrelated. The model changes the list "
            "in"
        )
    sentence += " steps (layers; layer 0: before the first)."
    sentence += " An early guess may be better than the last." * before.has_head
    sentence += " Training: the model practises on this text alone." * (after is not None)
    return sentence + " ## continues a word or number." * before.names[position].startswith("##")


def explain_guesses(lens: Lens, most_written: int) -> str:
    """What the cells of a figure of all tokens show; plain text."""
    n_tokens, n_all = len(lens.tokens), len(lens.text)
    guess = "what the model would guess"
    nearness = "more probable the hidden token itself is (0 to 100%)"
    if not lens.has_head:
        guess, nearness = "the nearest token", "more similar the token is to its own row (0 to 1)"
    shown = "Point at a cell for" if n_tokens > most_written else "A cell has"
    sentence = (
        f"{shown} {guess} at a layer: the brighter, the {nearness}. Click one to follow its token."
    )
    return sentence + f" Only the first {n_tokens} of {n_all:,} tokens are read." * (
        n_tokens < n_all
    )


def describe_lead(before: Lens, after: Lens | None, position: int) -> str:
    """From which layer on the chosen token leads, before and after micro-tuning; plain text."""
    firsts = [lens.first_on_top[position] for lens in (before, after) if lens is not None]
    layers = "; after training: ".join("none" if first < 0 else f"{first}" for first in firsts)
    lead = "stays the best guess" if before.has_head else "stays nearest to its own row"
    return f"The layer from which “{before.names[position]}” {lead}: {layers}."


def describe_lens(before: Lens, after: Lens | None, position: int) -> str:
    """How probable a hidden token is at the last layer, before and after micro-tuning."""
    word, share = before.names[position], before.values[position, -1]
    if not before.has_head:
        return (
            "This model has no prediction head, but an embedding table: at the last layer, the "
            f"cosine similarity of “{word}” with its own row there is {number(share, '.2f')}."
        )
    sentence = f"At the last layer, the model gives the hidden “{word}” a probability of"
    if after is None:
        return f"{sentence} {percent(share)}."
    after_shares = after.values[position]
    if not np.isfinite(after_shares[-1]):
        ending = "none, as its weights are no numbers"
        return f"{sentence} {percent(share)}, after training on the text {ending}."
    return f"{sentence} {percent(share)}, after training on the text {percent(after_shares[-1])}."


TEXT_IN_SHORT = (
    "**Embedding**: the list of numbers that stands for a text. "
    f"**sbert-wk**: {METHOD_LINES['sbert-wk']}. Green: the words named above. **[start]**: a "
    "mark that the model reads before the text."
)


def explain_layers(headline: str) -> str:
    """What a figure of layers and people's scores shows, and its headline's terms; markdown."""
    return (
        "People scored how alike the texts of a pair are; the model's score is their cosine "
        f"similarity at a layer. {COSINE_IN_SHORT} It compares the vector (list of numbers) of one "
        "token (a word, a part of it, or the mark at the start or end), or the mean of all; layer "
        "0 is what the first one reads. **Spearman**: 1 if cosines and people's scores rise "
        f"together, 0 if they are unrelated. {explain_interval(headline)}"
    ).rstrip()


def describe_text(words: Sequence[FollowedWord], weights: TokenWeights) -> str:
    """The most important words of an embedding."""
    if not words:
        return ""
    if float(np.ptp(weights.importance)) < SAME_IMPORTANCE:
        return "All words count equally: from layer to layer, all change alike."
    named = words[: count_named(words)]
    names = joined([f"{_quote(word.word)} ({word.importance:.0%})" for word in named])
    verb = "counts" if len(named) == 1 else "count"
    return f"Of the words, {names} {verb} most in the text's sbert-wk embedding."


def count_named(words: Sequence[FollowedWord]) -> int:
    return max(1, min(NAMED, len(words) - 1))


def describe_map(cosines: np.ndarray, subject: str, value: str) -> str:
    """Which layer turns a word, or words, most and least, from [layer, layer] cosines."""
    turns = 1 - np.diagonal(cosines, 1)
    if len(turns) == 0:
        return ""
    if np.ptp(turns) < CLEARLY:
        return f"All layers turned {subject} about equally ({value}: {write_range(turns)})."
    entries = [Entry(f"layer {layer}", float(turn)) for layer, turn in enumerate(turns, 1)]
    written = subject.replace("{", "{{").replace("}", "}}")  # a token may be a brace
    predicate = f"turned {written} most ({value}: {{}})"
    return begin(f"{most_and_least(entries, 'layers', predicate)}.")


def _quote(word: str) -> str:
    return f"“{word if len(word) <= LONGEST else word[: LONGEST - 1] + '…'}”"


PAPERS_PAIR = ("A brown dog is jumping.", "A brown dog is jumping")
PAPERS_SCORE = 0.4735  # of the paper's example, 0 … 1 (FREEZE, section 10)
ALIKE = 1.25  # times the mean share: a layer with less is like the others
LADDER_IN_SHORT = {  # by baseline and by rung
    FLOOR: "the cosine similarity of the means of the words' vectors at the last layer",
    SENTENCE: "the cosine of the vectors that the model was made for",
    NEURAL: "the cosine of the changes in the model's weights when it trains on each text alone",
    "cosines": "a network that reads all layers' cosines",
    "siamese": "a network that shortens all layers' vectors and reads their cosines",
    "autoencoder": "a network that first learns to shorten and rebuild the vectors",
    "log-variance": "a network that first learns to shorten and rebuild the vectors, then to make "
    "errors that vary little",
}
_UNTRAINED = (FLOOR, SENTENCE, NEURAL)  # baselines that learn nothing from the scores


def compared_lines(lines: Sequence[LadderLine]) -> list[LadderLine | None]:
    """The best baseline and the best rung, which the headline compares."""
    baselines, rungs = (
        [line for line in lines if bool(line.rung) == is_rung] for is_rung in (False, True)
    )
    return [best_line(baselines), best_line(rungs)]


def describe_ladder(ladder: Ladder, *, is_whole: bool = True) -> str:
    """Whether the rung that the dev pairs choose beats the best baseline, if all are there."""
    if ladder.test is None or FLOOR not in ladder.baselines:
        return ""
    pairs = many(len(ladder.test.scores), "test pair")
    if np.ptp(ladder.test.scores) == 0:
        return f"All {pairs} have the same score, so the correlation is undefined."
    lines = ladder_lines(ladder)
    measured = Measured("the Spearman correlation with people's scores is", pairs)
    best, rung = compared_lines(lines)
    best = best or lines[0]
    if rung is None or rung.rung is None:
        if ladder.results:
            return "No rung can be chosen: Spearman is undefined on the dev pairs."
        return Headline(measured, Entry(FLOOR, lines[0].spearman)).write_sentence()
    if not np.isfinite([rung.spearman, best.spearman]).all():
        return f"**{rung.name}** is the best on the dev pairs; on {pairs} Spearman is undefined."
    bounds = lead_interval(ladder, rung.rung, best.name) if is_whole else None
    if bounds is None:
        reason = f"{pairs} are too few to tell whether the difference is significant" * is_whole
        entries = Entry(f"**{rung.name}**", rung.spearman), Entry(best.name, best.spearman)
        sentence = compare_two(measured, *entries, None, reason)
        sentence += f" **{rung.name}** was chosen on {ladder.test.n_dev:,} other pairs."
    else:
        first, second = write_values([rung.spearman, best.spearman], is_share=False)
        doubt = "does not clearly beat" if rung.spearman > best.spearman else "does not beat"
        verb, negation = "beats" if bounds[0] > 0 else doubt, "not " * (bounds[0] <= 0 <= bounds[1])
        interval = write_lead(0, bounds, is_share=False)[1]
        rival = best.name + ", a simple formula" * (best.name == LINEAR)
        follows = " These pairs give no reason to prefer the network." * (bounds[0] <= 0)
        name, n = f"**{rung.name}**", len(ladder.rungs)
        choice = f" It was the best of {counted(n)} on {ladder.test.n_dev:,} other pairs." * (n > 1)
        sentence = (
            f"The network {name} {verb} {rival}: the Spearman correlation with "
            f"people's scores is {first} on {pairs}, against {second}.\n\n"
            f"The difference is {negation}significant (95% interval: {interval}).{follows}"
            f"{choice}"
        )
    untrained = [line.interval for line in lines if line.name in _UNTRAINED]
    if seem_reversed(untrained) or reversed_median(ladder.layers, "spearman") is not None:
        sentence += (
            "\n\nEven untrained, the model's cosine similarities run against people's scores: "
            f"their Spearman is significantly below 0. {REVERSE}"
        )
    return sentence


def _explain_scores(ladder: Ladder) -> str:
    scale = f", from {ladder.test.scale.low:g} to {ladder.test.scale.high:g}" if ladder.test else ""
    return f"People scored how alike two texts are{scale}."


def explain_rung(ladder: Ladder, rung: Rung) -> str:
    name = f"**{RUNG_NAMES[rung]}**"
    return f"{_explain_scores(ladder)} {name}: a network that learnt their scores of other pairs."


def explain_ladder(ladder: Ladder, lines: Sequence[LadderLine], headline: str) -> str:
    """What is predicted, and what baselines and the terms of a headline are; markdown."""
    names = [line.name for line in lines if line.name in LADDER_IN_SHORT]
    terms = "".join(f"**{name}**: {LADDER_IN_SHORT[name]}. " for name in names)
    return (
        f"{_explain_scores(ladder)} Methods predict this from what a language model makes of the "
        f"texts. {terms}**Spearman**: 1 is people's order of the pairs, 0 a random one. "
        f"{explain_interval(headline)}"
    ).rstrip()


def warn_of_rung(ladder: Ladder, rung: Rung) -> list[str]:
    """Plain sentences on why a rung that is to be saved may be of no use."""
    lines = ladder_lines(ladder)
    line = next(candidate for candidate in lines if candidate.rung == rung)
    assert ladder.test is not None
    subject = f"On {many(len(ladder.test.scores), 'test pair')}, “{line.name}” is"
    reached = number(line.spearman, ".3f") if np.isfinite(line.spearman) else "undefined"
    sentences = []
    if line.interval is None or line.interval[0] <= 0:
        sentences.append(
            f"{subject} not significantly better than chance (0): its Spearman is {reached}."
        )
    baselines = [line for line in lines if not line.rung]
    best = max(baselines, key=lambda line: np.nan_to_num(line.spearman, nan=-np.inf))
    if best.spearman >= line.spearman:
        written = number(best.spearman, ".3f")
        sentences.append(f"{subject} no better than {best.name}: {reached} against {written}.")
    return sentences


def describe_layer_shares(rung: Rung, shares: np.ndarray) -> str:
    """Which layers a rung's scores depend on, from [layer] shares that sum to 1."""
    name, n = RUNG_NAMES[rung], len(shares)
    if float(shares.max()) < ALIKE / n:
        return f"The scores of **{name}** depend on all {many(n, 'layer')} about equally."
    order = np.argsort(-shares, kind="stable")
    n_named = int(np.searchsorted(np.cumsum(shares[order]), 0.5 - 1e-9)) + 1
    named = joined([str(layer) for layer in sorted(order[:n_named].tolist())])
    return (
        f"The scores of **{name}** depend most on **layer{'s' * (n_named > 1)} {named}** "
        f"({shares[order[:n_named]].sum():.0%})."
    )


def describe_errors(rung: Rung, predicted: np.ndarray, scores: np.ndarray) -> str:
    """How far predictions [pair] are from people's scores."""
    distances = predicted - scores, scores - scores.mean()
    middle, apart = (number(float(np.median(abs(far))), ".2f") for far in distances)
    scale = f"{number(scores.min(), '.3g')} to {number(scores.max(), '.3g')}"
    return (
        f"Half of the predictions of **{RUNG_NAMES[rung]}** are within **{middle}** of people's "
        f"scores.\n\nHalf of the scores ({scale}) are within {apart} of their average."
    )


def describe_worst(
    rung: Rung, n: int, pair: tuple[str, str], score: float, predicted: float, quote: Name
) -> str:
    """The worst of ``n`` predictions; ``quote`` shortens and escapes a text."""
    first, second = map(quote, pair)
    return (
        f"The worst of {many(n, 'prediction')} of **{RUNG_NAMES[rung]}** is "
        f"**{number(predicted, '.2f')}** for {first} and {second}; people's score is "
        f"**{score:.3g}**."
    )


def describe_two_texts(
    pair: tuple[str, str], scores: Mapping[Rung, float], equal: Mapping[Rung, float], quote: Name
) -> str:
    """What the rungs say of two texts, and of two identical ones: no pair scores higher."""
    if not scores:
        return ""
    score, highest = (write_range(list(values.values())) for values in (scores, equal))
    papers = ""
    if pair == PAPERS_PAIR:
        papers = f" In the FREEZE paper, this pair gets {PAPERS_SCORE:.2f} on a scale from 0 to 1."
    return (
        f"{quote(pair[0])} and {quote(pair[1])} score **{score}**; two identical texts score "
        f"{highest}, and no pair can score more.{papers}"
    )
