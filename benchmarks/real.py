"""Real tracks, as anyone has them: solved with the defaults, AUC@5 against the reference where there is one.

INITFREE_DATA=... python benchmarks/real.py
"""

import time

import tyro
from data import data_directory

import initfree
from initfree.observations import Intrinsics

SETS = (
    "fountain-p11", "castle-p19", "herz-jesu-p8", "dinosaur", "dinosaur_trimmed", "corridor", "house", "uwo",
    "lund_cath_small",
)  # fmt: skip


def main(sets: tuple[str, ...] = SETS, intrinsics: Intrinsics | None = None) -> None:
    """Print a table.

    Args:
        sets: Folders of real/.
        intrinsics: As `initfree solve` takes them.
    """
    print("| data | cameras | AUC@5 | median error, px | seconds | CPU seconds | verdict |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for name in sets:
        place = data_directory() / "real" / name
        problem = initfree.load(place / "input", intrinsics=intrinsics)
        began, cpu = time.perf_counter(), time.process_time()
        result = initfree.solve(problem)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        score = ""
        if (place / "gt").is_dir():
            metrics = initfree.evaluate(result, place / "gt")
            score = f"{metrics.rotation_auc5:.2f} / {metrics.translation_auc5:.2f}"
        verdict = "accepted" if result.accepted else f"not accepted: {result.certificate.reason}"
        median = result.certificate.evidence.median_pixels
        cells = (name, len(result.reconstruction.R), score, f"{median:.3f}", f"{seconds:.1f}", f"{cpu:.1f}", verdict)
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
