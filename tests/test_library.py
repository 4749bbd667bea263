"""The library: arrays in, arrays out, nothing done in silence."""

import math
import pydoc
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
import pytest
from models import to_reconstruction
from solving import single
from synthetic import Scene, ring

import initfree
from initfree.arrays.camera_reports import CameraReport
from initfree.arrays.synchronisation import Offset
from initfree.auto.parts import processes
from initfree.certificate import certify, judge
from initfree.certificate.checks import CHECKS
from initfree.certificate.uncertainty import Uncertainty
from initfree.commands.cli import main
from initfree.data.problem import Dropped
from initfree.formulations import base, register
from initfree.formulations.pose import PseudoObjectSpaceError
from initfree.result import Intermediate, StageReport, StartReport
from initfree.stages.euclidean import residuals

K = np.array([[420.0, 0.0, 320.0], [0.0, 420.0, 240.0], [0.0, 0.0, 1.0]])
MIDDLE = K[:2, 2]


def pixels(scene: Scene) -> np.ndarray:
    return scene.m * scene.focal + MIDDLE


def arrays(scene: Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return scene.tracks.cam, scene.tracks.landmark, pixels(scene)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=14, landmarks=250, noise=0.4, keep=0.6, min_observations=3)


@pytest.fixture(scope="module")
def result(scene: Scene) -> initfree.Result:
    return initfree.solve(initfree.Problem.from_tracks(*arrays(scene), cameras=K, sizes=(640, 480)))


def test_every_scene_of_the_input_is_solved_largest_first_with_a_verdict_of_its_own(scene):
    small, (image, landmark, xy) = ring(cameras=7, landmarks=600, min_observations=3, seed=4), arrays(scene)
    both = initfree.Problem.from_tracks(
        np.concatenate([image, 20 + small.tracks.cam]), np.concatenate([landmark, 1000 + small.tracks.landmark]),
        np.concatenate([xy, pixels(small)]), cameras=K, sizes=(640, 480),
    )  # fmt: skip
    assert small.tracks.observations > scene.tracks.observations
    first, second = initfree.solve_components(both)
    assert (first.accepted, second.accepted) == (True, True)
    assert (len(first.reconstruction.R), len(second.reconstruction.R)) == (14, 7)
    assert set(first.reconstruction.names).isdisjoint(second.reconstruction.names)


# --- arrays in ------------------------------------------------------------------------------------------------------------


def pycolmap_camera(**changes: Any) -> pycolmap.Camera:
    given = {"model": "SIMPLE_PINHOLE", "width": 640, "height": 480, "params": [420.0, 320.0, 240.0]} | changes
    return pycolmap.Camera(camera_id=9, **given)


@pytest.mark.parametrize(
    ("cameras", "kinds"),
    [
        (K, 1),
        (K.tolist(), 1),
        ([K] * 14, 14),
        (pycolmap_camera(), 1),
        ([pycolmap_camera()] * 14, 14),
        ([K, *[pycolmap_camera()] * 13], 14),
    ],
    ids=["K", "nested list", "list of K", "pycolmap", "list of pycolmap", "both"],
)
def test_intrinsics_of_any_kind_give_the_same_rays(scene, cameras, kinds):
    problem = initfree.Problem.from_tracks(*arrays(scene), cameras=cameras, sizes=(640, 480))
    assert problem.calibrated
    assert np.allclose(problem.m, scene.m, atol=1e-12)
    assert np.array_equal(problem.tracks.cam, scene.tracks.cam)
    assert len(set(problem.camera_ids)) == kinds


@pytest.mark.parametrize("focal", [1.0, 1e-6])
def test_rays_are_judged_as_pixels_are(scene, result, focal):
    """With K the identity nothing is a pixel: errors have to be told in something."""
    image, landmark, _ = arrays(scene)
    from_rays = initfree.solve(
        initfree.Problem.from_tracks(image, landmark, focal * scene.m, cameras=np.diag([focal, focal, 1.0]))
    )
    assert from_rays.accepted
    assert np.allclose(from_rays.focal_pixels, 1000.0)
    assert initfree.evaluate(from_rays, result).rotation_auc5 > 99.5


def test_the_same_problem_as_from_a_model(scene):
    model = to_reconstruction(scene, "SIMPLE_PINHOLE")
    ours, read = initfree.Problem.from_tracks(*arrays(scene), cameras=K), initfree.load(model)
    assert np.allclose(ours.m, read.m, atol=1e-12)
    assert np.array_equal(ours.tracks.ptr, read.tracks.ptr)


def test_unknown_intrinsics_come_out(scene):
    problem = initfree.Problem.from_tracks(*arrays(scene), sizes=(640, 480))
    assert not problem.calibrated
    found = initfree.solve(problem)
    assert found.accepted
    assert np.allclose(found.focal_pixels, 420.0, rtol=0.02)


def test_names_order_and_landmark_numbers_are_free(scene):
    image, landmark, xy = arrays(scene)
    names = [f"frame{k}.png" for k in range(14)]
    order = np.random.default_rng(0).permutation(len(image))
    problem = initfree.Problem.from_tracks(image[order], 1000 - landmark[order], xy[order], cameras=K, names=names)
    assert problem.names == tuple(names)
    assert set(problem.landmark_ids) == set(1000 - landmark)
    assert np.allclose(np.sort(problem.m, axis=0), np.sort(scene.m, axis=0))


def test_a_trackers_array(scene):
    xy = np.full((14, scene.tracks.landmarks, 2), np.nan)
    image, landmark, seen = arrays(scene)
    xy[image, landmark] = seen
    problem = initfree.Problem.from_tracker(xy, cameras=K)
    assert np.allclose(problem.m, scene.m, atol=1e-12)
    visible = np.isfinite(xy).all(axis=2)
    guessed = np.nan_to_num(xy, nan=-1.0)  # trackers say something of points that they do not see
    assert np.allclose(initfree.Problem.from_tracker(guessed, visible, cameras=K).m, scene.m, atol=1e-12)


BAD = {
    "image has shape .* expected n, n and": lambda i, j, xy: ((i[:-1], j, xy), {}),
    "image .* expected whole numbers": lambda i, j, xy: ((i + 0.5, j, xy), {}),
    "landmark .* expected whole numbers": lambda i, j, xy: ((i, np.stack([j, j]), xy), {}),
    r"xy \(.*, 3\); expected": lambda i, j, xy: ((i, j, np.column_stack([xy, xy[:, 0]])), {}),
    r"xy of observation 3 is \[nan.*finite": lambda i, j, xy: (
        (i, j, np.where(np.arange(len(xy))[:, None] == 3, np.nan, xy)),
        {},
    ),
    "image -1 is below zero": lambda i, j, xy: ((i - 1, j, xy), {}),
    "image 13 has no name; 3 names": lambda i, j, xy: ((i, j, xy), {"names": ["a", "b", "c"]}),
    "both named 'a'": lambda i, j, xy: ((i, j, xy), {"names": ["a"] * 14}),
    "2 cameras were given for 14 images": lambda i, j, xy: ((i, j, xy), {"cameras": [K, K]}),
    r"camera 1 is .* expected K = \[\[fx": lambda i, j, xy: ((i, j, xy), {"cameras": np.eye(3)[:2]}),
    "camera 1 has 0 among .* positive focal": lambda i, j, xy: ((i, j, xy), {"cameras": np.diag([0.0, 0.0, 1.0])}),
    "size .* expected positive": lambda i, j, xy: ((i, j, xy), {"sizes": (0, 480)}),
    r"sizes .* expected": lambda i, j, xy: ((i, j, xy), {"sizes": (640, 480, 3)}),
    "no cameras were given": lambda i, j, xy: ((i, j, xy), {"intrinsics": "known"}),
    "intrinsics is 'perhaps'; expected one of known, refine, unknown": lambda i, j, xy: (
        (i, j, xy),
        {"cameras": K, "intrinsics": "perhaps"},
    ),
    "min_obs is 1": lambda i, j, xy: ((i, j, xy), {"min_obs": 1}),
    "there is no observation": lambda i, j, xy: ((i[:0], j[:0], xy[:0]), {}),
    "xy is of type complex128; expected real": lambda i, j, xy: ((i, j, xy.astype(complex)), {}),
    "xy is no array": lambda i, j, xy: ((i, j, [[1.0], [2.0, 3.0]]), {}),
    "xy spans .* expected pixels, or K": lambda i, j, xy: ((i, j, xy / 640.0), {}),
    "focal length of 2 px; expected pixels": lambda i, j, xy: (
        (i, j, xy),
        {"cameras": pycolmap_camera(params=[2.0, 0.0, 0.0])},
    ),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_arrays_end_in_one_sentence(scene, sentence):
    given, options = BAD[sentence](*arrays(scene))
    with pytest.raises(initfree.InputError, match=sentence) as told:
        initfree.Problem.from_tracks(*given, **options)
    assert "\n" not in str(told.value)


def test_a_bad_trackers_array_ends_in_one_sentence():
    with pytest.raises(initfree.InputError, match=r"expected \(frames, points, 2\)"):
        initfree.Problem.from_tracker(np.zeros((4, 5)))
    with pytest.raises(initfree.InputError, match=r"visibility has shape \(5, 4\); expected \(4, 5\)"):
        initfree.Problem.from_tracker(np.zeros((4, 5, 2)), np.ones((5, 4)))


# --- arrays out -----------------------------------------------------------------------------------------------------------


def test_poses_and_landmarks_come_out_as_arrays(scene, result):
    found = result.reconstruction
    assert found.R.shape == (14, 3, 3)
    assert found.t.shape == found.centres.shape == (14, 3)
    assert found.focal.shape == (14,)
    assert found.radial.shape == (14, 2)
    assert len(found.xyz) == len(found.ids)
    truth = initfree.Reconstruction.of_poses(
        result.problem.names, scene.R, scene.P[:, :, 3], np.arange(len(scene.landmarks)), scene.landmarks
    )
    metrics = initfree.evaluate(result, truth)
    assert min(metrics.rotation_auc5, metrics.translation_auc5) > 96.0
    assert metrics.landmark_rmse < 0.02


def test_a_result_of_arrays_is_written_as_a_model_and_read_again(result, tmp_path: Path):
    folder = tmp_path / "not" / "there" / "yet"
    result.write(folder)
    assert sorted(path.name for path in folder.iterdir()) == [".initfree", "run.json", "sparse", "summary.html", "trace.npz"]
    written, made = pycolmap.Reconstruction(str(folder / "sparse" / "0")), result.to_colmap()
    for model in (written, made):
        assert {image.name for image in model.images.values()} == set(result.problem.names)
        assert model.num_points3D() >= 0.95 * len(result.reconstruction.xyz)
        assert model.compute_mean_reprojection_error() < 1.0
    assert initfree.evaluate(str(folder), result).rotation_auc5 > 99.9


def test_what_is_shown_is_one_line(result):
    shown = [result, result.problem, result.reconstruction, result.certificate, result.problem.tracks]
    for one in [*shown, result.problem.observations]:
        assert "\n" not in repr(one)
        assert len(repr(one)) < 300
    assert repr(result).startswith("Result(14 cameras")
    assert "accepted" in repr(result)
    assert result._repr_html_().count("<tr>") < 10


# --- configuration --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "choice"),
    [
        ("formulation", "x", "pose-rot"),
        ("init", "x", "spectral"),
        ("loss", "geman", "cauchy-consistent"),
        ("refine_loss", "huber", "cauchy"),
        ("upgrade", "metric", "calibrated"),
        ("rotations", "guessed", "truth"),
        ("alpha", 0.0, "between 0 and 1"),
        ("alpha", 1.0, "between 0 and 1"),
        ("beta", -1.0, "positive"),
        ("loss_scale", 0.0, "positive"),
        ("refine_scale", math.nan, "positive"),
        ("seed", -1, "whole number"),
        ("seed", 1.5, "whole number"),
        ("max_iterations", 0, "at least 1"),
        ("tolerance", 1.0, "below 1"),
        ("refine_tolerance", -1e-3, "below 1"),
        ("refine", "yes", "True or False"),
        ("adjust", 1, "True or False"),
    ],
)
def test_a_configuration_is_checked_when_it_is_made(field, value, choice):
    with pytest.raises(initfree.InputError) as told:
        initfree.SolveConfig(**{field: value})
    assert str(told.value).startswith(f"{field} is {value!r}; expected ")
    assert choice in str(told.value)
    assert "--" not in str(told.value)  # a flag


def test_an_unknown_strategy_is_refused(result):
    with pytest.raises(initfree.InputError, match="strategy is 'both'; expected one of auto, single"):
        initfree.solve(result.problem, strategy="both")  # type: ignore[arg-type]


# --- single ---------------------------------------------------------------------------------------------------------------


def test_single_leaves_nothing_out(scene):
    """What contradicts the reconstruction stays in it, where `auto` leaves it out."""
    m = scene.m.copy()
    wrong = np.random.default_rng(1).permutation(len(m))[: len(m) // 20]
    m[wrong] = m[np.roll(wrong, 1)]
    problem = initfree.Problem.from_tracks(*arrays(replace(scene, m=m)), cameras=K)
    one = single(problem)
    assert one.problem is problem
    assert len(one.reconstruction.xyz) == problem.tracks.landmarks
    assert [stage.name for stage in one.stages] == ["varpro", "refinement", "upgrade", "adjustment"]
    assert initfree.solve(problem).problem.tracks.observations < problem.tracks.observations


# --- rotations ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_formulation(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(base, "_REGISTER", dict(base._REGISTER))

    @register("own-with-rotations")
    class Own(PseudoObjectSpaceError):
        uses_rotations = True

    return "own-with-rotations"


@pytest.mark.parametrize("strategy", ["auto", "single"])
@pytest.mark.parametrize("formulation", ["pose-rot", "own-with-rotations"])
def test_rotations_of_the_truth_are_those_of_the_truth(scene, strategy, formulation, own_formulation):
    """A truth that is wrong shows in what stage 1 makes of it, and none is an error: nothing is estimated instead."""
    problem = initfree.Problem.from_tracks(*arrays(scene), cameras=K)
    config = initfree.SolveConfig(formulation=formulation, rotations="truth")
    with pytest.raises(initfree.InputError, match="no truth was given"):
        initfree.solve(problem, config, strategy)
    t, ids = scene.P[:, :, 3], np.arange(len(scene.landmarks))
    right = initfree.Reconstruction.of_poses(problem.names, scene.R, t, ids, scene.landmarks)
    wrong = replace(right, R=scene.R[::-1].copy())
    first = {}
    for name, truth in {"right": right, "wrong": wrong}.items():
        result = initfree.solve(problem, config, strategy, truth=truth)
        stages = result.starts[-1].stages if strategy == "auto" else result.stages
        first[name] = next((s.cost for s in stages if s.name == "varpro" and s.cost is not None), None)
        if name == "right":
            assert result.accepted
            assert first["right"] is not None
    assert first["wrong"] != first["right"]


@pytest.mark.parametrize("strategy", ["auto", "single"])
def test_rotations_of_the_truth_without_use_are_refused(scene, strategy):
    problem = initfree.Problem.from_tracks(*arrays(scene), cameras=K)
    config = initfree.SolveConfig(rotations="truth")
    with pytest.raises(initfree.InputError, match="'pose' uses no rotations; expected one that does"):
        initfree.solve(problem, config, strategy, truth=to_reconstruction(scene))


@pytest.mark.slow
def test_every_start_of_auto_has_the_rotations_of_the_truth(scene, own_formulation):
    """Images that agree with nothing make `auto` try all its starts: none of them may lack rotations, or estimate them."""
    rng = np.random.default_rng(0)
    garbage = replace(scene, m=scene.m[rng.permutation(len(scene.m))])
    problem = initfree.Problem.from_tracks(*arrays(garbage), cameras=K)
    config = initfree.SolveConfig(formulation=own_formulation, rotations="truth", max_iterations=5)
    result = initfree.solve(problem, config, truth=to_reconstruction_named(scene, problem.names))
    assert not result.accepted
    assert {"spectral", "continued at alpha 0.002", "normal-affine, seed 0"} <= {start.name for start in result.starts}
    assert not [stage for start in result.starts for stage in start.stages if stage.name == "rotations"]


def to_reconstruction_named(scene: Scene, names: tuple[str, ...]) -> initfree.Reconstruction:
    ids = np.arange(len(scene.landmarks))
    return initfree.Reconstruction.of_poses(names, scene.R, scene.P[:, :, 3], ids, scene.landmarks)


@pytest.mark.parametrize("strategy", ["auto", "single"])
def test_the_command_takes_rotations_of_the_truth_for_a_formulation_of_ones_own(
    scene, strategy, own_formulation, tmp_path, capsys
):
    model = tmp_path / "model"
    model.mkdir()
    to_reconstruction(scene).write(str(model))
    flags = ["--formulation", own_formulation, "--rotations", "truth", "--strategy", strategy]
    command = ["solve", str(model), "--output", str(tmp_path / "out"), *flags]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    assert "--truth MODEL" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([*command, "--truth", str(model)])
    assert ended.value.code == 0


# --- the verdict ----------------------------------------------------------------------------------------------------------


def assert_of_one_mind(certificate: initfree.Certificate) -> None:
    """The margin has the sign of the verdict, doubts are no acceptance, a rejection has a reason."""
    assert (certificate.margin >= 0.0) == certificate.accepted
    assert not (certificate.accepted and certificate.doubtful)
    assert certificate.accepted or certificate.reason
    assert len(CHECKS[0]) - 4 <= len(certificate.findings) <= sum(map(len, CHECKS))


def reconstructions(scene: Scene, result: initfree.Result) -> list[initfree.Reconstruction]:
    """Right, a little bent, bent, with lost cameras, all wrong."""
    rng = np.random.default_rng(3)
    right = result.reconstruction
    found = [right]
    for scale in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 0.1):
        found.append(replace(right, t=right.t + rng.normal(scale=scale, size=right.t.shape)))
        found.append(replace(right, xyz=right.xyz + rng.normal(scale=scale, size=right.xyz.shape)))
    for lost in (1, 3, 7):
        t = right.t.copy()
        t[:lost] += rng.normal(size=(lost, 3))
        found.append(replace(right, t=t))
    return [*found, replace(right, t=-right.t)]


def test_the_margin_has_the_sign_of_the_verdict(scene, result):
    seen = set()
    for reconstruction in reconstructions(scene, result):
        evidence = certify(result.problem, reconstruction).evidence
        systematic = evidence.assuming(systematic=0.5)
        left_out = (evidence.adding(left_out=("a",)), evidence.adding(left_out=("a", "b")))
        focal = (evidence.assuming(focal_rise=1.0), evidence.assuming(focal_rise=1e3))
        doubted = (systematic, systematic.adding(confirmed=frozenset({"start"})), evidence.adding(intrinsics_doubt="wrong"))
        for one in (evidence, *doubted, *left_out, *focal):
            verdict = judge(one)
            assert_of_one_mind(verdict)
            seen.add((verdict.accepted, verdict.doubtful))
    assert seen == {(True, False), (False, True), (False, False)}


def test_a_second_start_settles_doubts_and_nothing_else(result):
    doubted = judge(result.certificate.evidence.assuming(systematic=0.5))
    assert doubted.doubtful
    assert judge(doubted.evidence.adding(confirmed=frozenset({"start"}))).accepted
    against = judge(doubted.evidence.assuming(inlier_share=0.1))
    assert not against.doubtful
    assert not judge(against.evidence.adding(confirmed=frozenset({"start"}))).accepted


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("strategy", ["auto", "single"])
def test_the_verdict_is_on_what_is_returned(scene, share, strategy):
    m, rng = scene.m.copy(), np.random.default_rng(2)
    wrong = rng.permutation(len(m))[: round(share * len(m))]
    m[wrong] = m[np.roll(wrong, 1)]
    result = initfree.solve(initfree.Problem.from_tracks(*arrays(replace(scene, m=m)), cameras=K), strategy=strategy)
    assert_of_one_mind(result.certificate)
    evidence = result.certificate.evidence
    again = residuals(result.problem, result.reconstruction)
    fits = again.within(evidence.inlier_pixels)
    assert evidence.inlier_share == pytest.approx(float(fits.mean()), abs=1e-12)
    assert evidence.median_pixels == pytest.approx(float(np.median(again.error)), rel=1e-9)
    assert evidence.equations == 2 * result.problem.tracks.observations
    assert evidence.names == result.problem.names == result.reconstruction.names
    plain = certify(result.problem, result.reconstruction).evidence.figures()
    told = {name: value for name, value in evidence.figures().items() if name in plain}
    # How it was come by; and what joined parts before wrong matches went: without these any joint fits.
    history = {"confirmed", "left_out", "resected", "intrinsics_doubt", "joint_share"}
    history |= {"joint_misfits", "joint_misfits_agreeing", "joint_turn"}
    for name in set(plain) - history:
        assert told[name] == plain[name] or told[name] == pytest.approx(plain[name], rel=1e-9, abs=1e-12), name


def test_every_public_class_is_shown_in_one_line():
    """A dataclass of arrays without a repr of its own prints them all."""
    for name in ("Problem", "Reconstruction", "Result", "Certificate"):
        one = getattr(initfree, name)
        assert is_dataclass(one)
        assert fields(one)
        assert "__repr__" in vars(one)
        assert one.__repr__.__qualname__ == f"{name}.__repr__"


@pytest.mark.slow
def test_many_starts_side_by_side_are_those_that_come_one_after_the_other(scene: Scene):
    image, landmark, xy = arrays(scene)
    problem = initfree.Problem.from_tracks(image, landmark, xy, cameras=K, sizes=(640, 480))
    configs = [initfree.SolveConfig(init="normal-affine", seed=seed, max_iterations=30) for seed in range(3)]
    one_by_one = [initfree.solve(problem, config, "single") for config in configs]
    with processes(1) as executor:
        ways = list(initfree.solve_each(problem, configs)), list(initfree.solve_each(problem, configs, executor=executor))
    assert len({result.stages[-1].cost for result in one_by_one}) == len(configs), "starts differ"
    for results in ways:
        assert [result.config for result in results] == configs
        for result, expected in zip(results, one_by_one, strict=True):
            np.testing.assert_array_equal(result.reconstruction.R, expected.reconstruction.R)
            assert result.certificate.reason == expected.certificate.reason
            np.testing.assert_array_equal(result.uncertainty.rotation, expected.uncertainty.rotation)


# --- what a user meets first ----------------------------------------------------------------------------------------------


def test_the_public_names_are_all_that_the_package_shows():
    assert dir(initfree) == sorted(initfree.__all__)


PUBLIC = (
    initfree.Result, initfree.SolveConfig, initfree.Problem, initfree.Reconstruction, initfree.Certificate, initfree.Metrics,
    StageReport, StartReport, Intermediate, Uncertainty, CameraReport, Offset, Dropped,
)  # fmt: skip


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_help_shows_every_field(kind: type):
    shown = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    listed = re.findall(
        r"^ \|      (\w+): \S", shown[shown.index("Attributes:") : shown.index("Methods defined here")], re.M
    )
    assert listed == [field.name for field in fields(kind)]


@pytest.mark.parametrize("kind", ["Problem", "model", "path", "text"])
def test_what_load_reads_is_solved_at_once(scene: Scene, tmp_path: Path, kind: str):
    model = to_reconstruction(scene, "SIMPLE_PINHOLE")
    model.write(tmp_path)
    sources = {"Problem": initfree.load(model), "model": model, "path": tmp_path, "text": str(tmp_path)}
    result = initfree.solve(sources[kind], initfree.SolveConfig(adjust=False, refine=False, max_iterations=2), "single")
    assert result.problem.tracks.observations == scene.tracks.observations


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: initfree.solve(np.zeros((5, 2))),
            r"problem is of type ndarray of shape \(5, 2\); expected a Problem, a path",
        ),  # pyright: ignore[reportArgumentType]
        (lambda: initfree.solve(None), "problem is of type NoneType.*from_tracks and .*from_tracker take arrays"),  # pyright: ignore[reportArgumentType]
        (lambda: initfree.load(np.zeros((5, 2))), "source is of type ndarray"),  # pyright: ignore[reportArgumentType]
        (lambda: initfree.solve("no such file"), "no such file does not exist; expected one of COLMAP model"),
        (lambda: list(initfree.solve_each(None, [])), "problem is of type NoneType"),  # pyright: ignore[reportArgumentType]
    ],
    ids=["array", "None", "load an array", "no file", "solve_each"],
)
def test_other_inputs_are_refused_with_what_was_expected(call: Callable[[], object], sentence: str):
    with pytest.raises(initfree.InputError, match=sentence):
        call()


def test_a_strategy_in_place_of_the_options_is_refused(result: initfree.Result):
    with pytest.raises(initfree.InputError, match=r"config is 'single'; expected a SolveConfig"):
        initfree.solve(result.problem, "single")  # pyright: ignore[reportArgumentType]


def test_poses_and_stages_by_name(result: initfree.Result):
    name = result.reconstruction.names[3]
    pose = result.poses[name]
    assert np.array_equal(pose, result.reconstruction.matrices[3])
    assert np.allclose(pose[:3, :3], result.reconstruction.R[3])
    assert np.allclose(pose[:3, 3], result.reconstruction.t[3])
    w, *xyz = result.quaternions[name]
    assert np.allclose(pycolmap.Rotation3d(np.array([*xyz, w])).matrix(), result.reconstruction.R[3])
    assert result.cameras is result.cameras
    assert result.synchronisation() is result.synchronisation()
    with pytest.raises(initfree.InputError, match=r"no stage is named 'foo'; expected one of .*adjustment"):
        result.stage("foo")


@pytest.mark.parametrize(
    "cameras", ["SIMPLE", ["SIMPLE"] * 14, Path("cameras.txt"), 420.0], ids=["text", "texts", "path", "number"]
)
def test_cameras_that_are_no_cameras_are_refused(scene: Scene, cameras: object):
    with pytest.raises(initfree.InputError, match=r"cameras is .*; expected K matrices \(3x3\) or pycolmap.Camera objects"):
        initfree.Problem.from_tracks(*arrays(scene), cameras=cameras)


def test_guessed_sizes_are_said_and_in_the_deviations(scene: Scene):
    pixels = 420.0 * scene.m + (320.0, 240.0)
    image, landmark, _ = arrays(scene)
    given = initfree.Problem.from_tracks(image, landmark, pixels, sizes=(640, 480))
    guessed = initfree.Problem.from_tracks(image, landmark, pixels)
    assert given.observations.notes == ()
    assert "are a guess from where the detections lie" in guessed.observations.notes[0]
    rotation = [np.median(initfree.solve(one).uncertainty.rotation) for one in (given, guessed)]
    assert rotation[1] > 10.0 * rotation[0]
