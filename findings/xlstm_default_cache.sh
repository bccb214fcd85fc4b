#!/usr/bin/env bash
# transformers 5.23.0: a small xLSTM cannot read a text with default arguments, but can without a cache.
#
# The cache that a model in eval mode makes by default ought to fit the model. For a configuration
# whose head size is not that of the published 7B model, it does not.
#
# Seen: "use_cache=False: (1, 6, 32)", then "default: ValueError: matC_old has wrong shape …".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from transformers import xLSTMConfig, xLSTMModel

config = xLSTMConfig(
    vocab_size=50, hidden_size=32, embedding_dim=32, num_hidden_layers=2, num_blocks=2, num_heads=2
)
model = xLSTMModel(config).eval()
ids = torch.arange(10, 16)[None]
with torch.no_grad():
    shape = tuple(model(ids, use_cache=False).last_hidden_state.shape)
    print(f"use_cache=False: {shape}")
    try:
        raised = f"no error: {tuple(model(ids).last_hidden_state.shape)}"
    except ValueError as error:
        raised = f"ValueError: {error}"
print(f"default: {raised}")
assert shape == (1, 6, 32)
assert "matC_old has wrong shape" in raised
PYTHON
echo "as described"
