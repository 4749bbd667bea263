"""How often `initfree check` is wrong on models that other programs made (`foreign_models.py`), and what else would tell.

    nice -n 15 python benchmarks/foreign.py make --folder MODELS --seeds 4
    nice -n 15 python benchmarks/foreign.py judge --folder MODELS --rows ROWS.jsonl
    python benchmarks/foreign.py show --rows ROWS.jsonl

`make` and `judge` go on where they stopped.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import foreign_models as makers
import numpy as np
import pycolmap
import tyro

from initfree.errors import InputError
from initfree.generator import generate
from initfree.generator.database import write_database
from initfree.io.colmap import reconstruction_of
from initfree.models.check import check

SETS = ("set1", "set2", "set3", "set4", "set6", "set7", "set8", "thin1", "thin4")
ATTACKS = ("towers", "facades", "street", "near-affine", "poster", "clusters", "pole", "spot")
NOISE = (0.3, 0.6, 1.0)
SPOILT = ((0.0, 0.0), (0.05, 0.0), (0.15, 0.0), (0.05, 0.03))
DATABASE = "database.db"
KNOWN = ("global", "own")
"""makers that were given the true calibration and kept it: their models are judged as of calibrated cameras"""


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


def make(folder: Path, seeds: int = 4, first_seed: int = 500, each: int = 4) -> None:
    """Models with their labels, a folder each.

    Args:
        folder: Where to write.
        seeds: Datasets of each set and attack.
        first_seed: Of the datasets.
        each: Wrong starts of each dataset, beside COLMAP's mappers and its adjustment from the truth.
    """
    for seed in range(first_seed, first_seed + seeds):
        for name in (*SETS, *(f"adversarial-{attack}" for attack in ATTACKS)):
            place = folder / f"{name}-{seed}"
            if (place / "done").exists():
                continue
            place.mkdir(parents=True, exist_ok=True)
            source = source_of(name, seed)
            assert source.made is not None
            (place / DATABASE).unlink(missing_ok=True)
            write_database(source.made, place / DATABASE)
            rng = np.random.default_rng([seed, *name.encode(), 1])
            starts = wrong_starts(rng) | {"two-scenes": lambda s: makers.two_scenes(s, source_of("thin1", s.made.seed + 1))}
            chosen = rng.permutation(list(starts))[:each].tolist()
            wanted = {"adjusted": lambda s: makers.settled(makers.copy(s))}
            wanted |= {how: partial(makers.mapped, database=place / DATABASE, how=how) for how in ("incremental", "global")}
            for how, maker in (wanted | {how: starts[how] for how in chosen}).items():
                try:
                    model = maker(source)
                except (InputError, RuntimeError, ValueError, np.linalg.LinAlgError) as error:
                    print(place.name, how, "failed:", error, flush=True)
                    continue
                if model is None or model.num_reg_images() < 3 or model.num_points3D() < 30:
                    continue
                kept = place / how
                kept.mkdir(exist_ok=True)
                model.write(kept)
                told = {"label": "wrong"} if how == "two-scenes" else makers.label(model, source)
                told |= {"preset": name, "seed": seed, "maker": how}
                told |= {"determined": source.made.config.determined, "all_images": len(source.made.names)}
                told["pixels"] = model.compute_mean_reprojection_error()
                (kept / "label.json").write_text(json.dumps(told))
                print(place.name, how, told["label"], flush=True)
            (place / "done").touch()


def judge(folder: Path, rows: Path) -> None:
    """Judge every model with its database and without; a JSON object a line.

    Args:
        folder: What `make` wrote.
        rows: File to append to.
    """
    done = {json.loads(line)["path"] for line in rows.read_text().splitlines()} if rows.exists() else set()
    for path in sorted(folder.glob("*/*/label.json")):
        name = f"{path.parts[-3]}/{path.parts[-2]}"
        if name in done or not (path.parents[1] / "done").exists():
            continue
        row = json.loads(path.read_text()) | {"path": name}
        for key, database in (("own", None), ("all", path.parents[1] / DATABASE)):
            began = time.process_time()
            try:
                found = check(path.parent, database, known=row["maker"] in KNOWN)
            except InputError as error:
                row[key] = {"verdict": "not accepted", "weight": 9.0, "reason": str(error), "seconds": 0.0}
                continue
            row[key] = {
                "verdict": found.verdict, "weight": found.weight, "reason": found.reason,
                "seconds": time.process_time() - began,
                "witnesses": {one.name: one.weight for one in found.witnesses},
                "checks": {f.check: f.margin for f in found.certificate.findings},
                "doubts": [f.check for f in found.certificate.findings if f.doubt],
                "focal": max((abs(one.change) for one in found.intrinsics), default=0.0),
            }  # fmt: skip
        with rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(name, row["label"], row["own"]["verdict"], "|", row["all"]["verdict"], flush=True)


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"make": make, "judge": judge})
