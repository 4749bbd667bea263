"""The protocol of a formulation, and the registry of formulations by name.

A formulation turns observations into one quadratic in y = P X each; the engine does the rest. To add one, write a file
beside this one (or anywhere, imported before use) with a class that has the members of `Formulation`, most easily by
deriving from `LinearFormulation` and giving its `rows`, and decorate it with `@register("name")`.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module, metadata
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, TypeVar

import numpy as np

from initfree.data.tracks import Array
from initfree.engine.quadratic import Quadratic, squares
from initfree.errors import InputError

_AT_ONCE = 4096
"""observations a batch, whose rows stay in a core's cache; those of millions would need gigabytes"""


class Formulation(Protocol):
    """An object-space error. `m` are normalised observations (n, 2), `y` is P X (n, 3)."""

    relinearises: bool
    """whether the quadratic depends on y, so that it is rebuilt after every accepted step"""
    radial: bool
    """whether the third row of the cameras is undetermined and must be recovered afterwards"""
    uses_rotations: bool
    """whether relative rotations between cameras enter"""
    pair_matrices: bool
    """whether these are weighted by a 3x3 matrix a pair (`two_view.pair_matrices`), not by a number"""

    def __init__(self, alpha: float) -> None: ...

    def quadratic(self, m: Array, y: Array) -> Quadratic:
        """The quadratic of every observation around y."""
        ...

    def squared_residuals(self, m: Array, y: Array) -> Array:
        """The true squared residual of every observation, which judges a step."""
        ...


class LinearFormulation:
    """Residuals A y - b that vanish at y = (m, 1): `rows` gives A; the quadratic never changes."""

    relinearises = False
    radial = False
    uses_rotations = False
    pair_matrices = False

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def rows(self, m: Array) -> Array:
        """A, (n, rows, 3), including sqrt(1 - α) and sqrt(α), for a batch of independent observations."""
        raise NotImplementedError(f"{type(self).__name__} must give its rows")

    def quadratic(self, m: Array, y: Array) -> Quadratic:
        S = np.empty((len(m), 6))
        for begin in range(0, len(m), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            S[some] = squares(self.rows(m[some]))
        return Quadratic(S, homogeneous(m), np.zeros((len(m), 3)), np.zeros(len(m)))

    def squared_residuals(self, m: Array, y: Array) -> Array:
        return self.quadratic(m, y).squared_residuals(y)


def homogeneous(m: Array) -> Array:
    """(m, 1): the target of y, up to scale."""
    return np.column_stack([m, np.ones(len(m))])


def ose_rows(m: Array) -> Array:
    """r_ose = x - z m (paper, eq. OSE), as rows on y = (x, z)."""
    A = np.zeros((len(m), 2, 3))
    A[:, 0, 0] = A[:, 1, 1] = 1.0
    A[:, :, 2] = -m
    return A


def affine_rows(m: Array) -> Array:
    """r_aff = x - m, as rows on y - (m, 1)."""
    A = np.zeros((len(m), 2, 3))
    A[:, 0, 0] = A[:, 1, 1] = 1.0
    return A


def weighted_rows(alpha: float, main: Array, regulariser: Array) -> Array:
    """[sqrt(1 - α) φ; sqrt(α) ψ] (paper, eq. common OSE)."""
    return np.concatenate([np.sqrt(1.0 - alpha) * main, np.sqrt(alpha) * regulariser], axis=1)


_REGISTER: dict[str, type[Formulation]] = {}
F = TypeVar("F", bound=type)


def register(name: str) -> Callable[[F], F]:
    """Register a formulation under `name` for Python, flags and run.json."""

    def decorate(formulation: F) -> F:
        known = _REGISTER.get(name)
        # The same class again comes from a reloaded module; another one is a clash of names.
        if known is not None and known.__qualname__ != formulation.__qualname__:
            raise ValueError(f"formulation {name!r} is registered already, by {known.__qualname__}")
        _REGISTER[name] = formulation
        return formulation

    return decorate


@cache
def _load_own() -> None:
    package = __name__.rpartition(".")[0]
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


@cache
def _load_installed() -> None:
    """Load the entry points of all installed packages, once a process (8 ms for a hundred packages)."""
    for entry in metadata.entry_points(group="initfree.formulations"):
        entry.load()


@cache
def _load_file(name: str) -> None:
    """Run the file of "FILE.py:NAME", and register what it registers as NAME under the whole name too."""
    file, _, own = name.rpartition(":")
    spec = spec_from_file_location(f"initfree_formulations_{Path(file).stem}", file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise InputError(f"formulation {name!r}: there is no file {file}")
    spec.loader.exec_module(module_from_spec(spec))
    if own not in _REGISTER:
        raise InputError(f"{file} registers no formulation {own!r}; expected @register({own!r}) in it")
    _REGISTER[name] = _REGISTER[own]


def known(name: str) -> bool:
    """Whether a formulation of this name exists; installed packages are searched only for unregistered names.

    "mine.py:mine" is what the file mine.py registers as mine.
    """
    _load_own()
    if ".py:" in name:
        _load_file(name)
    return name in list(_REGISTER) or name in names()


def names() -> list[str]:
    """All registered formulations, those of installed plug-ins (entry point `initfree.formulations`) included."""
    _load_own()
    _load_installed()
    return sorted(_REGISTER)


def make(name: str, alpha: float) -> Formulation:
    """The formulation `name` with regularisation weight α."""
    if not known(name):
        raise InputError(f"unknown formulation {name!r}; expected one of {', '.join(names())}")
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha is {alpha}; expected a number between 0 and 1, both excluded")
    return _REGISTER[name](alpha)
