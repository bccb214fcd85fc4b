"""Connect to a Ray cluster, on this machine or running elsewhere."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # it would write over the bar
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # a thread that reads on would start Ray anew

import ray
from ray._private import worker as ray_worker
from ray.exceptions import RayError

from neuralviz.cluster import LOCAL, RESUMES, is_address
from neuralviz.errors import (
    NeuralvizError,
    ShouldStop,
    StoreError,
    check_stop,
    never,
    shorten_reason,
)
from neuralviz.paths import home
from neuralviz.store.corpora import Corpus, CorpusStore

RESULTS_PATIENCE = 5.0  # seconds for the work under way, when nobody wants more results
LOOK_EVERY = 0.25  # seconds between two looks whether to stop
CONNECT_PATIENCE = 9.0  # seconds for anything to answer at an address
HEAD_PATIENCE = 30.0  # seconds for what answers to say that it is a head; Ray loads meanwhile
_PASSED_ON = ("HF_HOME", "HF_HUB_OFFLINE", "HF_ENDPOINT", "OPENBLAS_CORETYPE", "NO_COLOR")


Result = TypeVar("Result")


@dataclass(frozen=True)
class Cluster:
    n_cpus: int
    n_gpus: int
    n_nodes: int

    @property
    def n_embedders(self) -> int:
        """Embedders at once: one per GPU, or per core without GPUs."""
        return max(1, self.n_gpus or self.n_cpus)


def open_store(folder: str, corpus: Corpus | None = None) -> CorpusStore:
    """Open the store; StoreError if this machine does not see it or the corpus."""
    path = Path(folder)
    store = CorpusStore(path)
    is_seen = (path / "format.json").exists()
    if not is_seen or (corpus and corpus.id not in {saved.id for saved in store.corpora()}):
        raise StoreError(
            f"The machine {socket.gethostname()} does not see {folder}. Set NEURALVIZ_HOME to a "
            "folder on a file system that all machines of the cluster share."
        )
    return store


def receive(
    results: Generator[Result], advice: str = RESUMES, should_stop: ShouldStop = never
) -> Generator[Result]:
    """Results of Ray as they are made, until closed; Stopped, and NeuralvizError if Ray ends."""
    # made in a thread: Ctrl-C in the main thread may get lost in Ray's code or block
    received: SimpleQueue[list[Result]] = SimpleQueue()
    end: Future[None] = Future()
    unwanted = threading.Event()

    def bring() -> None:
        try:
            with closing(results):
                for result in results:
                    received.put([result])
                    if unwanted.is_set():
                        return
            end.set_result(None)
        except BaseException as error:
            end.set_exception(error)
        received.put([])  # the end is heard at once

    thread = threading.Thread(target=bring, name="results of Ray", daemon=True)
    try:
        thread.start()
        while not (end.done() and received.empty()):
            try:
                new = received.get(timeout=LOOK_EVERY)
            except Empty:
                check_stop(should_stop)
            else:
                yield from new
        end.result()
    except RayError as error:
        raise NeuralvizError(_describe_loss(error, advice)) from error
    finally:
        unwanted.set()
        if thread.ident is not None:
            thread.join(RESULTS_PATIENCE)


def _describe_loss(error: RayError, advice: str) -> str:
    cause = getattr(error, "cause", None)
    if isinstance(cause, NeuralvizError):
        return str(cause)
    failure = cause or error
    return f"Ray stopped ({type(failure).__name__}: {shorten_reason(failure)}). {advice}"


def this_machine() -> str:
    """Ray's id of the machine this runs on; empty outside Ray."""
    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""


@contextmanager
def connected(address: str = LOCAL, n_cpus: int | None = None) -> Iterator[Cluster]:
    """Connect to ``HOST:PORT``, this machine's cluster (``auto``) or a temporary ``local`` one.

    ``n_cpus`` limits the cores of ``local``, which ends with the block. Raises NeuralvizError if
    nothing answers in time, Ray's version differs, or the cluster refuses.
    """
    if ray.is_initialized():
        yield _resources()
        return
    _check_answers(address)
    variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    variables |= {"NEURALVIZ_HOME": str(home().absolute()), "TOKENIZERS_PARALLELISM": "false"}
    warnings.filterwarnings("ignore", "lance.* fork")  # Ray starts programs of its own
    if hasattr(ray_worker, "print_to_stdstream"):  # by which it prints of every process that died
        ray_worker.print_to_stdstream = lambda *_, **__: None
    sigterm = signal.getsignal(signal.SIGTERM)
    try:
        with _silence():
            ray.init(
                address=address,
                include_dashboard=False if address == LOCAL else None,
                num_cpus=n_cpus if address == LOCAL else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
                runtime_env={"env_vars": variables},
            )
    except (RayError, OSError, RuntimeError, ValueError) as error:
        raise refusal(address, str(error)) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, sigterm)  # Ray's own prints a stack trace
    try:
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        yield _resources()
    finally:
        ray.shutdown()


@contextmanager
def _silence() -> Iterator[None]:
    """Discard standard error, also what Ray's native libraries write."""
    sys.stderr.flush()
    kept = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _resources() -> Cluster:
    whole = ray.cluster_resources()
    n_nodes = sum(bool(node["Alive"]) for node in ray.nodes())
    return Cluster(int(whole.get("CPU", 0)), int(whole.get("GPU", 0)), n_nodes)


def _check_answers(address: str) -> None:
    """Ask for a head in a child process, since Ray itself would block for a minute."""
    if address == LOCAL:
        return
    if address == "auto" and os.environ.get("RAY_ADDRESS") not in (None, "", LOCAL):
        address = os.environ["RAY_ADDRESS"]
    if not is_address(address):
        raise NeuralvizError(
            f"“{address[:60]}” is not the address of a Ray cluster. Write HOST:PORT of its head, "
            "such as 10.0.0.1:6379, or auto for the cluster that this machine is part of."
        )
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        if address != "auto":
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_PATIENCE).close()
        check = subprocess.run(command, capture_output=True, text=True, timeout=HEAD_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise refusal(address, reason or "no answer") from error
    if check.returncode:
        output = check.stderr or check.stdout
        raise refusal(address, output.strip().rpartition("\n")[2])  # the end of a traceback


def refusal(address: str, reason: str) -> NeuralvizError:
    """Build the error for a cluster that cannot be reached, from what Ray says."""
    reason = " ".join(reason.split())[:300].rstrip(".")
    return NeuralvizError(
        f"Could not connect to a Ray cluster at {address} ({reason}). Check that its head runs "
        "(`ray status`), and that this machine has joined it (`ray start --address=HOST:PORT`), "
        "with the same versions of Ray and Python and its token (docs/cluster.md). Without a "
        "cluster, use --ray alone."
    )
