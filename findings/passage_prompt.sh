#!/usr/bin/env bash
# sentence-transformers 6.2.0: `encode_document` leaves out the prompt that a folder names "passage".
#
# It looks for the prompts "document", "passage" and "corpus", in this order. When a folder is loaded,
# an empty "document" is put beside the prompts that it has, and is found first: no text gets the prompt.
#
# Seen: "prompts: ['document', 'passage', 'query']", "encode_document reads: ''".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0
"$folder/venv/bin/python" - "$folder/model" <<'PYTHON'
import json
import sys
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

words = {word: n for n, word in enumerate(["[UNK]", "a", "dog", "text"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
weights = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
encoder = SentenceTransformer(
    modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu"
)
encoder.save(sys.argv[1], create_model_card=False)
path = Path(sys.argv[1], "config_sentence_transformers.json")
path.write_text(json.dumps(json.loads(path.read_text()) | {"prompts": {"passage": "text "}}))
encoder = SentenceTransformer(sys.argv[1], device="cpu")
document = encoder.encode_document("a dog")
prompts = [
    prompt for prompt in ("text ", "") if np.allclose(document, encoder.encode("a dog", prompt=prompt))
]
print("prompts:", sorted(encoder.prompts))
print(f"encode_document reads: {prompts[0]!r}")
assert prompts == [""]
PYTHON
echo "as described"
