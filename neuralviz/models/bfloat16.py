"""Whether a machine computes in bfloat16 itself."""

from __future__ import annotations

import platform
import warnings
from typing import TYPE_CHECKING

from neuralviz.errors import PrecisionWarning

if TYPE_CHECKING:
    import torch


def has_native_bf16(device: torch.device | str) -> bool:
    """Whether a device multiplies bfloat16 numbers in hardware; others imitate it, slowly."""
    import torch

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
    """Warn the caller of the calling function where a device imitates bfloat16."""
    if not has_native_bf16(device):
        warnings.warn(PrecisionWarning(), stacklevel=3)
