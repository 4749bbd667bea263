"""The `auto` strategy: wrong cameras repaired, failed starts replaced, wrong matches left out, nothing wrong accepted."""

from dataclasses import replace
from threading import Event, get_ident

import numpy as np
import pytest
from models import to_reconstruction
from scipy.spatial.transform import Rotation
from solving import single, solution_of
from synthetic import Scene, ring, tracks_of, with_a_worse_image

import initfree
from initfree.api import as_model
from initfree.auto.completion import without_outliers
from initfree.auto.consistent_part import consistent_part
from initfree.auto.ranking import settled
from initfree.auto.repair import camera_shares, repair, repair_limits
from initfree.auto.search import Search, most_starts
from initfree.auto.solution import Solution, Start
from initfree.auto.start import run_start
from initfree.auto.trimming import trim
from initfree.auto.witness import confirmed, found_by_another
from initfree.certificate.baseline import baselines
from initfree.certificate.verdict import certify
from initfree.data.problem import restricted, without_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.engine import threads
from initfree.engine.parallel import AbandonedError, abandonable, beside, in_order
from initfree.stages.euclidean import robust_cost
from initfree.stages.euclidean.residuals import consensus, residuals
from initfree.two_view.geometry import two_view_geometries
from initfree.two_view.voting import vote

pytestmark = pytest.mark.slow


def with_wrong_matches(scene: Scene, share: float, seed: int = 0) -> tuple[Scene, np.ndarray]:
    """Within each camera, a share of the observations exchange their places; which ones."""
    rng = np.random.default_rng(seed)
    m, wrong = scene.m.copy(), np.zeros(len(scene.m), dtype=bool)
    for k in range(scene.tracks.cameras):
        seen = np.flatnonzero(scene.tracks.cam == k)
        chosen = rng.permutation(seen)[: max(2, round(share * len(seen)))]
        m[chosen] = scene.m[np.roll(chosen, 1)]
        wrong[chosen] = True
    return replace(scene, m=m), wrong


def projected(R: np.ndarray, centres: np.ndarray, landmarks: np.ndarray, noise: float) -> Scene:
    """Every camera sees every landmark."""
    tracks = tracks_of(np.ones((len(landmarks), len(R)), dtype=bool))
    x = np.einsum("nij,nj->ni", R[tracks.cam], landmarks[tracks.landmark] - centres[tracks.cam])
    m = x[:, :2] / x[:, 2:] + noise / 420.0 * np.random.default_rng(0).normal(size=(len(x), 2))
    return Scene(tracks, m, R, centres, landmarks, 420.0)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=16, landmarks=400, noise=0.5, keep=0.6, min_observations=3)


def test_repair_finds_a_wrong_camera_again(scene):
    truth = to_reconstruction(scene)
    problem = initfree.load(truth)
    right = single(problem).reconstruction
    R, t = right.R.copy(), right.t.copy()
    R[3] = Rotation.from_rotvec([0.0, 0.0, 2.0]).as_matrix() @ R[3]
    t[3] += 1.0
    planted = replace(right, R=R, t=t)
    assert camera_shares(problem, planted)[3] < 0.1
    repaired, rounds = repair(problem, planted, repair_limits(problem, 100, 1e-8))
    assert rounds == 1
    assert robust_cost(problem, repaired) == pytest.approx(robust_cost(problem, right), rel=1e-6)
    untouched, rounds = repair(problem, right, repair_limits(problem, 100, 1e-8))
    assert rounds == 0
    assert untouched is right


def test_a_failed_start_is_replaced(scene):
    """From random cameras and a single step the first start goes nowhere."""
    truth = to_reconstruction(scene)
    config = initfree.SolveConfig(init="normal", tolerance=0.9)
    assert not single(initfree.load(truth), config).certificate.accepted
    result = initfree.solve(initfree.load(truth), config)
    assert result.certificate.accepted
    assert result.winner == result.starts[-1].name != "normal"
    metrics = initfree.evaluate(result, truth)
    assert min(metrics.rotation_auc5, metrics.translation_auc5) > 97.0


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_wrong_matches_are_left_out(scene, share):
    truth = to_reconstruction(scene)
    spoilt, _ = with_wrong_matches(scene, share)
    problem = initfree.load(to_reconstruction(spoilt))
    result = initfree.solve(problem)
    assert result.certificate.accepted
    metrics = initfree.evaluate(result, truth)
    assert min(metrics.rotation_auc5, metrics.translation_auc5) > 96.0
    assert metrics.landmark_rmse < 0.01
    assert result.problem.tracks.observations < problem.tracks.observations
    assert consensus(result.problem, result.reconstruction).mean() > 0.99
    assert len(result.reconstruction.xyz) == len(result.intermediate.X) == result.problem.tracks.landmarks
    # The written model has them, and tracks of two that came back.
    assert result.to_colmap().num_points3D() >= result.problem.tracks.landmarks


def test_a_landmark_left_in_a_minimum_of_its_own_is_placed_again():
    result = initfree.solve(initfree.load(to_reconstruction(ring(cameras=12, landmarks=300, noise=0.0, min_observations=3))))
    right = result.reconstruction
    xyz = right.xyz.copy()
    xyz[7] = right.centres.mean(axis=0) - 1e4 * right.R[0, 2]  # behind the first camera, as far as can be
    search = Search(result.problem, result.config)
    ended = without_outliers(search, solution_of(result, replace(right, xyz=xyz)))
    assert ended is not None
    assert ended.accepted
    assert ended.problem.tracks.landmarks == result.problem.tracks.landmarks
    assert np.allclose(residuals(ended.problem, ended.reconstruction).error, 0.0, atol=1e-6)


def test_vote_finds_wrong_matches(scene):
    spoilt, wrong = with_wrong_matches(scene, 0.05)
    problem = initfree.load(to_reconstruction(spoilt))
    order = np.lexsort((scene.tracks.cam, scene.tracks.landmark))
    assert np.array_equal(order, np.arange(len(order)))
    keep = vote(problem.tracks, two_view_geometries(problem, 0))
    assert np.mean(wrong[keep]) < 0.3 * np.mean(wrong)
    assert keep.mean() > 0.8
    assert vote(problem.tracks, []).all()


def test_restricted_keeps_all_cameras_or_nothing(scene):
    problem = initfree.load(to_reconstruction(scene))
    everything = restricted(problem, np.ones(problem.tracks.observations, dtype=bool))
    assert everything is not None
    assert np.array_equal(everything[0].m, problem.m)
    assert restricted(problem, problem.tracks.cam != 2) is None
    part, left = restricted(problem, problem.tracks.landmark % 3 > 0) or (problem, np.arange(0))
    assert set(np.unique(left % 3)) == {1, 2}
    assert np.array_equal(part.landmark_ids, problem.landmark_ids[left])
    assert part.dropped.landmarks == problem.dropped.landmarks + problem.tracks.landmarks - len(left)


def test_same_seed_same_result(scene):
    problem = initfree.load(to_reconstruction(with_wrong_matches(scene, 0.1)[0]))
    a, b = (initfree.solve(problem, initfree.SolveConfig(seed=3)) for _ in range(2))
    assert np.array_equal(a.reconstruction.R, b.reconstruction.R)
    assert np.array_equal(a.reconstruction.xyz, b.reconstruction.xyz)
    assert a.winner == b.winner


def test_easy_data_need_one_start(scene):
    result = initfree.solve(initfree.load(to_reconstruction(scene)))
    assert [start.name for start in result.starts] == ["spectral"]
    assert [stage.name for stage in result.stages] == ["varpro", "refinement", "upgrade", "adjustment"]


def test_pure_rotation_is_rejected_with_the_reason():
    rng = np.random.default_rng(1)
    R = Rotation.from_rotvec(rng.normal(scale=0.15, size=(8, 3))).as_matrix()
    landmarks = np.column_stack([rng.uniform(-1.0, 1.0, size=(100, 2)), rng.uniform(3.0, 6.0, size=100)])
    result = initfree.solve(initfree.load(to_reconstruction(projected(R, np.zeros((8, 3)), landmarks, 0.5))))
    assert not result.certificate.accepted
    assert "only turn" in result.certificate.reason


def test_a_bent_reconstruction_is_not_accepted(scene):
    """Errors of every size, nine in ten observations within 4 px: wrong matches do not look like that."""
    problem = initfree.load(to_reconstruction(scene))
    reconstruction = single(problem).reconstruction
    rng = np.random.default_rng(0)
    turn = Rotation.from_rotvec(rng.normal(scale=0.006, size=(problem.tracks.cameras, 3))).as_matrix()
    bent = replace(reconstruction, R=turn @ reconstruction.R)
    assert certify(problem, reconstruction).accepted
    verdict = certify(problem, bent)
    assert verdict.evidence.inlier_share > 0.6
    assert not verdict.accepted


def test_ranking_needs_the_adjustment(scene):
    with pytest.raises(initfree.InputError, match="strategy single"):
        initfree.solve(initfree.load(to_reconstruction(scene)), initfree.SolveConfig(adjust=False))


def test_trimming_finds_wrong_matches_without_pairs(scene):
    spoilt, wrong = with_wrong_matches(scene, 0.05)
    problem = initfree.load(to_reconstruction(spoilt))
    P, keep = trim(problem, initfree.SolveConfig(), 0.15)
    assert P.shape == (problem.tracks.cameras, 3, 4)
    assert np.mean(wrong[keep]) < 0.3 * np.mean(wrong)
    assert keep.mean() > 0.8
    assert np.bincount(problem.tracks.cam[keep]).min() >= 10


def test_trimming_suspects_nothing_in_exact_data():
    scene = ring(cameras=12, landmarks=300, min_observations=3)
    _, keep = trim(initfree.load(to_reconstruction(scene)), initfree.SolveConfig(tolerance=1e-9), 0.15)
    assert keep.all()


def with_garbage_images(scene: Scene, images: list[int]) -> Scene:
    """The observations of some images exchange their places at random."""
    m, rng = scene.m.copy(), np.random.default_rng(0)
    for k in images:
        seen = np.flatnonzero(scene.tracks.cam == k)
        m[seen] = m[rng.permutation(seen)]
    return replace(scene, m=m)


def test_one_garbage_image_of_many_is_left_out_and_named():
    scene = ring(cameras=30, landmarks=500, noise=0.5, keep=0.6, min_observations=4)
    truth = to_reconstruction(scene)
    result = initfree.solve(initfree.load(to_reconstruction(with_garbage_images(scene, [7]))))
    assert result.certificate.accepted
    assert "image007.jpg" in result.certificate.reason
    assert result.problem.dropped.images == ("image007.jpg",)
    between = result.intermediate
    assert len(between.P) == len(result.reconstruction.R) == len(between.upgraded.reconstruction.R) == 29
    assert result.to_colmap().num_reg_images() == 29
    # A missing camera counts as wrong in every pair with it.
    possible = 100.0 * 28.0 / 30.0
    assert min(initfree.evaluate(result, truth).rotation_auc5, initfree.evaluate(result, truth).translation_auc5) > (
        possible - 4.0
    )


def test_of_some_garbage_images_the_consistent_part_is_accepted_and_names_them():
    scene = ring(cameras=30, landmarks=500, noise=0.5, keep=0.6, min_observations=4)
    result = initfree.solve(initfree.load(to_reconstruction(with_garbage_images(scene, [3, 11, 19, 26]))))
    assert result.certificate.accepted
    assert "26 of 30 cameras; left out: image003.jpg, image011.jpg" in result.certificate.reason
    assert result.problem.dropped.images == tuple(f"image{k:03}.jpg" for k in (3, 11, 19, 26))
    part = as_subset(to_reconstruction(scene), result.problem.names)
    assert initfree.evaluate(result, part).rotation_auc5 > 95.0
    assert {len(moment.R) for moment in result.moments()[1]} == {26}, "the steps have the same cameras"


def as_subset(truth, names):
    model = as_model(truth)
    index = [model.names.index(name) for name in names]
    return Reconstruction.of_poses(tuple(names), model.R[index], model.t[index], model.ids, model.xyz)


def test_where_nothing_agrees_every_start_is_tried_and_no_more_than_was_told():
    scene = ring(cameras=6, landmarks=40, noise=0.0, keep=1.0, min_observations=3)
    m = np.random.default_rng(3).uniform(-0.5, 0.5, scene.m.shape)
    problem = initfree.load(to_reconstruction(replace(scene, m=m)))
    result = initfree.solve(problem)
    assert not result.accepted
    assert len({start.name for start in result.starts}) == len(result.starts)
    assert most_starts(problem) - 4 <= len(result.starts) <= most_starts(problem), "four need pairs that agree"


def test_lost_images_are_taken_back_from_the_landmarks_of_the_consistent_part(scene):
    truth = to_reconstruction(scene)
    right = single(initfree.load(truth))
    lost = np.array([0, 1, 2, 6, 7, 8, 13])
    R, t = right.reconstruction.R.copy(), right.reconstruction.t.copy()
    R[lost] = Rotation.random(len(lost), random_state=np.random.default_rng(0)).as_matrix()
    planted = replace(right.reconstruction, R=R, t=t)
    search = Search(right.problem, right.config)
    assert not solution_of(right, planted).accepted
    part = consistent_part(search, solution_of(right, planted))
    assert part is not None
    assert part.accepted
    found = part.result(right.config, ())
    assert found.problem.tracks.cameras == 16
    assert "found from the landmarks of the others" in found.certificate.reason
    assert initfree.evaluate(found, truth).rotation_auc5 > initfree.evaluate(right, truth).rotation_auc5 - 0.1


def test_a_part_of_a_part_counts_what_both_leave_out():
    scene = ring(cameras=30, landmarks=500, noise=0.5, keep=0.6, min_observations=4)
    truth = initfree.load(to_reconstruction(scene))
    right = single(truth)
    garbage = initfree.load(to_reconstruction(with_garbage_images(scene, [3])))
    whole = replace(right, problem=garbage)
    search = Search(garbage, right.config)
    before = solution_of(whole, right.reconstruction).adding(left_out=("earlier.jpg",), left_out_because="it was blurred")
    part = consistent_part(search, before)
    assert part is not None
    assert part.accepted
    assert set(part.history.left_out) == {"earlier.jpg", "image003.jpg"}


def test_without_cameras_leaves_nothing_that_hung_on_them(scene):
    problem = initfree.load(to_reconstruction(scene))
    found = without_cameras(problem, np.array([0, 5]))
    assert found is not None
    part, stay, left = found
    assert np.array_equal(stay, np.setdiff1d(np.arange(16), [0, 5]))
    assert part.names == tuple(problem.names[k] for k in stay)
    assert np.diff(part.tracks.ptr).min() >= 3
    assert part.dropped.observations == problem.dropped.observations + problem.tracks.observations - part.tracks.observations
    assert np.array_equal(part.landmark_ids, problem.landmark_ids[left])
    assert without_cameras(problem, np.arange(14)) is None


def in_front(cameras: int) -> tuple[np.ndarray, np.ndarray]:
    """Cameras at random places on one side of the origin that look at it."""
    c = np.random.default_rng(2).uniform((-3.0, -2.0, -6.0), (3.0, 2.0, -4.0), size=(cameras, 3))
    forward = -c / np.linalg.norm(c, axis=1, keepdims=True)
    right = np.cross([0.0, 1.0, 0.0], forward)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    return np.stack([right, np.cross(forward, right), forward], axis=1), c


def test_images_from_two_places_are_rejected_with_the_reason():
    landmarks = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 3))
    R, c = (np.repeat(a, 3, axis=0) for a in in_front(2))
    result = initfree.solve(initfree.load(to_reconstruction(projected(R, c, landmarks, 0.5))))
    assert not result.certificate.accepted
    assert "two places" in result.certificate.reason
    assert len(result.starts) == 1
    R, c = in_front(3)
    assert initfree.solve(initfree.load(to_reconstruction(projected(R, c, landmarks, 0.5)))).certificate.accepted


@pytest.mark.parametrize("intrinsics", ["known", "unknown"])
def test_cameras_on_a_line_that_look_at_one_point_are_solved(intrinsics):
    centres = np.column_stack([np.linspace(-3.0, 3.0, 12), np.zeros(12), np.full(12, -5.0)])
    forward = -centres / np.linalg.norm(centres, axis=1, keepdims=True)
    right = np.cross([0.0, 1.0, 0.0], forward)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    R = np.stack([right, np.cross(forward, right), forward], axis=1)
    scene = projected(R, centres, np.random.default_rng(1).uniform(-1.0, 1.0, size=(300, 3)), 0.5)
    truth = to_reconstruction(scene)
    result = initfree.solve(initfree.load(truth, intrinsics=intrinsics))
    assert result.certificate.accepted
    metrics = initfree.evaluate(result, truth)
    assert min(metrics.rotation_auc20, metrics.translation_auc20) > 98.0


def test_a_plane_with_unknown_focal_lengths_is_rejected_with_the_reason():
    landmarks = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 3)) * (1.0, 1.0, 0.0)
    flat = projected(*in_front(10), landmarks, 0.5)
    unknown = initfree.solve(initfree.load(to_reconstruction(flat), intrinsics="unknown"))
    assert not unknown.certificate.accepted
    assert "on a plane" in unknown.certificate.reason
    known = initfree.solve(initfree.load(to_reconstruction(flat)))
    assert known.certificate.accepted
    assert initfree.evaluate(known, to_reconstruction(flat)).rotation_auc20 > 95.0


def test_the_number_of_threads_does_not_change_the_result(scene, number_of_threads):
    """Many wrong matches, so that batches of starts run."""
    problem = initfree.load(to_reconstruction(with_wrong_matches(scene, 0.35)[0]))
    results = []
    for n in (1, 2):
        number_of_threads(n)
        results.append(initfree.solve(problem))
    one, all_cores = results
    assert [start.name for start in one.starts] == [start.name for start in all_cores.starts]
    assert np.array_equal(one.reconstruction.R, all_cores.reconstruction.R)
    assert np.array_equal(one.reconstruction.xyz, all_cores.reconstruction.xyz)


def test_work_in_order_ends_when_nobody_waits():
    begun = []
    running = in_order(lambda k: (begun.append(k), k)[1], range(100))
    assert next(running) == 0
    running.close()
    assert list(in_order(str, range(5))) == list("01234")
    callback = abandonable(None, abandoned := Event())
    callback("stage", 1)
    abandoned.set()
    with pytest.raises(AbandonedError):
        callback("stage", 2)


def test_work_beside_runs_in_a_thread_of_its_own_or_when_it_is_asked_for(number_of_threads):
    asked: list[tuple[int, int]] = []

    def work() -> int:
        asked.append((get_ident(), threads.threads()))
        return len(asked)

    number_of_threads(1)
    with beside(work) as answer:
        assert asked == []
    assert answer() == answer() == 1
    assert asked == [(get_ident(), 1)]
    number_of_threads(2)
    with beside(work) as answer:
        pass
    assert answer() == 2
    assert asked[1][0] != get_ident()
    assert asked[1][1] == 1


def planted(attempt, k: int, cost: float, verdict: str):
    figures = {"accepted": {}, "doubtful": {"systematic": 1.0}, "rejected": {"inlier_share": 0.1}}[verdict]
    # Another optimum has other cameras.
    turn = Rotation.from_rotvec(np.random.default_rng(0).normal(scale=0.1 * (cost - 90.0), size=(16, 3))).as_matrix()
    cameras = replace(attempt.reconstruction, R=turn @ attempt.reconstruction.R)
    evidence = attempt.evidence.assuming(reconstruction=cameras, **figures)
    found = replace(attempt, start=replace(attempt.start, name=str(k)), evidence=evidence)
    found.__dict__["cost"] = cost
    return found


@pytest.mark.parametrize(
    ("attempts", "winner", "accepted"),
    [
        ([(100.0, "doubtful"), (90.0, "rejected"), (90.0, "rejected")], "1", False),
        ([(90.0, "doubtful"), (100.0, "accepted")], "0", False),
        ([(90.0, "rejected"), (90.5, "accepted")], "0", False),
        ([(90.0, "rejected"), (90.001, "accepted")], "1", True),
        ([(90.0, "doubtful"), (90.0, "doubtful")], "0", True),
        ([(90.0, "doubtful"), (95.0, "rejected"), (97.0, "rejected")], "0", False),
    ],
)
def test_only_the_best_optimum_is_accepted_and_doubts_need_their_own_confirmation(scene, attempts, winner, accepted):
    """Planted verdicts and costs: only another attempt at the same, best optimum settles a doubt."""
    problem = initfree.load(to_reconstruction(scene))
    real = run_start(problem, Start("planted", initfree.SolveConfig()), lambda: baselines(problem))
    assert isinstance(real, Solution)
    best = settled(problem, [planted(real, k, *attempt) for k, attempt in enumerate(attempts)])
    assert best.certificate.accepted == accepted
    assert best.start.name == winner


def test_interrupting_one_start_abandons_those_beside_it(number_of_threads):
    """Not after they ran to their end: the second would, for a minute, if nothing stopped it."""
    number_of_threads(2)
    abandoned, begun, ended = Event(), Event(), Event()

    def work(k: int) -> None:
        if k == 0:
            begun.wait(60.0)
            raise KeyboardInterrupt
        begun.set()
        if abandoned.wait(60.0):
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        list(in_order(work, [0, 1], abandoned))
    assert ended.is_set()


def test_a_reconstruction_is_confirmed_by_a_start_of_another_kind_that_finds_its_cameras(scene):
    result = initfree.solve(initfree.load(to_reconstruction(scene)))
    search, cost = Search(result.problem, result.config), result.starts[0].cost
    assert found_by_another(search, solution_of(result), cost)
    assert result.winner not in {start.name for start in search.started}
    half = np.arange(result.problem.tracks.cameras) % 2 == 0
    turned = Rotation.from_euler("y", 20.0, degrees=True).as_matrix() @ result.reconstruction.R
    bent = replace(result.reconstruction, R=np.where(half[:, None, None], turned, result.reconstruction.R))
    search = Search(result.problem, result.config)
    assert not found_by_another(search, solution_of(result, bent), cost)


@pytest.mark.parametrize("longer", [1.06, 1.1])
def test_a_doubtful_reconstruction_with_refined_intrinsics_is_confirmed_with_these(scene, longer):
    """A focal length that is off, and an image a third of whose observations are not as good as the others."""
    truth = to_reconstruction(with_a_worse_image(scene, 0.35))
    right = as_model(truth)
    (camera,) = truth.cameras.values()
    camera.focal_length = longer * camera.focal_length
    result = initfree.solve(initfree.load(truth))
    assert result.accepted
    assert len({start.name for start in result.starts}) == 2
    assert np.allclose(result.focal_pixels, 420.0, rtol=5e-3)
    assert initfree.evaluate(result.reconstruction, right).rotation_auc5 > 95.0


def test_a_doubt_that_comes_with_the_camera_that_was_found_is_settled_by_a_start_with_that_camera(scene):
    """Only where nothing was in doubt while the intrinsics were free, and where that start finds the same cameras."""
    problem = initfree.load(to_reconstruction(scene), intrinsics="unknown")
    result = initfree.solve(problem)
    assert result.accepted
    assert result.problem.calibrated
    sure = solution_of(result, confirmed=frozenset())
    doubtful = replace(sure, evidence=sure.evidence.assuming(systematic=1.0))
    assert doubtful.doubtful
    assert not doubtful.accepted
    search = Search(problem, result.config)
    again = confirmed(search, doubtful, free=True)
    assert again.accepted
    assert len(search.started) == 1
    assert not confirmed(Search(problem, result.config), doubtful, free=False).accepted
    half = np.arange(problem.tracks.cameras) % 2 == 0
    turned = Rotation.from_euler("y", 20.0, degrees=True).as_matrix() @ result.reconstruction.R
    bent = replace(result.reconstruction, R=np.where(half[:, None, None], turned, result.reconstruction.R))
    elsewhere = replace(doubtful, evidence=doubtful.evidence.assuming(reconstruction=bent))
    assert not confirmed(Search(problem, result.config), elsewhere, free=True).accepted
