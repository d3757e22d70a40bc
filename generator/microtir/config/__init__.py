"""The configuration of a compilation: one frozen object, checked in its constructor."""

from __future__ import annotations

from microtir.config.budget import Budget
from microtir.config.compilation import CompilationConfig
from microtir.config.creators import host, micro, microcontroller
from microtir.config.enums import (
    Annotations,
    CallingConvention,
    Compatibility,
    ExecutorKind,
    ExternalLibrary,
    InterfaceApi,
    Measure,
    Numerics,
    Optimize,
    Placement,
    RuntimeKind,
    TargetKind,
)
from microtir.config.executor import Executor
from microtir.config.external import External
from microtir.config.flags import FLAGS, config_from_file, config_from_flags
from microtir.config.option import Option, Section
from microtir.config.options import OPTIONS
from microtir.config.passes import PassConfig
from microtir.config.pools import ConstantPoolInfo, PoolInfoProperties, WorkspacePoolInfo
from microtir.config.runtime import Runtime
from microtir.config.target import Target
from microtir.instruction_sets.core import Family
from microtir.instruction_sets.features import Feature

__all__ = [
    "FLAGS",
    "OPTIONS",
    "Annotations",
    "Budget",
    "CallingConvention",
    "Compatibility",
    "CompilationConfig",
    "ConstantPoolInfo",
    "Executor",
    "ExecutorKind",
    "External",
    "ExternalLibrary",
    "Family",
    "Feature",
    "InterfaceApi",
    "Measure",
    "Numerics",
    "Optimize",
    "Option",
    "PassConfig",
    "Placement",
    "PoolInfoProperties",
    "Runtime",
    "RuntimeKind",
    "Section",
    "Target",
    "TargetKind",
    "WorkspacePoolInfo",
    "config_from_file",
    "config_from_flags",
    "host",
    "micro",
    "microcontroller",
]
