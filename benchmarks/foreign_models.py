"""Models as other programs leave them, right ones and wrong ones, with the truth: what `benchmarks/foreign.py` judges.

Observations come from the generator's sets and adversarial presets, with noise, wrong matches and merged tracks.
Makers: COLMAP's incremental and global mappers on a database of these observations, COLMAP's bundle adjustment from
the truth and from wrong starts (half of the images turned or scaled, a smooth bend, a wrong focal length or an
ignored distortion held fixed, a mirrored world, one image moved, equal parts laid upon each other, two scenes in one
model), and single pipelines of our own. After each adjustment what misses by more than 4 px is deleted, as every
mapper does.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from scipy.spatial.transform import Rotation

import initfree
from initfree.benchmark.mappers import FEWEST, global_mapping, with_landmark_ids
from initfree.data.reconstruction import Reconstruction, nearest_rotation
from initfree.evaluation import evaluate_models, global_rotation, similarity
from initfree.generator import Dataset
from initfree.io.colmap import find_model, reconstruction_of
from initfree.io.quiet import quiet

FITS = 4.0
"""pixels: beyond, an observation is deleted"""
ROUNDS = 3
PARTNERS = 2
"""rays that each ray of a landmark is met with"""
WRONG = {"auc": 90.0, "degrees": 3.0, "shift": 0.05, "landmarks": 0.05, "focal": 0.1}
"""a model beyond any of these against the truth is wrong: AUC@20 of rotations or translations, a camera's rotation, a
camera's place over the scene's extent, three quarters of the landmarks over it or over their distance from the cameras'
middle, whichever is larger, a focal length"""
GOOD = {"auc": 97.0, "degrees": 1.0, "shift": 0.012, "landmarks": 0.012, "focal": 0.02}
"""within all of these it is right; what lies between counts as neither"""


@dataclass(frozen=True)
class Source:
    """Observations with their truth."""

    given: pycolmap.Reconstruction
    """noisy keypoints and tracks, poses and points of the truth"""
    truth: Reconstruction
    focal: float
    made: Dataset | None = None


def measured(given: Path, truth: Path) -> Source:
    """Real tracks, or kept ones, with the truth's poses and points; points that the truth lacks go."""
    model, true = (pycolmap.Reconstruction(str(find_model(path) or path)) for path in (given, truth))
    pose = {image.name: image.cam_from_world() for image in true.images.values()}
    for image in model.images.values():
        model.frame(image.frame_id).rig_from_world = pose[image.name]
    for point_id in list(model.points3D):
        if true.exists_point3D(point_id):
            model.points3D[point_id].xyz = true.points3D[point_id].xyz
        else:
            model.delete_point3D(point_id)
    focal = float(np.median([camera.mean_focal_length() for camera in true.cameras.values()]))
    return Source(model, reconstruction_of(true), focal)


def copy(source: Source) -> pycolmap.Reconstruction:
    return pycolmap.Reconstruction(source.given)


def filtered(model: pycolmap.Reconstruction) -> None:
    """Without observations that miss by more than 4 px and points that are left with fewer than two, or no angle."""
    with quiet(everything=True):
        pycolmap.ObservationManager(model).filter_all_points3D(FITS, 0.5)


def settled(model: pycolmap.Reconstruction, *, intrinsics: bool = True, rounds: int = ROUNDS) -> pycolmap.Reconstruction:
    """COLMAP's bundle adjustment and filter in turn."""
    options = pycolmap.BundleAdjustmentOptions()
    options.print_summary = False
    options.refine_focal_length = options.refine_extra_params = intrinsics
    options.ceres.solver_options.num_threads = 1
    options.ceres.solver_options.max_num_iterations = 30
    for k in range(rounds):
        options.ceres.loss_function_type = (
            pycolmap.LossFunctionType.CAUCHY if k < rounds - 1 else pycolmap.LossFunctionType.TRIVIAL
        )
        filtered(model)
        if model.num_points3D() == 0:
            break
        with quiet(everything=True):
            pycolmap.bundle_adjustment(model, options)
    filtered(model)
    return model


def retriangulated(model: pycolmap.Reconstruction) -> None:
    """Every point anew under the cameras, where most of its observations agree: of a landmark with two sides one remains.

    Of a track's pairs of rays, the one whose point most observations of the track fit."""
    ids = sorted(model.points3D)
    tracks = [[(e.image_id, e.point2D_idx) for e in model.points3D[k].track.elements] for k in ids]
    elements = [one for track in tracks for one in track]
    image = np.array([image_id for image_id, _ in elements])
    poses = {k: one.cam_from_world() for k, one in model.images.items()}
    R = np.array([poses[k].rotation.matrix() for k in image])
    t = np.array([poses[k].translation for k in image])
    images: Any = model.images
    focal = np.array([images[k].camera.mean_focal_length() for k in image])
    ray = np.array([images[k].camera.cam_from_img(images[k].points2D[place].xy) for k, place in elements])
    world = np.einsum("nji,nj->ni", R, np.c_[ray, np.ones(len(ray))])
    world /= np.linalg.norm(world, axis=1)[:, None]
    across = np.eye(3) - world[:, :, None] * world[:, None, :]
    aside = np.einsum("nij,nj->ni", across, -np.einsum("nji,nj->ni", R, t))
    length = np.array([len(track) for track in tracks])
    start = np.cumsum(length) - length
    of = np.repeat(np.arange(len(ids)), length)
    most, best = np.zeros(len(ids), dtype=np.int64), np.full((len(ids), 3), np.nan)
    for step in range(1, PARTNERS + 1):
        for a in range(int(length.max()) - step):
            chosen = np.flatnonzero(length > a + step)
            one, other = start[chosen] + a, start[chosen] + a + step
            A = across[one] + across[other]
            apart = np.linalg.cond(A) < 1e8
            chosen, one, other = chosen[apart], one[apart], other[apart]
            xyz = np.full((len(ids), 3), np.nan)
            xyz[chosen] = np.linalg.solve(A[apart], (aside[one] + aside[other])[:, :, None])[:, :, 0]
            seen = np.einsum("nij,nj->ni", R, xyz[of]) + t
            miss = focal * np.linalg.norm(seen[:, :2] / seen[:, 2:] - ray, axis=1)
            fits = np.bincount(of, (miss < 2 * FITS) & (seen[:, 2] > 0.0), len(ids)).astype(np.int64)
            better = fits > most
            most[better], best[better] = fits[better], xyz[better]
    for k in np.flatnonzero(most):
        model.points3D[ids[k]].xyz = best[k]


def moved(
    model: pycolmap.Reconstruction, image_ids: set[int], s: float, R: np.ndarray, about: np.ndarray, shift: Any = 0.0
) -> None:
    """Images turned and scaled about a place: X -> s R (X - about) + about + shift."""
    for image_id in image_ids:
        image: Any = model.images[image_id]
        pose = image.cam_from_world()
        A = pose.rotation.matrix() @ R.T
        centre = s * R @ (image.projection_center() - about) + about + shift
        image.frame.rig_from_world = pycolmap.Rigid3d(pycolmap.Rotation3d(A), -A @ centre)


def along(model: pycolmap.Reconstruction) -> list[int]:
    """Image ids along the longest direction of the centres."""
    ids = sorted(model.images)
    centres = np.array([model.images[k].projection_center() for k in ids])
    axis = np.linalg.svd(centres - centres.mean(axis=0), full_matrices=False)[2][0]
    return [ids[k] for k in np.argsort(centres @ axis)]


def extent(model: pycolmap.Reconstruction) -> float:
    xyz = np.array([p.xyz for p in model.points3D.values()])
    return float(np.median(np.linalg.norm(xyz - np.median(xyz, axis=0), axis=1)))


def turned(degrees: float, factor: float, rng: np.random.Generator) -> Callable[[Source], pycolmap.Reconstruction]:
    def make(source: Source) -> pycolmap.Reconstruction:
        model = copy(source)
        order = along(model)
        half = set(order[: len(order) // 2])
        about = model.images[order[len(order) // 2]].projection_center()
        R = Rotation.from_rotvec(np.radians(degrees) * _direction(rng)).as_matrix()
        moved(model, half, factor, R, about)
        retriangulated(model)
        return settled(model)

    return make


def bent(degrees: float, rng: np.random.Generator) -> Callable[[Source], pycolmap.Reconstruction]:
    """Every image along the way a little more than the one before."""

    def make(source: Source) -> pycolmap.Reconstruction:
        model = copy(source)
        order, direction = along(model), _direction(rng)
        about = model.images[order[0]].projection_center()
        for k, image_id in enumerate(order):
            R = Rotation.from_rotvec(np.radians(degrees) * k / len(order) * direction).as_matrix()
            moved(model, {image_id}, 1.0, R, about)
        retriangulated(model)
        return settled(model)

    return make


def wrong_focal(factor: float) -> Callable[[Source], pycolmap.Reconstruction]:
    def make(source: Source) -> pycolmap.Reconstruction:
        model = copy(source)
        for camera in model.cameras.values():
            params = np.array(camera.params)
            params[camera.focal_length_idxs()] *= factor
            camera.params = params.tolist()
        return settled(model, intrinsics=False)

    return make


def ignored_lens(k1: float) -> Callable[[Source], pycolmap.Reconstruction]:
    """Keypoints with a distortion that the model's camera does not have and may not find."""

    def make(source: Source) -> pycolmap.Reconstruction:
        model = copy(source)
        for image in model.images.values():
            camera = image.camera
            middle, f = np.array([camera.principal_point_x, camera.principal_point_y]), camera.mean_focal_length()
            for point in image.points2D:
                u = (point.xy - middle) / f
                point.xy = middle + f * u * (1.0 + k1 * (u @ u))
        return settled(model, intrinsics=False)

    return make


def one_moved(degrees: float, rng: np.random.Generator) -> Callable[[Source], pycolmap.Reconstruction]:
    def make(source: Source) -> pycolmap.Reconstruction:
        model = settled(copy(source), rounds=1)
        image_id = int(rng.choice(sorted(model.images)))
        middle = np.median([p.xyz for p in model.points3D.values()], axis=0)
        moved(model, {image_id}, 1.0, Rotation.from_rotvec(np.radians(degrees) * _direction(rng)).as_matrix(), middle)
        filtered(model)
        return model

    return make


def mirrored(source: Source) -> pycolmap.Reconstruction:
    """Depths reversed: what a thing seen from afar may turn into."""
    model = copy(source)
    for point in model.points3D.values():
        point.xyz = point.xyz * (1.0, 1.0, -1.0)
    flip = np.diag([1.0, 1.0, -1.0])
    for image in model.images.values():
        pose = image.cam_from_world()
        # x = R X + t seen in a mirror: rows of R that look along z change sign, so that the camera stays right-handed.
        R = pose.rotation.matrix() @ flip
        R = np.diag([1.0, 1.0, -1.0]) @ R
        middle = np.median([p.xyz for p in model.points3D.values()], axis=0)
        depth = (pose.rotation.matrix() @ flip @ middle + pose.translation)[2]
        t = pose.translation.copy()
        t[2] = depth - (R @ middle)[2]
        image.frame.rig_from_world = pycolmap.Rigid3d(pycolmap.Rotation3d(nearest_rotation(R)), t)
    return settled(model)


def folded(source: Source) -> pycolmap.Reconstruction | None:
    """Images before a part that equals another one are moved before that one, as if both were the same thing."""
    parts: Any = getattr(source.made.config.scene, "parts", ()) if source.made is not None else ()
    if all(part.equal_to is None for part in parts):
        return None
    model = copy(source)
    middles = np.array([part.centre for part in parts])
    for image_id, image in model.images.items():
        part = parts[int(np.argmin(np.linalg.norm(middles - image.projection_center(), axis=1)))]
        if part.equal_to is not None:
            shift = np.array(parts[part.equal_to].centre) - np.array(part.centre)
            moved(model, {image_id}, 1.0, np.eye(3), np.zeros(3), shift)
    retriangulated(model)
    return settled(model)


def mapped(source: Source, database: Path, how: str) -> pycolmap.Reconstruction | None:
    """COLMAP's largest model of the database, its points numbered like the truth's."""
    assert source.made is not None
    with tempfile.TemporaryDirectory() as scratch, quiet(everything=True):
        if how == "global":
            models = global_mapping(database, Path(scratch), 0)
        else:
            options = pycolmap.IncrementalPipelineOptions()
            options.num_threads = options.mapper.num_threads = 1
            options.random_seed = options.mapper.random_seed = options.triangulation.random_seed = 0
            options.min_num_matches = options.mapper.init_min_num_inliers = FEWEST
            options.mapper.abs_pose_min_num_inliers = FEWEST
            options.min_model_size, options.extract_colors = 3, False
            models = dict(pycolmap.incremental_mapping(database, scratch, scratch, options))
    return max(models.values(), key=lambda m: m.num_reg_images(), default=None)


def own(source: Source, rng: np.random.Generator) -> pycolmap.Reconstruction | None:
    """A single pipeline, wherever it ends."""
    config = initfree.SolveConfig(
        formulation=str(rng.choice(["pose", "rose", "expose"])), init=str(rng.choice(["unit-circle", "normal", "spectral"])),
        seed=int(rng.integers(1000)), max_iterations=80,
    )  # fmt: skip # pyright: ignore[reportArgumentType]
    result = initfree.solve(initfree.load(source.given), config, strategy="single")
    model = result.to_colmap()
    return model if model.num_points3D() > 50 else None


def two_scenes(one: Source, other: Source) -> pycolmap.Reconstruction:
    """Both in one model, the second anywhere."""
    model, more = settled(copy(one), rounds=1), settled(copy(other), rounds=1)
    place = pycolmap.Sim3d(1.3, pycolmap.Rotation3d(np.array([0.2, 0.3, 0.1, 0.9]) / 0.975), np.full(3, extent(model)))
    more.transform(place)
    images, points = max(model.images) + 1, max(model.points3D) + 1
    cameras = max(model.cameras) + 1
    for k, camera in more.cameras.items():
        added = pycolmap.Camera(camera.todict())
        added.camera_id = cameras + k
        model.add_camera_with_trivial_rig(added)
    for k, image in more.images.items():
        xy = np.array([p.xy for p in image.points2D])
        model.add_image_with_trivial_frame(
            pycolmap.Image(
                name=f"second-{image.name}", keypoints=xy, camera_id=cameras + image.camera_id, image_id=images + k
            ),
            image.cam_from_world(),
        )
    for k, point in more.points3D.items():
        track = pycolmap.Track([pycolmap.TrackElement(images + e.image_id, e.point2D_idx) for e in point.track.elements])
        model.add_point3D_with_id(points + k, pycolmap.Point3D(xyz=point.xyz, track=track))
    return model


def _direction(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def label(model: pycolmap.Reconstruction, source: Source) -> dict[str, object]:
    """What the model misses of the truth, and whether that makes it wrong, good, or neither."""
    found = reconstruction_of(model) if source.made is None else with_landmark_ids(model, source.made)
    place = {name: k for k, name in enumerate(source.truth.names)}
    there = [name for name in found.names if name in place]
    truth = source.truth.subset(np.array([place[name] for name in there]), slice(None))
    metrics = evaluate_models(found, truth)
    mine = found.subset(np.array([found.names.index(name) for name in there]), slice(None))
    turn = global_rotation(mine.R, truth.R)
    off = mine.R @ turn.T @ truth.R.transpose(0, 2, 1)
    degrees = np.degrees(Rotation.from_matrix(off).magnitude())
    # Rotations orient the world: centres on a line leave it free to turn about that line.
    centres = mine.centres @ turn.T
    s, _, _ = similarity(centres, truth.centres)
    t = (truth.centres - s * centres).mean(axis=0)
    size = max(float(np.median(np.linalg.norm(p - np.median(p, axis=0), axis=1))) for p in (truth.xyz, truth.centres))
    shift = np.linalg.norm(s * centres + t - truth.centres, axis=1) / size
    _, a, b = np.intersect1d(found.ids, truth.ids, return_indices=True)
    miss = np.linalg.norm(s * found.xyz[a] @ turn.T + t - truth.xyz[b], axis=1)
    distance = np.linalg.norm(truth.xyz[b] - truth.centres.mean(axis=0), axis=1)
    landmarks = miss / np.maximum(distance, size) if len(a) else np.array([np.inf])
    focal = max(abs(c.mean_focal_length() / source.focal - 1.0) for c in model.cameras.values())
    figures = {
        "auc": min(metrics.rotation_auc20, metrics.translation_auc20), "degrees": float(degrees.max()),
        "shift": float(shift.max()), "landmarks": float(np.quantile(landmarks, 0.75)), "focal": focal,
    }  # fmt: skip

    return {"label": kind_of(figures), "images": len(there), **figures}


def kind_of(figures: dict[str, float]) -> str:
    """wrong, good, or neither."""

    def beyond(limits: dict[str, float]) -> bool:
        return figures["auc"] < limits["auc"] or any(figures[k] > limits[k] for k in limits if k != "auc")

    return "wrong" if beyond(WRONG) else "neither" if beyond(GOOD) else "good"
