"""Environment variables that MKL and OpenMP read when loaded, set before any library loads them."""

from __future__ import annotations

import os

# Threads that wait at the end of a parallel loop spin, and on a busy machine take the core from the
# thread that they wait for. So they sleep early: after 1,000 turns with GCC's runtime (300,000 by
# default), after 1 ms with LLVM's and Intel's (200 ms by default).
SHORT_SPIN = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}
# How threads wait; if the user has set any of these, all stay as they are.
WAITING = (*SHORT_SPIN, "OMP_WAIT_POLICY", "KMP_LIBRARY")


def prepare_environment() -> None:
    """Make MKL's products equal for any number of threads, and waiting threads sleep early."""
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
    if not any(name in os.environ for name in WAITING):
        os.environ.update(SHORT_SPIN)


def count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
