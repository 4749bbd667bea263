"""How long files of a survey take to read, write and convert: CPU seconds, one line each.

    python benchmarks/files.py --cameras 500

The true model of a survey (`survey.py`) with its noisy observations, as a COLMAP model, BAL file and table.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from scipy.spatial.transform import Rotation
from survey import NOISE, problem_of, survey, truth_of

import initfree
from initfree.benchmark.data import true_reconstruction
from initfree.generator import Dataset, generate
from initfree.io.convert import convert
from initfree.io.export import export


@dataclass(frozen=True)
class Options:
    """Files of a survey."""

    cameras: int = 500
    seed: int = 0


def timed(name: str, work: Callable[[], Any]) -> Any:
    began = time.process_time()
    result = work()
    print(f"| {name} | {time.process_time() - began:.1f} |", flush=True)
    return result


def write_bal(dataset: Dataset, path: Path) -> None:
    """y up, pixels from the middle, cameras that look down the negative z axis."""
    seen, camera, turn = dataset.noisy, dataset.cameras[0], np.diag([1.0, -1.0, -1.0])
    uv = (seen.pixel - (camera.principal_point_x, camera.principal_point_y)) * (1.0, -1.0)
    vectors = Rotation.from_matrix(turn @ dataset.poses.rotations).as_rotvec()
    lens = np.tile([camera.mean_focal_length(), 0.0, 0.0], (len(vectors), 1))
    with path.open("w") as stream:
        stream.write(f"{len(vectors)} {len(dataset.landmarks)} {len(seen)}\n")
        np.savetxt(stream, np.column_stack([seen.image, seen.landmark, uv]), fmt="%d %d %.6f %.6f")
        np.savetxt(stream, np.column_stack([vectors, dataset.poses.translations @ turn, lens]).reshape(-1))
        np.savetxt(stream, dataset.landmarks.reshape(-1))


def main(options: Options) -> None:
    dataset = generate(survey(options.cameras), seed=options.seed, noise=NOISE, shuffle=True)
    problem = problem_of(dataset)
    truth = true_reconstruction(problem, truth_of(dataset))
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        for name in ("binary", "text"):
            (at / name).mkdir()
        print(f"{problem.tracks}\n\n| | CPU s |\n|---|---:|")
        model = timed("export of a solved model", lambda: export(problem, truth)).model
        timed("writing it, binary", lambda: model.write_binary(str(at / "binary")))
        model.write_text(str(at / "text"))
        write_bal(dataset, at / "survey.txt")
        initfree.load(at / "binary")  # compiled
        timed("`initfree.load`, COLMAP model, binary", lambda: initfree.load(at / "binary"))
        timed("the same as text", lambda: initfree.load(at / "text"))
        timed("BAL", lambda: initfree.load(at / "survey.txt"))
        timed("`initfree convert`, model to table", lambda: convert(at / "binary", at / "table.csv"))
        timed("`initfree.load`, table", lambda: initfree.load(at / "table.csv"))
        timed("`initfree convert`, BAL to model", lambda: convert(at / "survey.txt", at / "converted"))


if __name__ == "__main__":
    main(tyro.cli(Options))
