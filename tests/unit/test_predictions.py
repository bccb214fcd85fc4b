"""Predictions at masked positions, against the plain ``transformers`` model."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from neuralviz.cli import app
from neuralviz.errors import SettingsError, never
from neuralviz.jobs.layers import FollowText, ReadLayers
from neuralviz.layers.settings import SbertWkSettings
from neuralviz.micro_tuning import check_settings, mask_inputs, micro_tune, predict_masked
from neuralviz.micro_tuning.events import TextReport
from neuralviz.micro_tuning.watching import find_hardly_read
from neuralviz.models import tokenize
from neuralviz.models.shared import ModelRef, shared_lens_model
from tests.support import families
from tests.support.models import TEXTS, save_family

TEXT = "The cat sat on the mat and purred."
OUTPUT_BIAS = "cls.predictions.bias"
LAYERS = [
    "head",
    "last_block",
    ("bert.encoder.layer.2.attention.self.query.bias", OUTPUT_BIAS),
    ("bert.embeddings.LayerNorm.weight",),
]


def plainly(network, model, text, settings):
    """[position, vocab] probabilities from a forward of the whole network, and the labels."""
    masked = mask_inputs(len(text), settings.blueprints).masked
    shown = np.where(masked, model.mask_id, text.ids)
    around = [np.tile(ids, (len(masked), 1)) for ids in (model.prefix_ids, model.suffix_ids)]
    ids = torch.as_tensor(np.concatenate([around[0], shown, around[1]], axis=1))
    with torch.no_grad():
        logits = network(input_ids=ids).logits[:, 1:-1]
    rows, tokens = np.nonzero(masked)
    return rows, tokens, logits[rows, tokens].softmax(dim=1).numpy()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("layers", LAYERS, ids=["head", "last block", "bias", "embeddings"])
@pytest.mark.parametrize("tuned", [False, True], ids=["plain", "tuned"])
def test_agrees_with_the_whole_model(bundled, layers, tuned):
    settings = check_settings(bundled, layers=layers)
    (text,) = tokenize(bundled, [TEXT])
    network, deltas = bundled.network, None
    if tuned:
        rng = np.random.default_rng(0)
        network = copy.deepcopy(bundled.network)
        parameters = dict(network.named_parameters())
        deltas = [
            rng.normal(0, 0.05, parameters[name].shape).astype(np.float32)
            for name in settings.layers
        ]
        for name, delta in zip(settings.layers, deltas, strict=True):
            parameters[name].data += torch.as_tensor(delta)
    rows, tokens, expected = plainly(network, bundled, text, settings)

    (found,) = predict_masked(bundled, text, settings, [deltas], top=3)

    np.testing.assert_array_equal(found.input, rows)
    np.testing.assert_array_equal(found.token, tokens)
    own = expected[np.arange(len(rows)), text.ids[tokens]]
    np.testing.assert_allclose(found.probability, own, rtol=2e-4, atol=1e-7)
    np.testing.assert_allclose(found.loss, -np.log(own), rtol=2e-4, atol=2e-4)
    ids = np.array([bundled.tokenizer.convert_tokens_to_ids(words) for words in found.words])
    assert ids.shape == found.shares.shape == (len(rows), 3)
    best = np.sort(expected, axis=1)[:, ::-1][:, :3]
    np.testing.assert_allclose(found.shares, best, rtol=2e-4, atol=1e-7)
    theirs = np.take_along_axis(expected, ids, axis=1)
    np.testing.assert_allclose(theirs, best, rtol=2e-4, atol=1e-7)


def test_inputs_are_counted_over_the_chunks(bundled):
    settings = check_settings(bundled, blueprints=[(1, 1)])
    (text,) = tokenize(bundled, ["One two three four five six."])
    halves = replace(text, chunks=(slice(0, 4), slice(4, 7)))
    (found,) = predict_masked(bundled, halves, settings, [None])
    np.testing.assert_array_equal(found.input, [0, 0, 1, 1, 2, 3, 3])
    np.testing.assert_array_equal(found.token, [1, 3, 0, 2, 5, 4, 6])


@pytest.mark.parametrize("layers", ["head", "last_block"])
def test_the_loss_of_a_long_text_is_what_the_next_epoch_starts_from(tiny, layers):
    """Over the masked positions of all chunks."""
    (text,) = tokenize(tiny, [TEXTS["several chunks"]])
    assert len(text.chunks) > 1
    *_, short = micro_tune(tiny, [text.text], layers=layers, epochs=2)
    *_, longer = micro_tune(tiny, [text.text], layers=layers, epochs=3)
    settings, deltas = short.result.settings, [delta[0] for delta in short.result.deltas]
    (found,) = predict_masked(tiny, text, settings, [deltas])
    assert found.mean_loss == pytest.approx(longer.loss[0], rel=1e-5)
    for at_most in (1, 40, len(found) - 1):
        (first,) = predict_masked(tiny, text, settings, [deltas], at_most=at_most)
        assert len(first) == at_most
        np.testing.assert_array_equal(first.token, found.token[:at_most])
        np.testing.assert_array_equal(first.input, found.input[:at_most])
        np.testing.assert_allclose(first.loss, found.loss[:at_most], rtol=1e-4)


def test_what_does_not_fit_is_refused(bundled):
    settings = check_settings(bundled)
    (text,) = tokenize(bundled, [TEXT])
    with pytest.raises(SettingsError, match="one delta per tuned layer"):
        predict_masked(bundled, text, settings, [[np.zeros(384)]])
    with pytest.raises(SettingsError, match="one delta per tuned layer"):
        predict_masked(bundled, text, settings, [[np.zeros(3)] * 3])
    with pytest.raises(SettingsError, match="predictions"):
        predict_masked(bundled, text, settings, [None], top=0)


FOREIGN = """
Der alte Leuchtturmwärter stieg jeden Abend die Treppe hinauf, um die Lampe anzuzünden.
Die Bank hat ihre Zinsen wieder erhöht.
Sehr geehrte Damen und Herren, hiermit kündige ich meinen Vertrag.
Wir fahren im Sommer mit dem Zug nach Italien, weil das Fliegen zu teuer ist.
El viejo farero subía las escaleras todas las noches para encender la lámpara.
El banco ha subido otra vez los tipos de interés.
La casa de mi abuela tiene un jardín muy grande.
No funciona la aplicación desde ayer, por favor ayúdenme.
Le vieux gardien du phare montait l'escalier chaque soir pour allumer la lampe.
La banque a encore relevé ses taux d'intérêt.
Je voudrais une part de gâteau et une tasse de café.
Hier, il a plu toute la journée.
Кошка весь день спала на тёплом подоконнике.
Die Bank hat ihre Zinsen erhöht.
ภาษาไทย 👍
😀 🎉
Das Wetter ist heute schön.
Kissa nukkui koko iltapäivän lämpimällä ikkunalaudalla ja heräsi vasta illalla.
القطة نامت طوال اليوم على النافذة
渔民们在修补渔网,大雨落在安静的港口。
"""
ENGLISH = """
The old lighthouse keeper climbed the stairs every evening to light the lamp.
Krzysztof Wojciechowski met Nguyen Thi Minh Khai in Llanfairpwllgwyngyll.
Mbappe, Haaland and Vinicius scored; Szczesny and Donnarumma did not.
The neuroscientist photographed bioluminescent jellyfish.
Ruthenium-catalysed olefin metathesis of norbornene derivatives.
Dr. Ozturk prescribed levothyroxine and metoprolol.
We didn't, couldn't, wouldn't and shouldn't have done it.
lol that's sooo cooool omggg!!!
const x = document.querySelector('#main').innerHTML;
for i in range(10): print(i ** 2)
ok 👍
pip install numpy==1.26.4
Zombies parading around eating brains.
Study raises stent doubts
Lawsuit alleges Wal-Mart biased against black truckers
ok
"""


def test_the_bundled_model_hardly_reads_other_languages(bundled):
    settings = check_settings(bundled)
    for sentences, is_foreign in ((FOREIGN, True), (ENGLISH, False)):
        for text in tokenize(bundled, sentences.strip().splitlines()):
            (before,) = predict_masked(bundled, text, settings, [None])
            report = TextReport(0, text, None, 0.0, before, before, None)
            assert report.is_hardly_read is is_foreign, text.text
            assert find_hardly_read("all-MiniLM-L6-v2", [text.text]) == (0,) * is_foreign


@pytest.mark.parametrize("family", ["xlm", "esm", "mobilebert"])
def test_a_model_that_cannot_be_tuned_hardly_reads_what_is_spelt_out(family, tmp_path, capsys):
    save = save_family if family == "mobilebert" else families.save_family
    save(family, tmp_path)
    model, sbert_wk = ModelRef.from_id(str(tmp_path)), SbertWkSettings(1)
    for text, is_spelt_out in (("the dog sees a lighthouse", False), ("der alte hafen", True)):
        (tokens,) = tokenize(shared_lens_model(model.id), [text])
        assert tokens.in_pieces.sum() >= 2
        read = [*ReadLayers(model, text, None, False).events(never)]
        read += FollowText(model, text, sbert_wk).events(never)
        assert [one.is_hardly_read for one in read] == [is_spelt_out] * 2
        words = ["explain", text, "a dog", "--method", "mean", "--model", model.id]
        app(words, standalone_mode=False)
        assert ("hardly reads" in " ".join(capsys.readouterr().err.split())) is is_spelt_out
