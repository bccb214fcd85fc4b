"""Forward passes in which a text's vector depends on the text and the weights alone.

Networks that react to padding, earlier inputs or random numbers are found by `probe_encoder`.
"""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from neuralviz.errors import ModelError, shorten_reason
from neuralviz.models.language_model import TextModel

Batching = Literal["padded", "equal lengths", "single"]

_random_numbers = threading.Lock()
LONG_PROBE = 48  # tokens, fewer where the window is shorter
ROUNDING = 1e-4  # relative to a vector's length: the effect of another order of sums
NOISE = 1e-6  # relative, between two passes over the same inputs
_CHANGING_POSITIONS = ("dynamic", "longrope")  # rotary embeddings that depend on the longest input


@dataclass(frozen=True)
class Habits:
    """What a network did when it read some inputs."""

    batching: Batching = "padded"  # which inputs share a pass: any, those of equal length, or none
    keeps_state: bool = False  # later passes depend on earlier ones
    draws: bool = False  # random numbers

    @property
    def is_plain(self) -> bool:
        return not (self.keeps_state or self.draws)

    def may_share_pass(self, first: int, length: int) -> bool:
        """Whether an input of ``length`` tokens may join a batch that begins with ``first``."""
        return self.batching == "padded" or (self.batching == "equal lengths" and first == length)


@dataclass(frozen=True)
class Behaviour(Habits):
    """An encoder's habits and the shape of its output."""

    n_layers: int = 0  # the embedding output included
    d_model: int = 0  # values of a hidden state
    options: Mapping[str, Any] = field(default_factory=dict)  # further arguments of every pass


@dataclass(frozen=True)
class TokenTypes:
    """Token types of a text, where a tokenizer gives others than 0."""

    prefix: tuple[int, ...]  # of the special tokens before a text
    text: int  # of its own tokens
    suffix: tuple[int, ...]  # of the special tokens after a text

    def fill(self, attention: Tensor) -> Tensor:
        """[row, token] types, given [row, token] 1 for tokens and 0 for padding."""
        types = torch.full_like(attention, self.text)
        types[:, : len(self.prefix)] = types.new_tensor(self.prefix)
        places = torch.arange(attention.shape[1], device=attention.device)
        from_end = attention.sum(dim=1, keepdim=True) - 1 - places
        for place, kind in enumerate(reversed(self.suffix)):
            types[from_end == place] = kind
        return types


def pad_inputs(
    inputs: Sequence[Sequence[int] | np.ndarray], pad_id: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """[row, token] ids of inputs of several lengths, and 1 for tokens, 0 for padding."""
    ids = np.full((len(inputs), max(1, *map(len, inputs))), pad_id, dtype=np.int64)
    attention = np.zeros_like(ids)
    for row, entry in enumerate(inputs):
        ids[row, : len(entry)] = entry
        attention[row, : len(entry)] = 1
    return torch.from_numpy(ids).to(device), torch.from_numpy(attention).to(device)


def encode_ids(
    model: TextModel, ids: Tensor, attention: Tensor, *, call: Callable[..., Any] | None = None
) -> Tensor:
    """[layer, row, token, d_model] hidden states of one pass; layer 0 is the embedding output.

    ``ids`` and ``attention`` are [row, token], attention 0 at padding; ``call`` replaces the
    encoder. `ModelError` if the network cannot read inputs of this length.
    """
    out = _run_pass(model, ids, attention, call, output_hidden_states=True)
    return stack_layers(out, ids.shape[1])


def encode_last(model: TextModel, ids: Tensor, attention: Tensor) -> Tensor:
    """[row, token, d_model] last hidden states; arguments and errors as for `encode_ids`."""
    return _run_pass(model, ids, attention)[0][:, : ids.shape[1]]


def _run_pass(
    model: TextModel,
    ids: Tensor,
    attention: Tensor,
    call: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    behaviour = model.behaviour
    if model.token_types is not None:
        options["token_type_ids"] = model.token_types.fill(attention)
    if call is None:
        call = model.network.base_model
        call = copy_network(call) if behaviour.keeps_state else call
    failure = f"{model.id} ({model.family}) cannot read a text of {ids.shape[1]} tokens"
    with explain_failure(failure), seeded(0) if behaviour.draws else nullcontext():
        return call(input_ids=ids, attention_mask=attention, **behaviour.options, **options)


def copy_network(network: nn.Module) -> nn.Module:
    """A copy with its own modules, buffers and configuration, but the same parameters."""
    attributes = [value for module in network.modules() for value in vars(module).values()]
    tokenizers = [value for value in attributes if hasattr(value, "is_fast")]
    shared = [*network.parameters(), *tokenizers]
    return copy.deepcopy(network, {id(value): value for value in shared})


def call_with(network: nn.Module, weights: Mapping[str, Tensor], **inputs: Any) -> Any:
    return torch.func.functional_call(network, dict(weights), (), inputs)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; on CPUs and in GPU libraries torch has no type for it."""
    unnamed = (
        "can't allocate memory", "not enough memory", "out of memory", "alloc_failed", "bad_alloc"
    )  # fmt: skip
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and any(words in str(error).lower() for words in unnamed)
    )


@contextmanager
def explain_failure(sentence: str, *, of_memory: bool = False) -> Iterator[None]:
    """Raise `ModelError` with the reason for what fails; a lack of memory only if ``of_memory``."""
    try:
        yield
    except Exception as error:  # architectures, and broken folders, raise almost anything
        if isinstance(error, ModelError) or (is_out_of_memory(error) and not of_memory):
            raise
        raise ModelError(f"{sentence}: {shorten_reason(error)}.") from error


@contextmanager
def seeded(*seed: int) -> Iterator[None]:
    """Seed torch's random numbers within the context, then restore them; no other thread draws."""
    (entropy,) = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    with _random_numbers, torch.random.fork_rng():
        torch.manual_seed(int(entropy >> 1))
        yield


def stack_layers(out: Any, width: int) -> Tensor:
    """[layer, row, token, d_model] hidden states cut to ``width`` tokens, after any final norm."""
    last = getattr(out, "last_hidden_state", None)
    layers = getattr(out, "hidden_states", None)
    if last is None or not layers:
        raise ValueError("it does not give the vectors of every token at every layer")
    layers = [*layers[:-1], last]
    if any(layer.ndim != 3 or layer.shape[1] < width for layer in layers):
        raise ValueError("some of its layers do not give one vector for each token")
    if len({layer.shape[2] for layer in layers}) > 1:
        raise ValueError("the vectors of its layers differ in size")
    return torch.stack([layer[:, :width] for layer in layers])


def probe_habits(
    network: nn.Module,
    run: Callable[[nn.Module, Sequence[Any]], list[Tensor]],
    inputs: tuple[Any, Any, Any],  # a short one, and two long ones of equal length
    name: str,
) -> tuple[Habits, Tensor]:
    """Find out what affects the [..., dim] vectors that ``run`` makes of inputs in one pass.

    Also returns those of the first long input. The network stays as it is. `ModelError` if a pass
    changes its weights.
    """
    short_input, long_input, second_input = inputs
    versions = [parameter._version for parameter in network.parameters()]

    def run_seeded(used: nn.Module, *entries: Any) -> list[Tensor]:
        with seeded(0):
            return run(used, entries)

    used = copy_network(network)
    attributes = _list_attributes(used)
    unseeded = run(used, [short_input])[0]
    long_after_short = run_seeded(used, long_input)[0]
    short_after_long = run_seeded(used, short_input)[0]
    if versions != [parameter._version for parameter in network.parameters()]:
        raise ModelError(f"{name} cannot be used: it changes its own weights when it reads a text.")
    short = run_seeded(copy_network(network), short_input)[0]
    long = run_seeded(copy_network(network), long_input)[0]
    keeps_state = (
        attributes != _list_attributes(used)
        or differ(long, long_after_short, NOISE)
        or differ(short, short_after_long, NOISE)
    )

    def agrees_in_batch(entries: Sequence[Any], expected: Sequence[Tensor]) -> bool:
        try:
            together = run_seeded(copy_network(network), *entries)
        except Exception as error:  # architectures refuse batches in many ways
            if is_out_of_memory(error):
                raise
            return False
        return not any(map(differ, expected, together))

    batching: Batching = "single"
    # a network that keeps state may also depend on the longest input of a batch
    if not keeps_state and agrees_in_batch([short_input, long_input], [short, long]):
        batching = "padded"
    else:
        second_vectors = run_seeded(copy_network(network), second_input)[0]
        if agrees_in_batch([long_input, second_input], [long, second_vectors]):
            batching = "equal lengths"
    return Habits(batching, keeps_state, differ(unseeded, short, NOISE)), long


@torch.no_grad()
def probe_encoder(
    network: nn.Module,
    name: str,
    make_input: Callable[[int, int], list[int]],
    pad_id: int,
    token_types: TokenTypes | None = None,
) -> Behaviour:
    """Find out whether and how an encoder reads texts; the network stays as it is.

    ``make_input`` gives token ids of one of two inputs, by number and length. `ModelError` if the
    encoder cannot read a text, lacks a vector for a token or layer, changes its weights, or if its
    tokens do not affect each other.
    """
    parameters = inspect.signature(network.forward).parameters
    options = {"use_cache": False} if "use_cache" in parameters else {}
    device = next(network.parameters()).device
    long_input, second_input = make_input(LONG_PROBE, 0), make_input(LONG_PROBE, 1)

    def run(used: nn.Module, entries: Sequence[list[int]]) -> list[Tensor]:
        ids, attention = pad_inputs(entries, pad_id, device)
        types = {} if token_types is None else {"token_type_ids": token_types.fill(attention)}
        out = used(
            input_ids=ids, attention_mask=attention, output_hidden_states=True, **types, **options
        )
        layers = stack_layers(out, ids.shape[1])
        return [layers[:, row, : len(entry)] for row, entry in enumerate(entries)]

    place = len(long_input) // 2
    changed = [*long_input]
    changed[place] = second_input[place]
    with explain_failure(f"{name} cannot be used, since it does not read a plain text"):
        inputs = make_input(3, 0), long_input, second_input
        habits, before = probe_habits(network, run, inputs, name)
        with seeded(0):
            after = run(copy_network(network), [changed])[0]
        if not before.isfinite().all():
            raise ValueError("it gives infinite or NaN values")
    check_context(before[-1], after[-1], name)
    keeps_state = habits.keeps_state or _positions_depend_on_length(network)
    may_pad = habits.batching == "padded" and not keeps_state
    return Behaviour(
        batching=habits.batching if may_pad or habits.batching == "single" else "equal lengths",
        keeps_state=keeps_state,
        draws=habits.draws,
        n_layers=len(before),
        d_model=before.shape[-1],
        options=options,
    )


def check_context(before: Tensor, after: Tensor, name: str) -> None:
    """Raise `ModelError` if a changed token leaves its neighbours' [token, dim] as they were."""
    changes = torch.linalg.vector_norm(before - after, dim=1)
    if (changes > NOISE * torch.linalg.vector_norm(before, dim=1)).sum() == 1:
        raise ModelError(
            f"{name} cannot be used: no token knows of another, as if it had no attention. Its "
            "architecture may need a GPU, or a package that is not installed."
        )


def differ(first: Tensor, second: Tensor, tolerance: float = ROUNDING) -> bool:
    """Whether vectors, [..., dim], differ by more than ``tolerance`` of their length."""
    if first.shape != second.shape:
        return True
    gap = torch.linalg.vector_norm(first - second, dim=-1)
    return bool((gap > tolerance * torch.linalg.vector_norm(first, dim=-1)).any())


def _list_attributes(network: nn.Module) -> list[Any]:
    entries: list[Any] = []
    for path, module in network.named_modules():
        plain = {
            name: value
            for name, value in vars(module).items()
            if name != "training"
            and not name.startswith("_")
            and isinstance(value, (bool, int, float, str, type(None)))
        }
        buffers = {
            name: (id(b), b._version) for name, b in module._buffers.items() if b is not None
        }
        entries.append((path, type(module), plain, buffers))
    config = getattr(network, "config", None)
    return [*entries, config.to_dict() if config is not None else None]


def _positions_depend_on_length(network: nn.Module) -> bool:
    kinds: list[Any] = []
    for module in network.modules():
        kind = getattr(module, "rope_type", None)
        kinds += kind.values() if isinstance(kind, dict) else [kind]
    return any(kind in _CHANGING_POSITIONS for kind in kinds)
