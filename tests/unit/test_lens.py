"""What the head predicts from every layer, against plain transformers."""

from __future__ import annotations

import copy
import json
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

import neuralviz
from neuralviz.errors import ModelError, SettingsError, never
from neuralviz.headlines.layers import describe_lens
from neuralviz.jobs.layers import ReadLayers
from neuralviz.micro_tuning.events import TextDelta
from neuralviz.micro_tuning.lens import Lens, read_layers, translate_bundled
from neuralviz.micro_tuning.loop import learn
from neuralviz.micro_tuning.settings import check_settings
from neuralviz.models import LanguageModel, load_text_model, tokenize
from neuralviz.models.shared import ModelRef, shared_lens_model, shared_text_model
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from tests.support import families
from tests.support.models import (
    FAMILIES,
    save_causal,
    save_family,
    save_headless,
    save_sentence_transformer,
)

TEXT = "The bank raised its interest rates."
MASKED = [name for name, head in families.text_families().items() if head == "masked"]


@pytest.mark.parametrize("layers", ["head", "last_block"])
def test_every_layer_through_the_head_as_in_plain_transformers(
    tiny: LanguageModel, layers: str
) -> None:
    (text,) = tokenize(tiny, [TEXT])
    settings = check_settings(tiny, layers=layers, epochs=3, learning_rate=0.01)
    deltas = tuple(delta[0] for delta in learn(tiny, [text], settings).deltas)
    tuned = copy.deepcopy(tiny.network)
    parameters = dict(tuned.named_parameters())
    with torch.no_grad():
        for name, delta in zip(settings.layers, deltas, strict=True):
            parameters[name] += torch.as_tensor(delta)
    delta = TextDelta(tiny.id, settings.layers, deltas)
    for network, lens in (
        (tiny.network, read_layers(tiny, text)),
        (tuned, read_layers(tiny, text, delta=delta)),
    ):
        for position, token in enumerate(lens.tokens):
            ids = [*tiny.prefix_ids, *text.ids, *tiny.suffix_ids]
            place = len(tiny.prefix_ids) + token
            ids[place] = tiny.mask_id
            with torch.no_grad():
                states = network.bert(
                    input_ids=torch.tensor([ids]), output_hidden_states=True
                ).hidden_states
                logits = torch.stack([network.cls(layer)[0, place] for layer in states])
            shares = logits.double().softmax(dim=1).numpy()
            own = shares[:, text.ids[token]]
            np.testing.assert_allclose(lens.values[position], own, atol=1e-5)
            rank = (shares > own[:, None]).sum(axis=1) + 1
            np.testing.assert_array_equal(lens.rank[position], rank)
            best = tiny.tokenizer.convert_ids_to_tokens(shares.argmax(axis=1).tolist())
            assert [layer[0] for layer in lens.words[position]] == best


# What each family with a norm after its last block does from a block's output to the logits.
AFTER_THE_BLOCKS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "modernbert": lambda net, x: net.decoder(net.head(net.model.final_norm(x))),
    "eurobert": lambda net, x: net.lm_head(net.model.norm(x)),
    "esm": lambda net, x: net.lm_head(net.esm.encoder.emb_layer_norm_after(x)),
    "esmc": lambda net, x: net.lm_head(net.esmc.norm(x)),
    "megatron-bert": lambda net, x: net.cls(net.bert.encoder.ln(x)),
    "neomme": lambda net, x: net.lm_head(
        net.model.final_norm(x) @ net.unembedding_projection.weight
    ),
    "roberta-prelayernorm": lambda net, x: net.lm_head(net.roberta_prelayernorm.LayerNorm(x)),
    "ultrabert": lambda net, x: net.head(net.model.norm(x)),
    "xlm-roberta-xl": lambda net, x: net.lm_head(net.roberta.encoder.LayerNorm(x)),
}
QUICK = ("modernbert", "eurobert", "longformer", "luke")


@pytest.mark.parametrize(
    "family",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in MASKED],
)
def test_layers_of_all_families_as_in_plain_transformers(family: str, tmp_path: Path) -> None:
    try:
        families.save_family(family, tmp_path)
        model = neuralviz.load_model(tmp_path, device="cpu")
    except (families.NotBuiltError, ModelError) as error:
        pytest.skip(str(error))
    (text,) = tokenize(model, [TEXT])
    outside = [layer for layer in model.layers if layer.part == "embeddings"]
    name, size = next(
        (layer.name, layer.size)
        for layer in reversed(outside)
        if re.search(r"norm|\bln\b", layer.name.lower())
    )  # the final one, if there is one
    change = np.linspace(-0.5, 0.5, size, dtype=np.float32)
    read = AFTER_THE_BLOCKS.get(family)
    for is_tuned in (False, True):
        network = AutoModelForMaskedLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
        if is_tuned:
            network.get_parameter(name).data += torch.tensor(change)
        delta = TextDelta(model.id, (name,), (change,)) if is_tuned else None
        lens = read_layers(model, text, [1, 3], delta=delta)
        for position, token in enumerate(lens.tokens):
            ids = torch.tensor([[*model.prefix_ids, *text.ids, *model.suffix_ids]])
            place = len(model.prefix_ids) + token
            ids[0, place] = model.mask_id
            with torch.no_grad():
                out = network(input_ids=ids, output_hidden_states=True)
                logits = [out.logits]
                if read is not None:
                    logits[:0] = [read(network, state) for state in out.hidden_states[:-1]]
            shares = torch.stack(logits)[:, 0, place].double().softmax(dim=1).numpy()
            own = shares[:, text.ids[token]]
            np.testing.assert_allclose(lens.values[position, -len(own) :], own, atol=1e-5)
            assert read is None or len(own) == model.n_blocks + 1


def test_no_norm_goes_before_the_head_but_that_after_the_last_block(small_model) -> None:
    for family in FAMILIES:
        model = small_model(family)
        (text,) = tokenize(model, [TEXT])
        with torch.no_grad():
            states = model.network.base_model(
                input_ids=torch.tensor([[*model.prefix_ids, *text.ids]]), output_hidden_states=True
            )
        is_normed = not torch.equal(states.hidden_states[-1], states.last_hidden_state)
        assert is_normed <= (family in AFTER_THE_BLOCKS)


@pytest.mark.parametrize("kind", ["head", "missing head", "sentence encoder", "next token"])
def test_a_model_without_a_head_is_compared_with_its_embedding_table(
    kind: str, tmp_path: Path
) -> None:
    if kind == "next token":  # which has no mask token either
        save_causal(tmp_path)
    elif kind == "sentence encoder":
        save_sentence_transformer(tmp_path)
    else:
        save_headless(tmp_path)
        if kind == "missing head":
            config = json.loads((tmp_path / "config.json").read_text())
            config["architectures"] = ["BertForMaskedLM"]
            (tmp_path / "config.json").write_text(json.dumps(config))
    (read,) = list(ReadLayers(ModelRef.from_id(str(tmp_path)), TEXT, None, False).events(never))
    lens = read.before
    assert not lens.has_head
    network, tokenizer = (
        AutoModel.from_pretrained(tmp_path),
        AutoTokenizer.from_pretrained(tmp_path),
    )
    ids = tokenizer(TEXT, return_tensors="pt", return_special_tokens_mask=True)
    is_own = ids.pop("special_tokens_mask")[0] == 0
    with torch.no_grad():
        out = network.eval()(**ids, output_hidden_states=True)
        states = [*out.hidden_states[:-1], out.last_hidden_state]
        if kind == "next token":
            states = [*map(network.ln_f, states[:-1]), states[-1]]
    table = network.get_input_embeddings().weight.detach().double().numpy()
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    for layer, state in enumerate(states):
        vectors = state[0, is_own].double().numpy()
        cosines = vectors @ table.T / np.linalg.norm(vectors, axis=1)[:, None]
        own = cosines[np.arange(len(vectors)), ids["input_ids"][0, is_own]]
        np.testing.assert_allclose(lens.values[:, layer], own, atol=1e-5)
        np.testing.assert_array_equal(
            lens.rank[:, layer], (cosines > own[:, None] + 1e-7).sum(1) + 1
        )
        np.testing.assert_allclose(lens.shares[:, layer, 0], cosines.max(axis=1), atol=1e-5)


def test_rows_of_another_size_than_the_vectors_are_a_sentence(tmp_path: Path) -> None:
    save_family("albert", tmp_path)
    AutoModel.from_pretrained(tmp_path).save_pretrained(tmp_path)
    model = load_text_model(tmp_path, device="cpu")
    with pytest.raises(
        ModelError, match="rows of its embedding table have 24 values, its vectors 32"
    ):
        read_layers(model, tokenize(model, [TEXT])[0])


@pytest.mark.parametrize(
    "text", ["bank", "שלום עולם 🙂", "Ungewöhnliche Wörter", "quiet sea. " * 30]
)
def test_odd_texts_are_read_in_place(text: str, small_model) -> None:
    for model in (small_model("bert"), small_model("modernbert")):
        (tokens,) = tokenize(model, [text])
        lens = read_layers(model, tokens)
        assert lens.tokens.tolist() == list(range(len(tokens)))
        for position in (0, len(tokens) // 2, len(tokens) - 1):
            (chunk,) = (c for c in tokens.chunks if c.start <= position < c.stop)
            ids = [*model.prefix_ids, *tokens.ids[chunk], *model.suffix_ids]
            place = len(model.prefix_ids) + position - chunk.start
            ids[place] = model.mask_id
            with torch.no_grad():
                logits = model.network(input_ids=torch.tensor([ids])).logits[0, place]
            own = float(logits.double().softmax(dim=0)[tokens.ids[position]])
            assert lens.values[position, -1] == pytest.approx(own, abs=1e-5)
        assert 0 <= lens.find_telling() < len(tokens)


@pytest.mark.parametrize("rate", [10.0, 1e30])
def test_a_diverged_run_is_read_as_it_is(rate: float, tiny: LanguageModel) -> None:
    (text,) = tokenize(tiny, [TEXT])
    settings = check_settings(tiny, epochs=3, learning_rate=rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        deltas = tuple(delta[0] for delta in learn(tiny, [text], settings).deltas)
    before = read_layers(tiny, text)
    after = read_layers(tiny, text, delta=TextDelta(tiny.id, settings.layers, deltas))
    position = before.find_telling(after)
    sentence = describe_lens(before, after, position)
    is_finite = bool(np.isfinite(after.shares[position, -1, 0]))
    assert ("its weights are no numbers" in sentence) != is_finite
    assert "nan" not in sentence


def test_the_telling_token_is_a_content_word(bundled: LanguageModel) -> None:
    for sentence, words in (
        ("Urgent: we were charged twice for order 4431.", {"urgent", "charged", "twice", "order"}),
        ("A customer opened a chargeback.", {"customer", "opened"}),  # charge, ##back
        ("It is what it is.", {"it", "is", "what", "."}),  # nothing else is there
    ):
        (text,) = tokenize(bundled, [sentence])
        settings = check_settings(bundled, epochs=3)
        deltas = tuple(delta[0] for delta in learn(bundled, [text], settings).deltas)
        before = read_layers(bundled, text)
        after = read_layers(bundled, text, delta=TextDelta(bundled.id, settings.layers, deltas))
        assert before.names[before.find_telling(after)] in words
        assert before.names[before.find_telling()] in words


def test_the_telling_token_takes_the_lead_or_is_learnt_most(bundled: LanguageModel) -> None:
    (text,) = tokenize(bundled, ["banks raised rates"])

    def read(*places: tuple[int, float]) -> Lens:
        """A lens of two layers, with ranks and probabilities of the three tokens at the last."""
        ranks, values = (np.array(column)[:, None] for column in zip(*places, strict=True))
        names = ("banks", "raised", "rates")
        columns = np.hstack([values, values]), np.hstack([ranks + 1, ranks])
        return Lens(text, np.arange(3), names, *columns, (), np.zeros((3, 2, 0)))

    before = read((1, 0.4), (2, 0.3), (3, 0.1))
    assert before.find_telling(read((1, 0.9), (1, 0.5), (2, 0.5))) == 1  # it takes the lead
    assert before.find_telling(read((1, 0.9), (2, 0.4), (2, 0.5))) == 0  # none does
    assert before.find_telling() == 0
    assert read((2, 0.4), (1, 0.3), (3, 0.1)).find_telling() == 1


def test_the_lens_reads_with_the_head_of_a_model_that_has_one(
    bert_folder: Path, tmp_path: Path
) -> None:
    assert not isinstance(shared_lens_model("all-MiniLM-L6-v2"), LanguageModel)
    folder = shutil.copytree(bert_folder, tmp_path / "pretraining")  # a head, but by another name
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"architectures": ["BertForPreTraining"]})
    )
    assert not isinstance(shared_text_model(str(folder)), LanguageModel)
    assert isinstance(shared_lens_model(str(folder)), LanguageModel)


def test_translation_lowers_the_loss_at_every_layer_on_texts_it_was_not_fitted_on(
    bundled: LanguageModel,
) -> None:
    texts = tokenize(bundled, read_texts(Source.from_path(sample_data() / "sentences.csv")).texts)
    raw = np.mean([read_layers(bundled, text).loss for text in texts], axis=0)
    by_text = [read_layers(bundled, text, translate=translate_bundled()).loss for text in texts]
    translated = np.mean(by_text, axis=0)
    assert (translated[:-1] < raw[:-1] - 0.5).all()
    assert translated[-1] == pytest.approx(raw[-1])
    assert (np.diff(translated) < 0).all()


def test_a_lead_is_the_layer_from_which_the_token_stays_on_top(tiny: LanguageModel) -> None:
    (text,) = tokenize(tiny, [TEXT])
    lens = read_layers(tiny, text, [0, 1, 2])
    ranks = np.array([[3, 1, 2, 1], [1, 1, 1, 1], [1, 1, 1, 2]])
    object.__setattr__(lens, "rank", ranks)
    assert lens.first_on_top.tolist() == [3, 0, -1]


@pytest.mark.parametrize("tokens", [[], [-1], [99]])
def test_tokens_that_are_not_there(tiny: LanguageModel, tokens: list[int]) -> None:
    (text,) = tokenize(tiny, [TEXT])
    with pytest.raises(SettingsError, match="Choose tokens from 0 to"):
        read_layers(tiny, text, tokens)
    wrong = TextDelta(tiny.id, tiny.head_layers[:1], (np.zeros(3, dtype=np.float32),))
    with pytest.raises(SettingsError, match="does not fit"):
        read_layers(tiny, text, delta=wrong)


def test_the_shared_model_stays_as_it_is_while_it_is_read(tiny: LanguageModel) -> None:
    (text,) = tokenize(tiny, [TEXT])
    name = tiny.head_layers[0]
    parameter = dict(tiny.network.named_parameters())[name]
    before, seen = parameter.detach().clone(), []
    module = tiny.network.get_submodule(name.rpartition(".")[0])
    delta = TextDelta(tiny.id, (name,), (np.ones(len(parameter), dtype=np.float32),))
    inside = tiny.network.get_output_embeddings()  # called once the head's weights are in place
    hook = inside.register_forward_pre_hook(
        lambda *_: seen.append(torch.equal(getattr(module, name.rpartition(".")[2]), before))
    )
    read_layers(tiny, text, delta=delta)
    hook.remove()
    assert seen
    assert all(seen)


def test_a_delta_that_is_no_number_makes_no_token_the_best_guess(tiny: LanguageModel) -> None:
    (text,) = tokenize(tiny, [TEXT])
    name = tiny.head_layers[0]
    size = next(layer.size for layer in tiny.layers if layer.name == name)
    delta = TextDelta(tiny.id, (name,), (np.full(size, np.nan, dtype=np.float32),))
    assert (read_layers(tiny, text, delta=delta).rank > 1).all()
