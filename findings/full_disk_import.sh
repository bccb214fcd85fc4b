#!/usr/bin/env bash
# torch 2.13.0 beside dill 0.4.1: on a full disk, `import torch` fails.
#
# A full disk ought to hinder saving alone: torch writes nothing when it is imported. But it imports dill
# where that is installed (`datasets` brings it), and dill asks for the folder of temporary files at once,
# which Python finds by writing one. Without dill, the same import works.
#
# Seen: "without dill: imported", "with dill: FileNotFoundError".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
try() { # no file may grow, as on a full disk
  (ulimit -f 0; PYTHONDONTWRITEBYTECODE=1 "$folder/venv/bin/python" -W ignore -c "
try:
    import torch
    print('imported')
except OSError as error:
    print(type(error).__name__)")
}
without=$(try)
"$folder/venv/bin/pip" install --quiet dill==0.4.1
with_dill=$(try)
echo "without dill: $without"
echo "with dill: $with_dill"
[ "$without" = imported ]
[ "$with_dill" = FileNotFoundError ]
echo "as described"
