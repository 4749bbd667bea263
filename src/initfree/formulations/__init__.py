"""Object-space error formulations, one a file."""

from initfree.formulations.base import Formulation, LinearFormulation, known, make, names, register

__all__ = ["Formulation", "LinearFormulation", "known", "make", "names", "register"]
