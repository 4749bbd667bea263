"""COLMAP first, initfree where COLMAP leaves images out: the same database, and a model of the same kind.

python examples/06_fallback.py [OUTPUT] [DATABASE]

Without a database one is made: a ring of 40 cameras whose pairs share so few matches that the incremental mapper stops after
its first two images.
"""

import sys
from pathlib import Path

import initfree  # before pycolmap: each then has a zlib of its own

import pycolmap  # isort: skip


def mapped(database: Path, output: Path) -> pycolmap.Reconstruction | None:
    """COLMAP's largest model, if it has all images that have verified matches."""
    pycolmap.logging.minloglevel = 3
    models = pycolmap.incremental_mapping(database, output, output).values()
    best = max(models, key=lambda model: model.num_reg_images(), default=None)
    wanted = len(initfree.load(database).names)
    print(f"COLMAP placed {0 if best is None else best.num_reg_images()} of {wanted} images")
    return best if best is not None and best.num_reg_images() == wanted else None


output = Path(sys.argv[1] if len(sys.argv) > 1 else "fallback")
output.mkdir(parents=True, exist_ok=True)
if len(sys.argv) < 3:
    from initfree.generator import generate, write

    write(generate("set2", 0, noise=0.5, points=1300), output / "made", figures=False)
database = Path(sys.argv[2]) if len(sys.argv) > 2 else output / "made" / "database.db"
if mapped(database, output) is None:
    result = initfree.solve(initfree.load(database))
    print(f"initfree placed {len(result.reconstruction.names)}: {result.certificate.reason}")
    result.write(output / "initfree")
