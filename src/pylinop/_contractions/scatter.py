"""What an operand of an equation gets back from the array that was read of it: each element is the
sum of what was read there. The transpose of `views.view`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .grammar import Axis, Group, Index, labels_of


class Scattered:
    """The function of an array over the labels of an operand's axes, in their order, each once."""

    __name__ = "einsum"

    def __init__(
        self,
        axes: tuple[Axis, ...],
        sizes: Mapping[str, int],
        shape: tuple[int, ...],
        outside: Any,
    ) -> None:
        self.axes, self.sizes, self.shape, self.outside = axes, dict(sizes), shape, outside

    def __call__(self, values: Any) -> Any:
        values = np.asarray(values)
        labels = [label for axis in self.axes for label in labels_of(axis)]
        if len(set(labels)) < len(labels):
            return self._by_indices(values, list(dict.fromkeys(labels)))
        at, made = 0, values
        for axis, n in zip(self.axes, self.shape):
            count = len(labels_of(axis))
            if isinstance(axis, Index):
                made = self._along(made, at, axis, n)
            elif isinstance(axis, Group) or count == 0:
                made = made.reshape(*made.shape[:at], n, *made.shape[at + count :])
            at += 1
        return made

    def _along(self, values: Any, at: int, axis: Index, n: int) -> Any:
        """The axes of one index equation as the axis that it reads."""
        sizes = [self.sizes[label] for label, _ in axis.terms]
        before, behind = values.shape[:at], values.shape[at + len(sizes) :]
        flat = values.reshape(math.prod(before), *sizes, math.prod(behind))
        made = np.zeros((flat.shape[0], n, flat.shape[-1]), values.dtype)
        run = int(np.argmax(sizes))
        steps = np.arange(sizes[run]) * axis.terms[run][1]
        for others in itertools.product(
            *(range(1 if k == run else m) for k, m in enumerate(sizes))
        ):
            start = axis.constant + sum(c * i for (_, c), i in zip(axis.terms, others))
            part = flat[:, *(slice(None) if k == run else i for k, i in enumerate(others))]
            places = start + steps
            if self.outside == "wrap":
                places = places % n
            elif self.outside == 0:
                inside = (places >= 0) & (places < n)
                places, part = places[inside], part[:, inside]
            if len(np.unique(places)) == len(places):
                made[:, places] += part
            else:
                where: Any = (slice(None), places)
                np.add.at(made, where, part)
        return made.reshape(*before, n, *behind)

    def _by_indices(self, values: Any, labels: list[str]) -> Any:
        """Where a label is in several axes: by the place of each element."""
        index = {
            label: np.arange(self.sizes[label]).reshape(
                [-1 if k == place else 1 for k in range(len(labels))]
            )
            for place, label in enumerate(labels)
        }
        places, inside = [], np.ones(values.shape, bool)
        for axis, n in zip(self.axes, self.shape):
            at: Any = 0
            if isinstance(axis, Index):
                at = axis.constant + sum(c * index[label] for label, c in axis.terms)
            for label in labels_of(axis) if not isinstance(axis, Index) else ():
                at = at * self.sizes[label] + index[label]
            if self.outside == "wrap":
                at = at % n
            inside &= (at >= 0) & (at < n)
            places.append(np.broadcast_to(at, values.shape))
        made = np.zeros(self.shape, values.dtype)
        np.add.at(made, tuple(p[inside] for p in places), values[inside])
        return made
