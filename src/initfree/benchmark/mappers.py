"""COLMAP's mappers on the same tracks, through pycolmap, set up as well as they can be.

Intrinsics are fixed to the known ones, and every minimum of matches and inliers is lowered to eight, the fewest that
two-view geometry works with; as shipped, COLMAP refines focal lengths and gives up where pairs share fewer than 15.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pycolmap

from initfree.benchmark.data import Place, dataset
from initfree.benchmark.jobs import Job
from initfree.data.reconstruction import Reconstruction
from initfree.errors import InputError
from initfree.generator import Dataset
from initfree.generator.database import write_database
from initfree.io.colmap import reconstruction_of

FEWEST = 8


def reconstruct(job: Job, place: Place) -> tuple[Reconstruction, float, str]:
    """The largest model that the mapper makes, with the truth's landmark ids; seconds; what it registered."""
    made = _filtered(dataset(job.data, place), job.data.min_obs)
    began = time.perf_counter()
    level, pycolmap.logging.minloglevel = pycolmap.logging.minloglevel, 3
    try:
        with tempfile.TemporaryDirectory(prefix="initfree-") as scratch:
            database = Path(scratch, "database.db")
            write_database(made, database, FEWEST)
            mapping = _incremental if job.method == "colmap-incremental" else global_mapping
            models = mapping(database, Path(scratch), job.data.seed)
    finally:
        pycolmap.logging.minloglevel = level
    seconds = time.perf_counter() - began
    if not models:
        raise InputError(f"{job.method} registered no image")
    best = max(models.values(), key=lambda model: (model.num_reg_images(), model.num_points3D()))
    reason = f"{best.num_reg_images()} of {len(made.names)} images in the largest of {len(models)} models"
    return with_landmark_ids(best, made), seconds, reason


def _filtered(made: Dataset, min_obs: int) -> Dataset:
    """The dataset with the tracks that the solver is given."""
    often = made.noisy.track_lengths(len(made.landmarks)) >= min_obs
    return replace(made, noisy=made.noisy[often[made.noisy.landmark]])


def with_landmark_ids(model: pycolmap.Reconstruction, made: Dataset) -> Reconstruction:
    """COLMAP numbers its points anew: each gets the id of the landmark that most of its keypoints claim.

    Of two points of one landmark the one with the longer track stands for it.
    """
    order = np.argsort(made.noisy.image, kind="stable")
    claims = np.split(made.noisy.landmark[order], np.cumsum(made.noisy.per_image(len(made.names)))[:-1])
    found = reconstruction_of(model)
    number = {name: k for k, name in enumerate(made.names)}
    images = {image_id: claims[number[image.name]] for image_id, image in model.images.items()}
    ids = np.empty(len(found.ids), np.int64)
    lengths = np.empty(len(found.ids), np.int64)
    for k, point_id in enumerate(found.ids):
        elements = model.points3D[int(point_id)].track.elements
        votes = np.bincount([images[element.image_id][element.point2D_idx] for element in elements])
        ids[k], lengths[k] = int(np.argmax(votes)) + 1, len(elements)
    longest = np.lexsort((found.ids, -lengths, ids))
    kept = longest[np.unique(ids[longest], return_index=True)[1]]
    return replace(found, ids=ids[kept], xyz=found.xyz[kept])


def _incremental(database: Path, output: Path, seed: int) -> dict[int, pycolmap.Reconstruction]:
    options = pycolmap.IncrementalPipelineOptions()
    options.num_threads, options.random_seed = 1, seed
    options.min_num_matches = FEWEST
    options.min_model_size = 3
    options.extract_colors = False
    options.ba_refine_focal_length = options.ba_refine_extra_params = options.ba_refine_principal_point = False
    options.mapper.init_min_num_inliers = FEWEST
    options.mapper.abs_pose_min_num_inliers = FEWEST
    options.mapper.abs_pose_refine_focal_length = options.mapper.abs_pose_refine_extra_params = False
    options.mapper.num_threads, options.mapper.random_seed = 1, seed
    options.triangulation.random_seed = seed
    return dict(pycolmap.incremental_mapping(database, output, output, options))


def global_mapping(database: Path, output: Path, seed: int, threads: int = 1) -> dict[int, pycolmap.Reconstruction]:
    """COLMAP's global mapper (GLOMAP); -1 thread are all cores."""
    options = pycolmap.GlobalPipelineOptions()
    options.num_threads, options.random_seed = threads, seed
    options.min_num_matches = FEWEST
    mapper = options.mapper
    mapper.num_threads, mapper.random_seed = threads, seed
    for part in (mapper.rotation_averaging, mapper.global_positioning, mapper.retriangulation):
        part.random_seed = seed
    bundle = mapper.bundle_adjustment
    bundle.refine_focal_length = bundle.refine_extra_params = bundle.refine_principal_point = False
    return dict(pycolmap.global_mapping(database, output, output, options))
