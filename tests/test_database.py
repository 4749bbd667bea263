"""COLMAP databases: tracks from verified matches, relative poses that are there already, and what can be wrong."""

import os
import shutil
import sqlite3
from dataclasses import replace
from itertools import combinations

import numpy as np
import pycolmap
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from solving import solution_of
from synthetic import ring

import initfree
from initfree.auto.all_matches import on_all_matches
from initfree.auto.search import Search
from initfree.data.observations import CALIBRATED, EXIF, GUESS, FocalPrior, Observations
from initfree.data.pairs import VerifiedPairs
from initfree.data.problem import build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.io.load import load_observations
from initfree.io.sqlite import is_database
from initfree.two_view.agreeing_matches import tracks_of_agreeing_matches
from initfree.two_view.focal import guess_focals, has_fundamental_matrices
from initfree.two_view.geometry import sampson, two_view_geometries
from initfree.two_view.given import two_view_geometries_of
from initfree.two_view.matches import tracks_from_matches

FOCAL = 420.0


def partition(tracks) -> set[frozenset[tuple[int, int]]]:
    parts: dict[int, set[tuple[int, int]]] = {}
    for image, keypoint, track in zip(tracks.image, tracks.keypoint, tracks.track, strict=True):
        parts.setdefault(int(track), set()).add((int(image), int(keypoint)))
    return {frozenset(part) for part in parts.values()}


def as_pairs(matches: dict[tuple[int, int], list[tuple[int, int]]]):
    """Pairs, ptr and keypoints as `tracks_from_matches` takes them."""
    image = np.array(sorted(matches)).reshape(-1, 2)
    lists = [np.array(matches[pair], dtype=np.int64).reshape(-1, 2) for pair in sorted(matches)]
    return image, np.concatenate([[0], np.cumsum([len(m) for m in lists])]), np.concatenate(lists)


def visible(rng, images: int, landmarks: int):
    """Keypoints of landmarks at distinct places and all true matches, keypoints in random order."""
    seen = rng.random((landmarks, images)) < 0.6
    number = [{int(j): n for n, j in enumerate(rng.permutation(np.flatnonzero(seen[:, k])))} for k in range(images)]
    keypoints = [rng.permutation(10_000)[: 2 * len(number[k])].reshape(-1, 2) * 2.0 for k in range(images)]
    matches = {
        (a, b): [(number[a][j], number[b][j]) for j in number[a] if j in number[b]]
        for a, b in combinations(range(images), 2)
    }
    truth = {frozenset((k, number[k][j]) for k in range(images) if j in number[k]) for j in range(landmarks)}
    return (
        keypoints,
        {pair: found for pair, found in matches.items() if found},
        {part for part in truth if len(part) >= 2},
        number,
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_all_true_matches_give_the_true_tracks(seed):
    keypoints, matches, truth, _ = visible(np.random.default_rng(seed), 6, 30)
    tracks = tracks_from_matches(keypoints, *as_pairs(matches))
    assert partition(tracks) == truth
    assert (tracks.conflicting, tracks.cut, tracks.joined) == (0, 0, 0)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), wrong=st.integers(1, 12))
def test_wrong_matches_are_cut_and_no_image_shows_a_track_twice(seed, wrong):
    """Landmarks that all images see: each wrong match has no triangle, so exactly the truth is left."""
    rng = np.random.default_rng(seed)
    images, landmarks = 5, 25
    keypoints = [rng.permutation(10_000)[: 2 * landmarks].reshape(-1, 2) * 2.0 for _ in range(images)]
    matches = {pair: [(j, j) for j in range(landmarks)] for pair in combinations(range(images), 2)}
    # Of distinct landmarks, so that no two wrong matches support each other.
    one = rng.permutation(landmarks)[: 2 * wrong].reshape(-1, 2)
    for n, (i, j) in enumerate(one.tolist()):
        matches[sorted(matches)[n % len(matches)]].append((i, j))
    tracks = tracks_from_matches(keypoints, *as_pairs(matches))
    assert partition(tracks) == {frozenset((k, j) for k in range(images)) for j in range(landmarks)}
    assert tracks.conflicting == len(one)
    assert tracks.cut == len(one)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_whatever_the_matches_tracks_are_tracks(seed):
    rng = np.random.default_rng(seed)
    images, points = 5, 12
    keypoints = [rng.integers(0, 6, size=(points, 2)).astype(float) for _ in range(images)]
    matches = {
        pair: list(map(tuple, rng.integers(0, points, size=(rng.integers(1, 15), 2)).tolist()))
        for pair in combinations(range(images), 2)
    }
    tracks = tracks_from_matches(keypoints, *as_pairs(matches))
    lengths = np.bincount(tracks.track)
    assert lengths.min(initial=2) >= 2
    key = tracks.track * images + tracks.image
    assert len(np.unique(key)) == len(key)
    observed = tracks.image * points + tracks.keypoint
    assert len(np.unique(observed)) == len(observed)
    again = tracks_from_matches(keypoints, *as_pairs(matches))
    assert np.array_equal(again.keypoint, tracks.keypoint)


def test_duplicate_keypoints_at_one_place_are_joined():
    """SIFT writes a keypoint once for each orientation: matches to either are matches of the same track."""
    places = np.array([[10.0, 10.0], [50.0, 50.0]])
    twice = np.array([[10.0, 10.0], [10.0, 10.0], [50.0, 50.0], [50.4, 50.3]])
    matches = {(0, 1): [(0, 0), (1, 2)], (1, 2): [(1, 0), (3, 1)], (0, 2): [(0, 0), (1, 1)]}
    tracks = tracks_from_matches([places, twice, places], *as_pairs(matches))
    assert partition(tracks) == {frozenset({(0, 0), (1, 0), (2, 0)}), frozenset({(0, 1), (1, 2), (2, 1)})}
    assert tracks.joined == 2
    assert tracks.conflicting == 0


@pytest.fixture(scope="module")
def scene():
    return ring(cameras=8, landmarks=150, min_observations=3)


def write(path, scene, *, prior: bool = True, poses: bool = True, order=None):
    """The scene as a database: keypoints with two more columns, all pairs with their true relative poses."""
    rank = np.empty(scene.tracks.observations, dtype=np.int64)
    order = list(range(scene.tracks.cameras)) if order is None else order
    with pycolmap.Database.open(path) as db:
        camera = pycolmap.Camera(camera_id=1, model="SIMPLE_PINHOLE", width=640, height=480, params=[FOCAL, 320.0, 240.0])
        camera.has_prior_focal_length = prior
        db.write_camera(camera, use_camera_id=True)
        for k in order:
            here = np.flatnonzero(scene.tracks.cam == k)
            rank[here] = np.arange(len(here))
            db.write_image(pycolmap.Image(name=f"image{k}.jpg", camera_id=1, image_id=k + 1), use_image_id=True)
            xy = scene.m[here] * FOCAL + (320.0, 240.0)
            db.write_keypoints(k + 1, np.hstack([xy, np.ones((len(xy), 2))]).astype(np.float32))
        for a, b in combinations(range(scene.tracks.cameras), 2):
            _, i, j = np.intersect1d(*(scene.tracks.landmark[scene.tracks.cam == k] for k in (a, b)), return_indices=True)
            geometry = pycolmap.TwoViewGeometry()
            geometry.config = pycolmap.TwoViewGeometryConfiguration.CALIBRATED
            geometry.inlier_matches = np.stack([i, j], axis=1).astype(np.uint32)
            if poses:
                R = scene.R[b] @ scene.R[a].T
                t = scene.R[b] @ (scene.centres[a] - scene.centres[b])
                geometry.cam2_from_cam1 = pycolmap.Rigid3d(pycolmap.Rotation3d(R), t)
            db.write_two_view_geometry(a + 1, b + 1, geometry)
    return path


@pytest.fixture
def db(tmp_path, scene):
    return write(tmp_path / "database.db", scene)


def sql(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_a_database_gives_the_observations_of_the_scene(db, scene):
    observations = load_observations(db)
    problem = build_problem(observations)
    assert observations.intrinsics == "refine"
    assert problem.tracks.observations == scene.tracks.observations
    assert sorted(np.diff(problem.tracks.ptr)) == sorted(np.diff(scene.tracks.ptr))
    ours = {(int(c), *np.round(m, 3)) for c, m in zip(problem.tracks.cam, problem.m, strict=True)}
    assert ours == {(int(c), *np.round(m, 3)) for c, m in zip(scene.tracks.cam, scene.m, strict=True)}


def test_a_guessed_focal_length_is_to_be_refined(tmp_path, scene):
    path = write(tmp_path / "guess.db", scene, prior=False)
    assert load_observations(path).intrinsics == "refine"
    assert load_observations(path, "known").intrinsics == "known"
    assert load_observations(path, "unknown").intrinsics == "unknown"


@pytest.mark.parametrize(
    ("camera", "deviation", "intrinsics"),
    [
        ((0, [FOCAL, 320.0, 240.0], 0), GUESS, "refine"),
        ((0, [FOCAL, 320.0, 240.0], 1), EXIF, "refine"),
        ((2, [FOCAL, 320.0, 240.0, 0.0], 1), EXIF, "refine"),
        ((2, [FOCAL, 320.0, 240.0, -0.02], 1), CALIBRATED, "known"),
        ((0, [FOCAL, 322.5, 240.0], 1), CALIBRATED, "known"),
        ((1, [FOCAL, 421.0, 320.0, 240.0], 1), CALIBRATED, "known"),
    ],
)
def test_what_a_database_says_of_a_focal_length_is_a_guess_exif_or_a_calibration(db, camera, deviation, intrinsics):
    """EXIF knows neither distortion nor a principal point: `prior_focal_length` beside them is a calibration."""
    model, params, prior = camera
    set_camera = "UPDATE cameras SET model = ?, params = ?, prior_focal_length = ?"
    o = load_observations(sql(db, (set_camera, (model, np.array(params).tobytes(), prior))))
    assert o.intrinsics == intrinsics
    assert o.focal_priors == (None if intrinsics == "known" else {1: FocalPrior(FOCAL, deviation)})
    assert load_observations(db, "unknown").focal_priors is None


def test_an_image_list_restricts_before_tracks_are_made(db, tmp_path, scene):
    names = [f"image{k}.jpg" for k in range(5)]
    problem = initfree.load(db, images=names)
    assert problem.names == tuple(names)
    (tmp_path / "list.txt").write_text("image0.jpg\nnobody.jpg\n")
    with pytest.raises(initfree.InputError, match=r"no image named 'nobody\.jpg'"):
        initfree.load(db, images=["image0.jpg", "nobody.jpg"])


def test_the_file_is_neither_changed_nor_locked(db):
    before = db.read_bytes()
    os.chmod(db, 0o444)
    os.chmod(db.parent, 0o555)
    try:
        load_observations(db)
        assert sorted(path.name for path in db.parent.iterdir()) == ["database.db"]
    finally:
        os.chmod(db.parent, 0o755)
    assert db.read_bytes() == before


def test_databases_of_old_versions_have_no_poses_and_no_rigs(db, scene):
    sql(db, "ALTER TABLE two_view_geometries DROP COLUMN qvec", "ALTER TABLE two_view_geometries DROP COLUMN tvec",
        "DROP TABLE rig_sensors", "DROP TABLE frame_data", "DROP TABLE frames", "DROP TABLE rigs")  # fmt: skip
    observations = load_observations(db)
    assert build_problem(observations).tracks.observations == scene.tracks.observations
    assert np.isnan(observations.pairs.R).all()


def test_rigs_of_several_sensors_and_pose_priors_are_not_read(db, scene):
    """How sensors stand to each other and where they are is input poses: the same database without them is the same."""
    before = load_observations(db)
    with pycolmap.Database.open(db) as database:
        camera = database.read_camera(1)
        camera.camera_id = 2
        database.write_camera(camera, use_camera_id=True)
        rig = pycolmap.Rig()
        rig.rig_id = 1
        rig.add_ref_sensor(database.read_camera(1).sensor_id)
        apart = pycolmap.Rigid3d(pycolmap.Rotation3d(np.eye(3)), np.array([0.3, 0.0, 0.0]))
        rig.add_sensor(camera.sensor_id, apart)
        database.write_rig(rig, use_rig_id=True)
        for frame_id in (1, 2, 3, 4):
            frame = pycolmap.Frame()
            frame.frame_id, frame.rig_id = frame_id, 1
            for number, sensor in ((2 * frame_id - 1, 1), (2 * frame_id, 2)):
                image = database.read_image(number)
                image.camera_id = sensor
                database.update_image(image)
                frame.add_data_id(image.data_id)
            database.write_frame(frame, use_frame_id=True)
    after = load_observations(db)
    assert np.array_equal(after.normalised, before.normalised)
    assert np.array_equal(after.landmark_id, before.landmark_id)
    assert {image.camera_id for image in after.images} == {1, 2}
    result = initfree.solve(build_problem(after))
    assert result.accepted
    assert len(result.reconstruction.names) == scene.tracks.cameras


def test_an_identity_in_place_of_a_geometry_says_nothing(db):
    """hloc writes matches that were verified elsewhere with E = F = I and no translation."""
    eye, q = np.eye(3).tobytes(), np.array([1.0, 0.0, 0.0, 0.0]).tobytes()
    sql(db, ("UPDATE two_view_geometries SET F = ?, E = ?, qvec = ?, tvec = ?", (eye, eye, q, np.zeros(3).tobytes())))
    pairs = load_observations(db).pairs
    assert np.isnan(pairs.R).all()
    assert np.isnan(pairs.F).all()


def angle(a, b):
    return np.degrees(2.0 * np.arcsin(np.minimum(np.linalg.norm(a - b) / np.sqrt(8.0), 1.0)))


def test_relative_poses_of_the_database_are_used_and_not_estimated(db, scene, monkeypatch):
    problem = initfree.load(db, intrinsics="known")
    monkeypatch.setattr(pycolmap, "estimate_essential_matrix", lambda *_: pytest.fail("estimated again"))
    found = two_view_geometries_of(problem, 0)
    assert len(found) >= problem.tracks.cameras
    for pair in found:
        assert angle(pair.R, scene.R[pair.k] @ scene.R[pair.l].T) < 1e-3
        assert pair.inlier.all()
        assert (problem.tracks.cam[pair.matches] == (pair.k, pair.l)).all()


@pytest.mark.parametrize("wrong", ["missing", "turned"])
def test_poses_that_do_not_explain_the_matches_are_estimated(tmp_path, scene, wrong):
    problem = initfree.load(write(tmp_path / "database.db", scene, poses=wrong != "missing"), intrinsics="known")
    if wrong == "turned":
        o = problem.observations
        problem = replace(problem, observations=replace(o, pairs=replace(o.pairs, R=o.pairs.R.transpose(0, 2, 1))))
    found = two_view_geometries_of(problem, 0)
    errors = [angle(pair.R, scene.R[pair.k] @ scene.R[pair.l].T) for pair in found]
    assert np.median(errors) < 0.1
    assert {(p.k, p.l) for p in found} == {(p.k, p.l) for p in two_view_geometries(problem, 0)}


def test_pairs_that_the_database_did_not_verify_are_left_out(db, scene):
    sql(db, "DELETE FROM two_view_geometries WHERE pair_id < 2147483647 * 2")
    problem = initfree.load(db, intrinsics="known")
    first = problem.names.index("image0.jpg") if "image0.jpg" in problem.names else None
    assert all(first not in (pair.k, pair.l) for pair in two_view_geometries_of(problem, 0))


def test_the_matches_of_the_generator_are_its_observations(tmp_path):
    pytest.importorskip("embreex")
    from initfree.generator import generate
    from initfree.generator.database import write_database

    dataset = generate("set1", 0, cameras=16, points=300, density=4.0, noise=0.5)
    write_database(dataset, tmp_path / "database.db")
    o = load_observations(tmp_path / "database.db")
    noisy = dataset.noisy
    landmark = {(i, k): j for i, k, j in zip(noisy.image, noisy.keypoint(len(dataset.names)), noisy.landmark, strict=True)}
    truth = np.array([landmark[i, k] for i, k in zip(o.image, o.keypoint, strict=True)])
    # Verified matches never join two landmarks here; a landmark whose pairs were not verified may come in parts.
    pure = [len(np.unique(truth[o.landmark_id == j])) for j in np.unique(o.landmark_id)]
    assert max(pure) == 1
    assert len(o.image) > 0.7 * len(noisy.image)


def broken(kind, db, tmp_path):
    path = tmp_path / "broken.db"
    shutil.copy(db, path)
    match kind:
        case "truncated":
            path.write_bytes(db.read_bytes()[: len(db.read_bytes()) // 3])
        case "garbage inside":
            data = bytearray(db.read_bytes())
            data[100:4000] = b"\x07" * 3900
            path.write_bytes(bytes(data))
        case "empty":
            path.write_bytes(b"")
        case "a directory":
            path.unlink()
            path.mkdir()
        case "another database":
            path.unlink()
            sql(path, "CREATE TABLE songs (name TEXT)")
        case "no verified matches":
            sql(path, "DELETE FROM two_view_geometries")
        case "degenerate pairs":
            sql(path, "UPDATE two_view_geometries SET config = 1")
        case "a keypoint that is not there":
            blob = np.full((20, 2), 10**6, dtype=np.uint32).tobytes()
            sql(path, ("UPDATE two_view_geometries SET rows = 20, data = ?", (blob,)))
        case "half a row of matches":
            sql(path, ("UPDATE two_view_geometries SET data = ?", (b"\0" * 12,)))
        case "keypoints that are not finite":
            rows = 200
            sql(path, ("UPDATE keypoints SET rows = ?, data = ?", (rows, np.full((rows, 4), np.nan, np.float32).tobytes())))
        case "keypoints of one column":
            sql(path, ("UPDATE keypoints SET cols = 1, rows = 200, data = ?", (np.zeros(200, np.float32).tobytes(),)))
        case "an unknown camera model":
            sql(path, "UPDATE cameras SET model = 99")
        case "too few camera parameters":
            sql(path, ("UPDATE cameras SET params = ?", (np.ones(2).tobytes(),)))
        case "a camera that is not there":
            sql(path, "PRAGMA foreign_keys = OFF", "UPDATE images SET camera_id = 9")
    return path


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("truncated", "cannot be read as a COLMAP database"),
        ("garbage inside", "cannot be read as a COLMAP database"),
        ("empty", r"is empty \(0 bytes\)"),
        ("a directory", "holds nothing that can be read"),
        ("another database", "no table 'cameras'"),
        ("no verified matches", "no verified matches"),
        ("degenerate pairs", "no verified matches"),
        ("a keypoint that is not there", "name a keypoint that an image has not"),
        ("half a row of matches", "expected"),
        ("keypoints that are not finite", "expected finite numbers"),
        ("keypoints of one column", "1 columns; expected x, y"),
        ("an unknown camera model", "has model 99"),
        ("too few camera parameters", "2 parameters"),
        ("a camera that is not there", "has camera 9"),
    ],
)
def test_broken_databases_are_named_in_one_sentence(db, tmp_path, kind, says):
    path = broken(kind, db, tmp_path)
    with pytest.raises(initfree.InputError, match=says) as caught:
        initfree.load(path)
    assert "\n" not in str(caught.value)
    assert "broken.db" in str(caught.value)


@pytest.fixture
def noisy(tmp_path):
    """A ring with 0.5 px of noise, half of its tracks of two observations, and its true reconstruction."""
    scene = ring(cameras=10, landmarks=900, keep=0.45, min_observations=2, noise=0.5, seed=3)
    problem = initfree.load(write(tmp_path / "noisy.db", scene), intrinsics="known")
    t = -np.einsum("kij,kj->ki", scene.R, scene.centres)
    truth = Reconstruction(scene.R, t, np.ones(10), np.zeros((10, 2)), np.empty((0, 3)), problem.names)
    return problem, truth


def joined(o: Observations, count: int, seed: int = 0) -> VerifiedPairs:
    """The same with `count` more matches in each pair: keypoints of landmarks that the other image does not show."""
    rng, pairs, matches = np.random.default_rng(seed), o.pairs, []
    for image, own in zip(pairs.image, np.split(pairs.keypoint, pairs.ptr[1:-1]), strict=True):
        free = [np.setdiff1d(np.arange(len(o.images[k].keypoints)), own[:, n]) for n, k in enumerate(image)]
        wrong = np.stack([rng.choice(one, count, replace=False) for one in free], axis=1)
        matches.append(np.concatenate([own, wrong]))
    ptr = np.concatenate([[0], np.cumsum([len(own) for own in matches])])
    return replace(pairs, keypoint=np.concatenate(matches), ptr=ptr)


def as_tracks(o: Observations) -> set[frozenset[tuple[int, int]]]:
    rows = zip(o.image.tolist(), o.keypoint.tolist(), o.landmark_id.tolist(), strict=True)
    parts: dict[int, set[tuple[int, int]]] = {}
    for image, keypoint, track in rows:
        parts.setdefault(track, set()).add((image, keypoint))
    return {frozenset(part) for part in parts.values()}


def test_under_right_cameras_wrong_matches_do_not_join_tracks(noisy):
    problem, truth = noisy
    o, before = problem.observations, as_tracks(problem.observations)
    pairs = joined(o, 4)
    spoiled = tracks_from_matches([image.keypoints for image in o.images], pairs.image, pairs.ptr, pairs.keypoint)
    assert len(partition(spoiled) & before) < 0.8 * len(before)
    again = tracks_of_agreeing_matches(replace(problem, observations=replace(o, pairs=pairs)), truth, 4.0)
    # A wrong match that happens to lie near an epipolar line still joins.
    assert len(as_tracks(again.observations) & before) > 0.95 * len(before)


def test_without_verified_matches_or_intrinsics_there_is_nothing_to_make_again(noisy):
    problem, truth = noisy
    assert (
        tracks_of_agreeing_matches(replace(problem, observations=replace(problem.observations, pairs=None)), truth, 4.0)
        is None
    )
    unknown = replace(problem, intrinsics="free")
    assert tracks_of_agreeing_matches(unknown, truth, 4.0) is None


def test_sampson_is_the_distance_to_a_match_that_fits():
    rng = np.random.default_rng(0)
    R, t = Rotation.from_rotvec([0.1, -0.2, 0.05]).as_matrix(), np.array([1.0, 0.2, -0.1])
    X = rng.normal(size=(50, 3)) + np.array([0.0, 0.0, 6.0])
    E = np.broadcast_to(np.cross(np.eye(3), t) @ R * -1.0, (50, 3, 3))
    x, y = (one[:, :2] / one[:, 2:] for one in (X, X @ R.T + t))
    assert sampson(E, x, y).max() < 1e-12
    # Off by a small step across the epipolar line of x: to first order half of its square is shared by both images.
    line = np.einsum("nij,nj->ni", E, np.column_stack([x, np.ones(50)]))
    across = line[:, :2] / np.linalg.norm(line[:, :2], axis=1, keepdims=True)
    moved = sampson(E, x, y + 1e-5 * across)
    assert (moved <= 1e-5 * (1.0 + 1e-3)).all()
    assert (moved >= 0.5e-5).all()


def test_a_solve_ends_with_all_matches(noisy):
    result = initfree.solve(noisy[0])
    assert result.accepted
    assert result.stages[-1].name == "all matches"
    again = on_all_matches(Search(noisy[0], result.config), solution_of(result))
    assert again is not None
    assert again.accepted
    # It is an optimum: from there nothing moves.
    assert np.abs(again.reconstruction.R - result.reconstruction.R).max() < 1e-4


def test_all_matches_bring_cameras_closer_to_the_truth(noisy):
    problem, truth = noisy
    bare = replace(problem, observations=replace(problem.observations, pairs=None))
    before, after = (initfree.evaluate(initfree.solve(one).reconstruction, truth) for one in (bare, problem))
    assert after.rotation_auc5 > before.rotation_auc5
    assert after.translation_auc5 > before.translation_auc5


@pytest.mark.parametrize("factor", [1.1, 1.4])
def test_a_focal_length_that_is_off_ends_where_the_right_one_does(tmp_path, factor):
    scene = ring(cameras=10, landmarks=900, keep=0.6, min_observations=2, noise=0.3, seed=3)
    path = write(tmp_path / "off.db", scene, prior=factor < 1.2)
    sql(path, ("UPDATE cameras SET params = ?", (np.array([factor * FOCAL, 320.0, 240.0]).tobytes(),)))
    result = initfree.solve(initfree.load(path))
    assert result.accepted
    assert np.allclose(result.focal_pixels, FOCAL, rtol=0.003)
    assert any(f"focal length {result.focal_pixels[0]:.1f} px" in one for one in result.notes)


def test_focal_lengths_are_guessed_from_the_fundamental_matrices_that_are_there(tmp_path, scene, monkeypatch):
    path = write(tmp_path / "database.db", scene, prior=False)
    # Of cameras that do not all look at one point, which would leave the focal length open.
    rng = np.random.default_rng(0)
    rotations = Rotation.from_rotvec(0.3 * rng.normal(size=(scene.tracks.cameras, 3))).as_matrix()
    K = np.linalg.inv([[FOCAL, 0.0, 320.0], [0.0, FOCAL, 240.0], [0.0, 0.0, 1.0]])
    with sqlite3.connect(path) as connection:
        for a, b in combinations(range(scene.tracks.cameras), 2):
            F = K.T @ np.cross(rng.normal(size=(3, 1)), rotations[b] @ rotations[a].T, axis=0) @ K
            connection.execute(
                "UPDATE two_view_geometries SET F = ? WHERE pair_id = ?", (F.tobytes(), (a + 1) * (2**31 - 1) + b + 1)
            )
        # As COLMAP would guess it: much too long.
        connection.execute("UPDATE cameras SET params = ?", (np.array([2.0 * FOCAL, 320.0, 240.0]).tobytes(),))
    monkeypatch.setattr(pycolmap, "estimate_fundamental_matrix", lambda *_: pytest.fail("estimated again"))
    for intrinsics, unit in (("refine", 2.0 * FOCAL), ("unknown", None)):
        problem = initfree.load(path, intrinsics=intrinsics)
        focal = guess_focals(problem, 0) * (unit or problem.observations.image_unit[0, 0])
        assert np.allclose(focal, FOCAL, rtol=0.06)
    assert Search(initfree.load(path), initfree.SolveConfig()).contradicted
    sql(path, "UPDATE two_view_geometries SET config = 4")
    assert not has_fundamental_matrices(initfree.load(path))  # of a plane they are open


def test_only_files_that_begin_as_sqlite_are_databases(tmp_path, db):
    assert is_database(db)
    assert not is_database(tmp_path)
    (tmp_path / "notes.db").write_text("hello")
    with pytest.raises(initfree.InputError, match="of no format that can be read"):
        initfree.load(tmp_path / "notes.db")
