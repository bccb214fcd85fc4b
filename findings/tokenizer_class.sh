#!/usr/bin/env bash
# transformers 5.23.0: `BertTokenizer` lower-cases what a cased `tokenizer.json` keeps.
#
# A folder's `tokenizer.json` ought to decide how texts are split. With `tokenizer_class: BertTokenizer`
# and no `do_lower_case` beside it, the class puts its own lower-casing in place of the file's: a cased
# model reads other tokens. The class `TokenizersBackend` reads the file as it is.
#
# Seen: "TokenizersBackend: ['[UNK]', 'dog']", "BertTokenizer: ['the', 'dog']".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==5.23.0 tokenizers==0.23.3
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

folder = Path(sys.argv[1])
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog"]
tokenizer = Tokenizer(
    models.WordPiece({word: n for n, word in enumerate(words)}, unk_token="[UNK]")
)
tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
tokenizer.save(str(folder / "tokenizer.json"))
seen = {}
for name in ("TokenizersBackend", "BertTokenizer"):
    settings = {"tokenizer_class": name, "unk_token": "[UNK]", "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    seen[name] = AutoTokenizer.from_pretrained(folder).tokenize("The dog")
    print(f"{name}: {seen[name]}")
assert seen == {"TokenizersBackend": ["[UNK]", "dog"], "BertTokenizer": ["the", "dog"]}
PYTHON
echo "as described"
