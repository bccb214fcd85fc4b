"""Models that would be loaded as something else than they are: refused by name, or read rightly."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from neuralviz.embedders import NeuralEmbedder, PooledEmbedder, SentenceTransformerEmbedder
from neuralviz.errors import ModelError, SettingsError
from neuralviz.models import LanguageModel, load_model, load_sentence_transformer, load_text_model
from neuralviz.models.folder_check import describe_missing_weights
from neuralviz.models.loading import resolve
from neuralviz.models.shared import files_stamp
from tests.support.models import (
    SENTENCES,
    save_family,
    save_headless,
    save_sentence_transformer,
    split_weights,
)

SHORT = tuple(sentence[:45] for sentence in SENTENCES)
TEXT = (load_text_model,)
LIBRARY = (load_sentence_transformer,)
EVERY = (load_text_model, load_model, load_sentence_transformer)
QUERY = "encoder.layer.1.attention.self.query.weight"


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small BERT with a head, and the same as a model of sentence-transformers."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "plain": save_family("bert", folder / "bert"),
        "dense": save_sentence_transformer(folder / "dense"),
    }


@pytest.fixture
def copy_of(bases: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda base: Path(shutil.copytree(bases[base], tmp_path / base))


def change(path: Path, **values: Any) -> None:
    """Set entries of a JSON file; None takes one out."""
    settings = json.loads(path.read_text()) if path.is_file() else {}
    settings |= values
    path.write_text(json.dumps({name: v for name, v in settings.items() if v is not None}))


def configure(folder: Path, file: str = "config.json", **values: Any) -> None:
    change(folder / file, **values)


def write(folder: Path, file: str, content: str | bytes) -> None:
    (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)


def rename(folder: Path, new: str, *removed: str) -> None:
    (folder / "model.safetensors").rename(folder / new)
    for file in removed:
        (folder / file).unlink()


def change_weights(folder: Path, change_all: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change_all(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def add_weights(folder: Path, **weights: torch.Tensor) -> None:
    """Under the prefix that the encoder's weights have."""
    names = load_file(folder / "model.safetensors")
    prefix = "bert." if any(name.startswith("bert.") for name in names) else ""
    inner = {prefix + name if name[0].islower() else name[1:]: w for name, w in weights.items()}
    change_weights(folder, lambda all_weights: all_weights.update(inner))


def save_as(folder: Path, name: str, tells: bool = True) -> None:
    """Save the weights as those of another class, which the configuration names or does not."""
    getattr(transformers, name).from_pretrained(folder).save_pretrained(folder)
    if not tells:
        configure(folder, architectures=None)


def write_modules(folder: Path, *paths: str) -> None:
    entries = [{"idx": i, "name": str(i), "path": f"{i}_X" * (i > 0), "type": path}
               for i, path in enumerate(paths)]  # fmt: skip
    write(folder, "modules.json", json.dumps(entries))


def add_module(folder: Path, path: str) -> Path:
    modules = json.loads((folder / "modules.json").read_text())
    name = f"{len(modules)}_{path.rpartition('.')[2]}"
    modules.append({"idx": len(modules), "name": str(len(modules)), "path": name, "type": path})
    write(folder, "modules.json", json.dumps(modules))
    (folder / name).mkdir()
    return folder / name


def add_dense(folder: Path, activation: str) -> None:
    module = add_module(folder, "sentence_transformers.models.Dense")
    settings = {"in_features": 32, "out_features": 8, "bias": True}
    configure(module, **settings, activation_function=activation)
    weights = {"linear.weight": torch.randn(8, 32), "linear.bias": torch.randn(8)}
    save_file(weights, module / "model.safetensors")


def use_old_layout(folder: Path) -> Path:
    """As sentence-transformers 1 wrote it: the transformer in a folder of its own."""
    part = folder / "0_Transformer"
    part.mkdir()
    for path in list(folder.iterdir()):
        if path.is_file() and path.name not in (
            "modules.json",
            "config_sentence_transformers.json",
        ):
            path.rename(part / path.name)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0] |= {"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}
    write(folder, "modules.json", json.dumps(modules))
    (folder / "config_sentence_transformers.json").unlink()
    write(folder, "config.json", '{"__version__": "1.2.0"}')
    return part


def spoil_shards(folder: Path, kind: str) -> None:
    first, second, index = split_weights(folder)
    if kind == "no index":
        index.unlink()
    if kind == "one is missing":
        second.unlink()
    if kind == "one is cut off":
        second.write_bytes(second.read_bytes()[:-50])
    if kind == "a tensor is in both":  # the library reads the last, whatever the index says
        both = load_file(second) | dict(list(load_file(first).items())[:1])
        save_file(both, second, metadata={"format": "pt"})


def draw_words(folder: Path) -> None:
    """BPE with dropout splits a word differently each time it reads it, also in eval mode."""
    settings = json.loads((folder / "tokenizer.json").read_text())
    settings["model"]["dropout"] = 0.5
    settings["model"] = {**settings["model"], "type": "BPE", "merges": []}
    for name in ("max_input_chars_per_word", "continuing_subword_prefix"):
        settings["model"].pop(name, None)
    write(folder, "tokenizer.json", json.dumps(settings))


def save_quantised(folder: Path) -> None:
    def round_one(weights: dict[str, torch.Tensor]) -> None:
        name = next(name for name in weights if name.endswith("query.weight"))
        weights[name] = (weights[name] * 100).to(torch.int8)

    change_weights(folder, round_one)


def drop_weight(folder: Path, part: str = "", name: str = "layer.1.output.dense.weight") -> None:
    def drop(weights: dict[str, torch.Tensor]) -> None:
        del weights[next(full for full in weights if full.endswith(name))]

    change_weights(folder / part, drop)


LORA = '{"peft_type": "LORA", "base_model_name_or_path": "bert-base-uncased"}'
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 438007537\n"
SPARSE = "sentence_transformers.sparse_encoder.models."
TOKENIZER = "tokenizer_config.json"
NO_VECTOR = "gives no dense vector of a text"

# By name: what is changed in which models, what is said of it, and by which ways of loading.
REFUSED: dict[str, tuple[str, Callable[[Path], Any], str, tuple[Callable, ...]]] = {
    # a model's own code
    "own model": ("plain dense", partial(configure, auto_map={"AutoModel": "modeling_x.X"}),
                  "needs custom code (modeling_x.X), which neuralviz never runs", EVERY),
    "code elsewhere": ("plain", partial(configure, auto_map={"AutoModelForMaskedLM": "a/b--m.X"}),
                       "needs custom code (a/b--m.X)", EVERY),
    "own tokenizer": ("plain", partial(configure, file=TOKENIZER, auto_map=["own.X", None]),
                      "needs custom code (own.X)", EVERY),
    "own class that was saved": (
        "plain", partial(configure, auto_map={"AutoModelForTokenClassification": "own.Tagger"},
                         architectures=["Tagger"]), "custom code (own.Tagger)", TEXT),
    "own transformer in its folder": (
        "dense", lambda f: configure(use_old_layout(f), auto_map={"AutoModel": "own.Model"}),
        "needs custom code (own.Model)", EVERY),
    "own activation": ("dense", partial(add_dense, activation="own.Activation"),
                       "custom code (own.Activation)", LIBRARY),
    "own module": ("dense", partial(add_module, path="mine.Pooling"),
                   "needs custom code (mine.Pooling)", EVERY),
    "a class that there is not": ("plain dense", partial(configure, architectures=["NewForCL"]),
                                  "`transformers` does not have (NewForCL)", EVERY),
    "a class of another family": (
        "plain", partial(configure, architectures=["RobertaModel"]),
        "the model_type is “bert”, the class RobertaModel", TEXT),
    # files that cannot be read
    **{f"endless brackets in {file}": ("dense", partial(write, file=file, content="[" * 100_000),
                                       f"Could not read the {file} of ", EVERY)
       for file in ("config.json", TOKENIZER, "modules.json")},
    "weights with endless brackets": (
        "plain", partial(write, file="model.safetensors",
                         content=struct.pack("<Q", 100_000) + b"[" * 100_000), "damaged", EVERY),
    "a pointer of weights": ("plain", partial(write, file="model.safetensors", content=POINTER),
                             "a damaged file, model.safetensors. Copy it again, or run `git lfs",
                             EVERY),
    "a length in words": ("plain dense", partial(configure, file=TOKENIZER, model_max_length="40"),
                          f"model_max_length in its {TOKENIZER}", EVERY),
    "a list of lengths": (
        "dense", partial(configure, file="sentence_bert_config.json", max_seq_length=[40]),
        "max_seq_length in its sentence_bert_config.json", EVERY),
    "a module without settings": ("dense", lambda f: shutil.rmtree(f / "1_Pooling"),
                                  "is incomplete: 1_Pooling/config.json is missing.", LIBRARY),
    "a plain encoder": ("plain", lambda f: None, "modules.json is missing", LIBRARY),
    # what gives no dense vector of a text
    "a classifier": ("plain", partial(save_as, name="BertForSequenceClassification"),
                     f"{NO_VECTOR} (BertForSequenceClassification)", EVERY),
    "a classifier, untold": (
        "plain", partial(save_as, name="BertForSequenceClassification", tells=False),
        "a head that would be left out (classifier.bias)", TEXT),
    "a causal model that ranks": (
        "dense", partial(add_module,
                         path="sentence_transformers.cross_encoder.modules.logit_score.LogitScore"),
        f"{NO_VECTOR} (LogitScore)", EVERY),
    "sparse, of an older version": (
        "plain", lambda f: write_modules(f, f"{SPARSE}MLMTransformer", f"{SPARSE}SpladePooling"),
        NO_VECTOR, EVERY),
    "ColBERT": ("plain", partial(configure, architectures=["HF_ColBERT"]),
                f"{NO_VECTOR} (HF_ColBERT)", EVERY),
    "a kind that nobody knows": (
        "dense", partial(configure, file="config_sentence_transformers.json", model_type="Graph"),
        f"{NO_VECTOR} (Graph)", EVERY),
    "tokens that nobody pools": (
        "dense", lambda f: write_modules(f, "sentence_transformers.models.Transformer"),
        "none of its modules pools", LIBRARY),
    **{f"a projection, saved as {saved}": (
        "plain", lambda f, name=name, saved=saved: (
            configure(f, architectures=saved),
            change_weights(f, lambda w: w.update({f"{name}.weight": torch.ones(8, 32)}))),
        f"a head that would be left out ({name}.weight)", TEXT)
       for name, saved in (("linear", None), ("text_projection", ["BertModel"]),
                           ("dense.linear", ["BertForMaskedLM"]))},
    # adapters and weights
    "an adapter beside": ("plain dense", partial(write, file="adapter_config.json", content=LORA),
                          "has an adapter (adapter_config.json), which would be left out", EVERY),
    "an adapter alone": ("dense", partial(rename, new="adapter_model.safetensors"),
                         "has an adapter (adapter_model.safetensors)", EVERY),
    "told to be quantised": (
        "plain dense", partial(configure, quantization_config={"quant_method": "gptq"}),
        "quantised weights (gptq)", EVERY),
    "quantised": ("plain dense", save_quantised, "quantised weights (I8)", EVERY),
    **{f"weights in {file}": (base, partial(rename, new=file),
                              f"no weights in safetensors format, only {file}.", EVERY)
       for file, base in (("m.Q4_K_M.gguf", "plain"), ("pytorch_model.bin", "plain dense"))},
    "GGUF alone": ("plain", lambda f: rename(f, "m.gguf", "config.json", "tokenizer.json",
                                             TOKENIZER), "format, only m.gguf.", EVERY),
    **{f"shards: {kind}": ("dense", partial(spoil_shards, kind=kind), sentence, EVERY)
       for kind, sentence in (
           ("no index", "Could not load"), ("one is missing", "Could not load"),
           ("one is cut off", "a damaged file, model-00002-of-00002.safetensors"),
           ("a tensor is in both", "in two files, of which transformers takes the last"))},
    "weights that are missing": ("dense", drop_weight,
                                 "is missing weights, for example encoder.layer.1", LIBRARY),
    # weights without a place
    "a block too many": ("plain dense", partial(configure, num_hidden_layers=2),
                         "no place for, for example", EVERY),
    "LoRA, unmerged": (
        "plain dense",
        lambda f: add_weights(f, **{f"{QUERY[:-7]}.lora_A.default.weight": torch.ones(4, 32)}),
        f"{QUERY[:-7]}.lora_A.default.weight", EVERY),
    "relative positions": (
        "plain", lambda f: add_weights(f, **{QUERY.replace("query", "distance_embedding"):
                                             torch.ones(127, 8)}),
        "no place for, for example bert.encoder.layer.1.attention.self.distance", EVERY),
    # tokenizers
    "a tokenizer that draws": ("plain dense", draw_words,
                               "splits words at random. Set “drop", (load_text_model, *LIBRARY)),
    "an empty vocabulary": (  # as transformers 5 makes it, which ignores `vocab_file`
        "plain dense",
        lambda f: transformers.BertTokenizerFast(vocab_file="none.txt").save_pretrained(f),
        "has an empty vocabulary: its tokenizer.json is missing, or has 5",
        (load_text_model, *LIBRARY)),
}  # fmt: skip


def refusal(load: Callable[..., Any], folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load(folder, device="cpu")
    sentence = str(caught.value)
    assert str(folder) in sentence
    assert sentence.endswith((".", "`."))
    return sentence


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_read_as_something_else_is_refused(name: str, copy_of) -> None:
    for base in REFUSED[name][0].split():
        _, spoil, sentence, loaders = REFUSED[name]
        folder = copy_of(base)
        spoil(folder)
        for load in loaders:
            is_plain = base == "plain" and name != "a plain encoder"
            said = refusal(load, folder)
            assert sentence in said or (load in LIBRARY and is_plain and "modules.json" in said)


def test_code_is_never_run(copy_of) -> None:
    folder = copy_of("plain")
    write(folder, "modeling_x.py", f"open({str(folder / 'ran')!r}, 'w')\nclass X: pass\n")
    configure(folder, auto_map={"AutoModel": "modeling_x.X"})
    for load in EVERY:
        refusal(load, folder)
    assert not (folder / "ran").exists()


def test_an_adapter_on_the_hub() -> None:
    sentence = str(describe_missing_weights("a/lora", ["README.md", "adapter_model.safetensors"]))
    assert sentence.startswith("a/lora has an adapter (adapter_model.safetensors)")


def test_a_sentencepiece_model_alone(copy_of, monkeypatch) -> None:
    folder = copy_of("plain")
    (folder / "tokenizer.json").unlink()
    write(folder, "spiece.model", b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")
    monkeypatch.setattr("neuralviz.models.folder_check.find_spec", lambda name: None)
    for load in EVERY:
        assert "has a SentencePiece model but no tokenizer.json" in refusal(load, folder)


@pytest.mark.parametrize("kind", ["CrossEncoder", "SparseEncoder", "csr", "MultiVectorEncoder"])
def test_encoders_of_other_kinds(kind: str, bases: dict[str, Path], tmp_path: Path) -> None:
    """As the library saves them, and without the file that names their kind."""
    import sentence_transformers
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseAutoEncoder

    source = str(bases["plain"])
    if kind == "csr":
        modules = [Transformer(source), Pooling(32, "mean"), SparseAutoEncoder(32, 64, 8)]
        encoder = sentence_transformers.SparseEncoder(modules=modules, device="cpu")
    else:
        options = {"num_labels": 1} if kind == "CrossEncoder" else {}
        encoder = getattr(sentence_transformers, kind)(source, device="cpu", **options)
    encoder.save_pretrained(str(tmp_path))
    sentences = {refusal(load, tmp_path) for load in EVERY}
    if kind == "CrossEncoder":  # as before version 5
        (tmp_path / "modules.json").unlink(missing_ok=True)
        (tmp_path / "config_sentence_transformers.json").unlink()
    else:
        configure(tmp_path, "config_sentence_transformers.json", model_type=None)
    sentences |= {refusal(load, tmp_path) for load in EVERY}
    if kind == "MultiVectorEncoder":  # nothing but its modules tells that nothing pools
        modules = json.loads((tmp_path / "modules.json").read_text())[:2]
        modules[1]["type"] = "sentence_transformers.models.Dense"
        write(tmp_path, "modules.json", json.dumps(modules))
        sentences.add(refusal(load_text_model, tmp_path))
    assert all(NO_VECTOR in sentence for sentence in sentences)


# --- what is read rightly ----------------------------------------------------------------------


def unit(vectors: Any) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def plain_means(folder: Path, kind: Any = AutoModel) -> np.ndarray:
    """[text, dim] means of a transformer's last states, one text at a time, by transformers."""
    network, tokenizer = kind.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = [
            network(**tokenizer(text, return_tensors="pt", return_token_type_ids=False))
            .last_hidden_state[0].mean(dim=0)
            for text in SHORT
        ]  # fmt: skip
    return unit(torch.stack(states))


def check_means(folder: Path, expected: np.ndarray, atol: float = 1e-5) -> None:
    ours = PooledEmbedder(load_text_model(folder, device="cpu")).encode(SHORT)
    np.testing.assert_allclose(ours, expected, atol=atol)


def check_library(folder: Path) -> None:
    """The method sentence-transformer gives what the library itself gives."""
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(folder), device="cpu").encode(list(SHORT))
    encoder = SentenceTransformerEmbedder(*load_sentence_transformer(folder, device="cpu"))
    ours = encoder.encode(SHORT, normalize_embeddings=False)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def store_as(folder: Path, dtype: torch.dtype) -> None:
    change_weights(folder, lambda w: w.update({name: v.to(dtype) for name, v in w.items()}))
    mask = torch.ones(2, 2, dtype=torch.uint8)  # as GPT-2's
    change_weights(folder, lambda w: w.update({"cls.relative.bias": mask}))


OTHER_HEADS = {
    "cls.seq_relationship.weight": torch.ones(2, 32),
    "bert.pooler.dense.weight": torch.ones(32, 32),
    "bert.pooler.dense.bias": torch.ones(32),
    "bert.embeddings.position_ids": torch.arange(64)[None],
}
OWN_TAGGER = {"AutoModelForTokenClassification": "own.Tagger", "AutoImageProcessor": "own.Pictures"}
SIMCSE = {"mlp.dense.weight": torch.ones(32, 32), "mlp.dense.bias": torch.ones(32)}
READ: dict[str, Callable[[Path], Any]] = {
    "code for a head that is not loaded": partial(configure, auto_map=OWN_TAGGER),
    "SimCSE": lambda f: (configure(f, architectures=["BertForCL"]),
                         change_weights(f, lambda w: w.update(SIMCSE))),
    **{name: partial(configure, architectures=[name])
       for name in ("TFBertForMaskedLM", "FlaxBertModel", "BERTForMaskedLM", "BertModel")},
    **{f"{name}, {tells}": partial(save_as, name=f"BertFor{name}", tells=tells)
       for name in ("TokenClassification", "NextSentencePrediction", "QuestionAnswering")
       for tells in (True, False)},
    "other heads and old buffers": lambda f: change_weights(f, lambda w: w.update(OTHER_HEADS)),
    "shards": split_weights,
    "float16": partial(store_as, dtype=torch.float16),
    "bfloat16": partial(store_as, dtype=torch.bfloat16),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_plays_no_part_in_the_vectors_is_accepted(name: str, copy_of, bases) -> None:
    folder = copy_of("plain")
    READ[name](folder)
    check_means(folder, plain_means(bases["plain"]), atol=0.02 if "float16" in name else 1e-5)


def test_modules_of_sentence_transformers(copy_of) -> None:
    folder = copy_of("dense")
    add_dense(folder, "torch.nn.modules.activation.Tanh")
    check_library(folder)
    configure(folder / "2_Dense", activation_function="torch.nn.modules.linear.Identity")
    check_library(folder)
    part = use_old_layout(folder)
    check_library(folder)
    check_means(folder, plain_means(part))
    shutil.copy(part / "config.json", folder)  # some keep a copy beside it
    check_means(folder, plain_means(part))


def test_weights_of_an_untied_output_are_left_out(tmp_path: Path) -> None:
    """BioGPT calls them a projection."""
    config = transformers.BioGptConfig(
        vocab_size=200, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, tie_word_embeddings=False,
    )  # fmt: skip
    save_headless(tmp_path)  # whose tokenizer stays
    transformers.BioGptForCausalLM(config).save_pretrained(tmp_path)
    assert "output_projection.weight" in load_file(tmp_path / "model.safetensors")
    check_means(tmp_path, plain_means(tmp_path))


def test_a_router_sends_questions_and_documents_apart(bases: dict[str, Path], tmp_path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    routes = [[Transformer(str(bases["plain"])), Pooling(32, mode)] for mode in ("mean", "cls")]
    library = SentenceTransformer(modules=[Router.for_query_document(*routes)], device="cpu")
    library.save(str(tmp_path), create_model_card=False)
    encoder, before = load_sentence_transformer(tmp_path, device="cpu")
    ours = SentenceTransformerEmbedder(encoder, before)
    for method in ("encode", "encode_query", "encode_document"):
        expected = getattr(library, method)(SHORT, normalize_embeddings=True)
        np.testing.assert_allclose(getattr(ours, method)(SHORT), expected, atol=1e-5)
    assert not np.allclose(ours.encode_query(SHORT), ours.encode(SHORT), atol=1e-3)
    for load in (load_text_model, load_model):
        assert "has no transformer, or several (Router)" in refusal(load, tmp_path)
    change_weights(tmp_path / "query_0_Transformer", lambda w: [v.mul_(2) for v in w.values()])
    assert load_sentence_transformer(tmp_path, device="cpu")[1] != before
    drop_weight(tmp_path, "document_0_Transformer")
    assert "is missing weights" in refusal(load_sentence_transformer, tmp_path)
    settings = json.loads((tmp_path / "router_config.json").read_text())
    settings["types"]["query_0_Transformer"] = "own.Transformer"
    write(tmp_path, "router_config.json", json.dumps(settings))
    for load in EVERY:
        assert "needs custom code (own.Transformer)" in refusal(load, tmp_path)


@pytest.mark.parametrize("kind", ["StaticEmbedding", "WordEmbeddings", "BoW"])
def test_modules_without_a_transformer(kind: str, bases, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import (
        BoW,
        Pooling,
        StaticEmbedding,
        WordEmbeddings,
    )
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

    words = ["old", "baker", "carries", "reads", "children", "rain", "door", "wind", "evening"]
    if kind == "BoW":  # which has no weights
        modules = [BoW(words)]
    elif kind == "WordEmbeddings":
        tokenizer = WhitespaceTokenizer(words, stop_words=[])
        table = np.random.default_rng(0).normal(size=(len(words) + 1, 8)).astype(np.float32)
        modules = [WordEmbeddings(tokenizer=tokenizer, embedding_weights=table), Pooling(8)]
    else:
        tokenizer = AutoTokenizer.from_pretrained(bases["plain"])
        modules = [StaticEmbedding(tokenizer, embedding_dim=16)]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path), create_model_card=False)
    check_library(tmp_path)
    assert f"has no transformer, or several ({kind})" in refusal(load_text_model, tmp_path)
    if kind == "StaticEmbedding":
        configure(tmp_path, model_type="model2vec", architectures=["StaticModel"])
        check_library(tmp_path)
        (tmp_path / "modules.json").unlink()
        assert "from_model2vec" in refusal(load_text_model, tmp_path)


def test_the_encoder_of_an_encoder_decoder_model(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    folder = tmp_path / "t5"
    save_headless(folder)  # whose tokenizer stays
    sizes = {"vocab_size": 200, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2}
    config = transformers.T5Config(**sizes, num_heads=2, decoder_start_token_id=0)
    transformers.T5EncoderModel(config).save_pretrained(folder)
    library = SentenceTransformer(modules=[Transformer(str(folder)), Pooling(16)], device="cpu")
    library.save(str(tmp_path / "library"), create_model_card=False)
    for path in (folder, tmp_path / "library"):
        check_means(path, plain_means(folder, transformers.T5EncoderModel))
    check_library(tmp_path / "library")


def test_a_model_of_pictures_and_texts(tmp_path: Path) -> None:
    """A small CLIP as sentence-transformers saved it."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 16}  # fmt: skip
    texts = sizes | {"vocab_size": 330, "eos_token_id": 2, "bos_token_id": 0, "pad_token_id": 1}
    pictures = sizes | {"image_size": 8, "patch_size": 4}
    config = transformers.CLIPConfig(
        text_config=texts, vision_config=pictures, projection_dim=8
    )  # fmt: skip
    part = save_family("roberta", tmp_path / "0_CLIPModel")  # whose tokenizer stays
    transformers.CLIPModel(config).save_pretrained(part)
    transformers.CLIPImageProcessor(size={"shortest_edge": 8}).save_pretrained(part)
    path = "sentence_transformers.models.CLIPModel"
    modules = [{"idx": 0, "name": "0", "path": "0_CLIPModel", "type": path}]
    write(tmp_path, "modules.json", json.dumps(modules))
    check_library(tmp_path)
    for folder in (tmp_path, part):
        for load in (load_text_model, load_model):
            assert "(clip) reads pictures or sounds, too" in refusal(load, folder)


@pytest.mark.parametrize("lack", ["head", "mask token"])
def test_a_masked_model_is_read_without_what_reading_does_not_need(lack: str, tmp_path) -> None:
    folder = save_family("bert", tmp_path)
    if lack == "head":
        weights = load_file(folder / "model.safetensors")
        kept = {n: v for n, v in weights.items() if "head" not in n and not n.startswith("cls.")}
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        configure(folder, TOKENIZER, mask_token=None)
    assert not isinstance(load_text_model(folder, device="cpu"), LanguageModel)
    check_means(folder, plain_means(folder))
    assert lack in refusal(load_model, folder)


@pytest.mark.parametrize("family", ["XLM", "Flaubert"])
def test_a_family_without_default_layers(family: str, tmp_path: Path) -> None:
    save_headless(tmp_path)  # whose tokenizer stays
    sizes = {"vocab_size": 200, "emb_dim": 16, "n_layers": 1, "n_heads": 2, "pad_index": 0}
    config = getattr(transformers, f"{family}Config")(**sizes)
    getattr(transformers, f"{family}WithLMHeadModel")(config).save_pretrained(tmp_path)
    model = load_model(tmp_path, device="cpu")
    for layers in (None, "last_block"):
        with pytest.raises(SettingsError, match="Name at least one layer"):
            NeuralEmbedder(model, layers=layers)


@pytest.mark.parametrize(("value", "meant"), [(0, 64), (-1, 64), (10**6, 64), (9.0, 9)])
def test_a_longest_input_that_cannot_be_meant(value: float, meant: int, copy_of, bases) -> None:
    """The network has 64 positions; what is left out of a text is what the library leaves out."""
    from sentence_transformers import SentenceTransformer

    folder = copy_of("dense")
    configure(folder, "sentence_bert_config.json", max_seq_length=value)
    ours = SentenceTransformerEmbedder(*load_sentence_transformer(folder, device="cpu"))
    theirs = SentenceTransformer(str(bases["dense"]), device="cpu")
    theirs.max_seq_length = meant
    text = " ".join(SENTENCES)
    assert len(AutoTokenizer.from_pretrained(folder)(text).input_ids) > 64
    np.testing.assert_allclose(ours.encode([text]), unit(theirs.encode([text])), atol=1e-5)


@pytest.mark.parametrize("path", ["pool", "parts/enc", "a/b/c"])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt", "x.model"])
def test_nested_files_are_a_part_of_the_model(path: str, name: str, tmp_path: Path) -> None:
    (tmp_path / path).mkdir(parents=True)
    write(tmp_path, "modules.json", json.dumps([{"path": path, "type": "x"}]))
    file = tmp_path / path / name
    file.write_text("first")
    fingerprint, stamp = resolve(str(tmp_path))[1], files_stamp(str(tmp_path))
    then = file.stat()
    file.write_text("other")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns + 1_000_000))
    assert resolve(str(tmp_path))[1] != fingerprint
    assert files_stamp(str(tmp_path)) != stamp
