"""Runs a program and talks with it: emulators, serial lines, sessions."""

from __future__ import annotations

from microtir.device.session import DeviceSession

__all__ = [
    "DeviceSession",
]
