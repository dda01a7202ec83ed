"""The public functions around Target."""

from __future__ import annotations

import os

from ..errors import CompileError
from ..ir.target import Target, TargetFeature, host_target


def get_host_target() -> Target:
    """The machine this runs on."""
    return host_target()


def get_target_from_environment() -> Target:
    """The Target named by HL_TARGET, else the host."""
    return Target(os.environ.get("HL_TARGET") or "host")


def get_jit_target_from_environment() -> Target:
    """The Target named by HL_JIT_TARGET, else the host, with the feature jit. Raises CompileError for another kind of machine."""
    t = Target(os.environ.get("HL_JIT_TARGET") or "host")
    host = host_target()
    if (t.arch, t.os, t.bits) != (host.arch, host.os, host.bits):
        raise CompileError(f"HL_JIT_TARGET={t} is another kind of machine than this one, {host}")
    return t.with_feature(TargetFeature.JIT)


def host_supports_target_device(t: Target) -> bool:
    """Whether the devices a Target asks for can be used: none can in this build."""
    return not t.has_gpu_feature()
