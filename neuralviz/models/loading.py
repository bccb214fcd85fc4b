"""Load a model once, frozen: one that comes with neuralviz, from a hub, or from a folder."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from tokenizers import Tokenizer, normalizers

from neuralviz.errors import ModelError, NoHeadError
from neuralviz.models import hub
from neuralviz.models.bundled import network as bundled
from neuralviz.models.folder_check import ModelFiles, check_files, check_unused, find_transformer
from neuralviz.models.language_model import BUNDLED, MINILM, LanguageModel, TextModel, list_layers
from neuralviz.models.passes import Behaviour, TokenTypes, explain_failure, probe_encoder
from neuralviz.models.quiet import quiet_transformers
from neuralviz.models.shared import trained_encoder
from neuralviz.models.tokens import check_tokenizer, find_unknown_id

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

DEVICES = ("cpu", "cuda")  # others, such as mps, lack the float64 that micro-tuning needs
DEFAULT_WINDOW = 512
MAX_WINDOW = 8192
AutoClass = Literal["AutoModel", "AutoModelForMaskedLM", "AutoModelForTextEncoding"]
M = TypeVar("M", bound=TextModel)
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)


def load_model(model_id: str | Path = BUNDLED, device: str | None = None) -> LanguageModel:
    """Load a masked language model, frozen and in eval mode.

    ``model_id`` is ``bundled``, a hub id or a local folder; ``device`` is ``cpu`` or ``cuda``, by
    default a GPU if torch sees one. Only safetensors are read; a repository's code never runs.
    `ModelError` if the model cannot be found or loaded, predicts no masked tokens (models of the
    next token do not), or if the device does not exist.
    """
    model_id = str(model_id).strip()
    if model_id == BUNDLED:
        return assemble(LanguageModel, model_id, *bundled.load(), device, bundled.BEHAVIOUR)
    if model_id == MINILM or trained_encoder(model_id) is not None:
        raise NoHeadError(
            f"{model_id} is a sentence encoder and cannot predict masked tokens. Micro-tuning "
            "needs a masked language model, such as “bundled”."
        )
    files, fingerprint = _find_files(model_id)
    return _load_masked(files, fingerprint, device)


def load_text_model(model_id: str | Path = MINILM, device: str | None = None) -> TextModel:
    """Load a model for the vectors of its layers, frozen and in eval mode, like `load_model`.

    ``model_id`` may also be a trained encoder's name, any encoder or a next-token model. Masked
    language models are returned as `LanguageModel`; encoder-decoders are a `ModelError`.
    """
    model_id = str(model_id).strip()
    if model_id == BUNDLED:
        return load_model(model_id, device)
    if model_id == MINILM:
        return assemble(TextModel, model_id, *bundled.load_minilm(), device, bundled.BEHAVIOUR)
    files, fingerprint = _find_files(model_id)
    transformer = find_transformer(files)
    if any(name.endswith("ForMaskedLM") for name in transformer.architectures):
        with suppress(NoHeadError):
            return _load_masked(files, fingerprint, device)
    is_half = any(name.endswith("EncoderModel") for name in transformer.architectures)  # T5's
    kind: AutoClass = "AutoModelForTextEncoding" if is_half else "AutoModel"
    model = assemble(TextModel, model_id, *load_network(transformer, kind), fingerprint, device)
    return _add_prompts(model, files)


def _find_files(model_id: str) -> tuple[ModelFiles, str]:
    folder, fingerprint = resolve(model_id)
    files = ModelFiles(folder, model_id)
    check_files(files)
    return files, fingerprint


def _load_masked(files: ModelFiles, fingerprint: str, device: str | None) -> LanguageModel:
    transformer = find_transformer(files)
    model_type = str(transformer.config["model_type"])
    with quiet_transformers() as transformers:
        masked = transformers.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    causal = re.compile(r"ForCausalLM$|(?<!With)LMHeadModel$")
    is_causal = any(map(causal.search, transformer.architectures))
    if model_type not in masked or is_causal:
        raise NoHeadError(
            f"{files.model_id} does not predict masked tokens ({model_type[:40]}). Micro-tuning "
            "needs a masked language model, such as bert-base-uncased."
        )
    loaded = load_network(transformer, "AutoModelForMaskedLM")
    model = assemble(LanguageModel, files.model_id, *loaded, fingerprint, device)
    return _add_prompts(model, files)


def resolve(model_id: str) -> tuple[Path, str]:
    """A model's folder and fingerprint; a trained encoder precedes folders and hub ids."""
    if trained := trained_encoder(model_id):
        return trained.folder, _hash_folder(trained.folder)
    try:
        path = Path(model_id).expanduser()
        if path.is_dir() and model_id:  # others, such as a home folder, are not read
            is_model = any(path.glob("*config.json")) or (path / "modules.json").is_file()
            return path, _hash_folder(path) if is_model else ""
        is_file = path.is_file()
    except (OSError, RuntimeError) as error:  # name too long, no home folder, no permission
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"Could not read {model_id[:80]}: {reason}.") from error
    if is_file or not _HUB_ID.fullmatch(model_id):
        raise ModelError(
            f"There is no folder “{model_id[:80]}”. Enter “bundled”, the folder of a model, or a "
            "Hugging Face Hub ID such as bert-base-uncased."
        )
    try:
        folder = hub.fetch(model_id)
    except ModelError as error:
        if "/" in model_id:
            raise
        raise ModelError(f"{error} No encoder that was trained here has this name.") from error
    return folder, folder.name


def _hash_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    ends = ("safetensors", "json", "txt", "model")
    patterns = (f"{depth}*.{end}" for depth in ("", "*/", "*/*/", "*/*/*/") for end in ends)
    for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        digest.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _add_prompts(model: M, files: ModelFiles) -> M:
    prompts = files.read("config_sentence_transformers.json").get("prompts")
    if not isinstance(prompts, dict):
        return model
    strings = {name: prompt for name, prompt in prompts.items() if isinstance(prompt, str)}
    return replace(model, prompts={"query": "", "document": "", **strings})


def load_network(
    files: ModelFiles, kind: AutoClass
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Network and tokenizer of a folder, in float32; `ModelError` if weights are missing."""
    folder, model_id = files.folder, files.model_id
    failure = f"Could not load {model_id}"
    with explain_failure(failure, of_memory=True), quiet_transformers() as transformers:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if config.is_encoder_decoder:
            raise files.error(
                f"({config.model_type[:40]}) is an encoder-decoder model, which is not "
                "supported. Use an encoder or a decoder-only model."
            )
        config.return_dict = True
        network, info = getattr(transformers, kind).from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        settings = [files.read(path.name) for path in folder.glob("sentence_*_config.json")]
        if any(values.get("do_lower_case") is True for values in settings):
            backend = tokenizer.backend_tokenizer
            own = [] if backend.normalizer is None else [backend.normalizer]
            backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
    check_unused(network, info, model_id)
    missing = sorted(info["missing_keys"])
    if kind != "AutoModelForMaskedLM":  # a pooler is not used
        missing = [name for name in missing if not name.startswith("pooler.")]
    if missing:
        addition = " Micro-tuning needs a prediction head, too." * (kind == "AutoModelForMaskedLM")
        raise NoHeadError(f"{model_id} is missing weights, for example {missing[0]}.{addition}")
    return network, tokenizer


def assemble(
    kind: type[M],
    model_id: str,
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    fingerprint: str,
    device: str | None = None,
    behaviour: Behaviour | None = None,
) -> M:
    """Freeze and describe a model; its ``behaviour`` is probed if not given."""
    masking = _describe_masking(network, tokenizer, model_id) if kind is LanguageModel else {}
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            f"{model_id} has no fast tokenizer (tokenizer.json), which neuralviz needs."
        )
    check_tokenizer(tokenizer.backend_tokenizer, model_id)
    try:
        n_rows = network.get_input_embeddings().weight.shape[0]
    except Exception as error:  # architectures without a table of tokens
        raise ModelError(
            f"{model_id} ({network.config.model_type}) has no table of token embeddings, which "
            "neuralviz needs. Of a model that reads images or sound, too, use the text model."
        ) from error
    if (highest := max(tokenizer.get_vocab().values())) >= n_rows:
        raise ModelError(
            f"The tokenizer of {model_id} does not match the model: it has a token of number "
            f"{highest:,}, the model only {n_rows:,} token embeddings."
        )
    encoder = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    encoder.no_padding()
    encoder.no_truncation()
    encoder.encode_special_tokens = True
    probe = tokenizer("a", return_special_tokens_mask=True)
    special = probe["special_tokens_mask"]
    if 0 not in special:
        raise ModelError(f"The tokenizer of {model_id} does not work: it finds no token in “a”.")
    first, last = special.index(0), len(special) - special[::-1].index(0)
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        if place.type not in DEVICES:
            raise ModelError(f"Unknown device “{device}”. Choose from: {', '.join(DEVICES)}.")
        network = network.to(place).float().eval().requires_grad_(False)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"Could not use the device “{device}”: {error}") from error
    # `transformers` hooks modules for these when first asked, and copies here share modules
    network.config.output_hidden_states = network.config.output_attentions = False
    prefix, suffix = probe["input_ids"][:first], probe["input_ids"][last:]
    window = _find_window(network, tokenizer)
    pad_id = tokenizer.pad_token_id or 0
    words = sorted(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids))
    room = max(1, window - len(prefix) - len(suffix))

    def make_input(n_words: int, start: int) -> list[int]:
        chosen = (words[(start + 7 * place) % len(words)] for place in range(min(n_words, room)))
        return [*prefix, *chosen, *suffix]

    token_types = _find_token_types(network, probe, first, last)
    if behaviour is None:
        with quiet_transformers():
            behaviour = probe_encoder(network.base_model, model_id, make_input, pad_id, token_types)
    return kind(
        id=model_id,
        fingerprint=fingerprint,
        network=network,
        tokenizer=tokenizer,
        encoder=encoder,
        prefix_ids=tuple(prefix),
        suffix_ids=tuple(suffix),
        pad_id=pad_id,
        unknown_id=find_unknown_id(encoder, tokenizer.unk_token),
        window=window,
        behaviour=behaviour,
        token_types=token_types,
        **masking,
    )


def _describe_masking(
    network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, model_id: str
) -> dict[str, Any]:
    has_mask = getattr(tokenizer, "mask_token_id", None) is not None
    if not has_mask or not isinstance(network.get_output_embeddings(), torch.nn.Linear):
        raise NoHeadError(
            f"{model_id} cannot be micro-tuned: it has no mask token, or no linear output layer."
        )
    shapes = {name: tuple(p.shape) for name, p in network.named_parameters()}
    layers = list_layers(shapes, network.base_model_prefix)
    return {"mask_id": tokenizer.mask_token_id, "layers": layers}


def _find_token_types(
    network: PreTrainedModel, encoding: Mapping[str, list[int]], first: int, last: int
) -> TokenTypes | None:
    """Token types of a text whose own tokens run from ``first`` to before ``last``."""
    types = encoding.get("token_type_ids")
    accepted = inspect.signature(network.base_model.forward).parameters
    if not types or not any(types) or "token_type_ids" not in accepted:
        return None
    return TokenTypes(tuple(types[:first]), types[first], tuple(types[last:]))


def _find_window(network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> int:
    """Most tokens of one input that positions and tokenizer allow; 512 if neither has a limit."""
    positions = find_positions(network)
    windows = [int(n) for n in (positions, tokenizer.model_max_length) if is_window(n)]
    return min([*(windows or [DEFAULT_WINDOW]), MAX_WINDOW])


def find_positions(network: PreTrainedModel) -> Any:
    """The network's maximum number of tokens; a value that fails `is_window` if it has none."""
    positions: Any = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    if is_window(positions):
        for path, module in network.named_modules():
            padding = getattr(module, "padding_idx", None)
            if path.endswith("position_embeddings") and padding is not None:
                positions -= padding + 1  # RoBERTa counts positions from after the padding
                break
    return positions


def is_window(value: object) -> bool:
    """Whether a number of tokens is a real limit; `transformers` writes 1e30 for none."""
    return isinstance(value, (int, float)) and 1 <= value < 1e9
