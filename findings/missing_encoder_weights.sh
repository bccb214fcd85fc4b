#!/usr/bin/env bash
# sentence-transformers 6.2.0: a folder that lacks a weight loads, and embeds with random numbers.
#
# A weight that is missing from `model.safetensors` ought to be an error. It is drawn anew at every
# load, and only a report in the log tells: the same text has another vector each time.
#
# Seen: "largest difference between two loads: 0.02" or so, where 0 is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0
"$folder/venv/bin/python" - "$folder/model" <<'PYTHON'
import sys

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

words = {word: n for n, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "dog"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
plain = sys.argv[1] + "-plain"
torch.manual_seed(0)
config = BertConfig(
    vocab_size=6, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48
)
BertModel(config).save_pretrained(plain)
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=32
).save_pretrained(plain)
encoder = SentenceTransformer(modules=[Transformer(plain), Pooling(32, "mean")], device="cpu")
encoder.save(sys.argv[1], create_model_card=False)
path = f"{sys.argv[1]}/model.safetensors"
weights = load_file(path)
del weights["encoder.layer.1.output.dense.weight"]
save_file(weights, path, {"format": "pt"})
first, second = (
    SentenceTransformer(sys.argv[1], device="cpu").encode("a dog") for _ in range(2)
)
gap = float(abs(first - second).max())
print("largest difference between two loads:", gap)
assert gap > 1e-3
PYTHON
echo "as described"
