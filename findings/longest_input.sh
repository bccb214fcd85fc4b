#!/usr/bin/env bash
# sentence-transformers 6.2.0: a `max_seq_length` above the model's positions is kept as it is.
#
# Without a `max_seq_length`, the smaller of the model's positions and the tokenizer's longest input
# counts. One in sentence_bert_config.json is not compared with the positions: the folder loads, short
# texts are embedded, and the first long one ends in an error of torch.
#
# Seen: "read from the folder: 64, positions: 32", "short text: (16,)", "long text: RuntimeError".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0
"$folder/venv/bin/python" - "$folder/model" <<'PYTHON'
import json
import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

folder = Path(sys.argv[1])
words = {word: n for n, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "dog"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
settings = BertConfig(
    vocab_size=5, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=16, max_position_embeddings=32,
)
BertModel(settings).save_pretrained(folder / "base")
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
).save_pretrained(folder / "base")
transformer = Transformer(str(folder / "base"))
pooling = Pooling(16)
SentenceTransformer(modules=[transformer, pooling], device="cpu").save(
    str(folder / "sentences"), create_model_card=False
)
path = next((folder / "sentences").glob("sentence_*_config.json"))
path.write_text(json.dumps(json.loads(path.read_text()) | {"max_seq_length": 64}))
encoder = SentenceTransformer(str(folder / "sentences"), device="cpu")
print(f"read from the folder: {encoder.max_seq_length}, positions: {settings.max_position_embeddings}")
print("short text:", encoder.encode("dog dog").shape)
try:
    outcome = str(encoder.encode("dog " * 50).shape)
except RuntimeError:
    outcome = "RuntimeError"
print("long text:", outcome)
assert (encoder.max_seq_length, outcome) == (64, "RuntimeError")
PYTHON
echo "as described"
