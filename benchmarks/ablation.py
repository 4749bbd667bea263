"""What each finishing step (`auto/finish.py`) and each round of starts (`auto/search.py`) is worth.

Every case is solved once as by default, and once without each part that acted in it: a step that returned another solution,
a round that had starts. Without a part that did not act a solve ends the same, sooner by the seconds that the part took to
find out. A reconstruction is wrong if a rotation or translation AUC@20 against the truth is below 90, unless a bundle
adjustment from the truth is no better; where there is no truth, only refusals count.

INITFREE_DATA=... OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/ablation.py run --rows ROWS.jsonl
python benchmarks/ablation.py show --rows ROWS.jsonl --markdown benchmarks/RESULTS.md

`run` appends a line for each solve and goes on where it stopped.
"""

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pycolmap
import tyro
from certificate import of_one_point
from data import bal_file, data_directory
from rich.console import Console
from survey import problem_of, survey, truth_of

import initfree
from initfree.api import as_model
from initfree.auto import strategy
from initfree.auto.finish import FINISH, MEND, finished, mended
from initfree.auto.search import ROUNDS, STATED
from initfree.benchmark.data import true_reconstruction
from initfree.benchmark.methods import adjust_from_truth
from initfree.benchmark.report.markdown import write_section
from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import evaluate_models
from initfree.generator import generate

SEED = 7100
"""of the first dataset: nothing was chosen on it"""
SETS = ("set1", "set2", "set3", "set4", "set6", "set7", "set8")
THIN = ("thin1", "thin2", "thin3", "thin4")
SPOILT = {"": {}, "20% wrong": {"outliers": 0.2}, "10% merged": {"merged": 0.1}}
HARD = ("set1", "set2", "set4")
"""with 40% wrong matches too"""
SEEDS = 2
ATTACKS = (
    "clusters", "cubic", "facades", "near-affine", "pole", "poster", "quadric", "spot", "stops", "street", "towers",
    "two-motions",
)  # fmt: skip
REAL = ("fountain-p11", "castle-p19", "herz-jesu-p8", "dinosaur", "corridor", "house", "lund_cath_small")
DATABASES = (
    "south_building/databases/south-30",
    "photographs/sceaux",
    "photographs/reichstag",
    "photographs/banana",
    "photographs/notredame",
    "photographs/scodive",
)
SURVEYS = (100, 200)
"""cameras"""
BAL = ("ladybug-49", "trafalgar-21", "dubrovnik-16")
LEAST_AUC20 = 90.0
NEAR_ORACLE = 1.0
"""percent of AUC@20 by which a reconstruction may be below the oracle and still be all that there is to find"""


class Case:
    """A problem, and what its solutions are compared with."""

    def __init__(
        self,
        problem: initfree.Problem,
        truth: Reconstruction | None = None,
        *,
        whole: Reconstruction | None = None,
        poses: bool = False,
    ) -> None:
        self.problem, self.truth = problem, truth
        self.whole = whole
        """the truth with all landmarks, where it is known"""
        self.poses = poses
        """whether the truth has other landmarks than the problem"""

    @property
    def oracle(self) -> Reconstruction | None:
        """The adjustment that starts at the truth."""
        if self.whole is None or not self.problem.calibrated:
            return None
        best = adjust_from_truth(self.problem, true_reconstruction(self.problem, self.whole))
        return Reconstruction.of_poses(self.problem.names, best.R, best.t, self.problem.landmark_ids, best.xyz)


def of_set(name: str, seed: int, intrinsics: Any = None, focal: float = 1.0, **spoilt: float) -> Case:
    """A preset of the generator, cameras shuffled; `focal` times the true focal length given, and called a guess."""
    dataset = generate(name, seed=seed, shuffle=True, noise=0.5, **spoilt)
    given, true = dataset.to_colmap(noisy=True), dataset.to_colmap()
    for camera in given.cameras.values():
        params = np.array(camera.params)
        params[camera.focal_length_idxs()] *= focal
        camera.params = params
    problem = initfree.load(given, intrinsics=intrinsics)
    return Case(problem, of_one_point(true, dataset.to_colmap(noisy=True)), whole=as_model(true))


def of_real(name: str) -> Case:
    place = data_directory() / "real" / name
    truth = place / "gt" / "sparse" / "0"
    return Case(initfree.load(place / "input"), as_model(truth) if truth.is_dir() else None)


def of_survey(cameras: int) -> Case:
    dataset = generate(survey(cameras), seed=SEED, shuffle=True, noise=0.5, outliers=0.05)
    problem = problem_of(dataset)
    return Case(problem, truth_of(dataset))


def of_bal(name: str) -> Case:
    return Case(initfree.load(bal_file(name)))


def of_file(name: str) -> Case:
    """Of adversarial/."""
    place = data_directory() / "adversarial" / name
    intrinsics = "unknown" if "unknown" in name else None
    return Case(initfree.load(place / "input", intrinsics=intrinsics), as_model(place / "gt"), poses=True)


def of_database(name: str) -> Case:
    """With COLMAP's model of the same photographs in place of a truth."""
    path = data_directory() / f"{name}.db"
    stem = path.stem
    known = data_directory() / "south_building" / "sparse" if "south" in name else path.parent / "colmap" / stem / "0"
    problem = initfree.load(path)
    if not known.is_dir():
        return Case(problem)
    model = as_model(pycolmap.Reconstruction(str(known)))
    names = {image.name for image in problem.observations.images}
    chosen = np.array([k for k, one in enumerate(model.names) if one in names])
    return Case(problem, model.subset(chosen, slice(None)), poses=True)


def cases() -> dict[str, Callable[[], Case]]:
    """By kind and name."""
    made: dict[str, Callable[[], Case]] = {}
    for name in SETS:
        for words, spoilt in SPOILT.items():
            made[f"sets: {name} {words}, seed {SEED}"] = partial(of_set, name, SEED, **spoilt)
    for name in HARD:
        made[f"sets: {name} 40% wrong, seed {SEED}"] = partial(of_set, name, SEED, outliers=0.4)
    for name in THIN:
        for seed in range(SEED, SEED + SEEDS):
            made[f"thin: {name} 5% wrong, seed {seed}"] = partial(of_set, name, seed, outliers=0.05)
    for k, name in enumerate(("set2", "set4", "set6")):
        made[f"intrinsics: {name} unknown"] = partial(of_set, name, SEED + k, "unknown")
        made[f"intrinsics: {name} 8% off"] = partial(of_set, name, SEED + k, "refine", 1.08)
        made[f"intrinsics: {name} 8% off, given as known"] = partial(of_set, name, SEED + k, None, 1.08, outliers=0.05)
    made |= {f"real: {name}": partial(of_real, name) for name in REAL}
    made |= {f"surveys: {cameras} cameras": partial(of_survey, cameras) for cameras in SURVEYS}
    made |= {f"BAL: {name}": partial(of_bal, name) for name in BAL}
    made |= {f"databases: {name.rpartition('/')[2]}": partial(of_database, name) for name in DATABASES}
    for k, name in enumerate(ATTACKS):
        made[f"adversarial: {name}"] = partial(of_set, f"adversarial-{name}", SEED + k)
    folder = data_directory() / "adversarial"
    made |= {f"adversarial: {place.name}": partial(of_file, place.name) for place in sorted(folder.iterdir())}
    return made


@contextmanager
def watched() -> Iterator[tuple[set[str], dict[str, float]]]:
    """Names of the parts that act within, and CPU seconds of those that look whether they have to."""
    acting: set[str] = set()
    spent: dict[str, float] = defaultdict(float)

    def watch(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*arguments: Any) -> Any:
            began = time.process_time()
            returned = function(*arguments)
            spent[name] += time.process_time() - began
            if returned:
                acting.add(name)
            return returned

        return run

    rounds, stated = (tuple(one._replace(starts=watch(one.name, one.starts)) for one in of) for of in (ROUNDS, STATED))
    finish, mend = (tuple(replace(step, run=watch(step.name, step.run)) for step in steps) for steps in (FINISH, MEND))
    with (
        patch.object(strategy._searched, "__defaults__", (rounds,)),
        patch.object(strategy, "STATED", stated),
        patch.object(strategy, "finished", partial(finished, steps=finish)),
        patch.object(strategy, "mended", partial(mended, steps=mend)),
    ):
        yield acting, spent


def solved(case: Case, without: str | None) -> dict[str, Any]:
    """A row's figures of one solve."""
    with watched() as (acting, spent):
        began = time.process_time()
        result = initfree.solve(case.problem, initfree.SolveConfig(skip=() if without is None else (without,)))
        cpu = time.process_time() - began
    row = {"accepted": result.accepted, "reason": result.certificate.reason, "cpu": cpu, "wrong": False}
    row |= {"acting": sorted(acting), "spent": {name: round(seconds, 4) for name, seconds in spent.items()}}
    if case.truth is None:
        return row
    metrics = evaluate_models(result.reconstruction, case.truth) if case.poses else initfree.evaluate(result, case.truth)
    auc20 = metrics.rotation_auc20, metrics.translation_auc20
    row |= {"auc5": min(metrics.rotation_auc5, metrics.translation_auc5), "auc20": auc20}
    row |= {"rmse": None if case.poses else metrics.landmark_rmse}
    if min(auc20) < LEAST_AUC20:
        oracle = case.oracle
        best = (100.0, 100.0)
        if oracle is not None:
            theirs = evaluate_models(oracle, case.truth)
            best = theirs.rotation_auc20, theirs.translation_auc20
        row["wrong"] = any(a < min(LEAST_AUC20, b - NEAR_ORACLE) for a, b in zip(auc20, best, strict=True))
    return row


def run(rows: Path, kinds: tuple[str, ...] = (), every: int = 1, longest: float = math.inf) -> None:
    """Solve what the file lacks.

    Args:
        rows: File of solves, a JSON object a line.
        kinds: Kinds of cases, such as sets or databases; by default all.
        every: A sample: every second, third ... case of each kind.
        longest: CPU seconds of a solve beyond which a case is not solved without its parts.
    """
    done = read_rows(rows) if rows.exists() else {}
    console = Console(stderr=True)
    initfree.solve(of_set("set2", SEED).problem)  # what has to be compiled or loaded
    staged = rows.with_name(f".{rows.name}.writing")
    staged.write_text("".join(json.dumps(row) + "\n" for row in done.values()))
    staged.replace(rows)
    with rows.open("a") as file:
        seen: dict[str, int] = defaultdict(int)
        for name, make in cases().items():
            kind = name.partition(":")[0]
            if kinds and kind not in kinds:
                continue
            seen[kind] += 1
            if (seen[kind] - 1) % every:
                continue
            made = cache(make)

            def solve_once(without: str | None, name: str = name, made: Callable[[], Case] = made) -> dict[str, Any]:
                if (name, without) not in done:
                    row = {"case": name, "without": without} | solved(made(), without)
                    done[name, without] = row
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                    console.log(name, without, row["accepted"], row["wrong"], f"{row['cpu']:.1f} s", log_locals=False)
                return done[name, without]

            whole = solve_once(None)
            for part in whole["acting"] if whole["cpu"] <= longest else ():
                solve_once(part)


def read_rows(rows: Path) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Rows by case and part, without a last line that was cut off."""
    whole = (line for line in rows.read_text().splitlines(keepends=True) if line.endswith("\n"))
    return {(row["case"], row["without"]): row for row in map(json.loads, whole)}


def line_of(part: str, rows: dict[tuple[str, str | None], dict[str, Any]]) -> str:
    """A row of the table: what all cases come to without a part, against the default."""
    acted = [name for name, without in rows if without == part]
    whole = {name: row for (name, without), row in rows.items() if without is None}
    names = [name for name, row in whole.items() if name in acted or part not in row["acting"]]
    pairs = [(rows[name, None], rows.get((name, part), rows[name, None])) for name in names]

    def change(count: Callable[[dict[str, Any]], bool]) -> str:
        return f"{sum(count(other) for _, other in pairs) - sum(count(whole) for whole, _ in pairs):+d}"

    seconds = sum(
        rows[name, part]["cpu"] - rows[name, None]["cpu"]
        if (name, part) in rows
        else -rows[name, None]["spent"].get(part, 0)
        for name in names
    )
    good = [(a, b) for a, b in pairs if a["accepted"] and b["accepted"] and "auc5" in a and a is not b]
    auc = f"{np.mean([b['auc5'] - a['auc5'] for a, b in good]):+.2f}" if good else ""
    scales = [math.log(b["rmse"] / a["rmse"]) for a, b in good if a.get("rmse") and b.get("rmse")]
    rmse = f"{math.exp(np.mean(scales)) - 1.0:+.1%}" if scales else ""
    cells = [
        part, str(len(acted)), change(lambda row: row["accepted"] and not row["wrong"]),
        change(lambda row: not row["accepted"]), change(lambda row: row["accepted"] and row["wrong"]), auc, rmse,
        f"{seconds:+.1f}",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


COLUMNS = (
    "without", "acts in", "accepted rightly", "refused", "accepted wrongly", "AUC@5", "landmark RMSE", "CPU seconds",
)  # fmt: skip


def table(rows: dict[tuple[str, str | None], dict[str, Any]]) -> str:
    """What all solves say."""
    whole = [row for (_, without), row in rows.items() if without is None]
    right = sum(row["accepted"] and not row["wrong"] for row in whole)
    wrong = sum(row["accepted"] and row["wrong"] for row in whole)
    kinds: dict[str, int] = defaultdict(int)
    for row in whole:
        kinds[row["case"].partition(":")[0]] += 1
    counted = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    total = sum(row["cpu"] for row in whole)
    lines = [
        f"{len(whole)} cases ({counted}): {right} accepted rightly, {len(whole) - right - wrong} refused, {wrong} accepted "
        f"wrongly, {total:.0f} CPU seconds. Each row is the change without that part; AUC@5 (mean) and landmark RMSE "
        "(geometric mean) over the cases in which it acts and that are accepted with and without it.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "| --- |" + " ---: |" * (len(COLUMNS) - 1),
    ]
    idle: list[str] = []
    for words, parts in (("round", ROUNDS), ("step", (*FINISH, *MEND))):
        acting = {without for _, without in rows}
        lines += [line_of(part.name, rows).replace("| ", f"| {words}: ", 1) for part in parts if part.name in acting]
        idle += [part.name for part in parts if part.name not in acting]
    return "\n".join([*lines, "", *([f"These act in none of the cases: {', '.join(idle)}.", ""] if idle else [])])


def show(rows: Path, markdown: Path | None = None) -> None:
    """Print the table.

    Args:
        rows: File of solves.
        markdown: File whose section on the ablation is written anew, such as benchmarks/RESULTS.md.
    """
    text = table(read_rows(rows))
    print(text)
    if markdown is not None:
        command = "python benchmarks/ablation.py run --rows ROWS.jsonl"
        write_section(markdown, "ablation", f"## What each part of a solve is worth\n\n`{command}`\n\n{text}")


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"run": run, "show": show})
