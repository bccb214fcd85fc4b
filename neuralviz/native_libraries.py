"""What the libraries beneath torch read from the environment when they are loaded.

Each of them reads its variables once: MKL at its first product, OpenMP's runtime when it is
loaded. scikit-learn brings an OpenMP runtime of its own, so the variables are set when the package
is imported, before any of them. Processes that are started later inherit them.
"""

from __future__ import annotations

import os

# Threads that wait for the others of a parallel loop spin. On a busy machine they then take the
# core from the thread that they wait for, so they sleep soon: after a thousand turns with GCC's
# runtime (300,000 by default), after a millisecond with LLVM's and Intel's (200 by default).
SHORT_SPIN = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}
WAITING = (*SHORT_SPIN, "OMP_WAIT_POLICY", "KMP_LIBRARY")
"""Variables that say how threads wait: where the user has set any of them, all stay as they are."""


def prepare_environment() -> None:
    """Set the variables that the user has not set.

    Products of MKL, which torch uses on many processors, are then the same, bit for bit, for any
    number of threads; and threads that wait let others work.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
    if not any(name in os.environ for name in WAITING):
        os.environ.update(SHORT_SPIN)


def count_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
