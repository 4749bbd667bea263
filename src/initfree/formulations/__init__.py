"""Object-space error formulations, one a file."""

from initfree.formulations.base import Formulation, LinearFormulation, make, names, register

__all__ = ["Formulation", "LinearFormulation", "make", "names", "register"]
