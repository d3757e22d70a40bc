"""Arm's driver of the Ethos-U: calls for the operators that Vela has made."""

from microtir.external.ethos_u.calls import with_driver_calls

__all__ = ["with_driver_calls"]
