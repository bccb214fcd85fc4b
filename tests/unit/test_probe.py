"""Whether a model's layers can be tuned text by text: what is tried, and what is remembered."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
import torch

from neuralviz.micro_tuning import probe
from neuralviz.micro_tuning.per_text import HEAD_ONLY
from neuralviz.models import LanguageModel

OUT_OF_MEMORY = (
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: you tried "
        "to allocate 40000000000 bytes."
    ),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("MPS backend out of memory (MPS allocated: 17.96 GB, max allowed: 18.13 GB)."),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("std::bad_alloc"),
    MemoryError(),
)


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=lambda error: type(error).__name__)
def test_memory_that_runs_out_once_is_not_remembered(
    error: Exception, tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(tiny)  # nothing is known of this one yet

    def fails(*_args: object) -> bool:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(probe, "_agrees", fails)
        with pytest.raises(type(error)):
            probe.per_text_network(model, model.head_layers)
    assert probe.per_text_network(model, model.head_layers).cut == HEAD_ONLY
    assert probe.per_text_network(model, model.head_layers).cut == HEAD_ONLY


def test_what_cannot_be_reused_is_remembered(
    tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tried = replace(tiny), []

    def fails_with_reuse(_model: LanguageModel, network: probe.PerTextNetwork) -> bool:
        tried.append(network.cut)
        if network.cut is not None:
            raise RuntimeError("The size of tensor a (3) must match the size of tensor b (4).")
        return True

    monkeypatch.setattr(probe, "_agrees", fails_with_reuse)
    for _ in range(2):
        assert probe.per_text_network(model, model.head_layers).cut is None
    assert tried == [HEAD_ONLY, None]


def test_runs_that_begin_at_once_leave_each_other_the_models_weights(
    bundled: LanguageModel,
) -> None:
    model, start = replace(bundled), Barrier(3)

    def begin(_number: int) -> probe.PerTextNetwork:
        start.wait()
        return probe.per_text_network(model, model.head_layers)

    with ThreadPoolExecutor(3) as threads:
        networks = list(threads.map(begin, range(3)))
    assert [network.cut for network in networks] == [HEAD_ONLY] * 3
