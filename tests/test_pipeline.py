"""The whole pipeline on exact data: reprojection to rounding, every AUC 100.00."""

from dataclasses import replace

import numpy as np
import pytest
from models import to_reconstruction
from scipy.spatial.transform import Rotation
from solving import single
from synthetic import Scene, ring

import initfree
from initfree.api import as_model
from initfree.stages.euclidean import residuals
from initfree.two_view.rotations import rotations_for, rotations_from_truth

AUCS = [f"{kind}_auc{threshold}" for kind in ("rotation", "translation") for threshold in (5, 10, 20)]


@pytest.fixture(scope="module")
def model():
    return to_reconstruction(ring(cameras=20, landmarks=300, min_observations=6))


@pytest.fixture(scope="module")
def problem(model):
    return initfree.load(model)


@pytest.mark.parametrize("init", ["spectral", "unit-circle"])
@pytest.mark.parametrize("formulation", ["pose", "rose", "expose", "pose-rot"])
def test_noise_free_ring_is_exact(formulation, init):
    """A ring of 20 cameras around a box of points. The unit circle reads the file's order, so it gets cameras in order."""
    model = to_reconstruction(ring(cameras=20, landmarks=300, min_observations=6, shuffle=init == "spectral"))
    problem = initfree.load(model)
    result = single(problem, initfree.SolveConfig(formulation=formulation, init=init))
    refinement = result.stage("refinement")
    assert np.sqrt(2.0 * refinement.cost / problem.tracks.observations) < 1e-6
    for reconstruction in (result.intermediate.upgraded.reconstruction, result.reconstruction):
        metrics = initfree.evaluate(reconstruction, model)
        assert [f"{getattr(metrics, name):.2f}" for name in AUCS] == ["100.00"] * 6
    assert metrics.landmark_rmse < 1e-6
    assert result.certificate.accepted
    found = residuals(problem, result.reconstruction)
    errors, depth = found.error, found.depth
    assert errors.max() < 1e-5
    assert depth.min() > 0.0


def wandering_axes(scene: Scene) -> Scene:
    """The scene with optical axes that do not meet in one point, without which radial methods have no chance."""
    wobble = Rotation.from_rotvec(np.random.default_rng(0).normal(scale=0.1, size=(scene.tracks.cameras, 3))).as_matrix()
    R = wobble @ scene.R
    offset = scene.landmarks[scene.tracks.landmark] - scene.centres[scene.tracks.cam]
    x = np.einsum("nij,nj->ni", R[scene.tracks.cam], offset)
    return replace(scene, R=R, m=x[:, :2] / x[:, 2:])


def test_radial_formulation_recovers_its_third_rows():
    model = to_reconstruction(wandering_axes(ring(cameras=20, landmarks=300, min_observations=6)))
    result = single(initfree.load(model), initfree.SolveConfig(formulation="rpose"))
    assert [stage.name for stage in result.stages] == ["varpro", "radial", "refinement", "upgrade", "adjustment"]
    assert result.stage("refinement").mean_residual < 1e-6
    assert initfree.evaluate(result, model).rotation_auc5 == pytest.approx(100.0, abs=1e-2)


@pytest.mark.parametrize("loss", ["cauchy", "cauchy-consistent"])
def test_robust_losses_reach_the_same_reconstruction(model, problem, loss):
    result = single(problem, initfree.SolveConfig(loss=loss))
    assert initfree.evaluate(result, model).rotation_auc5 == pytest.approx(100.0, abs=1e-2)


def test_without_refinement(problem):
    result = single(problem, initfree.SolveConfig(refine=False, adjust=False))
    assert [stage.name for stage in result.stages] == ["varpro", "upgrade"]
    assert np.array_equal(result.reconstruction.R, result.intermediate.upgraded.reconstruction.R)


def test_unknown_intrinsics():
    model = to_reconstruction(ring(cameras=20, landmarks=300, min_observations=6), "SIMPLE_PINHOLE")
    problem = initfree.load(model, intrinsics="unknown")
    result = single(problem)
    focal = result.reconstruction.focal * problem.observations.image_unit[problem.images, 0]
    assert np.allclose(focal, 420.0, rtol=1e-3)
    assert initfree.evaluate(result, model).rotation_auc5 > 99.0
    camera = next(iter(result.to_colmap().cameras.values()))
    assert camera.focal_length_x == pytest.approx(420.0, rel=1e-3)


def test_estimated_rotations_agree_with_the_truth(model, problem):
    truth = rotations_from_truth(problem, as_model(model))
    estimated = rotations_for(problem, initfree.SolveConfig(formulation="pose-rot"))
    known = {tuple(pair): R for pair, R in zip(truth.pairs.tolist(), truth.R, strict=True)}
    for pair, R in zip(estimated.pairs.tolist(), estimated.R, strict=True):
        assert np.abs(known[tuple(pair)] - R).max() < 1e-3
    assert (estimated.pairs[:, 0] > estimated.pairs[:, 1]).all()


def test_progress_is_reported_for_every_attempt(problem):
    seen: dict[str, int] = {}
    result = single(problem, on_progress=lambda stage, index, step: seen.update({stage: seen.get(stage, 0) + 1}))
    assert seen == {name: result.stage(name).iterations for name in ("varpro", "refinement", "adjustment")}


def test_progress_is_reported_for_every_pair_of_images(problem):
    seen: list[tuple[int, object]] = []

    def watch(stage: str, index: int, step: object) -> None:
        if stage.startswith("two-view geometry"):
            seen.append((index, step))

    result = single(problem, initfree.SolveConfig(formulation="pose-rot"), on_progress=watch)
    assert [index for index, _ in seen] == list(range(len(seen)))
    assert len(seen) >= result.stage("rotations").iterations > 0
    assert all(step is None for _, step in seen)


def test_outliers_are_kept_out_by_the_robust_refinement():
    scene = ring(cameras=20, landmarks=300, min_observations=6, noise=0.2)
    rng = np.random.default_rng(0)
    wrong = rng.choice(scene.tracks.observations, size=scene.tracks.observations // 100, replace=False)
    scene.m[wrong] += rng.normal(scale=0.1, size=(len(wrong), 2))
    model = to_reconstruction(scene)
    problem = initfree.load(model)
    plain, robust = (single(problem, initfree.SolveConfig(refine_loss=loss)) for loss in ("none", "cauchy"))
    scores = [initfree.evaluate(r.intermediate.upgraded.reconstruction, model).rotation_auc5 for r in (plain, robust)]
    assert scores[1] > max(scores[0], 95.0)
    assert initfree.evaluate(robust, model).rotation_auc5 > 98.0
