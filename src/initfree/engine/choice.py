"""Which engine runs: fast, or plain.

The fast one takes vector registers (`simd`), arrays on the stack, kernels that count no references and machine code that is
loaded by itself (`machine_code`) from names of Numba that Numba does not promise. The plain one has Numba's documented
interface alone: the same kernels, the same results to rounding. It runs with INITFREE_ENGINE=plain, and with a version of
Numba that the fast one was not tried with.
"""

import os
import sys

import numba

from initfree.errors import InputError

TRIED = (0, 60), (0, 68)
"""first and last version of Numba with which the fast engine was tried"""


def _plain() -> bool:
    chosen = os.environ.get("INITFREE_ENGINE") or ("fast" if TRIED[0] <= numba.version_info.short <= TRIED[1] else "plain")
    if chosen not in ("fast", "plain"):
        raise InputError(f"the environment's INITFREE_ENGINE is {chosen!r}; expected fast or plain")
    return chosen == "plain"


if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise InputError("Python runs without its global interpreter lock, which initfree relies on; set PYTHON_GIL=1")
PLAIN = _plain()
