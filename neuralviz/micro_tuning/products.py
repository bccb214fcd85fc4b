"""The dtype of matrix products during micro-tuning, set for this thread only."""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from neuralviz.errors import PrecisionWarning
from neuralviz.micro_tuning.settings import TuningSettings


def product_dtype(settings: TuningSettings) -> torch.dtype:
    return torch.bfloat16 if settings.in_bf16 else torch.float32


@contextmanager
def products_in(device: torch.device, settings: TuningSettings) -> Iterator[None]:
    """Run the matrix products of modules in the settings' dtype, in this thread only."""
    # on a CPU, torch's fused attention is very slow backwards in bfloat16, so it is replaced;
    # `torch.nn.attention.sdpa_kernel` would affect other threads
    with ExitStack() as stack:
        if settings.in_bf16:
            stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
            if device.type == "cpu":
                stack.enter_context(_UnfusedAttention())
        yield


class _UnfusedAttention(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is F.scaled_dot_product_attention:
            return unfused_attention(*args, **kwargs or {})
        return func(*args, **kwargs or {})


def unfused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`scaled_dot_product_attention` in bfloat16 on a CPU; results equal `SDPBackend.MATH`."""
    if dropout_p or is_causal or enable_gqa:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    query, key, value = (factor.to(torch.bfloat16).float() for factor in (query, key, value))
    root = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    with torch.autocast(query.device.type, enabled=False):
        scores = (query * root) @ (key * root).transpose(-2, -1)  # [row, head, token, token]
        if attn_mask is None:
            weights = scores.softmax(dim=-1)
        elif attn_mask.dtype == torch.bool:
            looks_at_none = ~attn_mask.any(dim=-1, keepdim=True)  # its weights are 0, not NaN
            scores = scores.masked_fill(~attn_mask, -torch.inf).masked_fill(looks_at_none, 0)
            weights = scores.softmax(dim=-1).masked_fill(looks_at_none, 0)
        else:
            weights = (scores + attn_mask.to(torch.bfloat16)).softmax(dim=-1)
        return (weights @ value).to(torch.bfloat16)


def has_native_bf16(device: torch.device | str) -> bool:
    """Whether the device multiplies bfloat16 in hardware rather than by slow emulation."""
    if torch.device(device).type == "cuda":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    if torch.device(device).type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    # There mkldnn says yes to AVX-512 without bfloat16, too; older versions of torch cannot tell.
    has_avx512_bf16 = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return bool(has_avx512_bf16())


def warn_of_imitated_bf16(device: torch.device | str) -> None:
    """Warn the caller's caller if the device only emulates bfloat16."""
    if not has_native_bf16(device):
        warnings.warn(PrecisionWarning(), stacklevel=3)
