"""Whether a machine computes in bfloat16 itself, and what is said where it does not."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest
import torch

from neuralviz.errors import PrecisionWarning
from neuralviz.micro_tuning import products
from neuralviz.micro_tuning.products import has_native_bf16, warn_of_imitated_bf16


def pretend(
    monkeypatch: pytest.MonkeyPatch,
    *,
    machine: str = "x86_64",
    mkldnn: bool = True,
    mkldnn_bf16: bool = True,
    avx512_bf16: bool = True,
) -> None:
    """A processor that is not this one."""
    library = SimpleNamespace(_is_mkldnn_bf16_supported=lambda: mkldnn_bf16)
    monkeypatch.setattr(products.platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: mkldnn)
    monkeypatch.setattr(torch.ops, "mkldnn", library)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512_bf16, raising=False)


@pytest.mark.parametrize(
    ("processor", "native"),
    [
        ({}, True),
        ({"machine": "AMD64"}, True),
        ({"avx512_bf16": False}, False),  # mkldnn says yes to AVX-512 of any kind
        ({"mkldnn_bf16": False}, False),
        ({"mkldnn": False}, False),
        ({"machine": "aarch64", "avx512_bf16": False}, True),
        ({"machine": "arm64", "mkldnn_bf16": False}, False),
    ],
)
def test_processors(monkeypatch: pytest.MonkeyPatch, processor: dict, native: bool) -> None:
    pretend(monkeypatch, **processor)
    assert has_native_bf16("cpu") is native


@pytest.mark.parametrize(("there", "native"), [(True, True), (True, False), (False, True)])
def test_graphics_cards(monkeypatch: pytest.MonkeyPatch, there: bool, native: bool) -> None:
    asked: dict[str, bool] = {}

    def is_supported(**how: bool) -> bool:
        asked.update(how)
        return native

    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_supported)
    assert has_native_bf16("cuda:0") is (there and native)
    assert asked == ({"including_emulation": False} if there else {})


def test_only_what_is_imitated_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_native_bf16", lambda _: False)
    with pytest.warns(PrecisionWarning, match="slower than exact"):
        warn_of_imitated_bf16("cpu")
    monkeypatch.setattr(products, "has_native_bf16", lambda _: True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_imitated_bf16("cpu")
