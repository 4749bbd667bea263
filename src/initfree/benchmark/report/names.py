"""The paper's words for what the rows of a sweep call by identifiers, and the order in which tables list them."""

from collections.abc import Iterable

FORMULATIONS = {
    "pose": "pOSE",
    "rose": "rOSE",
    "rpose": "RpOSE",
    "expose": "expOSE",
    "pose-rot": "pOSE+rot",
    "expose-printed": "expOSE, as printed",
    "pose-rot-published": "pOSE+rot, as published",
}
VARIANTS = ("expose-printed", "pose-rot-published")
"""formulations that the paper writes down but does not run"""
PAPER_INITS = ("normal", "uniform", "unit-circle")
PAPER_LOSSES = ("none", "cauchy")
PAPER_SETS = ("set1", "set2", "set3", "set4", "set5", "set6", "set7", "set8")
PAPER_UPGRADE = "linear1997"
UPGRADES = (
    *("before", "linear1997", "refined1997", "selected", "linear", "refined", "selected-linear", "calibrated"),
    "adjusted",
)
VIEWED = ("before", "linear1997", "selected", "calibrated", "adjusted")
"""upgrades whose reconstructions a page shows, in this order; the files hold all"""
METHODS = {
    "initfree": "paper's pipeline",
    "auto": "auto (ours)",
    "oracle": "oracle (from the truth)",
    "classical": "classical, from random cameras",
    "colmap-incremental": "COLMAP incremental",
    "colmap-global": "COLMAP global",
}
SOLVERS = {"exact": "Cholesky", "power": "the power series", "pcg": "conjugate gradients"}
"""linear solvers in words"""
POSE = ("rotation_auc5", "rotation_auc20", "translation_auc5", "translation_auc20")
STRUCTURE = ("landmark_median", "landmark_rmse", "landmark_p90")
AUCS = tuple(f"{kind}_auc{threshold}" for kind in ("rotation", "translation") for threshold in (5, 10, 20))

_DISPLAY = FORMULATIONS | METHODS | {
    "normal": "Normal",
    "uniform": "Uniform",
    "unit-circle": "Unit circle",
    "unit-circle-shuffled": "Unit circle, shuffled",
    "none": "None",
    "cauchy": "Cauchy",
    "cauchy-consistent": "Cauchy, consistent",
    "exact": "Exact",
    "power": "Power series",
    "pcg": "Conjugate gradients",
    "before": "Before upgrade",
    "linear1997": "Linear (1997, the paper's)",
    "refined1997": "Linear (1997), refined",
    "selected": "Selected (the paper's)",
    "linear": "Linear, frame-free",
    "refined": "Linear, refined",
    "selected-linear": "Selected, frame-free",
    "calibrated": "Calibrated",
    "adjusted": "Euclidean adjustment",
    "truth": "Truth",
    "estimated": "Estimated",
    "truth-as-estimated": "Truth, of the estimated pairs",
    "all": "All",
    "mean change": "Mean change",
}  # fmt: skip
_ORDER = {name: k for k, name in enumerate([*_DISPLAY, "spectral"])}


def display(name: object) -> str:
    """What a reader sees: `pose-rot` -> pOSE+rot, `set3` -> Set 3; unknown names (registered by users) as they are."""
    text = str(name)
    if text.startswith("set") and text[3:].removesuffix("-jitter").isdigit():
        return f"Set {text[3:]}".replace("-jitter", ", jittered")
    return _DISPLAY.get(text, text)


def in_order(names: Iterable[object]) -> list[str]:
    """The paper's order first, then the alphabet."""
    return sorted({str(name) for name in names}, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
