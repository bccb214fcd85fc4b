#!/usr/bin/env bash
# transformers 5.23.0: the index of shards does not decide from which shard a tensor is read.
#
# `weight_map` in `model.safetensors.index.json` names one shard for each tensor. Where a tensor is
# in two of the shards, as after one of them was saved again, the last shard is read, not the named one.
#
# Seen: "named: shard 1, read: shard 2".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0 safetensors==0.8.0
"$folder/venv/bin/python" - "$folder/model" <<'PYTHON'
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, BertConfig, BertModel

folder = Path(sys.argv[1])
torch.manual_seed(0)
BertModel(
    BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
).save_pretrained(folder)
weights = load_file(folder / "model.safetensors")
(folder / "model.safetensors").unlink()
tensor, *others = sorted(weights)
shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
parts = [
    {tensor: torch.full_like(weights[tensor], 1.0)},
    {tensor: torch.full_like(weights[tensor], 2.0)} | {name: weights[name] for name in others},
]
for shard, part in zip(shards, parts, strict=True):
    save_file(part, folder / shard, {"format": "pt"})
places = {tensor: shards[0]} | dict.fromkeys(others, shards[1])
index = {"metadata": {}, "weight_map": places}
(folder / "model.safetensors.index.json").write_text(json.dumps(index))
loaded = AutoModel.from_pretrained(folder).state_dict()[tensor]
shard = int(loaded.flatten()[0])
print(f"named: shard 1, read: shard {shard}")
assert shard == 2
PYTHON
echo "as described"
