"""What a micro-tuned model puts into the blanks of any sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from neuralviz.errors import SettingsError, TextError
from neuralviz.micro_tuning.blanks import (
    Candidate,
    FilledBlank,
    TextDelta,
    check_scale,
    split_at_blanks,
)
from neuralviz.micro_tuning.per_text import HEAD_ONLY
from neuralviz.micro_tuning.probe import per_text_network
from neuralviz.words import many

if TYPE_CHECKING:
    from torch import Tensor

    from neuralviz.models import LanguageModel


@torch.no_grad()
def fill_blanks(
    model: LanguageModel,
    sentence: str,
    deltas: Sequence[tuple[float, TextDelta]],
    top: int = 5,
) -> tuple[FilledBlank, ...]:
    """Predict the blanks of a sentence with the pretrained weights, and with deltas added to them.

    The model is only read: both sets of weights go through the network side by side, as two texts
    with layers of their own.

    >>> fill_blanks(model, "She sat on the ___.", [(1.0, delta)])

    Args:
        model: from `neuralviz.load_model`.
        sentence: with blanks, written as ``___`` or ``[MASK]``.
        deltas: pairs of a scale from -2 to 2 and a delta; scaled, they are summed.
        top: how many tokens to give for a blank, 1 … vocabulary size.

    Raises:
        TextError: there is no blank, there are too many, or the sentence does not fit the window.
        SettingsError: a delta is of another model or layers, or no finite number; a scale or
            ``top`` is out of range; or there is no delta.
        ModelError: the architecture does not let these layers be tuned.
    """
    if not 1 <= top <= model.vocab_size:
        raise SettingsError(
            f"The number of predictions must be from 1 to {model.vocab_size:,}, not {top}."
        )
    ids, blanks = _encode_sentence(model, sentence)
    logits = _compute_logits(model, ids, blanks, _sum_deltas(model, deltas))
    if not bool(logits.isfinite().all()):
        raise SettingsError(
            "With this delta the model's predictions are not finite numbers. Scale the delta down, "
            "or micro-tune with a lower learning rate."
        )
    before, after = logits.double().softmax(dim=-1)  # each [blank, vocab]
    return tuple(_fill_blank(model, *pair, top) for pair in zip(before, after, strict=True))


def _encode_sentence(model: LanguageModel, sentence: str) -> tuple[list[int], list[int]]:
    """Vocabulary ids with the special tokens around them, and where among them the blanks are."""
    parts = split_at_blanks(sentence)
    # The blank before a masked token belongs to the token, in vocabularies that have it there.
    pieces = [*(part.rstrip() for part in parts[:-1]), parts[-1]]
    encodings = model.encoder.encode_batch(pieces, add_special_tokens=False)
    ids, blanks = list(model.prefix_ids), []
    for number, encoding in enumerate(encodings):
        if number:
            blanks.append(len(ids))
            ids.append(model.mask_id)
        ids += encoding.ids
    n_tokens = len(ids) - len(model.prefix_ids)
    if n_tokens > model.room:
        raise TextError(
            f"The sentence has {many(n_tokens, 'token')}; the model reads at most "
            f"{model.room:,} at once. Shorten it."
        )
    return [*ids, *model.suffix_ids], blanks


def _sum_deltas(
    model: LanguageModel, deltas: Sequence[tuple[float, TextDelta]]
) -> dict[str, Tensor]:
    """Layer name to [2, dim]: the pretrained weights, and those with the deltas."""
    if not deltas:
        raise SettingsError("Choose at least one delta.")
    parameters = dict(model.network.named_parameters())
    sizes = {layer.name: layer.size for layer in model.layers}
    change: dict[str, np.ndarray] = {}
    for scale, delta in deltas:
        check_scale(scale)
        if delta.model_id != model.id:
            raise SettingsError(
                f"This delta is of the model “{delta.model_id}”. It cannot be added to "
                f"“{model.id}”."
            )
        for name, values in zip(delta.layers, delta.values, strict=True):
            if sizes.get(name) != len(values):
                raise SettingsError(
                    f"This delta does not fit the layers of “{model.id}”. Micro-tune again."
                )
            if not np.isfinite(values).all():
                raise SettingsError(
                    "This delta is not known yet. Choose a text that has been micro-tuned on."
                )
            change[name] = change.get(name, 0.0) + scale * values.astype(np.float64)
    return {
        name: torch.stack([weights, weights + torch.as_tensor(change[name]).to(weights)])
        for name in change
        for weights in [parameters[name].detach()]
    }


def _compute_logits(
    model: LanguageModel, ids: list[int], blanks: list[int], values: dict[str, Tensor]
) -> Tensor:
    """[2, blank, vocab] logits at the blanks, for both rows of ``values``, each [2, dim]."""
    network = per_text_network(model, tuple(values))
    rows = {name: value for name, value in values.items() if name != network.output_bias_name}
    tokens = torch.tensor([ids], device=model.device)
    columns = torch.tensor(blanks, device=model.device)
    if network.cut == HEAD_ONLY:
        frozen_output = network.run_frozen_part(
            tokens, torch.ones_like(tokens), (torch.zeros_like(columns), columns)
        )
        assert frozen_output is not None
        out = network.at_positions(frozen_output.expand(2, -1, -1), rows)
    else:
        twice = tokens.expand(2, -1)
        attention = torch.ones_like(twice)
        frozen_output = network.run_frozen_part(twice, attention)
        text_of = torch.arange(2, device=model.device)
        out = network.at_tokens(twice, attention, frozen_output, rows, text_of)[:, columns]
    logits = out @ network.output_weight.T
    if network.output_bias_name is not None:
        return logits + values[network.output_bias_name][:, None]
    return logits if network.output_bias is None else logits + network.output_bias


def _fill_blank(model: LanguageModel, before: Tensor, after: Tensor, top: int) -> FilledBlank:
    """A filled blank from [vocab] probabilities before and after."""

    def candidates(scores: Tensor) -> tuple[Candidate, ...]:
        return tuple(
            Candidate(_spell_token(model, token), float(before[token]), float(after[token]))
            for token in scores.topk(top).indices.tolist()
        )

    return FilledBlank(candidates(before), candidates(after), candidates(after - before))


def _spell_token(model: LanguageModel, token: int) -> str:
    """A token as a reader writes it, without the marks of its vocabulary."""
    spelt = model.encoder.decode([token], skip_special_tokens=False).strip()
    return spelt or model.tokenizer.convert_ids_to_tokens(token)
