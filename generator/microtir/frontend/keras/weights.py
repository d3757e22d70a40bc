"""Find the arrays of each layer, in both formats.

Keras 3 stores the variables of a layer by number, in a path of attributes and of classes that are
counted.  One HDF5 file lists them by layer of the outermost model, with names that inner layers are
a part of; Keras 2 leaves out of these names what wraps one layer.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from microtir.errors import ModelFileError
from microtir.frontend.keras.archive import KerasArchive
from microtir.frontend.keras.config import INPUT, ModelRecord
from microtir.frontend.keras.hdf5 import SAVE_AGAIN, Hdf5File
from microtir.graph.ir import Array

_LISTS = ("layers", "_layer_checkpoint_dependencies", "layer_checkpoint_dependencies")
"""Names that versions of Keras have for the layers of a model."""


WRAPPED = "layer"
"""Attribute of a wrapper that holds its only layer."""

_STATE = "rnn_state"  # name of what a stateful layer has after its cell


class Weights(Protocol):
    """The variables of a layer, and those of layers inside of it."""

    @abstractmethod
    def variables(self) -> tuple[Array, ...]:
        """Return the layer's own variables in the order in which it makes them."""
        ...

    @abstractmethod
    def child(self, attribute: str, name: str) -> Weights:
        """Return the variables of a layer that this one holds.

        Args:
            attribute: of this layer in Keras 3; a path if it is one of a list.
            name: of the inner layer; empty if it is the only one.
        """
        ...

    @abstractmethod
    def of_layers(self, model: ModelRecord) -> Mapping[str, Weights]:
        """Return the variables of the layers of a model, by their names."""
        ...


def weights_of(archive: KerasArchive) -> Weights:
    """Return the weights of the model of a file."""
    if archive.is_legacy:
        path = "model_weights" if "model_weights" in archive.weights.groups else ""
        return LegacyModelWeights(archive.weights, path)
    return NumberedWeights(archive.weights, "")


@dataclass(frozen=True, slots=True)
class NumberedWeights:
    """Weights below a path of an archive of Keras 3."""

    file: Hdf5File
    path: str

    def variables(self) -> tuple[Array, ...]:
        """Return the arrays 0, 1, … of the group `vars`."""
        place = _join(self.path, "vars")
        count = 0
        while _join(place, str(count)) in self.file.arrays:
            count += 1
        return tuple(self.file.arrays[_join(place, str(number))] for number in range(count))

    def child(self, attribute: str, name: str) -> Weights:
        """Return what lies below an attribute, which some layers and versions have as private."""
        names = (attribute, f"_{attribute}")
        places = [_join(self.path, place) for place in names]
        place = next((place for place in places if place in self.file.groups), places[0])
        return NumberedWeights(self.file, place)

    def of_layers(self, model: ModelRecord) -> Mapping[str, Weights]:
        """Return what lies below the classes of layers, counted in their order."""
        inside = next(
            (place for name in _LISTS if (place := _join(self.path, name)) in self.file.groups),
            _join(self.path, _LISTS[0]),
        )
        layers = [layer for layer in model.layers if not layer.is_stated_operation]
        places: dict[str, Weights] = {
            layer.name: NumberedWeights(self.file, self.path) for layer in model.layers
        }
        if model.is_sequential and layers and layers[0].kind == INPUT:
            layers = layers[1:]
        counts: dict[str, int] = {}
        for layer in layers:
            title = snake_case(layer.kind)
            number = counts[title] = counts.get(title, -1) + 1
            place = _join(inside, f"{title}_{number}" if number else title)
            places[layer.name] = NumberedWeights(self.file, place)
        return places


@dataclass(frozen=True, slots=True)
class LegacyModelWeights:
    """Weights of the outermost model in one HDF5 file: a group for each layer."""

    file: Hdf5File
    path: str

    def variables(self) -> tuple[Array, ...]:
        """Return none: a model has no variables of its own."""
        return ()

    def child(self, attribute: str, name: str) -> Weights:
        """Return the variables of a layer."""
        group = _join(self.path, name)
        if group not in self.file.groups:
            return NamedWeights(self.file, ())
        names = self.file.texts(group, "weight_names")
        return NamedWeights(
            self.file, tuple((tuple(title.split("/")), _join(group, title)) for title in names)
        )

    def of_layers(self, model: ModelRecord) -> Mapping[str, Weights]:
        """Return the variables of layers by their names."""
        return {layer.name: self.child("", layer.name) for layer in model.layers}


@dataclass(frozen=True, slots=True)
class NamedWeights:
    """Weights with names in one HDF5 file: parts of the name that are left, and the path."""

    file: Hdf5File
    entries: Sequence[tuple[tuple[str, ...], str]]

    def variables(self) -> tuple[Array, ...]:
        """Return all, in the order of the file."""
        for _, path in self.entries:
            if path not in self.file.arrays:
                raise ModelFileError(
                    "a layer refers to it, but the file does not contain it",
                    where=f"{self.file.file}: {path!r}", fix=SAVE_AGAIN,
                )  # fmt: skip
        return tuple(self.file.arrays[path] for _, path in self.entries)

    def child(self, attribute: str, name: str) -> Weights:
        """Return the entries in whose names a layer stands; without a name all but states.

        Keras 2 leaves the name of the only layer of a wrapper out.
        """
        own = [
            (parts[parts.index(name) + 1 :], path)
            for parts, path in self.entries
            if name in parts[:-1]
        ]
        if not name or (attribute == WRAPPED and not own):
            own = [entry for entry in self.entries if not entry[0][-1].startswith(_STATE)]
        return NamedWeights(self.file, tuple(own))

    def of_layers(self, model: ModelRecord) -> Mapping[str, Weights]:
        """Return the variables of the layers of an inner model by their names."""
        return {layer.name: self.child("", layer.name) for layer in model.layers}


def snake_case(name: str) -> str:
    """Return the name that Keras stores a class under.

    A capital begins a word behind a small letter, a digit or before a small letter.
    """
    words = re.sub(r"\W+", "", name)
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", words)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", words).lower()


def _join(*parts: str) -> str:
    return "/".join(part for part in parts if part)
