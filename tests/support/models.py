"""Small random masked language models of every supported family, built and saved as folders.

Their weights are drawn wide, so that gradients are large beside rounding noise: Adam's first steps
have the size of the learning rate whatever the gradient's size, and would blow noise up.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralviz.models.language_model import LanguageModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

WINDOW = 40
"""Most tokens of an input of the small models, special tokens included."""

SENTENCES = (
    "The old harbour lies quiet in the morning, and only the gulls are awake.",
    "A baker carries warm bread across the square before the market opens.",
    "She reads a long letter from her brother, who sails on a ship in the north.",
    "Two children count the boats, and a dog barks at every one of them.",
    "In the afternoon a heavy rain begins, and the fishermen mend their nets.",
    "Nobody knows why the lighthouse keeper paints his door a different colour every year.",
    "The teacher writes three words on the board: wind, water and stone.",
    "When the evening comes, the lamps along the quay are lit one after another.",
)

TEXTS = {
    "one token": "a",
    "short": "The dog barks.",
    "one chunk": "A baker carries warm bread, and the gulls are awake.",
    "several chunks": " ".join(SENTENCES[:3]),
}

BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}


def word_piece(specials: tuple[str, ...]) -> Tokenizer:
    """An uncased WordPiece tokenizer of 200 entries, without special tokens around texts."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    normalizer = normalizers.BertNormalizer(lowercase=True)
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    words = [word for one in SENTENCES for word, _ in split(normalizer.normalize_str(one))]
    entries = [*specials, *_pieces(words, 200 - len(specials))]
    vocabulary = {piece: i for i, piece in enumerate(entries)}
    unknown = next(token for token in specials if "unk" in token.lower())
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    tokenizer.add_special_tokens(list(specials))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _pieces(words: list[str], n: int) -> list[str]:
    """The characters of the words, and what their most frequent neighbours make when merged."""
    spelled = [[word[0], *(f"##{letter}" for letter in word[1:])] for word in words]
    pieces = sorted({piece for word in spelled for piece in word})
    while len(pieces) < n:
        counts = Counter(pair for word in spelled for pair in pairwise(word))
        first, second = min(counts, key=lambda pair: (-counts[pair], pair))
        pieces.append(first + second.removeprefix("##"))
        for word in spelled:
            for i in reversed(range(len(word) - 1)):
                if word[i : i + 2] == [first, second]:
                    word[i : i + 2] = [pieces[-1]]
    return pieces


def byte_level(specials: tuple[str, ...], *, trim_offsets: bool) -> Tokenizer:
    """A byte-level BPE tokenizer of about 300 entries that can spell every string."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    if trim_offsets:  # as RoBERTa does; ModernBERT's tokens begin at the blank before the word
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, specials: tuple[str, ...]) -> None:
    """Write a fast tokenizer that puts one special token before a text and one behind it."""
    fast_tokenizer(tokenizer, specials).save_pretrained(folder)


def fast_tokenizer(tokenizer: Tokenizer, specials: tuple[str, ...]) -> PreTrainedTokenizerFast:
    """A tokenizer of `transformers` that puts one special token before a text, one behind it."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    roberta = specials == ROBERTA_SPECIALS
    start, end = ("<s>", "</s>") if roberta else ("[CLS]", "[SEP]")
    around = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B {end}",
        special_tokens=[(token, specials.index(token)) for token in (start, end)],
    )
    existing = tokenizer.post_processor
    tokenizer.post_processor = (
        processors.Sequence([existing, around]) if existing is not None else around
    )
    pad, unknown, mask = ("<pad>", "<unk>", "<mask>") if roberta else ("[PAD]", "[UNK]", "[MASK]")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=WINDOW,
        cls_token=start,
        sep_token=end,
        pad_token=pad,
        unk_token=unknown,
        mask_token=mask,
    )


def draw_weights(network: PreTrainedModel, seed: int) -> None:
    """Give every parameter a value far from zero and from its neighbours."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim > 1:
                wide = 0.6 if "embed" in name else 0.25
                parameter.copy_(wide * noise)
            elif "norm" in name.lower() and name.endswith("weight"):
                parameter.copy_(1 + 0.2 * noise)
            else:
                parameter.copy_(0.2 * noise)


_ENDS = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
# By name: the class, sizes besides the small ones, the kind of tokenizer, its special tokens.
_FAMILIES: dict[str, tuple[str, dict[str, Any], str, tuple[str, ...]]] = {
    "bert": ("BertForMaskedLM", {}, "word pieces", BERT_SPECIALS),
    "roberta": ("RobertaForMaskedLM", {}, "bytes, trimmed", ROBERTA_SPECIALS),
    "distilbert": ("DistilBertForMaskedLM", {"hidden_dim": 48}, "word pieces", BERT_SPECIALS),
    "mpnet": ("MPNetForMaskedLM", {}, "word pieces", ROBERTA_SPECIALS),
    "electra": ("ElectraForMaskedLM", {"embedding_size": 24}, "word pieces", BERT_SPECIALS),
    "modernbert": (  # three tokens to each side, so that local and global blocks differ
        "ModernBertForMaskedLM",
        {"num_hidden_layers": 5, "local_attention": 6, "global_attn_every_n_layers": 3,
         "cls_token_id": 2, "sep_token_id": 3, **_ENDS},
        "bytes", BERT_SPECIALS),
    "albert": ("AlbertForMaskedLM", {"embedding_size": 24, **_ENDS}, "word pieces", BERT_SPECIALS),
    "eurobert": ("EuroBertForMaskedLM", {"num_key_value_heads": 4, "mask_token_id": 4, **_ENDS},
                 "bytes", BERT_SPECIALS),
    "deberta-v2": (  # its blocks return pairs
        "DebertaV2ForMaskedLM", {"relative_attention": True, "pos_att_type": "c2p|p2c"},
        "word pieces", BERT_SPECIALS),
    "fnet": (  # no attention: every token looks at the padding, too
        "FNetForMaskedLM", {"pad_token_id": 0}, "word pieces", BERT_SPECIALS),
    "mobilebert": (  # its head reads the output layer's weights by itself
        "MobileBertForMaskedLM", {"embedding_size": 32, "intra_bottleneck_size": 32},
        "word pieces", BERT_SPECIALS),
}  # fmt: skip

REFUSED = ("mobilebert",)
"""Families that cannot be tuned text by text."""

FAMILIES = tuple(family for family in _FAMILIES if family not in (*REFUSED, "deberta-v2"))


def save_family(family: str, folder: Path, seed: int = 0) -> Path:
    """Write a small random model of a family and its tokenizer; returns the folder."""
    import transformers

    name, sizes, kind, specials = _FAMILIES[family]
    tokenizer = (
        word_piece(specials)
        if kind == "word pieces"
        else byte_level(specials, trim_offsets=kind == "bytes, trimmed")
    )
    architecture = getattr(transformers, name)
    config = architecture.config_class(vocab_size=tokenizer.get_vocab_size(), **{**_SMALL, **sizes})
    network = architecture(config)
    draw_weights(network, seed)
    network.save_pretrained(folder)
    save_tokenizer(tokenizer, folder, specials)
    return folder


def save_causal(folder: Path, *, has_specials: bool = True) -> Path:
    """Write a small GPT-2, whose tokenizer may put nothing around a text."""
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    tokenizer = byte_level(ROBERTA_SPECIALS, trim_offsets=True)
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_embd=32, n_layer=2, n_head=4, n_positions=64
    )
    network = GPT2LMHeadModel(config)
    draw_weights(network, 0)
    network.save_pretrained(folder)
    if has_specials:
        fast_tokenizer(tokenizer, ROBERTA_SPECIALS).save_pretrained(folder)
    else:
        plain = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=40)
        plain.save_pretrained(folder)
    return folder


def save_headless(folder: Path) -> Path:
    """Write a small BERT encoder without its prediction head."""
    from transformers import BertConfig, BertModel

    tokenizer = word_piece(BERT_SPECIALS)
    BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size(), **_SMALL)).save_pretrained(folder)
    save_tokenizer(tokenizer, folder, BERT_SPECIALS)
    return folder


def save_sentence_transformer(folder: Path, seed: int = 0, family: str = "bert") -> Path:
    """Write a small model as one of sentence-transformers with mean pooling."""
    import tempfile

    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    with tempfile.TemporaryDirectory() as plain:
        transformer = Transformer(str(save_family(family, Path(plain), seed)))
        pooling = Pooling(32, pooling_mode="mean")
        network = SentenceTransformer(modules=[transformer, pooling], device="cpu")
        network.save(str(folder), safe_serialization=True, create_model_card=False)
    return folder


def split_weights(folder: Path) -> tuple[Path, Path, Path]:
    """The weights of a folder as two shards; these and their index."""
    import json

    from safetensors.torch import load_file, save_file

    weights = sorted(load_file(folder / "model.safetensors").items())
    (folder / "model.safetensors").unlink()
    files = [folder / f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for file, some in zip(files, (weights[:20], weights[20:]), strict=True):
        save_file(dict(some), file, metadata={"format": "pt"})
    places = {name: files[place >= 20].name for place, (name, _) in enumerate(weights)}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return files[0], files[1], index


_FOR_RANDOM = {"intermediate_size": 48, "max_position_embeddings": 64, "num_attention_heads": 2}


def random_model(
    family: str,
    *,
    vocab: int,
    width: int,
    n_blocks: int,
    spread: float,
    seed: int,
    device: str = "cpu",
) -> LanguageModel:
    """A random model, held in memory, whose words are ``a`` and ``w0``, ``w1``, …."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    from neuralviz.models.loading import assemble

    specials = ROBERTA_SPECIALS if family in ("roberta", "mpnet") else BERT_SPECIALS
    sizes = {"hidden_size": width, "num_hidden_layers": n_blocks, "vocab_size": vocab}
    own = {"distilbert": {"hidden_dim": 48}, "electra": {"embedding_size": width}}
    config = AutoConfig.for_model(family, **_FOR_RANDOM, **sizes, **own.get(family, {}))
    network = AutoModelForMaskedLM.from_config(config)
    draw_weights(network, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        words = network.get_output_embeddings().weight
        words.copy_(spread * torch.randn(words.shape, generator=generator))
    tokenizer = fast_tokenizer(words_alone(vocab, specials), specials)
    return assemble(LanguageModel, f"random-{family}-{seed}", network, tokenizer, str(seed), device)


def words_alone(vocab: int, specials: tuple[str, ...]) -> Tokenizer:
    """A tokenizer of the words ``a``, ``w0``, ``w1``, …, as many as fit into ``vocab``."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = [*specials, "a", *(f"w{number}" for number in range(vocab - len(specials) - 1))]
    unknown = next(token for token in specials if "unk" in token.lower())
    ids = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer
