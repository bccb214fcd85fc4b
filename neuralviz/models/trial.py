"""What a network does with a few short inputs, tried before it is used for any text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from neuralviz.errors import ModelError, shorten_reason
from neuralviz.models.passes import (
    Batching,
    Behaviour,
    Habits,
    copy_network,
    is_out_of_memory,
    seeded,
    stack_layers,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neuralviz.models.passes import TokenTypes

LONG_PROBE = 48  # tokens, fewer where the window is shorter
PRIME_LENGTH = 37  # tokens in all: some networks read only multiples of a number
ROUNDING = 1e-4  # of a vector's length: what sums in another order may change
NOISE = 1e-6  # likewise, when the same inputs go through the network once more
_CHANGING_POSITIONS = ("dynamic", "longrope")  # rotary embeddings that depend on the longest input


class ProbeInputs(NamedTuple):
    """Inputs that a network is tried with; ``long`` and ``second_long`` are of one length."""

    short: Any
    long: Any
    second_long: Any


def probe_habits(
    network: nn.Module,
    run: Callable[[nn.Module, Sequence[Any]], list[Tensor]],
    inputs: ProbeInputs,
    name: str,
) -> Habits:
    """Try what a network's vectors of an input depend on besides the input.

    Args:
        network: in eval mode. It is left as it is.
        run: gives a network's vectors of some inputs that share a pass: for each, [..., dim].
        inputs: to try it with.
        name: of the model, for messages.

    Raises:
        ModelError: the network changes its own weights.
    """
    versions = [parameter._version for parameter in network.parameters()]

    def run_seeded(used: nn.Module, *entries: Any) -> list[Tensor]:
        with seeded(0):
            return run(used, entries)

    used = copy_network(network)
    attributes = _list_attributes(used)
    unseeded = run(used, [inputs.short])[0]
    long_after_short = run_seeded(used, inputs.long)[0]
    short_after_long = run_seeded(used, inputs.short)[0]
    if versions != [parameter._version for parameter in network.parameters()]:
        raise ModelError(f"{name} cannot be used: it changes its own weights when it reads a text.")
    short = run_seeded(copy_network(network), inputs.short)[0]
    long = run_seeded(copy_network(network), inputs.long)[0]
    keeps_state = (
        attributes != _list_attributes(used)
        or differ(long, long_after_short, NOISE)
        or differ(short, short_after_long, NOISE)
    )

    def agrees_in_batch(entries: Sequence[Any], expected: Sequence[Tensor]) -> bool:
        try:
            together = run_seeded(copy_network(network), *entries)
        except Exception as error:  # whatever an architecture makes of a batch
            if is_out_of_memory(error):
                raise
            return False
        return not any(map(differ, expected, together))

    batching: Batching = "single"
    # what changes with the inputs it has read may change with the longest input of a batch
    if not keeps_state and agrees_in_batch([inputs.short, inputs.long], [short, long]):
        batching = "padded"
    else:
        second_vectors = run_seeded(copy_network(network), inputs.second_long)[0]
        if agrees_in_batch([inputs.long, inputs.second_long], [long, second_vectors]):
            batching = "equal lengths"
    return Habits(batching, keeps_state, differ(unseeded, short, NOISE))


@torch.no_grad()
def probe_encoder(
    network: nn.Module,
    name: str,
    make_input: Callable[[int, int], list[int]],
    pad_id: int,
    token_types: TokenTypes | None = None,
) -> Behaviour:
    """Try whether an encoder reads texts at all, and how.

    Args:
        network: in eval mode. It is left as it is.
        name: of the model, for messages.
        make_input: the ids of an input of so many tokens besides the special ones, fewer where the
            window is shorter; the second argument tells which of two.
        pad_id, token_types: as of `TextModel`.

    Raises:
        ModelError: the encoder cannot read a text, does not give a vector for every token at every
            layer, changes its own weights, or lets no token know of another.
    """
    parameters = inspect.signature(network.forward).parameters
    options = {"use_cache": False} if "use_cache" in parameters else {}
    device = next(network.parameters()).device
    inputs = ProbeInputs(make_input(3, 0), make_input(LONG_PROBE, 0), make_input(LONG_PROBE, 1))

    ends_with_norm = False

    def run(used: nn.Module, entries: Sequence[list[int]]) -> list[Tensor]:
        nonlocal ends_with_norm
        width = max(map(len, entries))
        padded = [[*ids, *[pad_id] * (width - len(ids))] for ids in entries]
        lengths = torch.tensor([len(ids) for ids in entries], device=device)
        attention = (torch.arange(width, device=device) < lengths[:, None]).long()
        types = {} if token_types is None else {"token_type_ids": token_types.fill(attention)}
        out = used(
            input_ids=torch.tensor(padded, device=device),
            attention_mask=attention,
            **types,
            output_hidden_states=True,
            **options,
        )
        layers = stack_layers(out, width)
        ends_with_norm = differ(out.hidden_states[-1][:, :width], layers[-1])
        return [layers[:, row, : len(ids)] for row, ids in enumerate(entries)]

    prime = make_input(PRIME_LENGTH - len(make_input(0, 0)), 0)
    place = len(inputs.long) // 2
    changed = [*inputs.long]
    changed[place] = inputs.second_long[place]
    try:
        with seeded(0):
            before = run(copy_network(network), [inputs.long])[0]
        with seeded(0):
            after = run(copy_network(network), [changed])[0]
            run(copy_network(network), [prime])
        habits = probe_habits(network, run, inputs, name)
        if not before.isfinite().all():
            raise ValueError("it gives infinite or NaN values")
    except ModelError:
        raise
    except Exception as error:  # whatever an architecture wants that it is not given here
        if is_out_of_memory(error):
            raise
        raise ModelError(
            f"{name} cannot be used, since it does not read a plain text: {shorten_reason(error)}."
        ) from error
    check_context(before[-1], after[-1], name)
    keeps_state = habits.keeps_state or _positions_depend_on_length(network)
    may_pad = habits.batching == "padded" and not keeps_state
    return Behaviour(
        batching=habits.batching if may_pad or habits.batching == "single" else "equal lengths",
        keeps_state=keeps_state,
        draws=habits.draws,
        n_layers=len(before),
        d_model=before.shape[-1],
        ends_with_norm=ends_with_norm,
        options=options,
    )


def check_context(before: Tensor, after: Tensor, name: str) -> None:
    """Check that a changed token changes its neighbours' vectors, else raise `ModelError`.

    Args:
        before, after: [token, dim] vectors of two texts that differ in one token alone.
        name: of the model, for messages.
    """
    changes = torch.linalg.vector_norm(before - after, dim=1)
    if (changes > NOISE * torch.linalg.vector_norm(before, dim=1)).sum() == 1:
        raise ModelError(
            f"{name} cannot be used: no token knows of another, as if it had no attention. Its "
            "architecture may need a GPU, or a package that is not installed."
        )


def differ(first: Tensor, second: Tensor, tolerance: float = ROUNDING) -> bool:
    """Whether vectors, [..., dim], differ by more than a part of their length."""
    if first.shape != second.shape:
        return True
    gap = torch.linalg.vector_norm(first - second, dim=-1)
    return bool((gap > tolerance * torch.linalg.vector_norm(first, dim=-1)).any())


def _list_attributes(network: nn.Module) -> list[Any]:
    """What a pass may change: modules, buffers, public attributes, configuration."""
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
    """Whether rotary positions change where an input, or one read before, is long."""
    kinds: list[Any] = []
    for module in network.modules():
        kind = getattr(module, "rope_type", None)
        kinds += kind.values() if isinstance(kind, dict) else [kind]
    return any(kind in _CHANGING_POSITIONS for kind in kinds)
