"""Arm's driver of the Ethos-U: calls for the operators that Vela has made."""

from microtir.external.ethos_u.calls import DriverCalls

__all__ = ["DriverCalls"]
