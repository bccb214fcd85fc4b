#!/usr/bin/env bash
# transformers 5.23.0: `dir(transformers)` takes a hundred times as long as sorting its names.
#
# A guess: dir() reads a list that is there. The lazy module compares each of its names with all
# that it has listed before, in a list, so the time grows with the square of their number (some
# 6,300), and nothing is kept for the next call. A program that asks at every model whether a class
# is known pays it every time; `transformers.__all__` has the same names at once.
#
# Seen: "6,334 names; dir() takes 121 times as long as sorting __all__", 0.4 s a call.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==5.23.0
"$folder/venv/bin/python" - <<'PYTHON'
import time

import transformers


def fastest(work):
    times = []
    for _ in range(5):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


names = set(transformers.__all__)
assert {name for name in dir(transformers) if not name.startswith("_")} == names
ratio = fastest(lambda: dir(transformers)) / fastest(lambda: sorted(set(transformers.__all__)))
print(f"{len(names):,} names; dir() takes {ratio:,.0f} times as long as sorting __all__")
assert ratio > 20
PYTHON
echo "as described"
