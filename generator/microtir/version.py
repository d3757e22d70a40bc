"""The version of microtir: what wheels, generated files and the command line say."""

__version__ = "0.1.0"
