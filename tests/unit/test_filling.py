"""Blanks of any sentence, filled with deltas added to the weights and without."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch

from neuralviz.errors import SettingsError, TextError
from neuralviz.micro_tuning import check_settings
from neuralviz.micro_tuning.blanks import describe_blanks, read_hidden_word, sentence_with_blank
from neuralviz.micro_tuning.events import RUN_FORMAT, Candidate, FilledBlank, RunRecord, TextDelta
from neuralviz.micro_tuning.predictions import fill_blanks
from neuralviz.models import LanguageModel
from neuralviz.paths import sample_data

SENTENCE = "The ___ of the river is a [MASK]."
LAYERS = ["head", "last_block", ("bert.embeddings.LayerNorm.bias", "cls.predictions.bias")]


@pytest.fixture(scope="module")
def recorded() -> RunRecord:
    return RUN_FORMAT.unpack((sample_data() / "recorded_run.npz").read_bytes())


def random_delta(model: LanguageModel, layers, seed: int = 0) -> TextDelta:
    names = check_settings(model, layers=layers).layers
    sizes = {layer.name: layer.size for layer in model.layers}
    rng = np.random.default_rng(seed)
    values = tuple(rng.normal(0, 0.05, sizes[name]).astype(np.float32) for name in names)
    return TextDelta(model.id, names, values)


def with_deltas(model: LanguageModel, deltas) -> torch.nn.Module:
    """A copy of the network whose weights really are the sums."""
    network = copy.deepcopy(model.network)
    for scale, delta in deltas:
        for name, values in zip(delta.layers, delta.values, strict=True):
            network.get_parameter(name).data += scale * torch.as_tensor(values)
    return network


def plainly(network: torch.nn.Module, model: LanguageModel, sentence: str) -> np.ndarray:
    """[blank, vocab] probabilities by the network alone.

    The mask of real byte-level vocabularies takes the blank before it; that of the small ones does
    not, so that the blank is left out here.
    """
    written = re.sub(r" ?(___|\[MASK\])", model.tokenizer.mask_token, sentence)
    inputs = model.tokenizer(written, return_tensors="pt")
    with torch.no_grad():
        logits = network(**inputs).logits[0]
    return logits[inputs["input_ids"][0] == model.mask_id].softmax(dim=1).numpy()


@pytest.mark.parametrize("layers", LAYERS, ids=["head", "last block", "embeddings and bias"])
def test_as_a_model_whose_weights_are_the_sums(bundled: LanguageModel, layers) -> None:
    state = {name: value.clone() for name, value in bundled.network.state_dict().items()}
    deltas = [(1.5, random_delta(bundled, layers)), (-0.5, random_delta(bundled, layers, seed=1))]
    found = fill_blanks(bundled, SENTENCE, deltas, top=4)
    for name, value in bundled.network.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert not any(parameter.requires_grad for parameter in bundled.network.parameters())
    before = plainly(bundled.network, bundled, SENTENCE)
    after = plainly(with_deltas(bundled, deltas), bundled, SENTENCE)
    assert len(found) == len(before) == 2
    for blank, p, q in zip(found, before, after, strict=True):
        for candidates, by in ((blank.before, p), (blank.after, q), (blank.risen, q - p)):
            tokens = bundled.tokenizer.convert_ids_to_tokens(range(len(by)))
            ids = [i for i in np.argsort(-by) if not tokens[i].startswith("##")][:4]
            assert [c.token for c in candidates] == [tokens[i] for i in ids]
            np.testing.assert_allclose([c.before for c in candidates], p[ids], rtol=2e-3, atol=1e-6)
            np.testing.assert_allclose([c.after for c in candidates], q[ids], rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("family", ["roberta", "modernbert", "distilbert"])
def test_other_families_read_the_sentence_as_their_tokenizers_do(family: str, small_model) -> None:
    model = small_model(family)
    delta = random_delta(model, None)
    (blank,) = fill_blanks(model, "A baker carries ___ bread.", [(1.0, delta)], top=3)
    expected = plainly(with_deltas(model, [(1.0, delta)]), model, "A baker carries ___ bread.")
    tokens = model.tokenizer.convert_ids_to_tokens(range(expected.shape[1]))
    expected = np.sort(expected[:, [not token.startswith("##") for token in tokens]])
    np.testing.assert_allclose([c.after for c in blank.after], expected[0, ::-1][:3], rtol=2e-3)


def test_what_was_learnt_of_the_river_is_known_elsewhere(bundled, recorded) -> None:
    deltas = [(1.0, recorded.text_delta(1))]  # of a text on a river's edge
    (blank,) = fill_blanks(bundled, "The boat lay at the ___ of the river.", deltas)
    assert blank.after[0].token == blank.risen[0].token == "edge"
    assert blank.risen[0].after > 0.5 > 0.2 > blank.risen[0].before
    (other,) = fill_blanks(bundled, "They gave her ___ for breakfast.", deltas)
    assert other.after[0].token != "edge"


def test_pieces_of_words_fill_a_blank_that_follows_a_letter_alone(bundled: LanguageModel) -> None:
    delta = [(1.0, random_delta(bundled, "head"))]
    (apart,) = fill_blanks(bundled, "The dog was jump ___ .", delta)
    (joined,) = fill_blanks(bundled, "The dog was jump___ .", delta)
    vocabulary = bundled.encoder.get_vocab()
    for blank in (apart, joined):
        assert not any("##" in candidate.token for candidate in blank.candidates)
    assert all(candidate.token in vocabulary for candidate in apart.candidates)
    assert any(f"##{candidate.token}" in vocabulary for candidate in joined.before)


def test_a_hidden_word_has_its_probability_wherever_it_ranks(bundled: LanguageModel) -> None:
    delta, sentence = [(1.0, random_delta(bundled, "head"))], "He lost his ___ ."
    (plain,), (blank,), (pieces,) = (
        fill_blanks(bundled, sentence, delta, 3, hidden) for hidden in ("", "Volcano", "volcanoooo")
    )
    assert plain == pieces
    *likeliest, hidden = blank.before
    assert tuple(likeliest) == plain.before
    assert hidden.token == "volcano"
    expected = plainly(bundled.network, bundled, sentence)[
        0, bundled.encoder.token_to_id("volcano")
    ]
    assert hidden.before == pytest.approx(expected, rel=2e-3)


def test_user_text_is_literal(bundled: LanguageModel) -> None:
    """Only blanks are special: what looks like a token of the model's own is characters."""
    delta = random_delta(bundled, "head")
    plain, odd = (
        fill_blanks(bundled, sentence, [(1.0, delta)])[0].before[0]
        for sentence in ("It is a ___.", "It is [SEP] a ___.")
    )
    assert plain != odd
    (blank,) = fill_blanks(bundled, "snake_case __init__ ___ \ud800", [(1.0, delta)])
    assert blank.before[0].before > 0
    (alone,) = fill_blanks(bundled, "_______", [(1.0, delta)])
    assert len(alone.after) == 5


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("No blank.", "Write ___ for the word"),
        ("__", "no blank"),
        ("___ " * 6, "has 6 blanks; the maximum is 5"),
        ("word " * 600 + "___", "has 601 tokens; the model reads at most"),
    ],
)
def test_sentences_that_cannot_be_filled(bundled: LanguageModel, sentence: str, said: str) -> None:
    with pytest.raises(TextError, match=said):
        fill_blanks(bundled, sentence, [(1.0, random_delta(bundled, "head"))])


def test_deltas_that_do_not_fit(bundled: LanguageModel, tiny: LanguageModel) -> None:
    head = random_delta(bundled, "head")
    foreign = random_delta(tiny, "head")
    pretender = TextDelta(bundled.id, foreign.layers, foreign.values)
    unknown = TextDelta(bundled.id, ("no.such.layer",), head.values[:1])
    wild = TextDelta(bundled.id, head.layers, tuple(v * np.float32(1e37) for v in head.values))
    not_yet = TextDelta(bundled.id, head.layers, tuple(v * np.nan for v in head.values))
    for deltas, said in (
        *(([(1.0, delta)], "does not fit") for delta in (foreign, pretender, unknown, not_yet)),
        ([(1.0, wild)], "Scale the delta down"),
        ([(2.5, head)], "by −2 to 2, not 2.5"),
        ([(np.nan, head)], "by −2 to 2"),
        ([], "at least one delta"),
    ):
        with pytest.raises(SettingsError, match=said):
            fill_blanks(bundled, "A ___.", deltas)
    with pytest.raises(SettingsError, match="from 1 to 30,522, not 0"):
        fill_blanks(bundled, "A ___.", [(1.0, head)], top=0)


def test_a_sentence_is_made_of_the_word_that_was_learnt_best(recorded) -> None:
    texts, reports = recorded.texts, recorded.reports
    made = sentence_with_blank(texts[0], reports[0])
    assert made == "She sat on the bank of the river and watched the ___."
    made = sentence_with_blank(texts[2], reports[2])
    assert made == "The bank has raised its interest ___ again."
    assert (
        sentence_with_blank(texts[1], None) == "He ___ at the river's edge and looked at the ships."
    )
    assert sentence_with_blank("42 !", None) == "42 ! ___"
    assert sentence_with_blank("A ___ b", None) == "___ _ b"
    long = sentence_with_blank("word " * 100 + "extraordinary " + "word " * 100, None)
    assert long.count("___") == 1
    assert 200 < len(long) < 250
    assert "word ___ word" in long
    words = [*map(str, range(100)), "extraordinary", *map(str, range(100, 200))]
    long = " ".join(words)
    assert read_hidden_word(long, sentence_with_blank(long, None)) == "extraordinary"
    for text, sentence, word in (("A cat.", "A ___.", "cat"), ("42 !", "42 ! ___", "")):
        assert read_hidden_word(text, sentence) == word


def blank(*candidates: tuple[str, float, float]) -> FilledBlank:
    each = [Candidate(*one) for one in candidates]
    before = tuple(sorted(each, key=lambda c: -c.before))
    after = tuple(sorted(each, key=lambda c: -c.after))
    return FilledBlank(before, after, after)


@pytest.mark.parametrize(
    ("blanks", "said"),
    [
        (
            [blank(("money", 0.12, 0.05), ("river", 0.03, 0.41))],
            "Before, the model's best guess for the blank was “money” (12%); after X it is “river” "
            "(41%).",
        ),
        (
            [blank(("a", 0.5, 0.0), ("b", 0.00001, 0.9999)), blank(("c", 0.005, 0.02))],
            "Before, the model's best guess for blank 1 was “a” (50%); after X it is “b” (99.9%). "
            "Before, the model's best guess for blank 2 was “c” (0.5%); after X it is still “c” "
            "(2.0%).",
        ),
    ],
)
def test_blanks_in_words(blanks: list[FilledBlank], said: str) -> None:
    assert describe_blanks(blanks, "X") == said
