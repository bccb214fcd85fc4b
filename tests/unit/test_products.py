"""The type of matrix products is chosen for one thread: attention in bfloat16, and beside it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuralviz.micro_tuning import check_settings, products
from neuralviz.micro_tuning.products import has_native_bf16, products_in, unfused_attention
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.models import LanguageModel

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def factors() -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(5, 6, 20, 64, generator=generator) for _ in range(3))


@pytest.fixture
def bf16(tiny: LanguageModel) -> TuningSettings:
    return check_settings(tiny, precision="bf16")


def masks() -> list[Tensor | None]:
    may_look = torch.rand(5, 1, 20, 20, generator=torch.Generator().manual_seed(1)) > 0.2
    may_look[..., 0] = True
    return [None, may_look, torch.where(may_look, 0.0, -1e4)]


@pytest.mark.parametrize("mask", masks(), ids=["no mask", "bool", "float"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_unfused_attention_has_the_numbers_of_torch(
    scale: float | None, mask: Tensor | None, factors: tuple[Tensor, ...], bf16: TuningSettings
) -> None:
    theirs_of, ours_of = ([f.clone().requires_grad_() for f in factors] for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16), sdpa_kernel(SDPBackend.MATH):
        theirs = F.scaled_dot_product_attention(*theirs_of, attn_mask=mask, scale=scale)
    with products_in(CPU, bf16):
        ours = F.scaled_dot_product_attention(*ours_of, attn_mask=mask, scale=scale)
    assert ours.dtype == torch.bfloat16
    assert torch.equal(ours, theirs)
    grad_out = torch.ones_like(ours)
    for one, other in zip(
        torch.autograd.grad(ours, ours_of, grad_out),
        torch.autograd.grad(theirs, theirs_of, grad_out),
        strict=True,
    ):
        assert torch.equal(one, other)


def test_a_token_that_may_look_at_none_gets_zeros(factors: tuple[Tensor, ...]) -> None:
    query, key, value = (factor.clone().requires_grad_() for factor in factors)
    may_look = torch.ones(5, 1, 20, 20, dtype=torch.bool)
    may_look[2, 0, 7] = False
    out = unfused_attention(query, key, value, may_look)
    assert (out[2, :, 7] == 0).all()
    assert (out[2, :, 6] != 0).any()
    for grad in torch.autograd.grad(out.sum(), (query, key, value)):
        assert grad.isfinite().all()


def test_what_other_threads_compute_stays_the_same(
    factors: tuple[Tensor, ...], bf16: TuningSettings
) -> None:
    """The model is shared: an exact run goes on while another thread's is in bfloat16."""
    alone = F.scaled_dot_product_attention(*factors)
    with sdpa_kernel(SDPBackend.MATH):
        assert not torch.equal(F.scaled_dot_product_attention(*factors), alone)  # it would show
    with ThreadPoolExecutor(1) as thread, products_in(CPU, bf16):
        beside = thread.submit(F.scaled_dot_product_attention, *factors).result()
    assert torch.equal(beside, alone)
    assert torch.equal(F.scaled_dot_product_attention(*factors), alone)


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
