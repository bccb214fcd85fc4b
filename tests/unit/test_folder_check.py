"""Models that would be loaded as something else than they are: refused by name, or read rightly."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from neuralviz.embedders import PooledEmbedder, SentenceTransformerEmbedder
from neuralviz.errors import ModelError
from neuralviz.models import LanguageModel, load_model, load_sentence_transformer, load_text_model
from neuralviz.models.folder_check import describe_missing_weights
from tests.support.models import SENTENCES, save_family, save_headless, save_sentence_transformer

Change = Callable[[Path], None]
SHORT = tuple(sentence[:45] for sentence in SENTENCES)
LOADERS = (load_text_model, load_model, load_sentence_transformer)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT with a head."""
    return save_family("bert", tmp_path_factory.mktemp("plain") / "bert")


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a model of sentence-transformers."""
    return save_sentence_transformer(tmp_path_factory.mktemp("dense") / "dense")


def change(path: Path, **values: Any) -> None:
    """Set entries of a JSON file; None takes one out."""
    settings = json.loads(path.read_text()) if path.is_file() else {}
    settings |= values
    path.write_text(json.dumps({name: v for name, v in settings.items() if v is not None}))


def copy_of(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "model"))


def refusal(load: Callable[..., Any], folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load(folder, device="cpu")
    said = str(caught.value)
    assert str(folder) in said
    assert said.endswith((".", "`."))
    return said


def check_refused(folder: Path, *words: str) -> None:
    for load in LOADERS:
        said = refusal(load, folder)
        for word in words:
            assert word in said


def unit(vectors: Any) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def plain_means(folder: Path) -> np.ndarray:
    """[text, dim] means of a transformer's last states, one text at a time, by transformers."""
    network, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = [
            network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0)
            for text in SHORT
        ]
    return unit(torch.stack(states))


def test_a_tokenizer_that_draws(tmp_path: Path) -> None:
    """BPE with dropout splits a word differently each time it reads it, also in eval mode."""
    folder = save_sentence_transformer(tmp_path / "model", family="roberta")
    for file in folder.rglob("tokenizer.json"):
        settings = json.loads(file.read_text())
        settings["model"]["dropout"] = 0.5
        file.write_text(json.dumps(settings))
    theirs = AutoTokenizer.from_pretrained(folder)
    assert len({tuple(theirs("harbour").input_ids) for _ in range(9)}) > 1
    for load in (load_text_model, load_sentence_transformer):
        assert "splits words at random. Set “dropout”" in refusal(load, folder)


# --- a model's own code ------------------------------------------------------------------------


@pytest.mark.sweep(4)
@pytest.mark.parametrize("base", ["plain", "dense"])
@pytest.mark.parametrize(
    ("file", "auto_map"),
    [
        ("config.json", {"AutoModel": "modeling_x.X"}),
        ("config.json", {"AutoConfig": "modeling_x.X"}),
        ("config.json", {"AutoModelForMaskedLM": "someone/repository--modeling_x.X"}),
        ("config.json", {"AutoTokenizer": ["modeling_x.X", None]}),
        ("tokenizer_config.json", {"AutoTokenizer": [None, "modeling_x.X"]}),
        ("tokenizer_config.json", ["modeling_x.X", None]),
    ],
)
def test_a_models_own_code(file: str, auto_map: Any, base: str, tmp_path: Path, request) -> None:
    folder = copy_of(request.getfixturevalue(base), tmp_path)
    ran = folder / "ran"
    (folder / "modeling_x.py").write_text(f"open({str(ran)!r}, 'w')\nclass X: pass\n")
    change(folder / file, auto_map=auto_map)
    check_refused(folder, "needs custom code (", "modeling_x.X", "never runs")
    assert not ran.exists()


def test_code_for_a_head_that_is_not_loaded_is_no_matter(plain: Path, tmp_path: Path) -> None:
    folder = copy_of(plain, tmp_path)
    heads = {"AutoModelForTokenClassification": "own.Tagger", "AutoImageProcessor": "own.Pictures"}
    change(folder / "config.json", auto_map=heads)
    ours = PooledEmbedder(load_text_model(folder, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(plain), atol=1e-5)
    change(folder / "config.json", architectures=["Tagger"])  # now it is what was saved
    assert "custom code (own.Tagger)" in refusal(load_text_model, folder)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "modules.json"])
def test_a_file_of_endless_brackets(file: str, dense: Path, tmp_path: Path) -> None:
    folder = copy_of(dense, tmp_path)
    (folder / file).write_text("[" * 100_000)
    check_refused(folder, f"Could not read the {file} of ")


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", [5, None, ["F32"], {}])
@pytest.mark.parametrize("base", ["plain", "dense"])
def test_weights_whose_type_is_no_name(
    dtype: object, base: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = copy_of(request.getfixturevalue(base), tmp_path)
    header = json.dumps({"x.weight": {"dtype": dtype, "shape": [2, 2], "data_offsets": [0, 16]}})
    content = struct.pack("<Q", len(header)) + header.encode() + bytes(16)
    (folder / "model.safetensors").write_bytes(content)
    check_refused(folder)


def test_weights_with_a_header_of_endless_brackets(plain: Path, tmp_path: Path) -> None:
    folder = copy_of(plain, tmp_path)
    content = struct.pack("<Q", 100_000) + b"[" * 100_000
    (folder / "model.safetensors").write_bytes(content)
    for load in LOADERS:
        with pytest.raises(ModelError):
            load(folder, device="cpu")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("base", ["plain", "dense"])
@pytest.mark.parametrize("name", ["MyBertModel", "NewForCL", "NewForMaskedLM"])
def test_a_class_that_the_library_lacks(name: str, base: str, tmp_path: Path, request) -> None:
    """`AutoModel` would give another class of the same `model_type`, with all weights in place."""
    folder = copy_of(request.getfixturevalue(base), tmp_path)
    change(folder / "config.json", architectures=[name])
    check_refused(folder, f"`transformers` does not have ({name})", "is not known")
    change(folder / "config.json", architectures=["BertModel"])  # as the sentence says
    ours = PooledEmbedder(load_text_model(folder, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(folder), atol=1e-5)


def test_an_encoder_that_simcse_trained(plain: Path, tmp_path: Path) -> None:
    """Its weights have a prefix, and beside them a head that only training needs."""
    folder = copy_of(plain, tmp_path)
    change(folder / "config.json", architectures=["BertForCL"])
    weights = load_file(plain / "model.safetensors")
    assert all(name.startswith(("bert.", "cls.")) for name in weights)
    weights |= {"mlp.dense.weight": torch.ones(32, 32), "mlp.dense.bias": torch.ones(32)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    ours = PooledEmbedder(load_text_model(folder, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(plain), atol=1e-5)
    del weights["bert.encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "is missing weights, for example encoder.layer.1" in refusal(load_text_model, folder)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("bert", "RobertaModel"), ("roberta", "BertForMaskedLM"), ("electra", "TFBertModel")],
)
def test_a_type_and_a_class_of_two_families(
    kind: str, name: str, plain: Path, tmp_path: Path
) -> None:
    folder = copy_of(plain, tmp_path)
    change(folder / "config.json", architectures=[name], model_type=kind)
    said = refusal(load_text_model, folder)
    assert f"its model_type is “{kind}”, its class {name}" in said


@pytest.mark.parametrize("name", ["TFBertForMaskedLM", "FlaxBertModel", "BERTForMaskedLM"])
def test_other_spellings_of_a_class(name: str, plain: Path, tmp_path: Path) -> None:
    folder = copy_of(plain, tmp_path)
    change(folder / "config.json", architectures=[name])
    ours = PooledEmbedder(load_text_model(folder, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(plain), atol=1e-5)


def test_the_code_of_a_transformer_in_a_folder_of_its_own(dense: Path, tmp_path: Path) -> None:
    folder = old_layout(dense, tmp_path)
    change(folder / "0_Transformer" / "config.json", auto_map={"AutoModel": "own.Model"})
    check_refused(folder, "needs custom code (own.Model)")


def test_an_activation_of_its_own(dense: Path, tmp_path: Path) -> None:
    """sentence-transformers would put Tanh in its place."""
    folder = with_dense(dense, tmp_path, "own.Activation")
    assert "custom code (own.Activation)" in refusal(load_sentence_transformer, folder)
    change(
        folder / "2_Dense" / "config.json", activation_function="torch.nn.modules.linear.Identity"
    )
    check_library(folder)


# --- what gives no dense vector of a text ------------------------------------------------------


def test_cross_encoders(plain: Path, tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    encoder = CrossEncoder(str(plain), device="cpu", num_labels=1)
    encoder.save_pretrained(str(tmp_path / "cross"))
    check_refused(tmp_path / "cross", "cross-encoder", "(CrossEncoder)")
    for file in ("config_sentence_transformers.json", "modules.json"):  # as before version 5
        (tmp_path / "cross" / file).unlink()
    check_refused(tmp_path / "cross", "cross-encoder", "(BertForSequenceClassification)")


def test_a_classifier(tmp_path: Path) -> None:
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    config = DistilBertConfig(vocab_size=200, dim=16, n_layers=1, n_heads=2, hidden_dim=16)
    save_headless(tmp_path)  # whose tokenizer stays
    DistilBertForSequenceClassification(config).save_pretrained(tmp_path)
    check_refused(tmp_path, "classifier (DistilBertForSequenceClassification)")
    AutoModel.from_pretrained(tmp_path).save_pretrained(tmp_path)  # as the sentence says
    ours = PooledEmbedder(load_text_model(tmp_path, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(tmp_path), atol=1e-5)


@pytest.mark.parametrize("head", ["MultipleChoice", "SequenceClassification"])
@pytest.mark.parametrize("tells", [True, False])
def test_heads_that_score_texts(head: str, tells: bool, plain: Path, tmp_path: Path) -> None:
    """By the class that was saved, or by the head's weights alone."""
    folder = copy_of(plain, tmp_path)
    name = f"BertFor{head}"
    getattr(transformers, name).from_pretrained(plain).save_pretrained(folder)
    if not tells:
        change(folder / "config.json", architectures=None)
    said = "scores or classes of its encoder's vectors (classifier.bias)"
    assert (f"classifier ({name})" if tells else said) in refusal(load_text_model, folder)


@pytest.mark.parametrize(
    "head", ["TokenClassification", "NextSentencePrediction", "QuestionAnswering"]
)
@pytest.mark.parametrize("tells", [True, False])
def test_other_heads_are_left_out(head: str, tells: bool, plain: Path, tmp_path: Path) -> None:
    folder = copy_of(plain, tmp_path)
    getattr(transformers, f"BertFor{head}").from_pretrained(plain).save_pretrained(folder)
    if not tells:
        change(folder / "config.json", architectures=None)
    ours = PooledEmbedder(load_text_model(folder, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(plain), atol=1e-5)


def test_weights_of_an_untied_output_are_left_out(tmp_path: Path) -> None:
    """BioGPT calls them a projection."""
    config = transformers.BioGptConfig(
        vocab_size=200, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, tie_word_embeddings=False,
    )  # fmt: skip
    save_headless(tmp_path)  # whose tokenizer stays
    transformers.BioGptForCausalLM(config).save_pretrained(tmp_path)
    assert "output_projection.weight" in load_file(tmp_path / "model.safetensors")
    ours = PooledEmbedder(load_text_model(tmp_path, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(tmp_path), atol=1e-5)


@pytest.mark.parametrize("architectures", [None, ["BertModel"], ["BertForMaskedLM"]])
@pytest.mark.parametrize("name", ["linear", "projection", "text_projection", "dense.linear"])
def test_a_projection_beside_the_encoder(
    name: str, architectures: list[str] | None, plain: Path, tmp_path: Path
) -> None:
    """As ColBERT's, whose vectors of tokens it makes."""
    folder = copy_of(plain, tmp_path)
    change(folder / "config.json", architectures=architectures)
    weights = load_file(plain / "model.safetensors") | {f"{name}.weight": torch.ones(8, 32)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    said = refusal(load_text_model, folder)
    assert f"other vectors of its encoder's vectors ({name}.weight)" in said
    assert "multi-vector encoder" in said


def test_a_causal_model_that_ranks(tmp_path: Path, dense: Path) -> None:
    folder = copy_of(dense, tmp_path)
    path = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"
    add_module(folder, path)
    check_refused(folder, "cross-encoder", "(LogitScore)")


@pytest.mark.parametrize("kind", ["splade", "csr"])
def test_sparse_encoders(kind: str, plain: Path, tmp_path: Path) -> None:
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseAutoEncoder

    modules = [Transformer(str(plain)), Pooling(32, "mean"), SparseAutoEncoder(32, 64, 8)]
    made = {"modules": modules} if kind == "csr" else {"model_name_or_path": str(plain)}
    SparseEncoder(**made, device="cpu").save_pretrained(str(tmp_path), create_model_card=False)
    assert SparseEncoder(str(tmp_path), device="cpu").encode("a").layout != torch.strided
    check_refused(tmp_path, "is a sparse encoder (SparseEncoder)")
    change(tmp_path / "config_sentence_transformers.json", model_type=None)
    name = "SparseAutoEncoder" if kind == "csr" else "SpladePooling"
    check_refused(tmp_path, f"is a sparse encoder ({name})")


def test_a_sparse_encoder_of_an_older_version(plain: Path, tmp_path: Path) -> None:
    folder = copy_of(plain, tmp_path)
    package = "sentence_transformers.sparse_encoder.models."
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{package}MLMTransformer"},
        {"idx": 1, "name": "1", "path": "1_SpladePooling", "type": f"{package}SpladePooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    check_refused(folder, "sparse encoder (SpladePooling)")


def test_multi_vector_encoders(plain: Path, tmp_path: Path) -> None:
    from sentence_transformers import MultiVectorEncoder

    encoder = MultiVectorEncoder(str(plain), device="cpu")
    encoder.save_pretrained(str(tmp_path), create_model_card=False)
    assert MultiVectorEncoder(str(tmp_path), device="cpu").encode_document("a dog").ndim == 2
    check_refused(tmp_path, "is a multi-vector encoder (MultiVectorEncoder)")
    change(tmp_path / "config_sentence_transformers.json", model_type="ColBERT")
    check_refused(tmp_path, "is a multi-vector encoder (ColBERT)")
    change(tmp_path / "config_sentence_transformers.json", model_type=None)
    check_refused(tmp_path, "is a multi-vector encoder (MultiVectorMask)")
    modules = json.loads((tmp_path / "modules.json").read_text())[:2]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    check_refused(tmp_path, "is a multi-vector encoder (Dense without Pooling)")
    modules[1]["type"] = "pylate.models.Dense.Dense"
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    check_refused(tmp_path, "is a multi-vector encoder (Dense)")


@pytest.mark.parametrize("name", ["HF_ColBERT", "ColPaliForRetrieval"])
def test_multi_vector_checkpoints_of_other_libraries(
    name: str, plain: Path, tmp_path: Path
) -> None:
    folder = copy_of(plain, tmp_path)
    change(folder / "config.json", architectures=[name])
    check_refused(folder, f"is a multi-vector encoder ({name})")


def test_a_kind_that_nobody_knows_yet(dense: Path, tmp_path: Path) -> None:
    folder = copy_of(dense, tmp_path)
    change(folder / "config_sentence_transformers.json", model_type="GraphEncoder")
    check_refused(folder, "is a GraphEncoder, not a SentenceTransformer")


def test_a_transformer_whose_tokens_nobody_pools(dense: Path, tmp_path: Path) -> None:
    folder = copy_of(dense, tmp_path)
    modules = json.loads((folder / "modules.json").read_text())[:1]
    (folder / "modules.json").write_text(json.dumps(modules))
    assert "none of its modules pools" in refusal(load_sentence_transformer, folder)
    ours = PooledEmbedder(load_text_model(folder, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(folder), atol=1e-5)


# --- adapters and weights ----------------------------------------------------------------------


@pytest.mark.parametrize("base", ["plain", "dense"])
@pytest.mark.parametrize("file", ["adapter_config.json", "adapter_model.bin"])
def test_an_adapter_beside_weights(file: str, base: str, tmp_path: Path, request) -> None:
    folder = copy_of(request.getfixturevalue(base), tmp_path)
    (folder / file).write_text('{"peft_type": "LORA", "base_model_name_or_path": "bert"}')
    check_refused(folder, "has an adapter beside its own weights", "merge_and_unload")


def test_an_adapter_alone(dense: Path, tmp_path: Path) -> None:
    folder = copy_of(dense, tmp_path)
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    about = {"peft_type": "LORA", "base_model_name_or_path": "bert-base-uncased"}
    (folder / "adapter_config.json").write_text(json.dumps(about))
    check_refused(folder, "is an adapter, not a whole model", "into bert-base-uncased")
    for file in ("config.json", "modules.json"):
        (folder / file).unlink()
    check_refused(folder, "is an adapter, not a whole model")
    said = str(describe_missing_weights("a/lora", ["README.md", "adapter_model.safetensors"]))
    assert said.startswith("a/lora is an adapter, not a whole model")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("base", ["plain", "dense"])
def test_quantised_weights(base: str, tmp_path: Path, request) -> None:
    folder = copy_of(request.getfixturevalue(base), tmp_path)
    for method in ("gptq", "bitsandbytes"):
        change(folder / "config.json", quantization_config={"quant_method": method, "bits": 4})
        check_refused(folder, f"quantised weights ({method})")
    change(folder / "config.json", quantization_config=None)
    file = folder / "model.safetensors"
    weights = load_file(file)
    name = next(name for name in weights if name.endswith("query.weight"))
    weights[name] = (weights[name] * 100).to(torch.int8)
    save_file(weights, file, metadata={"format": "pt"})
    check_refused(folder, "quantised weights (I8)")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_half_the_size_are_read(dtype: torch.dtype, plain: Path, tmp_path: Path) -> None:
    folder = copy_of(plain, tmp_path)
    weights = {
        name: value.to(dtype) for name, value in load_file(folder / "model.safetensors").items()
    }
    weights["cls.relative.bias"] = torch.ones(2, 2, dtype=torch.uint8)  # as GPT-2's masks
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    ours = PooledEmbedder(load_text_model(folder, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(plain), atol=0.02)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("model.Q4_K_M.gguf", "GGUF"), ("pytorch_model.bin", "pickled"),
        ("tf_model.h5", "TensorFlow"), ("flax_model.msgpack", "Flax"), ("model.onnx", "ONNX"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("base", ["plain", "dense"])
def test_weights_in_another_format(
    file: str, kind: str, base: str, tmp_path: Path, request
) -> None:
    folder = copy_of(request.getfixturevalue(base), tmp_path)
    (folder / "model.safetensors").rename(folder / file)
    check_refused(folder, f"no weights in safetensors format, only {kind} ones ({file})")
    if kind == "GGUF":
        for other in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            (folder / other).unlink()
        check_refused(folder, f"only GGUF ones ({file})")


def split_weights(folder: Path) -> tuple[Path, Path, Path]:
    """The weights of a folder as two shards; these and their index."""
    weights = sorted(load_file(folder / "model.safetensors").items())
    (folder / "model.safetensors").unlink()
    files = [folder / f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for file, some in zip(files, (weights[:20], weights[20:]), strict=True):
        save_file(dict(some), file, metadata={"format": "pt"})
    places = {name: files[place >= 20].name for place, (name, _) in enumerate(weights)}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return files[0], files[1], index


def spoil_shards(kind: str, first: Path, second: Path, index: Path) -> None:
    if kind == "no index":
        index.unlink()
    elif kind == "one is missing":
        second.unlink()
    elif kind == "one is cut off":
        second.write_bytes(second.read_bytes()[:-50])
    elif kind == "a tensor is in both":  # the library reads the last, whatever the index says
        both = load_file(second) | dict(list(load_file(first).items())[:1])
        save_file(both, second, metadata={"format": "pt"})
    elif kind == "a variant":
        first.rename(first.with_name("model.fp16.safetensors"))
        second.unlink()
        index.unlink()


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("no index", "in model-00001-of-00002.safetensors, where they are not looked for"),
        ("one is missing", "lacks the file model-00002-of-00002.safetensors"),
        ("one is cut off", "model-00002-of-00002.safetensors of"),
        ("a tensor is in both", "twice, in model-00001-of-00002.safetensors and in"),
        ("a variant", "in model.fp16.safetensors, where they are not looked for"),
    ],
)
def test_shards(kind: str, sentence: str, dense: Path, plain: Path, tmp_path: Path) -> None:
    whole = Path(shutil.copytree(plain, tmp_path / "whole"))
    split_weights(whole)
    ours = PooledEmbedder(load_text_model(whole, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(plain), atol=1e-5)
    folder = copy_of(dense, tmp_path)
    spoil_shards(kind, *split_weights(folder))
    check_refused(folder, sentence)


@pytest.mark.parametrize("layout", ["flat", "old", "router"])
def test_weights_that_are_missing_are_not_made_up(
    layout: str, dense: Path, plain: Path, tmp_path: Path
) -> None:
    if layout == "router":
        folder, part = save_router(plain, tmp_path), tmp_path / "document_0_Transformer"
    elif layout == "old":
        folder = old_layout(dense, tmp_path)
        part = folder / "0_Transformer"
    else:
        folder = part = copy_of(dense, tmp_path)
    weights = load_file(part / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    del weights[name]
    save_file(weights, part / "model.safetensors", metadata={"format": "pt"})
    said = refusal(load_sentence_transformer, folder)
    assert f"is missing weights, for example {name}" in said


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_pointer_in_place_of_a_file(file: str, plain: Path, tmp_path: Path) -> None:
    folder = copy_of(plain, tmp_path)
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 438007537\n"
    (folder / file).write_text(pointer)
    check_refused(folder, f"{file} of", "Git LFS pointer", "git lfs pull")


# --- tokenizers --------------------------------------------------------------------------------


def test_a_sentencepiece_model_alone(plain: Path, tmp_path: Path, monkeypatch) -> None:
    folder = copy_of(plain, tmp_path)
    (folder / "tokenizer.json").unlink()
    (folder / "spiece.model").write_bytes(b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")
    monkeypatch.setattr("neuralviz.models.folder_check.find_spec", lambda name: None)
    check_refused(folder, "SentencePiece model (spiece.model)", "pip install sentencepiece")


@pytest.mark.parametrize("base", ["plain", "dense"])
def test_an_empty_vocabulary(base: str, tmp_path: Path, request) -> None:
    from transformers import BertTokenizerFast, RobertaTokenizerFast

    folder = copy_of(request.getfixturevalue(base), tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(folder)
    for load in LOADERS[::2] if base == "dense" else LOADERS[:2]:
        assert (
            "has an empty vocabulary: its tokenizer.json is missing, or has 5 special"
            in refusal(load, folder)
        )
    RobertaTokenizerFast(vocab_file="none.json", merges_file="none.txt").save_pretrained(folder)
    assert "has an empty vocabulary" in refusal(load_text_model, folder)
    BertTokenizerFast(vocab={word: i for i, word in enumerate(words)}).save_pretrained(folder)
    assert load_text_model(folder, device="cpu").encoder.get_vocab_size() == len(words)


# --- what is read rightly ----------------------------------------------------------------------


def check_library(folder: Path) -> None:
    """The method sentence-transformer gives what the library itself gives."""
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(folder), device="cpu").encode(list(SHORT))
    encoder = SentenceTransformerEmbedder(*load_sentence_transformer(folder, device="cpu"))
    np.testing.assert_allclose(encoder.encode(SHORT), unit(theirs), atol=1e-5)


def old_layout(dense: Path, tmp_path: Path) -> Path:
    """A model as sentence-transformers 1 wrote it: the transformer in a folder of its own."""
    folder = copy_of(dense, tmp_path)
    (folder / "0_Transformer").mkdir()
    for path in list(folder.iterdir()):
        if path.is_file() and path.name not in (
            "modules.json",
            "config_sentence_transformers.json",
        ):
            path.rename(folder / "0_Transformer" / path.name)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0] |= {"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").unlink()
    (folder / "config.json").write_text('{"__version__": "1.2.0"}')
    return folder


def add_module(folder: Path, path: str) -> Path:
    modules = json.loads((folder / "modules.json").read_text())
    name = f"{len(modules)}_{path.rpartition('.')[2]}"
    modules.append({"idx": len(modules), "name": str(len(modules)), "path": name, "type": path})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / name).mkdir()
    return folder / name


def with_dense(dense: Path, tmp_path: Path, activation: str) -> Path:
    folder = copy_of(dense, tmp_path)
    module = add_module(folder, "sentence_transformers.models.Dense")
    settings = {"in_features": 32, "out_features": 8, "bias": True}
    change(module / "config.json", **settings, activation_function=activation)
    weights = {"linear.weight": torch.randn(8, 32), "linear.bias": torch.randn(8)}
    save_file(weights, module / "model.safetensors")
    return folder


def test_a_transformer_in_a_folder_of_its_own(dense: Path, tmp_path: Path) -> None:
    folder = old_layout(dense, tmp_path)
    check_library(folder)
    model = load_text_model(folder, device="cpu")
    expected = plain_means(folder / "0_Transformer")
    np.testing.assert_allclose(PooledEmbedder(model).encode(SHORT), expected, atol=1e-5)


def test_a_module_without_its_settings(dense: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(dense, tmp_path / "model")
    shutil.rmtree(folder / "1_Pooling")
    sentence = "is incomplete: 1_Pooling/config.json is missing."
    assert sentence in refusal(load_sentence_transformer, folder)
    assert load_text_model(folder, device="cpu").id == str(folder)  # *mean* needs none


def save_router(plain: Path, folder: Path) -> Path:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    routes = [[Transformer(str(plain)), Pooling(32, mode)] for mode in ("mean", "cls")]
    library = SentenceTransformer(modules=[Router.for_query_document(*routes)], device="cpu")
    library.save(str(folder), create_model_card=False)
    return folder


def test_a_router(plain: Path, tmp_path: Path) -> None:
    check_library(save_router(plain, tmp_path))
    for load in (load_text_model, load_model):
        said = refusal(load, tmp_path)
        assert "sends texts to different encoders (Router)" in said
        assert "method sentence-transformer" in said
    before = load_sentence_transformer(tmp_path, device="cpu")[1]
    file = tmp_path / "query_0_Transformer" / "model.safetensors"
    weights = {name: 2 * value for name, value in load_file(file).items()}
    save_file(weights, file, metadata={"format": "pt"})
    assert load_sentence_transformer(tmp_path, device="cpu")[1] != before
    settings = json.loads((tmp_path / "router_config.json").read_text())
    settings["types"]["query_0_Transformer"] = "own.Transformer"
    (tmp_path / "router_config.json").write_text(json.dumps(settings))
    check_refused(tmp_path, "needs custom code (own.Transformer)")


def test_a_table_of_token_embeddings(plain: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    table = StaticEmbedding(AutoTokenizer.from_pretrained(plain), embedding_dim=16)
    library = SentenceTransformer(modules=[table], device="cpu")
    library.save(str(tmp_path), create_model_card=False)
    check_library(tmp_path)
    change(tmp_path / "config.json", model_type="model2vec", architectures=["StaticModel"])
    check_library(tmp_path)
    assert "is a table of token embeddings" in refusal(load_text_model, tmp_path)
    (tmp_path / "modules.json").unlink()
    assert "from_model2vec" in refusal(load_text_model, tmp_path)


@pytest.mark.parametrize("kind", ["WordEmbeddings", "BoW"])
def test_modules_without_a_transformer(kind: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW, Pooling, WordEmbeddings
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

    words = ["old", "baker", "carries", "reads", "children", "rain", "door", "wind", "evening"]
    if kind == "BoW":  # which has no weights
        modules = [BoW(words)]
    else:
        tokenizer = WhitespaceTokenizer(words, stop_words=[])
        table = np.random.default_rng(0).normal(size=(len(words) + 1, 8)).astype(np.float32)
        modules = [WordEmbeddings(tokenizer=tokenizer, embedding_weights=table), Pooling(8)]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path), create_model_card=False)
    theirs = SentenceTransformer(str(tmp_path), device="cpu").encode(list(SHORT))
    encoder = SentenceTransformerEmbedder(*load_sentence_transformer(tmp_path, device="cpu"))
    ours = encoder.encode(SHORT, normalize_embeddings=False)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert f"without a transformer ({kind})" in refusal(load_text_model, tmp_path)


def save_t5(folder: Path) -> Path:
    """The encoder of a small T5, as sentence-transformers saves it, too."""
    from transformers import T5Config, T5EncoderModel

    save_headless(folder)  # whose tokenizer stays
    sizes = {"vocab_size": 200, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2}
    network = T5EncoderModel(T5Config(**sizes, num_heads=2, decoder_start_token_id=0))
    network.save_pretrained(folder)
    return folder


def test_the_encoder_of_an_encoder_decoder_model(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import T5EncoderModel

    folder = save_t5(tmp_path / "t5")
    network, tokenizer = (
        T5EncoderModel.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    with torch.no_grad():
        states = [
            network(**tokenizer(text, return_tensors="pt", return_token_type_ids=False))
            for text in SHORT
        ]
    expected = unit(torch.stack([state.last_hidden_state[0].mean(dim=0) for state in states]))
    library = SentenceTransformer(modules=[Transformer(str(folder)), Pooling(16)], device="cpu")
    library.save(str(tmp_path / "library"), create_model_card=False)
    for path in (folder, tmp_path / "library"):
        ours = PooledEmbedder(load_text_model(path, device="cpu")).encode(SHORT)
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    check_library(tmp_path / "library")


def save_clip(folder: Path) -> Path:
    """A small CLIP as sentence-transformers saved it: pictures and texts."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 16}  # fmt: skip
    texts = sizes | {"vocab_size": 330, "eos_token_id": 2, "bos_token_id": 0, "pad_token_id": 1}
    pictures = sizes | {"image_size": 8, "patch_size": 4}
    config = CLIPConfig(text_config=texts, vision_config=pictures, projection_dim=8)
    part = save_family("roberta", folder / "0_CLIPModel")  # whose tokenizer stays
    CLIPModel(config).save_pretrained(part)
    CLIPImageProcessor(size={"shortest_edge": 8}).save_pretrained(part)
    path = "sentence_transformers.models.CLIPModel"
    modules = [{"idx": 0, "name": "0", "path": "0_CLIPModel", "type": path}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def test_a_model_of_pictures_and_texts(tmp_path: Path) -> None:
    folder = save_clip(tmp_path)
    check_library(folder)
    for path in (folder, folder / "0_CLIPModel"):
        for load in (load_text_model, load_model):
            assert "(clip) reads pictures and texts" in refusal(load, path)


def test_a_head_with_dense_layers(dense: Path, tmp_path: Path) -> None:
    check_library(with_dense(dense, tmp_path, "torch.nn.modules.activation.Tanh"))


# --- masked models that lack what mean does not need ----------------------------------------------


@pytest.mark.sweep(2)
@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("lack", ["head", "mask token"])
def test_a_masked_model_is_read_without_what_reading_does_not_need(
    lack: str, family: str, tmp_path: Path
) -> None:
    folder = save_family(family, tmp_path)
    if lack == "head":
        weights = load_file(folder / "model.safetensors")
        kept = {name: value for name, value in weights.items() if "head" not in name}
        kept = {name: value for name, value in kept.items() if not name.startswith("cls.")}
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        change(folder / "tokenizer_config.json", mask_token=None)
    model = load_text_model(folder, device="cpu")
    assert not isinstance(model, LanguageModel)
    ours = PooledEmbedder(model).encode(SHORT)
    np.testing.assert_allclose(ours, plain_means(folder), atol=1e-5)
    assert lack in refusal(load_model, folder)


@pytest.mark.parametrize("family", ["XLM", "Flaubert"])
def test_a_family_without_default_layers(family: str, tmp_path: Path) -> None:
    import transformers

    from neuralviz.embedders import NeuralEmbedder
    from neuralviz.errors import SettingsError

    save_headless(tmp_path)  # whose tokenizer stays
    sizes = {"vocab_size": 200, "emb_dim": 16, "n_layers": 1, "n_heads": 2, "pad_index": 0}
    config = getattr(transformers, f"{family}Config")(**sizes)
    getattr(transformers, f"{family}WithLMHeadModel")(config).save_pretrained(tmp_path)
    model = load_model(tmp_path, device="cpu")
    for layers, part in ((None, "prediction head"), ("head", "prediction head"),
                         ("last_block", "last block")):  # fmt: skip
        with pytest.raises(SettingsError, match=f"The {part} of the model .* no layer .* Name lay"):
            NeuralEmbedder(model, layers=layers)


# --- lengths of inputs -------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["40", [40], {}])
def test_a_longest_input_that_is_no_number(value: Any, dense: Path, tmp_path: Path) -> None:
    folder = copy_of(dense, tmp_path)
    change(folder / "tokenizer_config.json", model_max_length=value)
    check_refused(folder, "model_max_length in the tokenizer_config.json", f"not {value!r}.")
    folder = Path(shutil.copytree(dense, tmp_path / "other"))
    change(folder / "sentence_bert_config.json", max_seq_length=value)
    check_refused(folder, "max_seq_length in the sentence_bert_config.json", f"not {value!r}.")


@pytest.mark.parametrize(("value", "meant"), [(0, 64), (-1, 64), (10**6, 64), (1e3, 64), (9.0, 9)])
def test_a_longest_input_that_cannot_be_meant(
    value: float, meant: int, dense: Path, tmp_path: Path
) -> None:
    """The network has 64 positions; what is left out of a text is what the library leaves out."""
    from sentence_transformers import SentenceTransformer

    folder = copy_of(dense, tmp_path)
    change(folder / "sentence_bert_config.json", max_seq_length=value)
    ours = SentenceTransformerEmbedder(*load_sentence_transformer(folder, device="cpu"))
    theirs = SentenceTransformer(str(dense), device="cpu")
    theirs.max_seq_length = meant
    text = " ".join(SENTENCES)
    assert len(AutoTokenizer.from_pretrained(folder)(text).input_ids) > 64
    np.testing.assert_allclose(ours.encode([text]), unit(theirs.encode([text])), atol=1e-5)


@pytest.mark.parametrize("size", [2, 4, 5])
def test_a_network_that_reads_only_multiples(size: int, dense: Path, tmp_path: Path) -> None:
    folder = copy_of(dense, tmp_path)
    change(folder / "config.json", chunk_size_feed_forward=size)
    network = AutoModel.from_pretrained(folder)
    with pytest.raises(ValueError, match="multiple of the chunk size"):
        network(torch.full((1, 7), 9))
    assert "multiple of the chunk size" in refusal(load_text_model, folder)
    assert "multiple of the chunk size" in refusal(load_sentence_transformer, folder)
