#!/usr/bin/env bash
# tokenizers 0.23.3: `encode_special_tokens`, which has "[MASK]" in a text read as characters, is not saved.
#
# A tokenizer that is saved with the setting on ought to read texts in the same way when it is loaded.
# `tokenizer.json` does not hold the setting: the loaded tokenizer reads "[MASK]" as the special token.
#
# Seen: "before: ['[', 'MASK', ']']", "loaded: ['[MASK]']".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tokenizers==0.23.3
"$folder/venv/bin/python" - "$folder/tokenizer.json" <<'PYTHON'
import sys

from tokenizers import Tokenizer, models, pre_tokenizers

words = {word: n for n, word in enumerate(["[UNK]", "[MASK]", "[", "]", "MASK"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
tokenizer.add_special_tokens(["[MASK]"])
tokenizer.encode_special_tokens = True
before = tokenizer.encode("[MASK]").tokens
tokenizer.save(sys.argv[1])
loaded = Tokenizer.from_file(sys.argv[1]).encode("[MASK]").tokens
print("before:", before)
print("loaded:", loaded)
assert before == ["[", "MASK", "]"]
assert loaded == ["[MASK]"]
PYTHON
echo "as described"
