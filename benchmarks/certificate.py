"""How often the certificate is wrong, on runs that its thresholds were not chosen on.

Every dataset (a set, a seed, a random condition) is solved by `auto` and by four random single pipelines: formulations,
initialisations and losses that succeed and that fail. The presets adversarial-NAME, databases (database-PRESET, verified
by COLMAP) and consecutive images of real tracks (real-NAME) are solved by `auto` alone, the last two compared by their
poses. A run is wrong if a rotation or translation AUC@20 is below 90 or the landmarks' RMSE exceeds 5% of the scene's
scale, over landmarks whose observations are of one point (a merged track has two) and that at least three observations
agree on: a single pipeline leaves nothing out, and a landmark of wrong matches is anywhere. Unless that is all that there
is to find: cameras that stand still have no direction between them, and a landmark that only these see no depth; a run
whose figures are those of the oracle, an adjustment that starts at the truth, is right.
Beside the certificate's margin stand the paper's predictors: the final OSE and the refinement residual.

OPENBLAS_NUM_THREADS=1 python benchmarks/certificate.py run --runs RUNS.jsonl --first-seed 1000 --seeds 11
python benchmarks/certificate.py show --runs RUNS.jsonl --figure roc.png --markdown RESULTS.md
python benchmarks/certificate.py fit --runs RUNS.jsonl
python benchmarks/certificate.py cases --markdown RESULTS.md

`run` appends a line for each run and goes on where it stopped. `fit` derives every threshold again from such runs, made with
other seeds (`--first-seed 0 --seeds 10`), and prints it beside the present one. `cases` solves the problems of
INITFREE_DATA/adversarial, each of which a version accepted though it was wrong; those with `unknown` in the name without
intrinsics.
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pycolmap
import tyro
from data import data_directory
from rich.console import Console
from rich.table import Table

import initfree
from initfree.api import as_model
from initfree.benchmark.data import true_reconstruction
from initfree.benchmark.methods import adjust_from_truth
from initfree.benchmark.report.failure import roc_auc, roc_curve
from initfree.benchmark.report.markdown import write_section
from initfree.certificate import thresholds
from initfree.certificate.checks import NOT_DOUBLED
from initfree.data.problem import Problem, build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import Metrics
from initfree.generator import generate
from initfree.generator.database import write_database
from initfree.generator.dataset import Dataset
from initfree.generator.degrade import swap_tracks
from initfree.io.load import load_observations
from initfree.stages.euclidean.residuals import consensus

SETS = ("set1", "set2", "set3", "set4", "set6", "set7", "set8", "thin1", "thin2", "thin3", "thin4")
ATTACKS: dict[str, dict[str, tuple[float, float]]] = {
    "street": {}, "towers": {}, "facades": {}, "spot": {}, "pole": {}, "clusters": {}, "poster": {}, "cubic": {},
    "quadric": {}, "near-affine": {}, "panorama": {}, "stops": {}, "two-motions": {},
    "zoom-arc": {"focal_variation": (0.02, 0.1)}, "zoom-side": {"focal_drift": (-0.15, -0.03)},
    "dome-field": {"k1": (-0.05, -0.02)}, "dome-strip": {"k1": (0.02, 0.05)},
    "wrong-pairs": {"wrong_pairs": (1, 6)}, "mover": {}, "corner": {"merged": (0.02, 0.1)},
    "halves": {"joint_share": (0.4, 0.8), "joint_scale": (1.2, 1.7)}, "far-join": {}, "exchanged": {},
    "zoom-ahead": {"focal_variation": (0.02, 0.1)}, "outward": {"k1": (-0.15, -0.05)}, "lorry": {},
    "sessions": {"joint_random": (0.2, 0.6)}, "heavy": {"heavy": (0.05, 0.25)}, "bonnet": {"still": (0.05, 0.3)},
    "mirrored": {}, "shutter": {"shutter": (0.01, 0.1)}, "waves": {"waves": (1.0, 4.0)},
    "mixed-noise": {"noise_ratio": (4.0, 12.0)}, "strip": {}, "survey": {"k1": (-0.05, 0.05)},
    "few": {"outliers": (0.05, 0.2)}, "handheld": {"shutter": (0.005, 0.04), "noise_ratio": (2.0, 8.0)},
    "reeds": {"waves": (0.5, 3.0), "heavy": (0.0, 0.1)},
}  # fmt: skip
"""presets adversarial-NAME, with what is drawn for each run, evenly between two numbers"""
JUDGING = (
    "zoom-ahead", "outward", "lorry", "sessions", "bonnet", "mirrored", "strip", "survey", "few", "handheld", "reeds",
)  # fmt: skip
"""kinds that nothing was chosen on"""
DATABASE, REAL = "database-", "real-"
DATABASES = (
    "set2", "set3", "set4", "adversarial-clusters", "adversarial-wrong-pairs", "adversarial-lorry", "adversarial-bonnet",
)  # fmt: skip
TUNED = (DATABASE + "adversarial-lorry",)
"""databases that a threshold was chosen on"""
REALS = ("fountain-p11", "castle-p19", "herz-jesu-p8", "south")
LEAST_REAL, MOST_REAL = 6, 24
"""consecutive images"""
KINDS = (
    *(f"adversarial-{kind}" for kind in ATTACKS), *(DATABASE + name for name in DATABASES),
    *(REAL + name for name in REALS), *SETS,
)  # fmt: skip
NOISE = (0.0, 0.5, 1.0)
SPOILT = ((0.0, 0.0), (0.0, 0.0), (0.05, 0.0), (0.2, 0.0), (0.0, 0.05), (0.1, 0.03))
"""shares of wrong matches and of merged tracks; thin sets at most 5% and 2%"""
FORMULATIONS = ("pose", "rose", "rpose", "expose", "pose-rot")
INITS = ("spectral", "unit-circle", "normal", "normal-affine", "spectral-outward")
SINGLES = 4
LEAST_AUC20 = 90.0
MOST_RMSE = 0.05
MOVED_PIXELS = 20.0
"""no noise moves an observation as far"""
NEAR_ORACLE = 1.0
"""percent of AUC@20 by which a run may be below the oracle and still be all that there is to find"""
AS_ORACLE = 1.2
"""the same of landmarks: times the RMSE of the oracle's"""
LONGEST = 160
"""letters of a reason in a table"""
AUCS = ("rotation_auc20", "translation_auc20")
PREDICTORS = {"margin": "certificate", "refine_residual": "refinement residual", "ose_residual": "OSE residual"}


def _more(present: float, margin: float) -> float:
    return present + margin


def _times(present: float, margin: float) -> float:
    return present * (1.0 + margin)


def _times_less(present: float, margin: float) -> float:
    return present * (1.0 - margin)


DERIVED: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "redundancy": ("MIN_REDUNDANCY", _more),
    "spread": ("MIN_SPREAD", _times),
    "noise": ("MAX_NOISE", _times_less),
    "share": ("MIN_SHARE", _more),
    "purity": ("MIN_PURITY", _more),
    "share of every camera": ("MIN_CAMERA_SHARE", _more),
    "purity of every camera": ("MIN_CAMERA_PURITY", _more),
    "consensus of every camera": ("MIN_CONSENSUS", _times),
    "consensus share of every camera": ("MIN_CONSENSUS_SHARE", _more),
    "weakest joint": ("MIN_JOINT_SHARE", _more),
    "even joints": ("MIN_RELATIVE_JOINT_SHARE", _more),
    "safe joints": ("SAFE_RELATIVE_JOINT_SHARE", _more),
    "hinge": ("MIN_HINGE_THICKNESS", _times),
    "determined": ("MIN_EXPECTED_AUC20", lambda present, margin: present + 100.0 * margin),
    "certain cameras": ("MAX_CAMERA_TURN", _times_less),
    NOT_DOUBLED: ("MIN_SHARING", _more),
    "parallax": ("MIN_PARALLAX", _times),
    "even cameras": ("SAFE_CAMERA_PURITY", _more),
    "no other": ("AS_GOOD", _more),
    "safe parallax": ("SAFE_PARALLAX", _times),
    "coherent errors": ("MAX_SYSTEMATIC", lambda present, margin: present - margin),
}
"""check: its threshold, and where that would stand so that a run of this margin is just accepted (to first order, where the
threshold also sets how much chance is allowed)"""


def of_one_point(truth: pycolmap.Reconstruction, given: pycolmap.Reconstruction) -> Reconstruction:
    """The truth without landmarks whose given track has observations of another, or of a thing that moved."""
    model = as_model(truth)
    owner = {
        (image_id, k): point.point3D_id
        for image_id, image in truth.images.items()
        for k, point in enumerate(image.points2D)
        if point.has_point3D()
    }
    moved = {
        point.point3D_id
        for image_id, image in truth.images.items()
        for point, seen in zip(image.points2D, given.images[image_id].points2D, strict=True)
        if point.has_point3D() and np.abs(point.xy - seen.xy).max() > MOVED_PIXELS
    }

    def mixed(i: int) -> bool:
        if not given.exists_point3D(i):
            return False
        elements = given.point3D(i).track.elements
        return sum(owner.get((e.image_id, e.point2D_idx), i) != i for e in elements) > 1

    foreign = np.array([int(i) in moved or mixed(int(i)) for i in model.ids])
    return replace(model, ids=model.ids[~foreign], xyz=model.xyz[~foreign])


def agreed(result: initfree.Result) -> Reconstruction:
    """The reconstruction with the landmarks that at least three observations agree on."""
    problem = result.problem
    return result.reconstruction.subset(
        slice(None), np.unique(problem.tracks.landmark[consensus(problem, result.reconstruction)])
    )


@dataclass(frozen=True, eq=False)
class Case:
    """What is solved, and what is compared with."""

    problem: Problem
    truth: Reconstruction
    oracle: Reconstruction | None
    """what an adjustment from the truth leads to; None: nothing but the truth is right"""
    facts: dict
    """of the dataset, for the line of the file"""
    images: int


def runs_of(name: str, seed: int) -> list[dict]:
    """All runs on one dataset."""
    rng = np.random.default_rng([seed, number(name)])
    case = real_case(name, rng) if name.startswith(REAL) else made_case(name, seed, rng)
    configs: list[initfree.SolveConfig | None] = [None]
    for _ in range(SINGLES if name in SETS else 0):
        formulation = str(rng.choice(FORMULATIONS))
        if formulation == "pose-rot" and name.startswith("thin"):
            formulation = "pose"
        init, loss, init_seed = str(rng.choice(INITS)), str(rng.choice(["none", "cauchy"])), int(rng.integers(1000))
        configs.append(
            initfree.SolveConfig(formulation=formulation, init=init, loss=loss, seed=init_seed, max_iterations=100)  # pyright: ignore[reportArgumentType]
        )
    runs = []
    for config in configs:
        solved = initfree.solve(case.problem) if config is None else initfree.solve(case.problem, config, strategy="single")
        found = agreed(solved)
        part = case.truth.subset(np.flatnonzero(np.isin(case.truth.names, found.names)), slice(None))
        metrics, scale = initfree.evaluate(found, part), extent(case.truth)
        right = (100.0, 100.0, np.inf)
        if case.oracle is not None:
            there = np.flatnonzero(np.isin(case.oracle.names, found.names))
            same = case.oracle.subset(there, np.flatnonzero(np.isin(case.oracle.ids, found.ids)))
            best = initfree.evaluate(same, part)
            right = best.rotation_auc20, best.translation_auc20, best.landmark_rmse / scale
        facts = {"set": name, "seed": seed} | case.facts | {"missing": case.images - len(found.names), "images": case.images}
        oracle = dict(zip(("oracle_rotation_auc20", "oracle_translation_auc20", "oracle_rmse"), right, strict=True))
        rmse = 0.0 if case.oracle is None else metrics.landmark_rmse / scale
        runs.append(facts | described(solved, config, metrics) | {"rmse": rmse} | oracle)
    return runs


def number(name: str) -> int:
    """Of a kind, for its random numbers."""
    if name in SETS:
        return SETS.index(name)
    kind = name.removeprefix("adversarial-")
    return len(SETS) + list(ATTACKS).index(kind) if kind in ATTACKS else zlib.crc32(name.encode())


def extent(truth: Reconstruction) -> float:
    """Root mean square distance of the landmarks from their mean."""
    return float(np.sqrt(np.mean(np.sum((truth.xyz - truth.xyz.mean(axis=0)) ** 2, axis=1))))


def made_case(name: str, seed: int, rng: np.random.Generator) -> Case:
    """A generated dataset: a set, an adversarial preset, or the database of either."""
    preset = name.removeprefix(DATABASE)
    noise = float(rng.choice(NOISE))
    outliers, merged = SPOILT[int(rng.integers(len(SPOILT)))]
    if preset.startswith("thin"):
        outliers, merged = min(outliers, 0.05), min(merged, 0.02)
    spoilt = {"noise": noise, "outliers": outliers, "merged": merged}
    if preset.startswith("adversarial-"):
        ranges = ATTACKS[preset.removeprefix("adversarial-")]
        drawn = {what: float(rng.uniform(*between)) for what, between in ranges.items()}
        whole = {what: round(value) if what == "wrong_pairs" else value for what, value in drawn.items()}
        spoilt = {"noise": max(noise, 0.5), "outliers": min(outliers, 0.05), "merged": 0.0} | whole
    dataset = generate(preset, seed=seed, shuffle=True, **spoilt)  # pyright: ignore[reportArgumentType]
    given, truth = dataset.to_colmap(noisy=True), dataset.to_colmap()
    facts = spoilt | {"determined": dataset.config.determined}
    if preset != name:
        with TemporaryDirectory() as folder:
            write_database(dataset, Path(folder) / "database.db")
            problem = initfree.load(Path(folder) / "database.db", intrinsics="known" if rng.random() < 0.5 else None)
        return Case(problem, as_model(truth), None, facts, len(dataset.names))
    problem = initfree.load(given, intrinsics="unknown" if dataset.config.adversity.given == "unknown" else None)
    return Case(problem, of_one_point(truth, given), best_possible(dataset), facts, len(dataset.names))


def real_case(name: str, rng: np.random.Generator) -> Case:
    """Some consecutive images of real tracks with a truth, some of the matches exchanged."""
    which = name.removeprefix(REAL)
    place = data_directory() / ("south_building/sparse" if which == "south" else f"real/{which}")
    given, truth = (place, place) if which == "south" else (place / "input", place / "gt")
    unknown, outliers = bool(rng.random() < 0.3), float(rng.choice([0.0, 0.0, 0.05, 0.15]))
    o = load_observations(given, "unknown" if unknown else None)
    if outliers:
        o = replace(o, landmark_id=swap_tracks(o.image.astype(np.int32), o.landmark_id, outliers, rng))  # pyright: ignore[reportArgumentType]
    count = int(rng.integers(min(LEAST_REAL, len(o.images)), min(MOST_REAL, len(o.images)) + 1))
    first = int(rng.integers(len(o.images) - count + 1))
    chosen = np.argsort([image.name for image in o.images])[first : first + count]
    problem = build_problem(o, among=np.isin(np.arange(len(o.images)), chosen))
    true = as_model(truth)
    names = [o.images[k].name for k in chosen]
    true = true.subset(np.flatnonzero(np.isin(true.names, names)), slice(None))
    facts = {"noise": 0.0, "outliers": outliers, "merged": 0.0, "determined": True, "unknown": unknown}
    return Case(problem, true, None, facts, count)


def best_possible(dataset: Dataset) -> Reconstruction:
    """What an adjustment leads to that starts at the truth, with the true cameras."""
    config = dataset.config
    fair = replace(dataset, config=replace(config, adversity=replace(config.adversity, given="true")))
    problem = initfree.load(fair.to_colmap(noisy=True))
    best = adjust_from_truth(problem, true_reconstruction(problem, as_model(dataset.to_colmap())))
    return Reconstruction.of_poses(problem.names, best.R, best.t, problem.landmark_ids, best.xyz)


def described(result: initfree.Result, config: initfree.SolveConfig | None, metrics: Metrics) -> dict:
    """A run as a line of the file."""
    stages = {stage.name: stage for stage in result.stages}
    certificate = result.certificate
    method = "auto" if config is None else f"{config.formulation}, {config.init}, {config.loss}"
    return {
        "method": method,
        "accepted": certificate.accepted,
        "seconds": sum(start.seconds for start in result.starts),
        "reason": certificate.reason,
        "margin": certificate.margin,
        "checks": {finding.check: finding.margin for finding in certificate.findings},
        "doubts": [finding.check for finding in certificate.findings if finding.doubt],
        "confirmed": sorted(certificate.evidence.history.confirmed),
        "rotation_auc20": metrics.rotation_auc20,
        "translation_auc20": metrics.translation_auc20,
        "ose_residual": stages["varpro"].mean_residual if "varpro" in stages else None,
        "refine_residual": stages["refinement"].mean_residual if "refinement" in stages else None,
    }


def run(runs: Path, first_seed: int = 1000, seeds: int = 11, sets: tuple[str, ...] = KINDS, workers: int = 2) -> None:
    """Make what the file lacks of `seeds` x `sets` datasets, five runs each of `SETS` and one of the others.

    Args:
        runs: File of runs, a JSON object a line.
        first_seed: Seed of the first datasets; the thresholds were chosen on seeds below 400.
        seeds: Datasets of each set.
        sets: Presets of the generator, cameras shuffled; database-PRESET; real-NAME of INITFREE_DATA.
        workers: Processes.
    """
    # Runs of a dataset are written at once: a file that was cut off has a last line without its end.
    whole = [line for line in runs.read_text().splitlines(keepends=True) if line.endswith("\n")] if runs.exists() else []
    datasets = [(r["set"], r["seed"]) for r in map(json.loads, whole)]
    done = {(name, seed) for (name, seed), count in Counter(datasets).items() if count > (SINGLES if name in SETS else 0)}
    kept = [line for line, dataset in zip(whole, datasets, strict=True) if dataset in done]
    staged = runs.with_name(f".{runs.name}.writing")
    staged.write_text("".join(kept))
    staged.replace(runs)
    wanted = [(n, s) for s in range(first_seed, first_seed + seeds) for n in sets if (n, s) not in done]
    console = Console()
    with ProcessPoolExecutor(workers) as pool, runs.open("a") as file:
        jobs = {pool.submit(runs_of, *dataset): dataset for dataset in wanted}
        for k, job in enumerate(as_completed(jobs), start=1):
            try:
                made = job.result()
            except initfree.InputError as refused:  # of the generator: a density that this seed's cameras do not see
                console.log("left out:", *jobs[job], refused, log_locals=False)
                continue
            file.write("".join(json.dumps(r) + "\n" for r in made))
            file.flush()
            console.log(f"{k} of {len(jobs)}", *jobs[job], [r["accepted"] for r in made], log_locals=False)


def load_runs(path: Path) -> pd.DataFrame:
    rows = pd.read_json(path, lines=True)
    below = [(rows[name] < LEAST_AUC20) & (rows[name] < rows[f"oracle_{name}"] - NEAR_ORACLE) for name in AUCS]
    off = ~(rows["rmse"] <= MOST_RMSE) & ~(rows["rmse"] <= AS_ORACLE * rows["oracle_rmse"])
    rows["failed"] = below[0] | below[1] | off
    # As the paper's predictors: smaller is better.
    rows["margin"] = -rows["margin"]
    return rows


def show(runs: Path, figure: Path | None = None, markdown: Path | None = None) -> None:
    """The certificate's errors and the area under the ROC curve beside the paper's predictors.

    Args:
        runs: File of runs.
        figure: PNG of the ROC curves.
        markdown: File whose section "certificate" is written anew, such as benchmarks/RESULTS.md.
    """
    rows = load_runs(runs)
    auto, single = rows[rows["method"] == "auto"], rows[rows["method"] != "auto"]
    # Right by luck, where the observations do not determine it: refused as it should be.
    known = rows[rows["refine_residual"].notna() & (rows["failed"] | rows["determined"])]
    areas = {label: roc_auc(known, column) for column, label in PREDICTORS.items()}
    groups = {
        "auto, kinds that nothing was chosen on": auto[auto["set"].map(judging)],
        "auto, the others": auto[~auto["set"].map(judging)], "auto": auto, "single pipelines": single, "all": rows,
    }  # fmt: skip
    kinds = {str(name): part for name, part in auto.groupby("set", sort=False)}
    told = [
        table("runs", groups), table("`auto`, by kind", kinds),
        "Area under the ROC curve: " + ", ".join(f"{label} {area:.4f}" for label, area in areas.items()) + ".",
        named("Accepted and wrong", rows[rows["accepted"] & rows["failed"]]),
        named("Accepted and as wrong as the oracle", rows[as_oracle(rows)]),
        named("Refused, good and determined, of `auto`", auto[~auto["accepted"] & ~auto["failed"] & auto["determined"]]),
    ]  # fmt: skip
    text = "\n\n".join(told)
    print(text)
    if markdown is not None:
        write_section(markdown, "certificate", text + "\n")
    if figure is not None:
        draw(known, areas, figure)


def judging(name: str) -> bool:
    """Whether no threshold was chosen on this kind; on databases in general none was."""
    kind = name.removeprefix(DATABASE).removeprefix("adversarial-")
    return name not in TUNED and (kind in JUDGING or name.startswith(DATABASE))


def as_oracle(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Accepted below 90 or with landmarks off, as the adjustment from the truth is."""
    below = (rows[list(AUCS)].min(axis=1) < LEAST_AUC20) | ~(rows["rmse"] <= MOST_RMSE)
    return rows["accepted"] & ~rows["failed"] & below


COLUMNS = ("runs", "good, determined", "wrong", "accepted", "of these wrong", "as wrong as the oracle", "good refused")


def table(title: str, groups: dict[str, pd.DataFrame]) -> str:
    """A row for each group: what was reached, and what the certificate said."""
    lines = ["| " + " | ".join((title, "determined", *COLUMNS)) + " |", "|---|---|" + "---:|" * len(COLUMNS)]
    for name, part in groups.items():
        accepted, good = part[part["accepted"]], part[~part["failed"] & part["determined"]]
        refused, determined = int((~good["accepted"]).sum()), part["determined"]
        cells = (
            len(part), len(good), int(part["failed"].sum()), len(accepted), int(accepted["failed"].sum()),
            int(as_oracle(part).sum()), f"{refused} ({refused / max(len(good), 1):.1%})",
        )  # fmt: skip
        whole = "yes" if determined.all() else "partly" if determined.any() else "no"
        lines.append("| " + " | ".join((name, whole, *map(str, cells))) + " |")
    return "\n".join(lines)


def named(title: str, rows: pd.DataFrame) -> str:
    """A line for each run."""
    lines = [f"{title}: {len(rows)}." if not len(rows) else f"{title}: {len(rows)}\n"]
    for _, r in rows.iterrows():
        figures = f"{r['rotation_auc20']:.1f} / {r['translation_auc20']:.1f}, RMSE {r['rmse']:.1%}"
        best = f"oracle {r['oracle_rotation_auc20']:.1f} / {r['oracle_translation_auc20']:.1f}"
        spoilt = f"{r['noise']:g} px, {r['outliers']:.0%} wrong, {r['merged']:.0%} merged"
        reason = r["reason"] if len(r["reason"]) <= LONGEST else r["reason"][:LONGEST] + " ..."
        lines.append(f"- {r['set']} {r['seed']} ({spoilt}) {r['method']}: {figures}; {best}; {reason}")
    return "\n".join(lines)


def cases(markdown: Path | None = None) -> None:
    """What becomes of problems that versions accepted wrongly.

    Args:
        markdown: File whose section "cases" is written anew, such as benchmarks/RESULTS.md.
    """
    lines = ["| case | rotations, translations | landmarks | verdict | reason |", "|---|---:|---:|---|---|"]
    for place in sorted((data_directory() / "adversarial").iterdir()):
        unknown = "unknown" if "unknown" in place.name else None
        result = initfree.solve(initfree.load(place / "input", intrinsics=unknown))
        truth = of_one_point(*(pycolmap.Reconstruction(str(place / part)) for part in ("gt", "input")))
        metrics = initfree.evaluate(agreed(result), truth)
        certificate, reason = result.certificate, result.certificate.reason
        verdict, why = ("accepted", "") if certificate.accepted else ("refused", reason[:LONGEST].replace("|", " "))
        aucs = f"{metrics.rotation_auc20:.1f} / {metrics.translation_auc20:.1f}"
        rmse = metrics.landmark_rmse / extent(truth)
        landmarks = f"{rmse:.1%}" if np.isfinite(rmse) else "other ids"
        lines.append(f"| {place.name} | {aucs} | {landmarks} | {verdict} | {why} |")
        print(lines[-1], flush=True)
    if markdown is not None:
        write_section(markdown, "cases", "\n".join(lines) + "\n")


def fit(runs: Path) -> None:
    """Every threshold again, beside the present one: halfway between the wrong runs that it rejects and the good runs.

    A check is about the wrong runs that all others let pass: the best of them is what its threshold must stay above, and
    the worst of the good runs (but for 1%) what it must stay below. Where others reject every wrong run too, the best wrong
    run that it rejects with them takes that place; where it rejects none, these runs say only how far it could go.

    Args:
        runs: File of runs.
    """
    rows, console = load_runs(runs), Console(width=150)
    good, wrong = rows[~rows["failed"] & rows["determined"]], rows[rows["failed"]]
    accepted = int(wrong["accepted"].sum())
    table = Table(title=f"{len(good)} good and {len(wrong)} wrong runs, of which no check rejects {accepted}")
    columns = ("check", "threshold", "present", "wrong, rejected", "by it alone", "best of these", "1% of good", "derived")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k < 2 else "right")
    for check, (name, moved) in DERIVED.items():
        present = float(getattr(thresholds, name))
        rejected = [run for _, run in wrong.iterrows() if run["checks"][check] < 0.0]
        alone = [run for run in rejected if passes(run, but=check)]
        best = max((run["checks"][check] for run in alone or rejected), default=None)
        worst_good = float(np.quantile([checks[check] for checks in good["checks"]], 0.01))
        middle = None if best is None else 0.5 * (best + worst_good)
        cells = ["-" if m is None else f"{moved(present, m):.3g}" for m in (best, worst_good, middle)]
        table.add_row(check, name, f"{present:g}", str(len(rejected)), str(len(alone)), *cells)
    console.print(table)


def passes(run: pd.Series, but: str) -> bool:
    """Whether all checks but one let the run pass; doubts do not count where a second start confirmed it."""
    counted = (check for check in run["checks"] if check != but and not (run["confirmed"] and check in run["doubts"]))
    return all(run["checks"][check] >= 0.0 for check in counted)


def draw(rows: pd.DataFrame, areas: dict[str, float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(figsize=(5.0, 4.2), layout="constrained")
    for column, label in PREDICTORS.items():
        false, true = roc_curve(rows, column)
        axes.plot(false, true, label=f"{label} ({areas[label]:.3f})")
    axes.set(xlabel="share of good runs that are flagged", ylabel="share of wrong runs that are flagged")
    axes.set(xlim=(-0.01, 1.0), ylim=(0.0, 1.01), title=f"{len(rows)} unseen runs (area under the curve)")
    axes.legend(loc="lower right")
    fig.savefig(path, dpi=150)


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"run": run, "show": show, "cases": cases, "fit": fit})
