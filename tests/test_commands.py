"""The command line: files, exit codes, and one clear sentence for every kind of bad input."""

import json
import os
from pathlib import Path

import numpy as np
import pycolmap
import pytest
from commanding import run, write_ring
from models import to_bal, to_reconstruction
from synthetic import ring

import initfree
from initfree.commands.cli import main
from initfree.engine import threads
from initfree.formulations import LinearFormulation, base, register


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_ring(tmp_path_factory.mktemp("model"))


def fails(capsys, *arguments: object) -> str:
    """Exit code 2, one line on stderr, nothing on stdout."""
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "compiling kernels" not in line]  # where nothing is compiled yet
    assert len(lines) == 1
    assert lines[0].startswith("initfree: error: ")
    assert out == ""
    return f"{lines[0]}\n"


def test_solve_writes_a_model_and_run_json(tmp_path, model, capsys):
    assert run("solve", model, "--output", tmp_path / "out", "--truth", model) == 0
    assert "accepted" in capsys.readouterr().out
    written = pycolmap.Reconstruction(str(tmp_path / "out" / "sparse" / "0"))
    assert written.num_reg_images() == 10
    report = json.loads((tmp_path / "out" / "run.json").read_text())
    assert report["metrics"]["after_upgrade"]["rotation_auc5"] == pytest.approx(100.0, abs=0.005)
    assert report["metrics"]["before_upgrade"]["rotation_auc5"] < 50.0
    assert [stage["name"] for stage in report["stages"]] == ["varpro", "refinement", "upgrade", "adjustment"]
    assert report["metrics"]["after_adjustment"]["rotation_auc5"] == pytest.approx(100.0, abs=0.005)
    assert report["strategy"] == "auto"
    assert report["winner"] == "spectral"
    assert [start["accepted"] for start in report["starts"]] == [True]
    assert report["positive_depths"] == 1.0
    refinement = report["stages"][1]
    assert refinement["residual_unit"] == "pixels"
    assert refinement["mean_residual"] < 1e-6
    assert len(refinement["history"]) == refinement["iterations"]
    assert set(refinement["history"][0]) == {"cost", "damping", "step", "gain_ratio", "accepted", "seconds"}
    assert report["configuration"]["alpha"] == 0.05
    assert len(report["upgrade"]["singular_values"]) == 10
    assert report["upgrade"]["positive_depths"] == 1.0
    assert report["peak_rss_mib"] > 10.0
    assert {"numpy", "numba", "pycolmap", "initfree", "python"} <= set(report["versions"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_solve_again_replaces_its_files_and_keeps_others(tmp_path, model):
    out = tmp_path / "out"
    assert run("solve", model, "--output", out) == 0
    (out / "mine.txt").write_text("keep")
    assert run("solve", model, "--output", out, "--no-summary") == 0
    assert not (out / "summary.html").exists()
    assert (out / "mine.txt").read_text() == "keep"


def test_not_accepted_is_exit_code_3_with_files(tmp_path, model, capsys):
    assert run("solve", model, "--output", tmp_path, "--strategy", "single", "--upgrade", "none", "--no-adjust") == 3
    assert "not accepted: " in capsys.readouterr().out
    assert (tmp_path / "sparse" / "0" / "points3D.bin").exists()


def test_evaluate(model, capsys):
    assert run("evaluate", model, model) == 0
    assert "rotation AUC@5" in capsys.readouterr().out
    assert run("evaluate", model, model, "--json") == 0
    assert json.loads(capsys.readouterr().out)["translation_auc20"] == pytest.approx(100.0)


def test_rotations_from_truth(tmp_path, model, capsys):
    flags = ("--formulation", "pose-rot", "--rotations", "truth")
    assert "--truth" in fails(capsys, "solve", model, "--output", tmp_path / "out", *flags)
    assert run("solve", model, "--output", tmp_path / "out", *flags, "--truth", model) == 0


@pytest.mark.parametrize("command", [[], ["solve"], ["evaluate"]])
def test_help(command, capsys):
    assert run(*command, "--help") == 0
    assert "initfree" in capsys.readouterr().out


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def with_nan_keypoint(model: Path, target: Path) -> Path:
    target.mkdir()
    for file in model.iterdir():
        write(target / file.name, file.read_text())
    lines = (target / "images.txt").read_text().splitlines()
    index = next(k for k, line in enumerate(lines) if not line.startswith("#")) + 1
    lines[index] = "nan " + lines[index].split(" ", 1)[1]
    write(target / "images.txt", "\n".join(lines))
    return target


def only_cameras(count: int, points: bool = True) -> pycolmap.Reconstruction:
    model = to_reconstruction(ring(cameras=10, landmarks=150, min_observations=3))
    for image_id in sorted(model.images)[count:]:
        model.deregister_frame(model.images[image_id].frame_id)
    if not points:
        model.delete_all_points2D_and_points3D()
    return model


def test_bad_inputs(tmp_path, model, capsys):
    out = tmp_path / "out"
    solve = ("--output", out)
    assert "does not exist" in fails(capsys, "solve", tmp_path / "missing", *solve)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds nothing that can be read" in fails(capsys, "solve", empty, *solve)
    assert "is of no format that can be read" in fails(capsys, "solve", write(tmp_path / "notes.md", "hello"), *solve)
    photographs = write(tmp_path / "photographs" / "IMG_1.JPG", "not looked into").parent
    assert "holds 1 photograph; expected at least 3" in fails(capsys, "solve", photographs, *solve)
    semicolons = write(tmp_path / "semicolons.csv", "camera;frame;x\na;1;2\n")
    assert "has no column y" in fails(capsys, "solve", semicolons, *solve)
    broken = tmp_path / "broken"
    for name in ("cameras.txt", "images.txt", "points3D.txt"):
        write(broken / name, "hello world\n")
    assert str(broken) in fails(capsys, "solve", broken, *solve)
    message = fails(capsys, "solve", with_nan_keypoint(model, tmp_path / "nan"), *solve)
    assert "images.txt" in message
    assert "'nan'" in message
    assert not out.exists()


def test_problems_that_cannot_be_solved(tmp_path, capsys):
    out = tmp_path / "out"
    bare = tmp_path / "bare"
    bare.mkdir()
    only_cameras(10, points=False).write_text(str(bare))
    assert "no observations" in fails(capsys, "solve", bare, "--output", out)
    for cameras, word in ((1, "has 1 image;"), (2, "has 2 images;")):
        directory = tmp_path / str(cameras)
        directory.mkdir()
        only_cameras(cameras).write_text(str(directory))
        assert word in fails(capsys, "solve", directory, "--output", out)
    assert not out.exists()


def test_disconnected_and_underdetermined(tmp_path, capsys):
    """Pairs of cameras that share nothing with others; and a chain of pairs with fewer equations than unknowns."""
    pairs = "".join(f"{2 * p + c} {10 * p + j} {j}.5 {c - j}.25\n" for p in range(3) for j in range(10) for c in range(2))
    cameras, points = "0\n" * 9 * 6, "0\n" * 3 * 30
    bal = write(tmp_path / "pairs.txt", f"6 30 60\n{pairs}{cameras}{points}")
    assert "connected" in fails(capsys, "solve", bal, "--output", tmp_path / "out")
    chain = "".join(f"{p + c} {6 * p + j} {j}.5 {c - j}.25\n" for p in range(3) for j in range(6) for c in range(2))
    bal = write(tmp_path / "chain.txt", f"4 18 36\n{chain}{'0 ' * 9 * 4}{'0 ' * 3 * 18}")
    assert "unknowns" in fails(capsys, "solve", bal, "--output", tmp_path / "out", "--min-obs", 2)


def test_bad_bal_files(tmp_path, capsys):
    good = to_bal(ring(cameras=6, landmarks=40, min_observations=3))
    out = ("--output", tmp_path / "out")
    assert "numbers only" in fails(capsys, "solve", write(tmp_path / "a.txt", good.replace(" ", " x", 1)), *out)
    assert "numbers; found" in fails(
        capsys, "solve", write(tmp_path / "b.txt", good[: len(good) // 2].rsplit("\n", 1)[0]), *out
    )
    words = good.split("\n")
    words[1] = words[1].rsplit(" ", 1)[0] + " nan"
    assert "'nan'" in fails(capsys, "solve", write(tmp_path / "c.txt", "\n".join(words)), *out)
    words[1] = "99 0 1.0 1.0"
    assert "outside" in fails(capsys, "solve", write(tmp_path / "d.txt", "\n".join(words)), *out)
    assert "begin with three counts" in fails(capsys, "solve", write(tmp_path / "e.txt", ""), *out)
    (tmp_path / "f.bz2").write_bytes(b"not bzip2")
    assert "cannot be read" in fails(capsys, "solve", tmp_path / "f.bz2", *out)


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--alpha", 1.5), "alpha"),
        (("--formulation", "nose"), "pose-rot"),
        (("--init", "guess"), "spectral"),
        (("--min-obs", 1), "min_obs"),
        (("--min-obs", 50), "min-obs"),
        (("--seed", -1), "seed"),
        (("--max-iterations", 0), "max_iterations"),
        (("--loss", "cauchy", "--loss-scale", -1), "loss_scale"),
        (("--refine-scale", "inf"), "refine_scale"),
        (("--beta", "nan"), "beta"),
        (("--truth", "missing"), "missing"),
        (("--formulation", "pose-rot", "--intrinsics", "unknown"), "intrinsics"),
    ],
)
def test_bad_options(tmp_path, model, capsys, flags, word):
    assert word in fails(capsys, "solve", model, "--output", tmp_path / "out", *flags)
    assert list(tmp_path.iterdir()) == []


def test_unwritable_output(tmp_path, model, capsys):
    file = write(tmp_path / "file", "")
    assert str(file) in fails(capsys, "solve", model, "--output", file)
    assert "cannot write" in fails(capsys, "solve", model, "--output", file / "below")
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert "cannot write" in fails(capsys, "solve", model, "--output", locked / "out")


def test_nothing_half_written_when_the_solver_fails(tmp_path, model, monkeypatch):
    """A formulation with a mistake in it."""
    monkeypatch.setattr(base, "_REGISTER", dict(base._REGISTER))

    @register("broken")
    class Broken(LinearFormulation):
        def rows(self, m):
            raise RuntimeError("our fault")

    with pytest.raises(RuntimeError, match="our fault"):
        main(["solve", str(model), "--output", str(tmp_path / "out"), "--formulation", "broken"])
    assert list(tmp_path.iterdir()) == []


def test_evaluate_without_common_images(tmp_path, model, capsys):
    other = write(tmp_path / "other.txt", to_bal(ring(cameras=6, landmarks=40, min_observations=3)))
    assert "share no image name" in fails(capsys, "evaluate", model, other)


def test_same_seed_same_files(tmp_path, model):
    points = []
    for name in ("a", "b"):
        run("solve", model, "--output", tmp_path / name, "--init", "normal", "--seed", 4)
        points.append(pycolmap.Reconstruction(str(tmp_path / name / "sparse" / "0")).points3D)
    a, b = (np.array([p[k].xyz for k in sorted(p)]) for p in points)
    assert np.array_equal(a, b)


def test_the_input_is_never_overwritten(tmp_path, capsys):
    model = to_reconstruction(ring(cameras=10, landmarks=150, min_observations=3))
    (tmp_path / "sparse" / "0").mkdir(parents=True)
    write(tmp_path / "sparse" / "1" / "mine.txt", "keep")
    model.write(str(tmp_path / "sparse" / "0"))
    assert "overwrite" in fails(capsys, "solve", tmp_path, "--output", tmp_path)
    other = tmp_path / "other"
    write(other / "sparse" / "1" / "mine.txt", "keep")
    assert run("solve", tmp_path, "--output", other) == 0
    assert (other / "sparse" / "1" / "mine.txt").read_text() == "keep"
    assert sorted(p.name for p in other.iterdir()) == [".initfree", "run.json", "sparse", "summary.html", "trace.npz"]


def test_parents_made_for_an_output_that_failed_are_removed(tmp_path, model, capsys):
    fails(capsys, "solve", model, "--output", tmp_path / "a" / "b", "--formulation", "nose")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["cameras", "images", "points3D"])
@pytest.mark.parametrize("size", [0, 8, 60])
def test_truncated_binary_files(tmp_path, capsys, name, size):
    model = tmp_path / "model"
    model.mkdir()
    to_reconstruction(ring(cameras=10, landmarks=150, min_observations=3)).write_binary(str(model))
    file = model / f"{name}.bin"
    file.write_bytes(file.read_bytes()[:size] if (name, size) != ("cameras", 60) else file.read_bytes()[:20])
    assert name in fails(capsys, "solve", model, "--output", tmp_path / "out")


def test_broken_numbers_and_names(tmp_path, capsys):
    out = ("--output", tmp_path / "out")
    model = to_reconstruction(ring(cameras=10, landmarks=150, min_observations=3), "SIMPLE_PINHOLE")
    model.images[7].points2D[3].xy = (1e200, 5.0)
    (tmp_path / "far").mkdir()
    model.write_text(str(tmp_path / "far"))
    assert "expected finite numbers of pixels" in fails(capsys, "solve", tmp_path / "far", *out)
    good = to_bal(ring(cameras=6, landmarks=40, min_observations=3)).splitlines()
    assert "whole numbers" in fails(capsys, "solve", write(tmp_path / "a.txt", "\n".join(["1e300 2 3", *good[1:]])), *out)
    first = good[1].split()
    for broken, word in ((["0.5", *first[1:]], "fraction"), ([*first[:2], "1e150", "1"], "pixels")):
        text = "\n".join([good[0], " ".join(broken), *good[2:]])
        assert word in fails(capsys, "solve", write(tmp_path / "b.txt", text), *out)


def test_evaluate_prints_json_that_parsers_take(tmp_path, model, capsys):
    bare = pycolmap.Reconstruction(str(model))
    for point in list(bare.points3D):
        bare.delete_point3D(point)
    (tmp_path / "bare").mkdir()
    bare.write_text(str(tmp_path / "bare"))
    assert run("evaluate", tmp_path / "bare", model, "--json") == 0
    assert json.loads(capsys.readouterr().out)["landmark_rmse"] is None


def test_a_generated_folder_is_solved_from_its_degraded_observations(tmp_path, capsys):
    """sparse/0 is the exact truth; what is solved is what was asked for, and the model that was read is named."""
    pytest.importorskip("embreex")
    from initfree.generator import generate, write

    folder = tmp_path / "set"
    write(generate("set1", 0, cameras=16, points=200, density=4.0, noise=0.5), folder, database=False, figures=False)
    problem = initfree.load(folder)
    assert problem.observations.source == str(folder / "noisy" / "0")
    assert np.array_equal(problem.m, initfree.load(folder / "noisy" / "0").m)
    exact = initfree.load(folder / "sparse" / "0")
    assert exact.observations.source == str(folder / "sparse" / "0")
    assert not np.array_equal(problem.m, exact.m)
    with pytest.raises(SystemExit):
        main(["solve", str(folder), "--output", str(tmp_path / "out"), "--strategy", "single"])
    assert f"read: {folder / 'noisy' / '0'}" in capsys.readouterr().out


def test_threads_are_set_and_checked(tmp_path, model, capsys):
    before = threads.threads()
    try:
        assert run("solve", model, "--output", tmp_path / "one", "--threads", 1) == 0
        assert threads.threads() == 1
        capsys.readouterr()
        assert "at least 1" in fails(capsys, "solve", model, "--output", tmp_path / "none", "--threads", 0)
    finally:
        threads.set_threads(before)


def test_two_images_are_refused_at_once(tmp_path, capsys):
    rows = "\n".join(f"cam{k},{f},{3 * f % 640},{7 * f % 480},640,480" for k in range(2) for f in range(40))
    table = write(tmp_path / "two.csv", f"camera,frame,x,y,width,height\n{rows}\n")
    said = fails(capsys, "solve", table, "--output", tmp_path / "out")
    assert "has 2 cameras; expected at least 3, because two cameras do not check each other" in said


def test_a_formulation_of_a_file(tmp_path, model, capsys):
    file = write(
        tmp_path / "mine.py",
        "from initfree.formulations import register\nfrom initfree.formulations.pose import PseudoObjectSpaceError\n\n\n"
        '@register("mine")\nclass Mine(PseudoObjectSpaceError):\n    """The same."""\n',
    )
    assert run("solve", model, "--output", tmp_path / "out", "--formulation", f"{file}:mine", "--strategy", "single") == 0
    capsys.readouterr()
    again = ("solve", model, "--output", tmp_path / "o", "--formulation")
    assert "there is no file" in fails(capsys, *again, "nowhere.py:mine")
    assert "registers no formulation" in fails(capsys, *again, f"{file}:other")
    assert "or FILE.py:NAME" in fails(capsys, "solve", model, "--output", tmp_path / "o", "--formulation", "nose")


@pytest.mark.parametrize("command", ["solve", "view", "generate", "convert", "evaluate"])
def test_help_is_in_plain_words_with_an_example(command, capsys):
    assert run(command, "--help") == 0
    out = capsys.readouterr().out
    assert "{None}" not in out
    assert "default: None" not in out
    assert f"initfree {command} " in out.replace("usage: ", "", 1)
    if command == "solve":
        order = [out.index(f"{name} options") for name in ("photographs", "world", "display", "paper")]
        assert order == sorted(order)
