"""The words of a text file, one after the other, as the formats of the years before JSON have them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from initfree.data.tracks import Array, Index
from initfree.errors import InputError


class Words:
    """Reads numbers in order; every complaint names the file and what was expected."""

    def __init__(self, path: Path, what: str, text: str) -> None:
        self.path, self.what = path, what
        self._words = text.split()
        self._next = 0

    def word(self, expected: str) -> str:
        if self._next >= len(self._words):
            raise InputError(f"{self.path} ends too early for a {self.what}; expected {expected}")
        self._next += 1
        return self._words[self._next - 1]

    def count(self, expected: str) -> int:
        """A whole number, not below zero, and no more than there are words left."""
        word = self.word(expected)
        if not word.isdecimal():
            raise InputError(f"{self.path}: {expected} is {word!r}; expected a whole number")
        if int(word) > len(self._words) - self._next:
            raise InputError(f"{self.path} announces {word} as {expected}, more than the file holds")
        return int(word)

    def numbers(self, count: int, expected: str) -> Array:
        words = self._words[self._next : self._next + count]
        if len(words) < count:
            raise InputError(f"{self.path} ends too early for a {self.what}; expected {expected}")
        self._next += count
        try:
            values = np.array(words, dtype=np.float64)
        except ValueError as error:
            raise InputError(f"{self.path}: {expected} are {' '.join(words[:4])}...; expected numbers") from error
        if not np.isfinite(values).all():
            raise InputError(
                f"{self.path}: {expected} have {words[int(np.argmin(np.isfinite(values)))]!r}; expected finite numbers"
            )
        return values


@dataclass(frozen=True)
class Views:
    """The points of a file, each followed by where it is seen."""

    xyz: Array
    image: Index
    landmark: Index
    uv: Array


def read_views(words: Words, points: int, images: int) -> Views:
    """Of each point its position, its colour, how often it is seen, and each time image, feature, x, y."""
    xyz, views = np.empty((points, 3)), [np.empty((0, 4))]
    for j in range(points):
        xyz[j] = words.numbers(6, "position and colour of the points")[:3]
        seen = words.count("how often a point is seen")
        views.append(words.numbers(4 * seen, "image, feature, x, y of the views").reshape(seen, 4))
    landmark = np.repeat(np.arange(points), [len(v) for v in views[1:]])
    table = np.concatenate(views)
    image = table[:, 0].astype(np.int64)
    outside = image[(image < 0) | (image >= images)]
    if len(outside):
        raise InputError(f"{words.path}: a point is seen by image {outside[0]} of {images}, counted from 0")
    return Views(xyz, image, landmark, table[:, 2:])
