#!/usr/bin/env bash
# transformers 5.23.0: RWKV's rescaling in eval mode is not neutral, and stays in the weights.
#
# `rescale_every` divides some weights by powers of two in the first forward pass in eval mode, and
# the hidden states by the same on their way. Powers of two lose no bits, so the output ought to be
# that of `rescale_every=0`. It is not: the layer norms add their epsilon to states that are smaller.
# And `save_pretrained` after a forward pass writes the divided weights, which are divided once more
# when the folder is loaded and used.
#
# Seen: "rescaled: differs from plain by more than 1e-4", "saved after use: differs by more than 1e-3".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0
"$folder/venv/bin/python" - "$folder/model" <<'PYTHON'
import sys

import torch
from transformers import RwkvConfig, RwkvModel

settings = dict(
    vocab_size=50, hidden_size=32, num_hidden_layers=4, context_length=64, intermediate_size=48
)
torch.manual_seed(0)
plain = RwkvModel(RwkvConfig(**settings, rescale_every=0)).eval()
rescaled = RwkvModel(RwkvConfig(**settings, rescale_every=1)).eval()
with torch.no_grad():
    for parameter in plain.parameters():
        parameter.copy_(0.3 * torch.randn(parameter.shape))
rescaled.load_state_dict(plain.state_dict())
ids = torch.arange(12)[None]


def states(model):
    with torch.no_grad():
        return model(ids).last_hidden_state


def gap(first, second):
    return float((first - second).abs().max() / second.abs().max())


expected = states(plain)
before = states(rescaled)
print("rescaled: differs from plain by", gap(before, expected))
rescaled.save_pretrained(sys.argv[1])
again = states(RwkvModel.from_pretrained(sys.argv[1]).eval())
print("saved after use: differs by", gap(again, before))
assert gap(before, expected) > 1e-4
assert gap(again, before) > 1e-3
PYTHON
echo "as described"
