#!/usr/bin/env bash
# pytest 9.2.0 with pytest-xdist 3.8.0: `--dist loadgroup` does nothing, without a word.
#
# A guess: tests marked with one `xdist_group` run in one process. xdist writes the group behind the
# name in `item._nodeid`; pytest 9.2 keeps names elsewhere and takes the new attribute in silence.
# The tests of a group are spread over all processes: what they share is made in each, and what may
# exist once is there several times. A scheduler with `_split_scope` of one's own still works.
#
# Seen: "one group of 8 tests ran in 2 processes".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pytest==9.2.0 pytest-xdist==3.8.0
cat > "$folder/test_group.py" <<'PYTHON'
import os
import time

import pytest


@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("case", range(8))
def test_place(case):
    time.sleep(0.2)
    with open("processes", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\n")
PYTHON
cd "$folder"
venv/bin/python -m pytest -q -n 2 --dist loadgroup test_group.py
n=$(sort -u processes | wc -l)
echo "one group of 8 tests ran in $n processes"
[ "$n" = 2 ]
echo "as described"
