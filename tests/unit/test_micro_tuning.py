"""Micro-tuning: optimiser, shares, independence of texts, threads, bad input, events."""

from __future__ import annotations

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

import neuralviz
from neuralviz.embedders import NeuralEmbedder
from neuralviz.embedders.neural import neural_1
from neuralviz.errors import SettingsError, TextError
from neuralviz.micro_tuning import (
    MicroTuning,
    TokenShares,
    check_settings,
    gradients,
    inputs,
    loop,
    micro_tune,
    neural_embeddings,
)
from neuralviz.micro_tuning.loop import RowAdamW
from neuralviz.micro_tuning.per_text import PerTextNetwork
from neuralviz.models import LanguageModel, tokenize
from tests.support.models import SENTENCES, TEXTS
from tests.support.random_cases import LAYERS, block_layers, output_bias
from tests.support.shares import check_shares_sum

ALIKE = 0.99999
TEXT = "The old boat left the harbour."


def tuned(model: LanguageModel, texts: list[str] | str, **options) -> MicroTuning:
    options.setdefault("epochs", 3)
    *_, last = micro_tune(model, texts, **options)
    return last.result


def fingerprint_of(model: LanguageModel) -> str:
    """Hash of every parameter and buffer, those that no file holds included."""
    digest = hashlib.sha256()
    for name, tensor in [*model.network.named_parameters(), *model.network.named_buffers()]:
        digest.update(name.encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def test_rows_are_adamw(tiny: LanguageModel) -> None:
    """Every row is what torch's AdamW makes of it, until it is left out."""
    settings = check_settings(tiny, learning_rate=0.03, weight_decay=0.1)
    generator = torch.Generator().manual_seed(0)
    start = 0.01 * torch.randn(3, 16, generator=generator)
    rows = RowAdamW(start.clone(), settings, torch.empty(0, dtype=torch.long))
    plain = [torch.nn.Parameter(row.clone()) for row in start]
    theirs = [torch.optim.AdamW([p], lr=0.03, weight_decay=0.1) for p in plain]
    for step in range(30):
        scale = 10.0 ** torch.randint(-6, 3, (3, 16), generator=generator)
        grad = torch.randn(3, 16, generator=generator) * scale
        active = torch.tensor([True, step < 15, step < 9])
        rows.take(rows.prepare(grad), active)
        for index in range(3):
            if active[index]:
                plain[index].grad = grad[index].clone()
                theirs[index].step()
        torch.testing.assert_close(
            rows.value, torch.stack([p.detach() for p in plain]), rtol=1e-5, atol=1e-7
        )
    torch.testing.assert_close(rows.delta, rows.value - start)


# --- who wrote the delta -----------------------------------------------------------------------


def embedding_layers(model: LanguageModel) -> list[str]:
    return [layer.name for layer in model.layers if layer.part == "embeddings"]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("choose_layers", "order"),
    [
        (LAYERS["head"], 1),
        (LAYERS["all blocks"], -1),
        (LAYERS["output bias and head"], 1),
        (embedding_layers, 1),
    ],
)
def test_tokens_and_decay_sum_to_the_delta(choose_layers, order: int, tiny: LanguageModel) -> None:
    layers = choose_layers(tiny)
    texts = list(TEXTS.values())[::order]
    plain = tuned(tiny, texts, layers=layers, weight_decay=0.5)
    followed = tuned(tiny, texts, layers=layers, weight_decay=0.5, with_token_shares=True)
    assert plain.shares is None
    for index, shares in enumerate(followed.shares):
        assert len(shares.token_shares()) == len(followed.texts[index])
        check_shares_sum(shares, [delta[index] for delta in followed.deltas])
        for decay in shares.decay:
            assert np.abs(decay).max() > 1e-4  # decay is not lost in the tolerance
    assert (np.sum(plain.embeddings * followed.embeddings, axis=1) >= ALIKE).all()


def test_shares_of_known_parts() -> None:
    """A delta (4, 0): tokens wrote 3 and 2 of it, decay took 1 off; a layer that did not move."""
    moved = np.array([[3.0, 5.0], [2.0, -5.0]])
    shares = TokenShares(tokens=(moved,), decay=(np.array([-1.0, 0.0]),))
    np.testing.assert_allclose(shares.token_shares(), [0.75, 0.5])
    assert shares.decay_share() == pytest.approx(-0.25)
    still = TokenShares(tokens=(np.zeros((2, 2)),), decay=(np.zeros(2),))
    assert (still.token_shares().tolist(), still.decay_share()) == ([0, 0], 0)
    both = TokenShares(tokens=(moved, np.zeros((2, 2))), decay=(np.array([-1.0, 0]), np.zeros(2)))
    np.testing.assert_allclose([*both.token_shares(), both.decay_share()], [0.75, 0.5, -0.25])
    cancelling = (
        np.array([[400.0, 0.0], [-399.0, 0.0]]),
        np.zeros(2),
    )  # 400 and −399 times the delta
    clear = TokenShares((shares.tokens[0], cancelling[0]), (shares.decay[0], cancelling[1]))
    np.testing.assert_allclose(clear.token_shares(), [0.75, 0.5])
    alone = TokenShares((cancelling[0],), (cancelling[1],))
    np.testing.assert_allclose(alone.token_shares(), [400, -399])
    assert (clear.do_cancel, alone.do_cancel) == (False, True)


def test_following_tokens_is_refused_beyond_a_limit(tiny: LanguageModel, monkeypatch) -> None:
    monkeypatch.setattr(loop, "MAX_FOLLOWED_VALUES", 5)
    with pytest.raises(SettingsError, match="fewer or shorter texts"):
        micro_tune(tiny, [TEXTS["one chunk"]], with_token_shares=True)


# --- the same text gives the same numbers ------------------------------------------------------


def batch_of_64() -> list[str]:
    """Texts of many lengths: runs of words of every sentence."""
    words = " ".join(SENTENCES).split()
    return [" ".join(words[i : i + 1 + i % 23]) for i in range(64)]


@pytest.mark.parametrize("layers", ["head", "last_block"])
def test_a_text_alone_and_in_a_batch_of_64(layers: str, tiny: LanguageModel) -> None:
    texts = batch_of_64()
    together = tuned(tiny, texts, layers=layers, epochs=5).embeddings
    for index in (0, 5, 22, 40, 63):
        alone = tuned(tiny, [texts[index]], layers=layers, epochs=5).embeddings[0]
        assert alone @ together[index] >= ALIKE


@pytest.mark.parametrize("layers", ["head", "last_block"])
def test_nothing_kept_between_epochs_gives_the_same(layers, tiny, monkeypatch) -> None:
    texts = list(TEXTS.values())
    monkeypatch.setattr("neuralviz.micro_tuning.inputs.TOKENS_PER_PIECE", 300)
    kept = tuned(tiny, texts, layers=layers)
    for most in (0, 60_000):  # none of the pieces, and some
        monkeypatch.setattr(inputs, "KEPT_BYTES", most)
        anew = tuned(tiny, texts, layers=layers)
        for one, other in zip(kept.deltas, anew.deltas, strict=True):
            np.testing.assert_array_equal(one, other)


def test_eight_threads_share_one_model(tiny: LanguageModel) -> None:
    choices = [
        None, "last_block", block_layers(tiny)[-9:], output_bias(tiny),
        "head", tiny.head_layers[:1], block_layers(tiny)[:3], "last_block",
    ]  # fmt: skip
    jobs = [(texts, choice) for texts, choice in zip(
        [batch_of_64()[i::8] for i in range(8)], choices, strict=True
    )]  # fmt: skip
    before = fingerprint_of(tiny)
    one_by_one = [tuned(tiny, texts, layers=choice) for texts, choice in jobs]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda job: tuned(tiny, job[0], layers=job[1]), jobs))
    for one, other in zip(one_by_one, at_once, strict=True):
        for ours, theirs in zip(one.deltas, other.deltas, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert fingerprint_of(tiny) == before
    assert not any(p.requires_grad or p.grad is not None for p in tiny.network.parameters())


def test_a_run_holds_no_copy_of_the_model(tiny: LanguageModel) -> None:
    own = {tensor.data_ptr() for tensor in tiny.network.state_dict().values()}
    network = PerTextNetwork(tiny, tiny.last_block_layers)
    held = network._network.state_dict().values()
    assert held
    assert {tensor.data_ptr() for tensor in held} <= own


@pytest.mark.parametrize(
    ("layers", "follow"), [("head", True), ("last_block", False), ("output bias", True)]
)
def test_a_text_that_breaks_leaves_the_others_untouched(layers, follow, tiny, monkeypatch) -> None:
    """One text's gradient is made infinite: the others come out as without it."""
    layers = output_bias(tiny) if layers == "output bias" else layers
    texts = [TEXTS["several chunks"], TEXTS["one chunk"], TEXTS["one token"], TEXTS["short"]]
    options = {"layers": layers, "with_token_shares": follow}
    whole = tuned(tiny, texts, **options)
    real = gradients.cross_entropy

    def breaking(vectors, weight, bias, labels, *, text_of=None, position_weight=None):
        out = real(vectors, weight, bias, labels, text_of=text_of, position_weight=position_weight)
        broken = text_of == 1
        if out.grad_bias is not None and len(out.grad_bias) == len(texts):
            out.grad_bias[1] = math.nan
        if len(out.grad_bias if out.grad_bias is not None else texts) == len(texts):
            out.grad[broken] = math.nan
            out.loss[broken] = math.nan
        return out

    monkeypatch.setattr(gradients, "cross_entropy", breaking)
    result = tuned(tiny, texts, **options)
    assert result.diverged.tolist() == [False, True, False, False]
    assert result.loss_rose[1]
    assert np.isnan(result.loss[:, 1]).all()
    others = [0, 2, 3]
    for ours, theirs in zip(result.deltas, whole.deltas, strict=True):
        np.testing.assert_array_equal(ours[others], theirs[others])
        assert (ours[1] == 0).all()
    if follow:
        for index in others:
            for ours, theirs in zip(
                result.shares[index].tokens, whole.shares[index].tokens, strict=True
            ):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"epochs": 0}, "whole number from 1 to 1000, not 0"),
        ({"epochs": "10"}, "whole number"),
        ({"learning_rate": 0}, "must be above 0, not 0"),
        ({"learning_rate": math.nan}, "learning rate must be a number"),
        ({"learning_rate": "fast"}, "learning rate must be a number, not 'fast'"),
        ({"weight_decay": -1}, "weight decay must not be negative"),
        ({"layers": ["no.such.bias"]}, r"“no.such.bias” is not a layer \(1-D parameter\)"),
        ({"layers": []}, "at least one layer"),
        ({"blueprints": []}, "Enter 1 to 32 blueprints"),
    ],
)
def test_settings_that_make_no_sense(settings: dict, sentence: str, tiny: LanguageModel) -> None:
    with pytest.raises(SettingsError, match=sentence):
        micro_tune(tiny, ["The dog barks."], **settings)


# --- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_blank_text_is_named(family: str, small_model) -> None:
    model = small_model(family)
    for blank in ("", "   ", "\n\t \n", "\u00a0\u2003"):
        with pytest.raises(TextError, match="Text 2 is empty"):
            micro_tune(model, ["The dog barks.", blank])
    with pytest.raises(TextError, match=r"The text is empty\. It must contain at least one word"):
        micro_tune(model, [" "])


ODD_TEXTS = (
    "😀",
    "شمس البحر",
    "<script>alert('x')</script>",
    "a\x00b\x07c",
    "\ud83d",
    "x\udcffy",
    "?",
)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_odd_texts_have_embeddings(family: str, small_model) -> None:
    result = tuned(small_model(family), ODD_TEXTS)
    np.testing.assert_allclose(np.linalg.norm(result.embeddings, axis=1), 1, atol=1e-5)
    assert np.isfinite(result.loss).all()
    for text in result.texts:
        text.text.encode()  # can be written to a page or a file


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_special_tokens_in_a_text_are_characters(family: str, small_model) -> None:
    model = small_model(family)
    specials = model.tokenizer.all_special_tokens
    text = "dog " + " ".join(specials)
    (tokens,) = tokenize(model, [text])
    forbidden = set(model.tokenizer.all_special_ids) - {model.unknown_id}
    assert not forbidden & set(tokens.ids.tolist())
    assert len(tokens) > 1 + 2 * len(specials)


# --- long texts --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_short_last_chunk_has_the_say_of_its_tokens(bundled: LanguageModel) -> None:
    """A text in two chunks is as near to each of them as it is without chunks."""
    parts = [
        "The river rose overnight, and by morning the fields below the mill were a lake with "
        "hedges in it.",
        "Nobody came back.",
    ]
    texts = [" ".join(parts), *parts]
    narrow = replace(bundled, window=23)
    in_chunks, whole = (tuned(model, texts, epochs=5) for model in (narrow, bundled))
    sizes = [chunk.stop - chunk.start for chunk in in_chunks.texts[0].chunks]
    assert sizes == [21, 4]
    assert in_chunks.embeddings[0] @ whole.embeddings[0] > 0.9
    for part in (1, 2):
        expected = whole.embeddings[0] @ whole.embeddings[part]
        assert in_chunks.embeddings[0] @ in_chunks.embeddings[part] == pytest.approx(
            expected, abs=0.06
        )


@pytest.mark.parametrize("limit", [100, 2 * 40, 10_000])
def test_pieces_of_any_size_come_to_the_same(limit: int, tiny, monkeypatch) -> None:
    """Also where a piece holds inputs of several chunks of several texts, in turns."""
    texts = [TEXTS["several chunks"], " ".join(SENTENCES[3:6]), TEXTS["short"]]
    alone = [tuned(tiny, [text]) for text in texts]
    monkeypatch.setattr("neuralviz.micro_tuning.inputs.TOKENS_PER_PIECE", limit)
    together = tuned(tiny, texts, with_token_shares=True)
    for index, expected in enumerate(alone):
        assert expected.embeddings[0] @ together.embeddings[index] >= ALIKE
        np.testing.assert_allclose(together.loss[:, index], expected.loss[:, 0], rtol=1e-5)
        deltas = [delta[index] for delta in together.deltas]
        check_shares_sum(together.shares[index], deltas)


def test_an_event_is_an_epoch(tiny: LanguageModel) -> None:
    """Also of a text of several chunks."""
    texts = [TEXTS["short"], TEXTS["several chunks"]]
    events = list(micro_tune(tiny, texts, epochs=3, with_deltas=True))
    assert [(event.epoch, event.epochs) for event in events] == [(1, 3), (2, 3), (3, 3)]
    assert [event.result is None for event in events] == [True, True, False]
    result = events[-1].result
    for epoch, event in enumerate(events):
        assert [delta.shape for delta in event.deltas] == [(2, 32)] * 3
        lengths = np.stack([np.linalg.norm(delta, axis=1) for delta in event.deltas], axis=1)
        np.testing.assert_allclose(event.delta_norm, lengths, rtol=1e-5)
        np.testing.assert_array_equal(result.loss[epoch], event.loss)
        np.testing.assert_array_equal(result.delta_norm[epoch], event.delta_norm)
    for ours, theirs in zip(result.deltas, events[-1].deltas, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# --- the embedding -----------------------------------------------------------------------------


def test_embeddings_of_known_deltas() -> None:
    first = np.array([[3.0, 4.0], [1e-30, 0.0], [0.0, 0.0], [1e38, 1e38]], dtype=np.float32)
    second = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0], [0.0, -1e-38]], dtype=np.float32)
    half = math.sqrt(0.5)
    np.testing.assert_allclose(
        neural_embeddings((first, second)),
        [[0.6 * half, 0.8 * half, 0, half], [1, 0, 0, 0], [0] * 4, [0.5, 0.5, 0, -half]],
        atol=1e-6,
    )


def test_an_option_that_there_is_not(tiny: LanguageModel) -> None:
    for take in (check_settings, NeuralEmbedder, neural_1):
        with pytest.raises(TypeError, match="Unknown setting: epoch"):
            take(tiny, epoch=3)
    with pytest.raises(TypeError, match="Unknown setting: epoch"):
        micro_tune(tiny, [TEXT], epoch=3)


def test_a_run_and_an_embedder_take_settings_or_options(tiny: LanguageModel) -> None:
    settings = check_settings(tiny, layers="last_block", epochs=2)
    *_, by_value = neuralviz.micro_tune(tiny, [TEXT], settings)
    *_, by_name = neuralviz.micro_tune(tiny, [TEXT], layers="last_block", epochs=2)
    assert by_value.result.settings == by_name.result.settings == settings
    np.testing.assert_array_equal(by_value.result.embeddings, by_name.result.embeddings)
    embedder = NeuralEmbedder(tiny, settings)
    assert embedder.cache_key() == NeuralEmbedder(tiny, layers="last_block", epochs=2).cache_key()
    np.testing.assert_allclose(embedder.encode([TEXT]), by_value.result.embeddings, rtol=1e-5)
