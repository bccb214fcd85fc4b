#!/usr/bin/env bash
# torch 2.13.0: while `torch.func.functional_call` runs, other threads see the module with its values.
#
# A call that is called functional ought to leave the module as it is. It puts the values in the
# module's place until it returns: a thread that uses the same module meanwhile computes with them,
# without an error. Two calls at once can mix their values. A copy that shares the parameters helps.
#
# Seen: "during the call: 0.0, after it: 6.0".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0
"$folder/venv/bin/python" - <<'PYTHON'
import threading

import torch

begun, may_end = threading.Event(), threading.Event()


class Waiting(torch.nn.Module):
    def forward(self, x):
        begun.set()
        may_end.wait(60)
        return x


inner = torch.nn.Linear(3, 1, bias=False)
torch.nn.init.constant_(inner.weight, 2.0)
network = torch.nn.Sequential(inner, Waiting())
x, other = torch.ones(1, 3), {"0.weight": torch.zeros(1, 3)}
call = threading.Thread(target=torch.func.functional_call, args=(network, other, (x,)))
call.start()
begun.wait(60)
during = inner(x).item()  # by this thread, which was given no values
may_end.set()
call.join()
after = inner(x).item()
print(f"during the call: {during}, after it: {after}")
assert (during, after) == (0.0, 6.0)
PYTHON
echo "as described"
