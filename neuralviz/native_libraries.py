"""Environment variables that MKL and OpenMP read when loaded, set before any library loads them."""

from __future__ import annotations

import os

# Threads that wait at the end of a parallel loop spin, and on a busy machine take the core from the
# thread that they wait for. So they sleep early: after 1,000 turns with GCC's runtime (300,000 by
# default), after 1 ms with LLVM's and Intel's (200 ms by default).
SHORT_SPIN = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}
# Two to this power are the processor's ticks: 0.3 ms. By default, the threads of OpenBLAS, which
# NumPy and SciPy bring, keep a core for 0.1 s after each product.
OPENBLAS_SPIN = {"OPENBLAS_THREAD_TIMEOUT": "20"}
# How threads wait; if the user has set any of these, all stay as they are.
WAITING = (*SHORT_SPIN, "OMP_WAIT_POLICY", "KMP_LIBRARY")


def prepare_environment() -> None:
    """Make MKL's products equal for any number of threads, and waiting threads sleep early."""
    defaults = {"MKL_CBWR": "AUTO,STRICT", **OPENBLAS_SPIN}
    os.environ.update({name: value for name, value in defaults.items() if name not in os.environ})
    if not any(name in os.environ for name in WAITING):
        os.environ.update(SHORT_SPIN)


def count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
