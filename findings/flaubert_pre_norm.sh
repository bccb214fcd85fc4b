#!/usr/bin/env bash
# transformers 5.23.0: a FlauBERT with `pre_norm` cannot run a forward pass with default arguments.
#
# The published large checkpoint has `pre_norm: true`. A plain call ought to give hidden states, as
# it does without `pre_norm`. It raises TypeError: 'EncoderDecoderCache' object is not subscriptable.
#
# Seen: "pre_norm=False: (1, 6, 32)", then "pre_norm=True: TypeError: 'EncoderDecoderCache' object …".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from transformers import FlaubertConfig, FlaubertModel

seen = {}
for pre_norm in (False, True):
    config = FlaubertConfig(
        vocab_size=50, emb_dim=32, n_layers=2, n_heads=4, pad_index=0, pre_norm=pre_norm
    )
    model = FlaubertModel(config).eval()
    ids = torch.arange(10, 16)[None]
    try:
        with torch.no_grad():
            seen[pre_norm] = tuple(model(ids, attention_mask=torch.ones_like(ids))[0].shape)
    except TypeError as error:
        seen[pre_norm] = f"TypeError: {error}"
    print(f"pre_norm={pre_norm}: {seen[pre_norm]}")
assert seen[False] == (1, 6, 32)
assert "not subscriptable" in str(seen[True])
PYTHON
echo "as described"
