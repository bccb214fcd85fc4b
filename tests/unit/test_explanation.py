"""Cosines as sums over pairs of tokens, held to programs written on their own."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from neuralviz.embedders import METHODS, ConcatenatedEmbedder, Embedder, make_embedder
from neuralviz.embedders.neural import GradientEmbedder, NeuralEmbedder, TunedOutputEmbedder
from neuralviz.embedders.pooled import PooledEmbedder
from neuralviz.embedders.sentence_transformer import SentenceTransformerEmbedder
from neuralviz.embedders.splits import Part, SplitVector
from neuralviz.errors import LossWarning, SettingsError, Stopped, TextError
from neuralviz.evaluation.explanation import Explanation, explain, explain_splits, try_deletions
from neuralviz.files import RecordFormat
from neuralviz.headlines.explanation import NamedPairs
from neuralviz.micro_tuning.watching import MAX_FOLLOWED_IN_BLOCKS
from neuralviz.models import (
    LanguageModel,
    load_model,
    load_text_model,
    sentence_transformer,
    tokenize,
)
from neuralviz.plots.explanation import words_figure
from tests.support import plain_sbert_wk as plain
from tests.support.models import FAMILIES, SENTENCES, save_causal, save_headless
from tests.support.plain_loop import DEFAULT_BLUEPRINTS, batch_of

A = "A baker carries warm bread across the square."
B = "The teacher writes three words, and the dogs bark."
EXACT = 1e-9  # of a sum of contributions
AS_ENCODED = 1e-5  # float32 vectors
CLOSE = 1e-5  # of contributions, to those of another program
LONG = " ".join(" ".join(SENTENCES) for _ in range(4))


@pytest.fixture(scope="module")
def library(bert_folder: Path) -> SimpleNamespace:
    """The small BERT, as plain transformers loads it."""
    return SimpleNamespace(
        model=load_model(bert_folder, device="cpu"),
        tokenizer=transformers.AutoTokenizer.from_pretrained(bert_folder),
        network=transformers.AutoModelForMaskedLM.from_pretrained(bert_folder).eval(),
    )


def make(method: str, model: Any, **options: Any) -> Embedder:
    return METHODS[method].find_maker()(model, **options)


def check_sums(explanation: Explanation) -> None:
    """What holds of every explanation, whatever its method."""
    cosine = explanation.cosine
    assert np.isfinite(explanation.contributions).all()
    assert explanation.contributions.dtype == np.float64
    assert -1 - EXACT <= cosine <= 1 + EXACT
    assert explanation.contributions.sum() == pytest.approx(cosine, abs=EXACT)
    if explanation.is_exact:
        assert explanation.by_layer.sum() == pytest.approx(cosine, abs=EXACT)
        assert explanation.by_layer.shape == tuple(map(len, explanation.layers))
    for passages in (explanation.words, explanation.sentences):
        assert passages.contributions.sum() == pytest.approx(cosine, abs=EXACT)
        for spans, n_rows in zip(passages.spans, passages.contributions.shape, strict=True):
            assert n_rows == len(spans) + 1
    for text, spans, words in zip(
        explanation.texts, explanation.spans, explanation.word_spans, strict=True
    ):
        assert spans.shape == words.shape
        for pairs in (spans, words):
            assert ((pairs >= 0) & (pairs <= len(text))).all()
            assert (pairs[:, 0] <= pairs[:, 1]).all()


def check(embedder: Embedder, a: str = A, b: str = B, *, is_exact: bool = True) -> Explanation:
    explanation = explain(embedder, a, b)
    check_sums(explanation)
    assert explanation.is_exact == is_exact
    first, second = embedder.encode([a, b])
    assert explanation.cosine == pytest.approx(float(first @ second), abs=AS_ENCODED)
    return explanation


# --- programs of their own ------------------------------------------------------------------------


def products(first: list[np.ndarray], second: list[np.ndarray]) -> np.ndarray:
    """Contributions, [token + 1, token + 1], from rows by block; each block gets the length 1."""
    scaled = []
    for blocks in (first, second):
        blocks = [rows / np.linalg.norm(rows.sum(axis=0)) for rows in blocks]
        whole = np.linalg.norm(np.concatenate([rows.sum(axis=0) for rows in blocks]))
        scaled.append([rows / whole for rows in blocks])
    return sum(a @ b.T for a, b in zip(*scaled, strict=True))


def hidden_states(library: SimpleNamespace, text: str) -> np.ndarray:
    """[layer, token, d_model] with special tokens."""
    with torch.no_grad():
        read = library.tokenizer(text, return_tensors="pt", truncation=False)
        states = library.network(**read, output_hidden_states=True).hidden_states
    return torch.stack(states)[:, 0].double().numpy()


def weighted_rows(states: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """One block: [token + 1, d_model] rows of [layer, token] weights, special tokens last."""
    rows = np.einsum("lt,ltd->td", weights, states)
    return [np.vstack([rows[1:-1], rows[0] + rows[-1]])]


def pooled_rows(library: SimpleNamespace, text: str, *, method: str) -> list[np.ndarray]:
    states = hidden_states(library, text)
    weights = np.zeros(states.shape[:2])
    places = {"mean": slice(None), "cls": 0, "sep": -1, "last": -2, "avg": slice(1, -1)}
    weights[-1, places[method]] = 1
    return weighted_rows(states, weights)


def sbert_wk_rows(
    library: SimpleNamespace, text: str, *, variant: str, start: int
) -> list[np.ndarray]:
    states = hidden_states(library, text)
    used = states[start:, :-1]  # without the token behind the text
    importance = plain.token_importance(used)
    weights = np.zeros(states.shape[:2])
    for token in range(used.shape[1]):
        kinds = plain.word_weights(used[:, token], 2, variant)
        combined = 0.5 * kinds[0] + 0.5 * kinds[1]
        weights[start:, token] = importance[token] * combined / combined.sum()
    return weighted_rows(states, weights)


def token_losses(library: SimpleNamespace, network: Any, text: str) -> list[torch.Tensor]:
    """Of each token its part of the mean loss at all masked positions."""
    ids = library.tokenizer(text, add_special_tokens=False)["input_ids"]
    batch = batch_of(library.tokenizer, ids, DEFAULT_BLUEPRINTS, False)
    labels = batch.pop("labels")
    logits = network(**batch).logits
    losses = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), reduction="none", ignore_index=-100
    ).view(labels.shape)
    return list(losses.sum(dim=0)[1 : 1 + len(ids)] / (labels != -100).sum())


def learnt_rows(library: SimpleNamespace, text: str, *, epochs: int) -> list[np.ndarray]:
    """AdamW written out, a first moment a token; without epochs, the gradient of each token."""
    network = transformers.AutoModelForMaskedLM.from_config(library.network.config).double().eval()
    network.load_state_dict(library.network.state_dict())
    by_name = dict(network.named_parameters())
    tuned = [by_name[name] for name in library.model.head_layers]
    n_tokens = len(token_losses(library, network, text))
    rows = [np.zeros((n_tokens + 1, len(layer))) for layer in tuned]
    first = [np.zeros((n_tokens, len(layer))) for layer in tuned]
    second = [np.zeros(len(layer)) for layer in tuned]
    for step in range(1, max(epochs, 1) + 1):
        gradients: list[list[np.ndarray]] = [[] for _ in tuned]
        for loss in token_losses(library, network, text):
            parts = torch.autograd.grad(loss, tuned, retain_graph=True)
            for kept, part in zip(gradients, parts, strict=True):
                kept.append(part.numpy())
        for number, layer in enumerate(tuned):
            by_token = np.array(gradients[number])
            if not epochs:
                rows[number][:-1] = -by_token
                continue
            first[number] = 0.9 * first[number] + 0.1 * by_token
            second[number] = 0.999 * second[number] + 0.001 * by_token.sum(axis=0) ** 2
            scale = np.sqrt(second[number] / (1 - 0.999**step)) + 1e-8
            moved = -0.01 * first[number] / (1 - 0.9**step) / scale
            decayed = -0.01 * 0.01 * layer.detach().numpy()
            rows[number][:-1] += moved
            rows[number][-1] += decayed
            with torch.no_grad():
                layer += torch.from_numpy(moved.sum(axis=0) + decayed)
    return rows


PROGRAMS: dict[str, tuple[str, dict[str, Any], Callable[..., list[np.ndarray]]]] = {
    **{
        method: (method, {}, partial(pooled_rows, method=method))
        for method in ("mean", "cls", "sep", "last", "avg")
    },
    **{
        f"sbert-wk, {variant}": (
            "sbert-wk",
            {"variant": variant, "layer_start": start},
            partial(sbert_wk_rows, variant=variant, start=start),
        )
        for variant, start in (("authors", 1), ("paper", 0))
    },
    "gradient": ("gradient", {}, partial(learnt_rows, epochs=0)),
    "neural": ("neural", {"epochs": 3}, partial(learnt_rows, epochs=3)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_contributions_are_those_of_a_program_of_its_own(name: str, library) -> None:
    method, options, rows = PROGRAMS[name]
    explanation = check(make(method, library.model, **options))
    expected = products(rows(library, A), rows(library, B))
    largest = max(1.0, np.abs(expected).max())
    close = 1e-3 if method == "neural" else CLOSE  # AdamW enlarges the rounding of float32
    np.testing.assert_allclose(explanation.contributions, expected, atol=close * largest, rtol=0)
    for text, spans in zip((A, B), explanation.spans, strict=True):
        read = library.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        assert spans.tolist() == [list(span) for span in read["offset_mapping"]]
    assert A[slice(*explanation.words.spans[0][1])] == "baker"


def test_concatenations_are_sums_of_halves(library, small_model) -> None:
    embedders = [make("mean", library.model), make("gradient", library.model)]
    explanation = check(ConcatenatedEmbedder(embedders))
    expected = np.mean([explain(part, A, B).contributions for part in embedders], axis=0)
    np.testing.assert_allclose(explanation.contributions, expected, atol=CLOSE)
    assert explanation.rest == ("special tokens", "special tokens")

    twice = check(ConcatenatedEmbedder([make("mean", library.model), make("cls", library.model)]))
    assert twice.layers[0] == ("layer 3 (mean 1)", "layer 3 (cls 2)")
    alone = [explain(make(name, library.model), A, B).cosine for name in ("mean", "cls")]
    np.testing.assert_allclose(twice.by_layer, np.diag(alone) / 2, atol=AS_ENCODED)

    others = make("mean", small_model("roberta"))  # reads other tokens
    mixed = check(ConcatenatedEmbedder([embedders[0], others]))
    first, second = (explain(part, A, B) for part in (embedders[0], others))
    assert len(mixed.spans[0]) == len(first.spans[0]) + len(second.spans[0])
    assert mixed.cosine == pytest.approx((first.cosine + second.cosine) / 2, abs=AS_ENCODED)
    by_word = (first.words.contributions + second.words.contributions) / 2
    np.testing.assert_allclose(mixed.words.contributions, by_word, atol=CLOSE)


# --- sentence encoders ----------------------------------------------------------------------------


def encoder_of(
    folder: Path, *modules: Any, mode: str = "mean", include_prompt: bool = True, **options: Any
) -> Embedder:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    all_modules = [Transformer(str(folder)), Pooling(32, mode, include_prompt), *modules]
    return SentenceTransformerEmbedder(
        SentenceTransformer(modules=all_modules, device="cpu", **options), "0"
    )


def dense(activation: Any) -> Any:
    from sentence_transformers.sentence_transformer.modules import Dense

    torch.manual_seed(0)
    return Dense(32, 24, activation_function=activation)


def test_a_linear_encoder(bert_folder: Path, library) -> None:
    from sentence_transformers.sentence_transformer.modules import Normalize

    layer = dense(torch.nn.Identity())
    explanation = check(encoder_of(bert_folder, layer, Normalize()))
    weight = layer.linear.weight.detach().double().numpy()
    bias = layer.linear.bias.detach().double().numpy()
    sides = []
    for text in (A, B):
        (rows,) = pooled_rows(library, text, method="mean")
        rows = rows / (len(library.tokenizer(text)["input_ids"])) @ weight.T
        rows[-1] += bias
        sides.append([rows])
    np.testing.assert_allclose(explanation.contributions, products(*sides), atol=CLOSE)


@pytest.mark.parametrize(
    ("activation", "mode"), [(torch.nn.Tanh(), "mean"), (torch.nn.Identity(), "max")]
)
def test_an_encoder_that_is_not_linear(activation: Any, mode: str, bert_folder: Path) -> None:
    embedder = encoder_of(bert_folder, dense(activation), mode=mode)
    assert embedder.split([A, B]) is None
    explanation = check(embedder, is_exact=False)
    assert explanation.splits is None
    assert explanation.layers == ((), ())


@pytest.mark.parametrize("prompt", ["the dog: ", "the dog:", "bark"])
def test_a_prompt_belongs_to_no_token(prompt: str, bert_folder: Path) -> None:
    options = {"prompts": {"mine": prompt}, "default_prompt_name": "mine"}
    explanation = check(encoder_of(bert_folder, **options), "ing dogs", B)
    whole = check(encoder_of(bert_folder), f"{prompt}ing dogs", f"{prompt}{B}")
    assert explanation.texts == ("ing dogs", B)
    assert explanation.cosine == pytest.approx(whole.cosine, abs=AS_ENCODED)
    assert len(explanation.spans[1]) < len(whole.spans[1])
    assert ["ing dogs"[slice(*span)] for span in explanation.words.spans[0]] == ["ing", "dogs"]


def test_a_prompt_that_is_not_pooled(bert_folder: Path) -> None:
    options = {"prompts": {"mine": "the dog: "}, "default_prompt_name": "mine"}
    check(encoder_of(bert_folder, include_prompt=False, **options))


def test_a_long_text_is_taken_apart_a_few_tokens_at_a_time(bert_folder: Path, monkeypatch) -> None:
    embedder = encoder_of(bert_folder, dense(torch.nn.Identity()))
    expected = check(embedder).contributions
    monkeypatch.setattr(sentence_transformer, "PARTS_AT_ONCE", 3 * 32 * 10)
    np.testing.assert_allclose(check(embedder).contributions, expected, atol=1e-6)


def test_an_encoder_reads_the_beginning_alone(bert_folder: Path) -> None:
    embedder = encoder_of(bert_folder)
    embedder.encoder.max_seq_length = 10
    explanation = check(embedder, LONG, B)
    by_token = explanation.contributions.sum(axis=1)
    assert np.count_nonzero(by_token[:-1]) == 8
    assert not by_token[8:-1].any()


# --- random texts and models ----------------------------------------------------------------------

WORDS = sorted({word.strip(",.:") for sentence in SENTENCES for word in sentence.split()})
SIGNS = ["warmly", "don't", "U.S.", "…", "日本語", "البحر", "😀", "x\ud83d", "123", "-", " \n "]
TEXTS = st.lists(st.sampled_from(WORDS + SIGNS), min_size=1, max_size=60).map(" ".join)
METHODS_OF_ALL: dict[str, dict[str, Any]] = {
    "mean": {"layer": (0, 1)}, "cls": {}, "sep": {}, "last": {}, "avg": {"layer": "all"},
    "sbert-wk": {}, "gradient": {}, "neural": {"epochs": 2},
}  # fmt: skip


def can_split(embedder: Embedder, a: str, b: str) -> bool:
    """Not where the layers of long texts are in blocks, of which each token needs a pass."""
    model = embedder.parts[-1].model
    learns = isinstance(embedder.parts[-1], NeuralEmbedder | GradientEmbedder)
    longest = max(len(text) for text in tokenize(model, [a, b]))
    return not learns or bool(model.head_layers) or longest <= MAX_FOLLOWED_IN_BLOCKS


def check_drawn(embedders: Sequence[Embedder], a: str, b: str) -> None:
    for embedder in embedders:
        try:
            first, second = embedder.encode([a, b])
        except TextError:
            with pytest.raises(TextError):
                explain(embedder, a, b)
            continue
        explanation = explain(embedder, a, b)
        check_sums(explanation)
        assert explanation.is_exact == can_split(embedder, a, b)
        assert explanation.cosine == pytest.approx(float(first @ second), abs=AS_ENCODED)
        if not explanation.is_exact:
            continue
        centre = np.random.default_rng(len(a)).normal(size=embedder.dim) / embedder.dim
        centred = explain(embedder, a, b, centre=centre)
        check_sums(centred)
        x, y = (split.vector - centre for split in explanation.splits or ())
        expected = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        assert centred.cosine == pytest.approx(expected, abs=EXACT)


def embedders_of(model: LanguageModel) -> list[Embedder]:
    singles = [make(method, model, **options) for method, options in METHODS_OF_ALL.items()]
    paper = make("sbert-wk", model, variant="paper", layer_start=0, window=1)
    return [*singles, paper, ConcatenatedEmbedder([singles[0], singles[-1]])]


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=5, deadline=None)
@given(a=TEXTS, b=TEXTS)
def test_sums_of_drawn_texts(tiny_embedders: list[Embedder], a: str, b: str) -> None:
    check_drawn(tiny_embedders, a, b)


@pytest.fixture(scope="module")
def tiny_embedders(library) -> list[Embedder]:
    return embedders_of(library.model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_sums_of_all_families(family: str, small_model) -> None:
    embedders = embedders_of(small_model(family))

    @settings(max_examples=8, deadline=None, phases=[Phase.generate])  # no shrinking
    @given(a=TEXTS, b=TEXTS)
    def check_texts(a: str, b: str) -> None:
        check_drawn(embedders, a, b)

    check_texts()


# --- centred, and with words left out -------------------------------------------------------------


def test_a_long_text_without_sentences_is_read_in_parts(library) -> None:
    text = " ".join(f"{word} {number}" for number in range(31) for word in ("river", "bank"))
    explanation = explain(make("mean", library.model), text, B)
    spans = explanation.sentences.spans[0]
    parts = [text[slice(*span)].split() for span in spans]
    assert [len(part) for part in parts] == [31, 31, 31, 31]
    assert "".join(text[slice(*span)] for span in spans) == text
    assert len(explanation.sentences.spans[1]) == 1
    broken = explain(make("mean", library.model), "The baker\n sleeps. He  snores.", B)
    names = NamedPairs.of_texts(broken.texts, broken.sentences, True, False).first
    assert list(names) == ["1. The baker sleeps.", "2. He snores."]
    assert explanation.sentences.contributions.sum() == pytest.approx(explanation.cosine)


def test_a_centre_is_a_part_that_belongs_to_no_token(library) -> None:
    embedder = make("mean", library.model)
    centre = embedder.encode(list(SENTENCES)).mean(axis=0)
    explanation = explain(embedder, A, B, centre=centre)
    check_sums(explanation)
    x, y = embedder.encode([A, B]).astype(np.float64) - centre
    cosine = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
    assert explanation.cosine == pytest.approx(cosine, abs=AS_ENCODED)
    assert explanation.rest[0] == "special tokens, mean of all texts"
    assert explanation.layers[0] == ("layer 3", "mean of all texts")
    assert explanation.splits is not None
    again = explain_splits("mean", *explain(embedder, A, B).splits or (), centre)
    np.testing.assert_array_equal(again.contributions, explanation.contributions)
    with pytest.raises(SettingsError, match=r"32 values, the centre has the shape \(3,\)"):
        explain(embedder, A, B, centre=centre[:3])


@pytest.mark.parametrize("is_centred", [False, True])
def test_contributions_of_words_left_out(is_centred: bool, bert_folder: Path) -> None:
    embedder = encoder_of(bert_folder, mode="max")
    a, b = "The baker's bread, don't bark.", "Dogs bark at three words."
    centre = embedder.encode(list(SENTENCES)).mean(axis=0) if is_centred else np.zeros(32)
    explanation = explain(embedder, a, b, centre=centre if is_centred else None)
    check_sums(explanation)

    def cosine(first: str, second: str) -> float:
        x, y = (v.astype(np.float64) / np.linalg.norm(v) - centre
                for v in embedder.encode([first, second]))  # fmt: skip
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    whole = cosine(a, b)
    assert explanation.cosine == pytest.approx(whole, abs=AS_ENCODED)
    assert explanation.rest == ("all words together", "all words together")
    words = [[text[slice(*span)] for span in spans] for text, spans in
             zip((a, b), explanation.spans, strict=True)]  # fmt: skip
    assert words == [["The", "baker's", "bread", "don't", "bark"], b[:-1].split()]
    without = [cosine(a.replace(word, " "), b) for word in words[0]]
    np.testing.assert_allclose(
        explanation.contributions.sum(axis=1)[:-1], whole - np.array(without), atol=AS_ENCODED
    )
    shorter_a, shorter_b = a.replace("baker's", ""), b.replace("bark", "")
    both = whole - without[1] - cosine(a, shorter_b) + cosine(shorter_a, shorter_b)
    assert explanation.contributions[1, 1] == pytest.approx(both, abs=AS_ENCODED)


@pytest.mark.parametrize("is_centred", [False, True])
@pytest.mark.parametrize("method", ["mean", "sbert-wk", "neural"])
def test_the_deletion_check(method: str, is_centred: bool, library) -> None:
    embedder = make(method, library.model)
    vectors = embedder.encode(list(SENTENCES))
    explanation = explain(embedder, A, B, centre=vectors.mean(axis=0) if is_centred else None)
    deletions = try_deletions(embedder, explanation)
    words, cosines, expected = [], [], []
    centre = explanation.centre if is_centred else 0
    split, other = explanation.splits or ()
    whole = dict(zip((A, B), embedder.encode([A, B]) - centre, strict=True))
    for text, own, kept in ((A, split, other), (B, other, split)):
        unchanged = whole[B if text == A else A]
        for match in re.finditer(r"\w+|[.,]", text):
            start, end = match.span()
            words.append(match[0])
            shorter = embedder.encode(f"{text[:start]} {text[end:]}") - centre
            lengths = np.linalg.norm(shorter) * np.linalg.norm(unchanged)
            cosines.append(shorter @ unchanged / lengths)
            # a row removed from the vector, by the definition of the cosine
            pieces = [place for place, span in enumerate(own.spans) if start <= span[0] < end]
            rest = own.vector - np.concatenate([rows[pieces].sum(axis=0) for rows in own.blocks])
            expected.append(rest @ kept.vector / np.linalg.norm(rest))
    assert deletions.words == tuple(words)
    np.testing.assert_allclose(deletions.cosines, cosines, atol=AS_ENCODED)
    np.testing.assert_allclose(deletions.expected, expected, atol=EXACT)
    places = [np.argsort(np.argsort(values)) for values in (deletions.cosines, expected)]
    n, gaps = len(words), places[0] - places[1]
    assert deletions.agreement == pytest.approx(1 - 6 * (gaps**2).sum() / (n**3 - n))  # no ties


def test_sentences_have_numbers_that_their_columns_show(library) -> None:
    sentences = [*SENTENCES, *SENTENCES]
    a = " ".join(sentences)
    explanation = explain(make("mean", library.model), a, B)
    spans = [explanation.sentences.spans[0], explanation.words.spans[1]]
    pairs = NamedPairs.of_texts((a, B), explanation.group(spans), True, False)
    assert pairs.first == [f"{n}. {text}" for n, text in enumerate(sentences, 1)]
    assert pairs.second[:2] == ["The", "teacher"]
    assert pairs.cosine == pytest.approx(explanation.cosine, abs=EXACT)
    sums = {"mean": pairs.contributions.sum(axis=1)}
    figure = words_figure([*pairs.first, "no word"], sums, "Sentences")
    assert figure.layout.xaxis.ticktext == (*map(str, range(1, 17)), "no word", "sum")
    total = f"{explanation.cosine:.2f}"
    assert (figure.data[0].text[0][-1], figure.data[0].z[0][-1]) == (total, 0)
    assert figure.data[0].customdata[0][0][0] == pairs.first[0]


def test_a_check_of_what_was_left_out_makes_no_sense(bert_folder: Path) -> None:
    embedder = encoder_of(bert_folder, mode="max")
    with pytest.raises(ValueError, match="leaving words out"):
        try_deletions(embedder, explain(embedder, A, B))


def test_too_few_words_agree_with_nothing(library) -> None:
    embedder = make("mean", library.model)
    deletions = try_deletions(embedder, explain(embedder, "bread", "dogs"))
    assert deletions.words == ()
    assert deletions.agreement is None


# --- odd texts and models -------------------------------------------------------------------------

ODD = {
    "one token": ("a", "a dog"),
    "two single tokens": ("a", "."),
    "equal": (A, A),
    "long": (LONG, A),
    "in pieces": ("unbelievable harbourmasters", "fishermens' lighthousekeeping"),
    "Japanese": ("今日は雨が降ります。犬は走る。", "The dog barks."),
    "Arabic": ("شمس البحر", "The dog barks."),
    "blanks around": ("  \n The dog barks.  ", "\tA dog. \n\n It barks. "),
    "broken characters": ("x\udcffy 😀", "a\x00b\x07c <b>&amp;</b>"),
}


@pytest.mark.parametrize("method", ["mean", "sbert-wk", "gradient", "neural"])
@pytest.mark.parametrize("case", ODD)
@pytest.mark.filterwarnings("ignore")
def test_odd_texts(case: str, method: str, library) -> None:
    a, b = ODD[case]
    explanation = check(make(method, library.model), a, b)
    if case == "equal":
        assert explanation.cosine == pytest.approx(1, abs=EXACT)
        np.testing.assert_allclose(explanation.contributions, explanation.contributions.T)
    if case == "blanks around" and method == "mean":
        words, texts = explanation.words.spans, explanation.texts
        shown = [[text[slice(*s)] for s in spans] for text, spans in zip(texts, words, strict=True)]
        assert shown == [["The", "dog", "barks", "."], ["A", "dog", ".", "It", "barks", "."]]
        assert [len(spans) for spans in explanation.sentences.spans] == [1, 2]
    if case == "in pieces":
        assert len(explanation.words.spans[0]) == 2 < len(explanation.spans[0])


@pytest.mark.parametrize("case", ODD)
@pytest.mark.filterwarnings("ignore")
def test_odd_texts_with_words_left_out(case: str, bert_folder: Path) -> None:
    a, b = (text.replace("\udcff", "") for text in ODD[case])  # which encoders do not read
    explanation = check(encoder_of(bert_folder, mode="max"), a[:400], b, is_exact=False)
    if case == "Japanese":
        assert len(explanation.spans[0]) == 13  # without the points


@pytest.mark.parametrize("method", ["mean", "neural"])
def test_an_empty_text_is_refused(method: str, library) -> None:
    with pytest.raises(TextError, match="Text 2 is empty"):
        explain(make(method, library.model), A, " \n")
    with pytest.raises(TextError, match="Text 1 is empty"):
        explain(make(method, library.model), "", B)


def test_an_explanation_stops(library, bert_folder: Path) -> None:
    for embedder in (make("neural", library.model), encoder_of(bert_folder, mode="max")):
        with pytest.raises(Stopped):
            explain(embedder, A, B, should_stop=lambda: True)


@pytest.mark.parametrize("rate", [1e3, 1e30])
def test_a_diverged_run(rate: float, library) -> None:
    """Its weights are huge or no numbers: the parts still sum to the cosine, and it is said."""
    embedder = make("neural", library.model, learning_rate=rate, epochs=6)
    with pytest.warns(LossWarning, match="diverged on"):
        explanation = explain(embedder, A, B)
    check_sums(explanation)
    with pytest.warns(LossWarning):
        check(embedder)


def test_models_without_a_head(tmp_path: Path) -> None:
    headless = load_text_model(save_headless(tmp_path / "headless"), device="cpu")
    causal = load_text_model(save_causal(tmp_path / "gpt2", has_specials=False), device="cpu")
    for model in (headless, causal):
        for method in ("mean", "last", "sbert-wk"):
            explanation = check(make(method, model))
            if model is causal:  # nothing stands around its texts
                assert not explanation.contributions[-1].any()


def test_deltas_of_blocks_and_of_the_output_bias(library) -> None:
    last_block = check(make("neural", library.model, layers="last_block", epochs=1), A, "The dogs.")
    assert last_block.layers[0] == library.model.last_block_layers
    bias = [layer.name for layer in library.model.layers
            if layer.size == library.model.vocab_size]  # fmt: skip
    unsplit = check(make("neural", library.model, layers=bias, epochs=1), is_exact=False)
    assert unsplit.rest == ("all words together", "all words together")


def test_explanations_are_kept(library, bert_folder: Path) -> None:
    kept = RecordFormat("explanations", 1, (Explanation, SplitVector, Part))
    for embedder in (make("neural", library.model), encoder_of(bert_folder, mode="max")):
        explanation = explain(embedder, A, B)
        for again in (
            pickle.loads(pickle.dumps(explanation)),  # noqa: S301
            kept.unpack(kept.pack(explanation)),
        ):
            check_sums(again)
            np.testing.assert_array_equal(again.contributions, explanation.contributions)
            np.testing.assert_array_equal(again.words.spans[1], explanation.words.spans[1])
            if explanation.splits is not None:
                assert try_deletions(embedder, again).words


def test_the_bundled_model_explains_the_example_of_the_document(bundled: LanguageModel) -> None:
    a = "The central bank raised interest rates again."
    b = "Borrowing became more expensive after the bank's decision."
    check(make_embedder("mean"), a, b)
    explanation = check(make("neural", bundled, epochs=5), a, b)
    assert explanation.cosine == pytest.approx(0.26296, abs=5e-5)
    assert explanation.rest == ("weight decay", "weight decay")
    fast = check(make("neural", bundled, epochs=5, precision="fast"), a, b)
    assert fast.cosine == pytest.approx(explanation.cosine, abs=0.01)


def test_what_centring_leaves_of_equal_texts_is_nothing(library) -> None:
    embedder = PooledEmbedder(library.model)
    vectors = embedder.encode([A, A, A], show_progress_bar=False).astype(float)
    centred = explain(embedder, A, A, centre=vectors.mean(axis=0))
    assert centred.cosine == 0
    assert not centred.contributions.any()


def test_words_that_are_too_many_to_leave_out_are_refused(library) -> None:
    embedder = TunedOutputEmbedder(library.model, "cls", False, epochs=1)
    with pytest.raises(TextError, match="leaving out each of their 6 words"):
        explain(embedder, "a b c", "d e f", most_words=5)
