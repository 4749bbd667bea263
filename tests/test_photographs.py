"""What databases of real photographs teach: one camera an image, EXIF that is wrong, images that nothing agrees with."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import Scene, ring

import initfree
from initfree.auto.intrinsics import refine_intrinsics
from initfree.auto.search import STATED, Search
from initfree.auto.solution import Deferred
from initfree.auto.start import run_start
from initfree.certificate import certify
from initfree.data.observations import EXIF, GUESS, FocalPrior
from initfree.data.problem import Problem, restricted
from initfree.data.recalibration import with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.stages.euclidean.residuals import consensus, residuals

pytestmark = pytest.mark.slow

FOCAL, MIDDLE = 420.0, np.array([320.0, 240.0])


def K(focal: float) -> np.ndarray:
    return np.array([[focal, 0.0, MIDDLE[0]], [0.0, focal, MIDDLE[1]], [0.0, 0.0, 1.0]])


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=10, landmarks=250, noise=0.4, keep=0.7, min_observations=3)


def with_priors(scene: Scene, said: list[float], deviation: list[float], shift: np.ndarray | float = 0.0) -> Problem:
    """The scene with a camera of its own for every image, whose focal lengths are said to be so long."""
    t = scene.tracks
    problem = Problem.from_tracks(
        t.cam, t.landmark, scene.m * FOCAL + MIDDLE + shift, cameras=[K(f) for f in said], sizes=(640, 480),
        intrinsics="refine",
    )  # fmt: skip
    ids = [image.camera_id for image in problem.observations.images]
    priors = {k: FocalPrior(f, d) for k, f, d in zip(ids, said, deviation, strict=True)}
    return replace(problem, observations=replace(problem.observations, focal_priors=priors))


def at_truth(problem: Problem, scene: Scene) -> Reconstruction:
    n = problem.tracks.cameras
    return Reconstruction(
        scene.R, -np.einsum("nij,nj->ni", scene.R, scene.centres), np.ones(n), np.zeros((n, 2)),
        scene.landmarks[problem.landmark_ids],
    )  # fmt: skip


def focal_pixels(problem: Problem, r: Reconstruction) -> np.ndarray:
    return r.focal * problem.observations.image_unit[problem.images, 0]


def test_exif_holds_an_image_that_says_little_and_yields_to_those_that_say_much(scene):
    """Image 0 keeps seven observations; EXIF is right of it, and 2.2 times too long of image 1."""
    said = [FOCAL] * 10
    said[1] *= 2.2
    whole = with_priors(scene, said, [EXIF] * 10)
    first = whole.tracks.seen_by(0)
    keep = np.ones(whole.tracks.observations, dtype=bool)
    keep[first[7:]] = False
    found = restricted(whole, keep)
    assert found is not None
    problem, left = found
    start = at_truth(whole, scene).subset(slice(None), left)
    start = replace(start, focal=np.full(10, FOCAL) / np.array(said))
    limits = AdjustConfig(free=FreeIntrinsics.of(problem), scales=(4.0,), near=True)
    f = focal_pixels(problem, adjust(problem, replace(start, focal=start.focal * 1.02), limits)[0])
    assert abs(np.log(f[0] / FOCAL)) < 0.2
    assert np.abs(np.log(f[1:] / FOCAL)).max() < 0.03


def test_no_focal_length_leaves_the_bounds(scene):
    problem = with_priors(scene, [FOCAL] * 10, [GUESS] * 10)
    least, most = problem.focal_range
    assert focal_pixels(problem, replace(at_truth(problem, scene), focal=least)) == pytest.approx(64.0)
    assert focal_pixels(problem, replace(at_truth(problem, scene), focal=most)) == pytest.approx(6400.0)
    wild = FreeIntrinsics.of(problem).bounded(np.array([1e-3, 1e3] * 5))
    assert wild == pytest.approx(np.where(np.arange(10) % 2 == 0, least, most))


def test_the_principal_point_of_a_photograph_with_a_camera_of_its_own_stays(scene):
    """It turns as well as the image; of ten photographs with one camera it is told."""
    for said in ([FOCAL] * 10, [FOCAL * (1.0 + 0.002 * k) for k in range(10)]):
        problem = with_priors(scene, said, [EXIF] * 10, shift=np.array([14.0, -9.0]))
        found = refine_intrinsics(replace(problem, intrinsics="given"), at_truth(problem, scene))
        assert found is not None
        o = found.problem.observations
        cameras = [o.cameras[int(k)] for k in found.problem.camera_ids]
        moved = [np.subtract((c.principal_point_x, c.principal_point_y), MIDDLE) for c in cameras]
        assert (np.abs(np.array(moved)).max() > 5.0) == (len(set(said)) == 1)


def test_a_landmark_in_a_cameras_centre_does_not_spoil_the_evidence(scene):
    """It fits whatever its pixel, and its derivative is out of all proportion."""
    t = scene.tracks
    problem = Problem.from_tracks(t.cam, t.landmark, scene.m * FOCAL + MIDDLE, cameras=K(FOCAL), sizes=(640, 480))
    truth = at_truth(problem, scene)
    j = int(np.argmax(np.diff(problem.tracks.ptr)))
    rows = slice(problem.tracks.ptr[j], problem.tracks.ptr[j + 1])
    k = int(problem.tracks.cam[rows][0])
    ray = truth.R[k].T @ np.append(problem.m[rows][0], 1.0)
    xyz = truth.xyz.copy()
    xyz[j] = truth.centres[k] + 1e-10 * ray
    spoiled = replace(truth, xyz=xyz)
    r = residuals(problem, spoiled)
    assert r.depth[rows][0] > 0.0
    assert not r.in_front[rows][0]
    assert not consensus(problem, spoiled)[rows][0]
    evidence = certify(problem, spoiled).evidence
    assert evidence.system.solvable
    assert evidence.uncertainty.rotation.max() < 1.0


@pytest.mark.parametrize("wrong", [1.0, 1.9])
def test_what_exif_states_of_every_image_is_held_first_and_not_believed_where_it_is_wrong(scene, wrong):
    result = initfree.solve(with_priors(scene, [wrong * FOCAL] * 10, [EXIF] * 10))
    assert result.accepted, result.certificate.reason
    cameras = [result.problem.observations.cameras[int(k)] for k in result.problem.camera_ids]
    assert np.allclose([camera.mean_focal_length() for camera in cameras], FOCAL, rtol=0.03)
    assert result.certificate.evidence.focal_rise is not None


def test_a_deferred_start_runs_after_all_where_nothing_else_leads_to_a_solution(scene):
    """A third of the matches are wrong: stage 1 suspects them, and nothing else starts from the focal lengths of EXIF."""
    rng = np.random.default_rng(3)
    wrong = rng.random(len(scene.m)) < 0.35
    m = np.where(wrong[:, None], rng.uniform(-0.6, 0.6, scene.m.shape), scene.m)
    problem = with_priors(replace(scene, m=m), [FOCAL] * 10, [EXIF] * 10)
    search = Search(problem, initfree.SolveConfig())
    held = search.again(replace(problem, intrinsics="found"))
    for starts, _ in STATED:
        for start in starts(held):
            held.keep(run_start(held.problem, start, lambda: held.baselines))
    assert any(isinstance(outcome, Deferred) for outcome in held.outcomes)
    assert len(held.attempts) == 1


def test_photographs_that_are_given_one_guess_share_a_camera_where_that_explains_them(scene):
    result = initfree.solve(with_priors(scene, [1.6 * FOCAL] * 10, [GUESS] * 10))
    assert result.accepted, result.certificate.reason
    assert len(np.unique(result.problem.camera_ids)) == 1
    found = result.problem.observations.cameras[int(result.problem.camera_ids[0])]
    assert np.isclose(found.mean_focal_length(), FOCAL, rtol=0.02)


def test_photographs_of_different_cameras_do_not_share_one(scene):
    longer = np.linspace(0.8, 1.3, 10)
    t = scene.tracks
    xy = scene.m * (FOCAL * longer[t.cam])[:, None] + MIDDLE
    problem = with_priors(scene, [1.2 * FOCAL] * 10, [GUESS] * 10, shift=xy - (scene.m * FOCAL + MIDDLE))
    result = initfree.solve(problem)
    assert result.accepted, result.certificate.reason
    cameras = [result.problem.observations.cameras[int(k)] for k in result.problem.camera_ids]
    assert np.allclose([camera.mean_focal_length() for camera in cameras], FOCAL * longer, rtol=0.05)


def test_new_cameras_of_images_keep_the_priors_of_these(scene):
    """Cameras freed image by image had none, and the adjustment that followed ended in a KeyError."""
    problem = with_priors(scene, [FOCAL] * 10, [GUESS] * 5 + [EXIF] * 5)
    ids = problem.camera_ids + 100
    cameras = {int(k) + 100: camera for k, camera in problem.observations.cameras.items()}
    found = with_cameras(problem, cameras, ids)
    assert found is not None
    assert np.array_equal(found[0].camera_ids, ids)
    assert found[0].focal_priors == problem.focal_priors
