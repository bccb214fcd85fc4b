"""What the head predicts from every layer, against plain transformers."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

import neuralviz
from neuralviz.errors import SettingsError
from neuralviz.micro_tuning.events import TextDelta
from neuralviz.micro_tuning.lens import read_layers, translate_bundled
from neuralviz.micro_tuning.loop import learn
from neuralviz.micro_tuning.settings import check_settings
from neuralviz.models import LanguageModel, tokenize
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import read_texts
from tests.support.models import save_family

TEXT = "The bank raised its interest rates."


def masked_logits(model: LanguageModel, network: torch.nn.Module, token: int) -> torch.Tensor:
    """[vocab] logits of the whole network at a token of the text that is masked."""
    (text,) = tokenize(model, [TEXT])
    ids = [*model.prefix_ids, *text.ids, *model.suffix_ids]
    place = len(model.prefix_ids) + token
    ids[place] = model.mask_id
    with torch.no_grad():
        return network(input_ids=torch.tensor([ids])).logits[0, place]


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
            np.testing.assert_allclose(lens.probability[position], own, atol=1e-5)
            rank = (shares > own[:, None]).sum(axis=1) + 1
            np.testing.assert_array_equal(lens.rank[position], rank)
            best = tiny.tokenizer.convert_ids_to_tokens(shares.argmax(axis=1).tolist())
            assert [layer[0] for layer in lens.words[position]] == best


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "mpnet", "albert"])
def test_the_last_layer_is_the_model_itself(family: str, tmp_path: Path) -> None:
    model = neuralviz.load_model(save_family(family, tmp_path))
    (text,) = tokenize(model, [TEXT])
    lens = read_layers(model, text, [1, 3])
    for position, token in enumerate(lens.tokens):
        shares = masked_logits(model, model.network, token).double().softmax(dim=0)
        expected = float(shares[int(text.ids[token])])
        assert lens.probability[position, -1] == pytest.approx(expected, abs=1e-5)


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
