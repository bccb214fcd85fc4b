"""Models of the library sentence-transformers, from the hub or from a folder."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from tokenizers import Tokenizer

from neuralviz.errors import ModelError
from neuralviz.models import bundled
from neuralviz.models.folder_check import ModelFiles, check_files, check_modules, check_unused
from neuralviz.models.language_model import MINILM
from neuralviz.models.loading import find_positions, is_window, resolve
from neuralviz.models.passes import (
    Habits,
    check_context,
    copy_network,
    explain_failure,
    probe_habits,
    seeded,
)
from neuralviz.models.quiet import quiet_transformers
from neuralviz.models.tokens import Reader, TokenizedText, check_tokenizer, tokenize

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

_habits: WeakKeyDictionary[SentenceTransformer, Habits] = WeakKeyDictionary()  # each tried once
NO_LIMIT = int(1e30)  # as in `transformers`
PARTS_AT_ONCE = 1 << 26  # numbers: 256 MB of float32
NOT_LINEAR = 1e-5  # relative error of a sum
_LONG = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
_PROBES = ("a b", _LONG, _LONG[::-1])


def load_sentence_transformer(
    model_id: str | Path = MINILM, device: str | None = None
) -> tuple[SentenceTransformer, str]:
    """Load a ``SentenceTransformer``, and return it with its fingerprint.

    Only safetensors are read; a repository's code never runs. `ModelError` if the model cannot be
    found or loaded, is not of that library, or gives no vector of a text.
    """
    model_id = str(model_id).strip()
    if model_id == MINILM:
        folder, fingerprint = bundled.minilm_folder(), bundled.MINILM_SHA256[:16]
    else:
        folder, fingerprint = resolve(model_id)
    files = ModelFiles(folder, model_id)
    if model_id != MINILM:
        check_files(files)
        check_modules(files)
    with explain_failure(f"Could not load {model_id}", of_memory=True), quiet_transformers():
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer(
            str(folder),
            device=device,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
        missing = [] if model_id == MINILM else _list_missing_weights(encoder, files)
        if missing:
            raise files.error(f"is missing weights, for example {missing[0]}.")
    for module in encoder.modules():
        tokenizer = getattr(module, "tokenizer", None)
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if isinstance(backend, Tokenizer):
            check_tokenizer(backend, model_id)
        if tokenizer is not None and hasattr(module, "auto_model"):
            _limit_length(module)
    encoder = encoder.eval().requires_grad_(False)
    encoder_habits(encoder, model_id)
    return encoder, fingerprint


def _limit_length(transformer: Any) -> None:
    """Limit inputs to the table of positions, if there is one, and drop unreal limits."""
    network = transformer.auto_model
    has_table = any(
        isinstance(module, torch.nn.Embedding) and re.search(r"pos|wpe", path)
        for path, module in network.named_modules()
    )
    limits: list[Any] = [transformer.max_seq_length, find_positions(network) if has_table else None]
    transformer.max_seq_length = min((int(n) for n in limits if is_window(n)), default=NO_LIMIT)


def encoder_habits(encoder: SentenceTransformer, name: str = "The sentence encoder") -> Habits:
    """What affects vectors besides the text, tried once; `ModelError` if context does not."""
    if encoder not in _habits:
        failure = f"{name} gives no vector of a text"
        with explain_failure(failure):
            try:
                habits, _ = probe_habits(encoder, encode_together, _PROBES, name)
                _check_context(encoder, name)
            except KeyError as error:  # a module needs what earlier ones do not give
                raise ModelError(
                    f"{failure}: none of its modules pools the tokens' vectors. The methods mean, "
                    "cls, sep, last and sbert-wk use its transformer alone."
                ) from error
            _habits[encoder] = habits
    return _habits[encoder]


def encode_together(
    encoder: Any, texts: Sequence[str], task: str | None = None, **options: Any
) -> list[Tensor]:
    """[dim] float32 CPU vectors, in one pass; ``task`` is ``query``, ``document`` or None."""
    ways = {"query": encoder.encode_query, "document": encoder.encode_document}
    vectors = ways.get(task or "", encoder.encode)(
        list(texts),
        batch_size=len(texts),
        show_progress_bar=False,
        convert_to_numpy=False,
        **options,
    )
    if vectors[0].ndim != 1:
        raise ModelError(
            f"The sentence encoder gives arrays of {vectors[0].ndim} axes, not vectors of texts."
        )
    return [vector.float().cpu() for vector in vectors]


class TokenParts(NamedTuple):
    """What each token of a text adds to its vector, before that is normalised."""

    text: TokenizedText  # with its prompt; tokens beyond the encoder's window add nothing
    vectors: np.ndarray  # [token, dim] float64
    rest: np.ndarray  # [dim] what special tokens and biases add


@torch.no_grad()
def token_parts(encoder: SentenceTransformer, text: str, prompt: str = "") -> TokenParts | None:
    """The parts that add up to a text's vector, with a prompt; None where they do not.

    Each token's vector goes alone through the modules behind the transformer: what is linear in
    the tokens' vectors adds up, whatever its kind.
    """
    from sentence_transformers.sentence_transformer.modules import Normalize
    from sentence_transformers.util import batch_to_device

    modules = list(encoder)
    while isinstance(modules[-1], Normalize):
        modules.pop()
    backend = getattr(getattr(modules[0], "tokenizer", None), "backend_tokenizer", None)
    inputs = encoder.preprocess([text], prompt=prompt or None)
    features = modules[0](batch_to_device(inputs, encoder.device))
    states, ids = features.get("token_embeddings"), features.get("input_ids")
    if not isinstance(backend, Tokenizer) or states is None or ids is None:
        return None
    (read,) = tokenize(Reader(backend, NO_LIMIT), [f"{prompt}{text}"])
    n, places = states.shape[1], _find_tokens(ids[0].tolist(), read.ids.tolist())
    only = torch.eye(n, device=states.device, dtype=states.dtype)
    only = torch.cat([only, torch.zeros_like(only[:1]), torch.ones_like(only[:1])])
    out = np.concatenate(
        [
            _finish(modules[1:], features, states * kept[..., None])[:, : encoder.truncate_dim]
            for kept in only.split(max(1, PARTS_AT_ONCE // states.numel()))
        ]
    )
    constant, whole = out[n], out[n + 1]
    parts = out[:n] - constant
    if np.abs(parts.sum(axis=0) + constant - whole).max() > NOT_LINEAR * np.abs(whole).max():
        return None
    vectors = np.zeros((len(read), parts.shape[1]))
    vectors[: len(places)] = parts[places]
    return TokenParts(read, vectors, whole - vectors.sum(axis=0))


def _finish(modules: Sequence[Any], features: Mapping[str, Any], states: Tensor) -> np.ndarray:
    """[input, dim] float64 from [input, token, d_model] states by what follows the transformer."""
    several = {
        name: value.expand(len(states), *value.shape[1:]) if torch.is_tensor(value) else value
        for name, value in features.items()
    } | {"token_embeddings": states}
    for module in modules:
        several = module(several)
    return several["sentence_embedding"].double().cpu().numpy()


def _find_tokens(ids: Sequence[int], tokens: Sequence[int]) -> range:
    """The places of ``tokens``, or of as many as fit, among ``ids`` with special tokens."""
    best = range(0)
    for start in range(len(ids)):
        pairs = zip(ids[start:], tokens, strict=False)
        n_equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        best = max(best, range(start, start + n_equal), key=len)
    return best


@torch.no_grad()
def _check_context(encoder: SentenceTransformer, name: str) -> None:
    """Check that tokens react to a changed one; ids are changed, as letters may be unknown."""
    from sentence_transformers.util import batch_to_device

    for module in encoder.modules():
        if not hasattr(module, "auto_model"):  # tables of token vectors have no context
            continue
        tokens = []
        features = batch_to_device(module.preprocess([_LONG]), encoder.device)
        ids = features["input_ids"]
        place = ids.shape[1] // 2
        words = set(module.tokenizer.get_vocab().values()) - set(module.tokenizer.all_special_ids)
        changed = ids.clone()
        changed[0, place] = min(words - {int(ids[0, place])}, default=0)
        for input_ids in (ids, changed):
            with seeded(0):
                out = copy_network(module)({**features, "input_ids": input_ids})
            tokens += out.get("token_embeddings", ())[:1]
        if tokens and ids.shape[1] > 1:
            check_context(tokens[0], tokens[1], name)


def _list_missing_weights(encoder: SentenceTransformer, files: ModelFiles) -> list[str]:
    networks = [module.auto_model for module in encoder.modules() if hasattr(module, "auto_model")]
    missing: list[str] = []
    for network, folder in zip(networks, files.transformers, strict=False):
        read, info = type(network).from_pretrained(
            folder,
            config=copy.deepcopy(network.config),
            device_map="meta",
            output_loading_info=True,
            use_safetensors=True,
            local_files_only=True,
        )
        check_unused(read, info, files.model_id)
        missing += [name for name in sorted(info["missing_keys"]) if "pooler." not in name]
    return missing
