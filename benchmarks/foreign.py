"""How often `initfree check` is wrong on models that other programs made (`foreign_models.py`), and what else would tell.

    nice -n 15 python benchmarks/foreign.py make --folder MODELS --seeds 4
    nice -n 15 python benchmarks/foreign.py judge --folder MODELS --rows ROWS.jsonl
    nice -n 15 python benchmarks/foreign.py judge --folder MODELS --rows ROWS.jsonl --alone
    python benchmarks/foreign.py show --rows ROWS.jsonl --half "held out" --names
    INITFREE_DATA=... python benchmarks/foreign.py photographs

`make` and `judge` go on where they stopped.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import foreign_models as makers
import numpy as np
import pandas as pd
import pycolmap
import tyro
from data import data_directory
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from initfree.benchmark.report.failure import roc_auc
from initfree.errors import InputError
from initfree.generator import generate
from initfree.generator.database import write_database
from initfree.io.colmap import reconstruction_of
from initfree.io.load import load_observations
from initfree.models.check import check
from initfree.models.judged import without_images

SETS = ("set1", "set2", "set3", "set4", "set6", "set7", "set8", "thin1", "thin4")
ATTACKS = (
    "towers",
    "facades",
    "wrong-pairs",
    "street",
    "near-affine",
    "poster",
    "clusters",
    "pole",
    "spot",
    "mover",
    "corner",
)
PRESETS = (*SETS, *(f"adversarial-{attack}" for attack in ATTACKS))
NOISE = (0.3, 0.6, 1.0)
SPOILT = ((0.0, 0.0), (0.05, 0.0), (0.15, 0.0), (0.05, 0.03))
FOCAL_OPEN = ("set7", "set8", "adversarial-near-affine")
"""cameras in line before a facade, or far away: determined where the calibration is given, which leaves the focal length"""
ANSWERS = ("accepted", "undecided", "not accepted")
DATABASE = "database.db"
TUNED = (
    "set1", "set2", "set7", "set8", "thin1", "adversarial-towers", "adversarial-wrong-pairs", "adversarial-near-affine",
    "adversarial-pole", "adversarial-mover", "adversarial-corner",
)  # fmt: skip
"""datasets that limits were chosen with; the others judge them"""
KNOWN = ("calibrated", "global", "own")
"""makers that were given the true calibration and kept it: their models are judged as of calibrated cameras"""


MOVING = ("adversarial-mover",)
"""datasets whose landmarks have no place of their own: cameras alone say whether a model is right"""
ELSEWHERE = ("lens", "two-scenes")
"""makers whose keypoints are not those of the database: their models are judged alone"""


def source_of(name: str, seed: int) -> makers.Source:
    """A generated dataset, its observations spoilt, its poses true."""
    attack = name.startswith("adversarial-")
    rng = np.random.default_rng([seed, *name.encode()])
    noise, spoilt = float(rng.choice(NOISE)), SPOILT[int(rng.integers(len(SPOILT)))]
    if attack or name.startswith("thin"):
        spoilt = min(spoilt[0], 0.05), 0.0
    made = generate(name, seed=seed, shuffle=True, noise=noise, outliers=spoilt[0], merged=spoilt[1])
    truth = reconstruction_of(made.to_colmap())
    return makers.Source(made.to_colmap(noisy=True), truth, made.cameras[0].mean_focal_length(), made)


def wrong_starts(rng: np.random.Generator) -> dict[str, Callable[[makers.Source], pycolmap.Reconstruction | None]]:
    sign = float(rng.choice([-1.0, 1.0]))
    return {
        "turned": makers.turned(float(rng.choice([8.0, 15.0, 25.0])), 1.0, rng),
        "scaled": makers.turned(0.0, 1.0 + sign * float(rng.choice([0.1, 0.2])), rng),
        "bent": makers.bent(float(rng.choice([15.0, 30.0, 60.0])), rng),
        "focal": makers.wrong_focal(1.0 + sign * float(rng.choice([0.15, 0.3]))),
        "lens": makers.ignored_lens(sign * float(rng.choice([0.1, 0.2]))),
        "moved": makers.one_moved(float(rng.choice([5.0, 12.0, 25.0])), rng),
        "mirrored": makers.mirrored,
        "own": lambda source: makers.own(source, rng),
    }


def make(
    folder: Path,
    seeds: int = 4,
    first_seed: int = 500,
    each: int = 8,
    presets: tuple[str, ...] = PRESETS,
    real: bool = False,
) -> None:
    """Models with their labels, a folder each.

    Args:
        folder: Where to write.
        seeds: Datasets of each set and attack.
        first_seed: Of the datasets.
        each: Wrong starts of each dataset, beside COLMAP's mappers and its adjustment from the truth.
        presets: To generate from.
        real: Tracks with a truth in INITFREE_DATA (real/, adversarial/) in place of generated ones: `seeds` draws of wrong
            starts each, and no mappers, because there is no database.
    """
    names = list(presets)
    if real:
        root = data_directory()
        names = [str(path.parent) for kind in ("real", "adversarial") for path in sorted(root.glob(f"{kind}/*/gt"))]
    for seed in range(first_seed, first_seed + seeds):
        for name in names:
            place = folder / f"{Path(name).name}-{seed}"
            if (place / "done").exists():
                continue
            place.mkdir(parents=True, exist_ok=True)
            try:
                source = measured(Path(name).name) if real else source_of(name, seed)
            except (ValueError, KeyError) as error:
                print(place.name, "has no truth for every image:", error, flush=True)
                (place / "done").touch()
                continue
            held = source.made.config.determined if source.made is not None else "adversarial" not in Path(name).parts
            make_of(source, place, np.random.default_rng([seed, *Path(name).name.encode(), 1]), each, seed, held)
            (place / "done").touch()


def measured(name: str) -> makers.Source:
    """Tracks of INITFREE_DATA with a truth."""
    (folder,) = (path.parent for kind in ("real", "adversarial") for path in data_directory().glob(f"{kind}/{name}/gt"))
    return makers.measured(folder / "input", folder / "gt")


def make_of(source: makers.Source, place: Path, rng: np.random.Generator, each: int, seed: int, held: bool) -> None:
    """All models of one dataset, whose observations determine it where it is `held`."""
    made = source.made
    wanted: dict[str, Callable[[makers.Source], pycolmap.Reconstruction | None]] = {
        "adjusted": lambda one: makers.settled(makers.copy(one)),
        "calibrated": lambda one: makers.settled(makers.copy(one), intrinsics=False),
    }
    if made is not None:
        (place / DATABASE).unlink(missing_ok=True)
        write_database(made, place / DATABASE)
        wanted |= {how: partial(makers.mapped, database=place / DATABASE, how=how) for how in ("incremental", "global")}
        wanted["folded"] = makers.folded
    starts = wrong_starts(rng) | {"two-scenes": lambda one: makers.two_scenes(one, source_of("thin1", seed + 1))}
    chosen = rng.permutation(list(starts))[:each].tolist()
    for how, maker in (wanted | {how: starts[how] for how in chosen}).items():
        try:
            model = maker(source)
        except (InputError, RuntimeError, ValueError, np.linalg.LinAlgError) as error:
            print(place.name, how, "failed:", error, flush=True)
            continue
        if model is None or model.num_reg_images() < 3 or model.num_points3D() < 30:
            continue
        (place / how).mkdir(exist_ok=True)
        model.write(place / how)
        told = {"label": "wrong"} if how == "two-scenes" else makers.label(model, source)
        told |= {"preset": place.name.rpartition("-")[0], "seed": seed, "maker": how, "all_images": len(source.truth.names)}
        told["determined"] = held
        told["pixels"] = model.compute_mean_reprojection_error()
        (place / how / "label.json").write_text(json.dumps(told))
        print(place.name, how, told["label"], flush=True)


def judge(folder: Path, rows: Path, alone: bool = False) -> None:
    """Judge every model with the database that it was made from, a JSON object a line.

    Args:
        folder: What `make` wrote.
        rows: File to append to.
        alone: Judge the models by nothing but their own observations.
    """
    there = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    done = {row["path"] for row in there if row["alone"] == alone}
    for path in sorted(folder.glob("*/*/label.json"), key=lambda one: one.parts[-3].rpartition("-")[::-1]):
        name, database = f"{path.parts[-3]}/{path.parts[-2]}", path.parents[1] / DATABASE
        database = database if path.parts[-2] not in ELSEWHERE and verified(database) else None
        if name in done or not (path.parents[1] / "done").exists():
            continue
        row = json.loads(path.read_text())
        row |= {"path": name, "alone": alone, "connected": connected(pycolmap.Reconstruction(path.parent))}
        began = time.process_time()
        try:
            found = check(path.parent, None if alone else database, known=row["maker"] in KNOWN)
        except InputError as error:
            row |= {"verdict": "not accepted", "weight": 9.0, "reason": str(error)}
        else:
            row |= {
                "verdict": found.verdict, "weight": found.weight, "reason": found.reason,
                "witnesses": {one.name: one.weight for one in found.witnesses},
                "failed": [f.check for f in found.certificate.findings if not f.passed],
                "change": max((abs(one.change) for one in found.intrinsics), default=0.0),
                "without": found.accepted_without,
            }  # fmt: skip
            if found.accepted and found.accepted_without:
                # What is accepted are the other images: they are what must be right.
                source = measured(row["preset"]) if row["preset"] not in PRESETS else source_of(row["preset"], row["seed"])
                row |= makers.label(without_images(found.model, set(found.accepted_without)), source)
        row["seconds"] = time.process_time() - began
        with rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(name, row["label"], row["verdict"], flush=True)


def verified(database: Path) -> bool:
    """Whether it has verified matches: of thin sets COLMAP verifies none."""
    if not database.exists():
        return False
    try:
        load_observations(database)
    except InputError:
        return False
    return True


def show(rows: Path, half: Literal["tuned", "held out"] | None = None, names: bool = False) -> None:
    """How often each answer was given, and areas under the ROC curve.

    Args:
        rows: What `judge` wrote.
        half: Datasets that limits were chosen with, or the others; by default both.
        names: Also every model that was judged wrongly.
    """
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    found = [row for row in found if half is None or (row["preset"] in TUNED) == (half == "tuned")]
    for alone in (False, True):
        some = [row for row in found if row["alone"] == alone]
        if some:
            print(f"\n{'The model alone' if alone else 'With the database'}: {len(some)} models\n")
            _show(some, names)


def _show(found: list[dict], names: bool) -> None:
    for row in found:
        figures = row | ({"landmarks": 0.0} if row["preset"] in MOVING else {})
        row["kind"] = makers.kind_of(figures) if "auc" in row else "wrong"
    print("| models | | accepted | undecided | not accepted | without some images accepted |")
    print("|---|---:|---:|---:|---:|---:|")
    groups = {
        "good and determined": [row for row in found if row["kind"] == "good" and determined(row)],
        "good, not determined": [row for row in found if row["kind"] == "good" and not determined(row)],
        "neither": [row for row in found if row["kind"] == "neither"],
        "wrong": [row for row in found if row["kind"] == "wrong"],
    }
    groups |= {
        f"wrong, {how}": [row for row in groups["wrong"] if row["maker"] == how]
        for how in sorted({row["maker"] for row in groups["wrong"]})
    }
    for name, some in groups.items():
        given = [str(sum(row["verdict"] == one for row in some)) for one in ANSWERS]
        print(f"| {name} | {len(some)} | {' | '.join(given)} | {sum(bool(row.get('without')) for row in some)} |")
    wrong, good = groups["wrong"], groups["good and determined"]
    for name, key in {"the mean reprojection error": "pixels", "check": "weight"}.items():
        values = [row[key] for row in wrong + good]
        table = pd.DataFrame({"weight": values, "failed": [True] * len(wrong) + [False] * len(good)})
        print(f"area under ROC of {name}: {roc_auc(table, 'weight'):.3f}")
    seconds = [row["seconds"] for row in found]
    print(f"CPU seconds: {np.median(seconds):.2f} in the median, {max(seconds):.1f} at most")
    for row in [
        *(row for row in wrong if row["verdict"] == "accepted"),
        *(row for row in good if row["verdict"] != "accepted"),
    ]:
        if names:
            print(f"{row['path']}, {row['kind']}, {row['verdict']}: {row['reason']}")


def photographs() -> None:
    """COLMAP's models of the photographs in INITFREE_DATA, judged with their databases and alone."""
    root = data_directory()
    models = {"south_building": (root / "south_building" / "sparse", root / "south_building" / "databases" / "south-128.db")}
    for path in (*sorted(root.glob("photographs/colmap/*/*")), *sorted(root.glob("photographs/reference/*"))):
        name = "/".join(path.parts[path.parts.index("photographs") + 1 :])
        models[name] = path, next(root / "photographs" / f"{part}.db" for part in path.parts[::-1] if not part.isdigit())
    check(models["south_building"][0])  # compiled, and what is kept of it loaded
    print("| model | images | with all matches | without the images | CPU s | alone | without the images | CPU s |")
    print("|---|" + "---:|" * 7)
    for name, (path, database) in models.items():
        cells = []
        for beside in (database, None):
            began = time.process_time()
            found = check(path, beside)
            seconds = time.process_time() - began
            cells += [found.verdict, str(len(found.accepted_without) or ""), f"{seconds:.1f}"]
        print(f"| {name} | {len(found.images)} | {' | '.join(cells)} |", flush=True)


def determined(row: dict) -> bool:
    """Whether the observations hold the model: its images in one piece, and the focal length where its maker sought it."""
    sought = row["maker"] not in KNOWN and row["preset"] in FOCAL_OPEN
    return bool(row["determined"]) and bool(row["connected"]) and not sought


def connected(model: pycolmap.Reconstruction) -> bool:
    """Whether points with three observations join all registered images."""
    place = {image_id: k for k, image_id in enumerate(sorted(model.reg_image_ids()))}
    tracks = [sorted({place[e.image_id] for e in point.track.elements}) for point in model.points3D.values()]
    pairs = [(track[0], other) for track in tracks if len(track) > 2 for other in track[1:]]
    row, column = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(row)), (row, column)), shape=(len(place), len(place)))
    return bool(connected_components(graph, directed=False)[0] == 1)


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"make": make, "judge": judge, "show": show, "photographs": photographs})
