"""How a whole solve grows with a survey: seconds and memory from nothing to a verdict, with the oracle beside it.

    python benchmarks/survey.py --cameras 50 100 200 500 1000 2000
    python benchmarks/survey.py --cameras --presets street-1k
    python benchmarks/survey.py --records benchmarks/survey.jsonl --plot docs/growth.png
    python benchmarks/survey.py --cameras 2000 5000 10000 --work

The preset aerial-1k (nadir and oblique strips over a town, half a pixel of noise, cameras in random order) made smaller or
larger at the same density, or presets as they are. Every size runs in a process of its own, so that peak memory is its own,
and kernels are compiled before. CPU seconds of all threads together do not depend on what else runs. The oracle is a robust
adjustment that starts at the truth; the gap is how far the rotation or translation AUC@5, whichever is worse, stays below
its. The exponent is the slope of log seconds over log observations from the first size to the last.
"""

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console

import initfree
from initfree.benchmark.data import true_reconstruction
from initfree.benchmark.methods import adjust_from_truth
from initfree.benchmark.report.markdown import write_section
from initfree.data.reconstruction import Reconstruction
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.factorisation import multiply_adds
from initfree.evaluation import evaluate_models
from initfree.generator import Dataset, generate
from initfree.generator.config import Config, Grid, Groups, Town
from initfree.generator.presets import load

SURVEY, SURVEY_CAMERAS = "aerial-1k", 1000
NOISE = 0.5
TITLE = "Whole solves of surveys"


@dataclass(frozen=True)
class Options:
    """How a whole solve grows with a survey."""

    cameras: tuple[int, ...] = (50, 100, 200, 500, 1000)
    """sizes of the survey aerial-1k"""
    presets: tuple[str, ...] = ()
    """presets as they are, after these"""
    outliers: float = 0.0
    """share of wrong matches"""
    seed: int = 0
    markdown: Path | None = None
    """the file whose section is written anew"""
    records: Path | None = None
    """a file of JSON lines to which each size is added when it is done, and whose sizes are not run again"""
    plot: Path | None = None
    """a picture of seconds and memory over observations (needs matplotlib)"""
    work: bool = False
    """only the multiply-adds of one factorisation, with six and with twelve numbers a camera"""
    one: str | None = None
    """a single size or preset, in this process: prints its figures as JSON"""


def survey(cameras: int) -> Config:
    """aerial-1k with so many cameras, over a town of the area that they need."""
    preset = load(SURVEY)
    share = cameras / SURVEY_CAMERAS
    assert isinstance(preset.trajectory, Groups)
    assert isinstance(preset.scene, Town)

    def resized(grid: Any) -> Grid:
        assert isinstance(grid, Grid)
        width, depth = grid.size
        return replace(grid, cameras=max(1, round(share * grid.cameras)), size=(width * share**0.5, depth * share**0.5))

    return replace(
        preset,
        name=f"survey of {cameras}",
        trajectory=replace(preset.trajectory, groups=tuple(resized(grid) for grid in preset.trajectory.groups)),
        scene=replace(
            preset.scene,
            landmarks=round(share * preset.scene.landmarks),
            blocks=int(np.ceil(preset.scene.blocks * share**0.5)),
        ),
    )


def truth_of(dataset: Dataset) -> Reconstruction:
    ids = np.arange(len(dataset.landmarks))
    poses = dataset.poses.rotations, dataset.poses.translations
    return Reconstruction.of_poses(tuple(dataset.names), *poses, ids, dataset.landmarks)


def problem_of(dataset: Dataset) -> initfree.Problem:
    """Straight from arrays: no file of a million points on the way."""
    seen = dataset.noisy
    image, landmark = seen.image.astype(np.int64), seen.landmark.astype(np.int64)
    return initfree.Problem.from_tracks(image, landmark, seen.pixel, cameras=dataset.cameras[0], names=dataset.names)


def gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Watch:
    """Tells on standard error when a stage begins: a large solve takes an hour."""

    def __init__(self) -> None:
        self.stage = ""

    def __call__(self, stage: str, *figures: Any) -> None:
        if stage != self.stage:
            self.stage = stage
            print(f"{time.process_time():9.1f} CPU s  {gib():6.2f} GiB  {stage}", file=sys.stderr, flush=True)


def run(which: str, outliers: float, seed: int) -> dict[str, Any]:
    """All figures of one size; the problem, the solve and the oracle are timed apart."""
    warm = problem_of(generate(survey(20), seed=seed, noise=NOISE, outliers=0.1, shuffle=True))
    initfree.solve(warm)
    began = time.process_time()
    config = survey(int(which)) if which.isdigit() else which
    dataset = generate(config, seed=seed, noise=NOISE, outliers=outliers, shuffle=True)
    made = time.process_time()
    watch = Watch()
    watch(f"{which} made in {made - began:.1f} CPU s")
    problem = problem_of(dataset)
    built, wall, before = time.process_time(), time.perf_counter(), gib()
    result = initfree.solve(problem, on_progress=watch)
    solved, wall, after = time.process_time(), time.perf_counter() - wall, gib()
    watch("the oracle")
    truth = truth_of(dataset)
    oracle = adjust_from_truth(problem, true_reconstruction(problem, truth))
    adjusted = time.process_time()
    oracle = replace(oracle, names=problem.names, ids=problem.landmark_ids)
    ours, theirs = evaluate_models(result.reconstruction, truth), evaluate_models(oracle, truth)
    return {
        "which": which,
        "cameras": problem.tracks.cameras,
        "landmarks": problem.tracks.landmarks,
        "observations": problem.tracks.observations,
        "generated": made - began,
        "problem": built - made,
        "solve": solved - built,
        "wall": wall,
        "oracle": adjusted - solved,
        "gib_before": before,
        "gib": after,
        "accepted": result.accepted,
        "reason": result.certificate.reason,
        "winner": result.winner,
        "starts": len(result.starts),
        "stages": {stage.name: stage.seconds for stage in result.stages},
        "steps": {stage.name: stage.iterations for stage in result.stages},
        "auc": (ours.rotation_auc5, ours.translation_auc5),
        "oracle_auc": (theirs.rotation_auc5, theirs.translation_auc5),
    }


def in_own_process(which: str, options: Options) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", which, "--outliers", str(options.outliers), "--seed", str(options.seed)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1")}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| data | cameras | observations | solve, CPU s | wall s | oracle, CPU s | peak GiB | AUC@5 | oracle's | verdict |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        ours, oracle = ("{:.2f} / {:.2f}".format(*row[name]) for name in ("auc", "oracle_auc"))
        name = "survey" if row["which"].isdigit() else row["which"]
        verdict = "accepted" if row["accepted"] else "rejected"
        lines.append(
            f"| {name} | {row['cameras']} | {row['observations']} | {row['problem'] + row['solve']:.1f} | "
            f"{row['wall']:.1f} | {row['oracle']:.1f} | {row['gib']:.2f} | {ours} | {oracle} | {verdict} |"
        )
    sizes = [row for row in rows if row["which"].isdigit() or row["which"].startswith("aerial")]
    if len(sizes) > 1:
        grown = np.log(sizes[-1]["observations"] / sizes[0]["observations"])
        exponent = {name: np.log(sizes[-1][name] / sizes[0][name]) / grown for name in ("solve", "oracle")}
        told = f"{exponent['solve']:.2f} of the solve, {exponent['oracle']:.2f} of the oracle"
        lines += ["", f"Exponent from {sizes[0]['cameras']} to {sizes[-1]['cameras']} cameras: {told}."]
        more = (sizes[-1]["gib"] - sizes[0]["gib"]) * 2**30 / (sizes[-1]["observations"] - sizes[0]["observations"])
        lines += [f"Memory: {more / 1000.0:.2f} kB for each observation more."]
    return lines


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Log-log: CPU seconds of the solve and of the oracle, and peak memory, with the line of exponent 1 beside them."""
    from matplotlib.figure import Figure

    seen = np.array([row["observations"] for row in rows])
    figure = Figure(figsize=(8.4, 3.4), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, label, colour in (("solve", "solve", "#2a5db0"), ("oracle", "oracle", "#b0702a")):
        left.loglog(seen, [row[name] for row in rows], "o-", color=colour, label=label)
    right.loglog(seen, [row["gib"] for row in rows], "o-", color="#2a5db0", label="peak memory")
    for axes, value, unit in ((left, rows[-1]["solve"], "CPU s"), (right, rows[-1]["gib"], "GiB")):
        axes.loglog(seen, value * seen / seen[-1], ":", color="#98a2b3", label="exponent 1")
        axes.set(xlabel="observations", ylabel=unit)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    figure.savefig(path)


def main(options: Options) -> None:
    if options.one is not None:
        print(json.dumps(run(options.one, options.outliers, options.seed)))
        return
    if options.work:
        print("| cameras | 6 numbers each | 12 numbers each |\n|---:|---:|---:|")
        for size in sorted(options.cameras):
            pairs = CameraPairs.covisible(problem_of(generate(survey(size), seed=options.seed, shuffle=True)).tracks)
            print(f"| {size} | {multiply_adds(pairs, 6):.3g} | {multiply_adds(pairs, 12):.3g} |", flush=True)
        return
    console = Console(stderr=True)
    known: list[dict[str, Any]] = []
    if options.records is not None and options.records.exists():
        known = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    rows = []
    for which in (*(str(size) for size in sorted(options.cameras)), *options.presets):
        row = next((row for row in known if row["which"] == which), None)
        if row is None:
            row = in_own_process(which, options)
            if options.records is not None:
                with options.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        rows.append(row)
        console.log(which, f"{row['solve']:.1f} CPU s, {row['gib']:.2f} GiB, accepted {row['accepted']}")
    if options.plot is not None:
        plot(sorted(rows, key=lambda row: row["observations"]), options.plot)
    lines = table(rows)
    print("\n".join(lines))
    if options.markdown is not None:
        shown = " ".join(["python benchmarks/survey.py", *(a for a in sys.argv[1:] if not a.endswith((".md", ".jsonl")))])
        shown = shown.replace(" --markdown", "").replace(" --records", "")
        section = "\n".join([f"### {TITLE}", "", f"`{shown}`", "", *lines, ""])
        write_section(options.markdown, "survey", section)


if __name__ == "__main__":
    main(tyro.cli(Options))
