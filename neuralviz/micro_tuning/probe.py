"""Checks, by a trial pass, whether a model's layers can be tuned text by text."""

from __future__ import annotations

from contextlib import nullcontext
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from neuralviz.errors import ModelError
from neuralviz.micro_tuning.per_text import HEAD_ONLY, PerTextNetwork
from neuralviz.models import LanguageModel
from neuralviz.models.passes import copy_network, is_out_of_memory, pad_inputs, seeded

# of a model, by its layers and whether reuse is wanted: whether reuse works
_reusable: WeakKeyDictionary[LanguageModel, dict[tuple[tuple[str, ...], bool], bool]] = (
    WeakKeyDictionary()
)


def per_text_network(
    model: LanguageModel, names: tuple[str, ...], *, reuse: bool = True
) -> PerTextNetwork:
    """A `PerTextNetwork`, checked on first use to give the whole model's logits.

    Without reuse if that fails with it; the outcome is remembered. Raises ModelError if these
    layers cannot be tuned or weights are not finite, RuntimeError if memory runs out.
    """
    only_head = all(name in model.head_layers for name in names)
    if model.token_types is not None and not only_head:
        raise ModelError(
            f"{model.id} has token types of its own for a text, so that its blocks cannot be "
            "tuned. Use the layers of its head."
        )
    if not model.behaviour.is_plain and not only_head:
        behaviour = (
            "draws random numbers" if model.behaviour.draws else "changes with what it has read"
        )
        raise ModelError(
            f"{model.id} ({model.family}) {behaviour}, so that its blocks cannot be tuned. Use the "
            "layers of its head."
        )
    tried = _reusable.setdefault(model, {})
    if (names, reuse) in tried:
        return PerTextNetwork(model, names, reuse=tried[names, reuse])
    for is_reused in [True, False] if reuse else [False]:
        try:
            network = PerTextNetwork(model, names, reuse=is_reused)
            agrees = _agrees(model, network)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if is_out_of_memory(error):
                raise
            agrees = False  # a module cannot do with what was replaced around it
        if agrees:
            tried[names, reuse] = is_reused
            return network
    if not all(bool(parameter.isfinite().all()) for parameter in model.network.parameters()):
        raise ModelError(
            f"The weights of {model.id} are damaged: some are infinite or NaN. Download the "
            "model again, or use another one."
        )
    raise ModelError(
        f"These layers of {model.id} ({model.family}) cannot be tuned separately for each "
        "text. Choose other layers, or a model such as bert-base-uncased."
    )


def _agrees(model: LanguageModel, network: PerTextNetwork) -> bool:
    """Whether two inputs with different weights give the whole model's logits, and gradients."""
    word = model.encoder.encode("a", add_special_tokens=False).ids[:1]
    lengths = (1, 4) if model.behaviour.batching == "padded" else (4, 4)
    inputs = [[*model.prefix_ids, *word * n, model.mask_id, *model.suffix_ids] for n in lengths]
    ids, attention = pad_inputs(inputs, model.pad_id, model.device)
    row, column = attention.nonzero(as_tuple=True)
    parameters = dict(model.network.named_parameters())
    text_weights = [  # each text has weights of its own, as after some steps
        {
            name: (parameters[name].detach() * (1 + 0.1 * number) + 0.01 * number)
            for name in network.names
            if name != network.output_bias_name
        }
        for number in range(len(inputs))
    ]
    whole = copy_network(model.network)  # in whose place torch puts the weights for a moment
    with torch.no_grad():
        expected = torch.cat(
            [
                _run_whole(model, whole, weights, torch.tensor([entry], device=model.device))
                for weights, entry in zip(text_weights, inputs, strict=True)
            ]
        )
    head_only = network.cut == HEAD_ONLY
    values = {
        name: torch.stack([weights[name] for weights in text_weights]).requires_grad_()
        for name in text_weights[0]
    }
    shared = [slice(None)] if model.behaviour.batching != "single" else [slice(0, 1), slice(1, 2)]
    parts = [network.run_frozen_part(ids[rows], attention[rows]) for rows in shared]
    frozen_output = (
        None if parts[0] is None else torch.cat([part for part in parts if part is not None])
    )
    with torch.enable_grad():
        if head_only:
            assert frozen_output is not None
            out = network.at_positions(frozen_output, values)[row, column]
        else:
            text_of = torch.arange(len(inputs), device=model.device)
            out = network.at_tokens(ids, attention, frozen_output, values, text_of)[row, column]
        if values:  # raises where a layer plays no part
            torch.autograd.grad(out.square().sum(), list(values.values()))
    logits = out.detach() @ network.output_weight.T
    if network.output_bias is not None:
        logits = logits + network.output_bias
    return bool((logits - expected).abs().max() <= 1e-3 * expected.abs().max())


def _run_whole(
    model: LanguageModel, network: nn.Module, weights: dict[str, Tensor], ids: Tensor
) -> Tensor:
    """[token, vocab] logits of one input by a copy of the whole model with the given weights."""
    if model.behaviour.keeps_state:
        network = copy_network(network)
    with seeded(0) if model.behaviour.draws else nullcontext():
        inputs = {"input_ids": ids}
        if model.token_types is not None:
            inputs["token_type_ids"] = model.token_types.fill(torch.ones_like(ids))
        return torch.func.functional_call(network, weights, (), inputs).logits[0]
