"""Scenes: the courthouse's solids, meshes and point clouds from files."""

from collections import Counter

import numpy as np
import pytest
import trimesh

from initfree.errors import InputError
from initfree.generator import Config, generate
from initfree.generator.config import Camera, LookAt, Mesh, PointCloud, Ring, Rings
from initfree.generator.scenes.courthouse import courthouse
from initfree.generator.scenes.mesh import mesh
from initfree.generator.scenes.pointcloud import pointcloud

AROUND = Rings("rings", 12, (Ring(4.0, 2.0),), look_at=LookAt(kind="point", point=(0.0, 0.0, 0.0)))


def sphere():
    return trimesh.creation.icosphere(subdivisions=3, radius=1.0)


def test_the_courthouse_is_made_of_closed_outward_solids_and_the_same_every_time():
    surface = courthouse()
    edges = Counter()
    for face in surface.faces:
        for a, b in zip(face, np.roll(face, -1), strict=True):
            edges[int(a), int(b)] += 1
    assert all(count == 1 and edges[b, a] == 1 for (a, b), count in list(edges.items()))
    a, b, c = np.moveaxis(surface.corners, 1, 0)
    assert np.einsum("nd,nd->n", a, np.cross(b, c)).sum() / 6 > 10_000
    assert np.array_equal(surface.vertices, courthouse().vertices)
    extent = np.ptp(surface.bounds, axis=0)
    assert 90 < extent[0] < 130


def test_samples_lie_on_the_surface_in_proportion_to_area():
    surface = courthouse()
    samples = surface.sample(np.random.default_rng(0), 20_000)
    low = samples.positions[:, 2] < 0.01
    a, b, c = np.moveaxis(surface.corners, 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    below = area[(surface.corners[:, :, 2] < 0.01).all(axis=1)].sum() / area.sum()
    assert low.mean() == pytest.approx(below, abs=0.015)
    assert np.abs(np.linalg.norm(samples.normals, axis=1) - 1).max() < 1e-9
    assert len(np.unique(samples.colors, axis=0)) > 100


@pytest.mark.parametrize("suffix", ["ply", "obj", "glb", "stl"])
def test_meshes_in_all_formats(tmp_path, suffix):
    shape = sphere()
    if suffix in ("ply", "obj", "glb"):
        shape.visual.vertex_colors = np.tile([200, 40, 40, 255], (len(shape.vertices), 1))
    path = tmp_path / f"ball.{suffix}"
    shape.export(path)
    config = Config("ball", Mesh("mesh", path, landmarks=300), trajectory=AROUND)
    dataset = generate(config, seed=0)
    radius = np.linalg.norm(dataset.landmarks, axis=1)
    assert radius.min() > 0.97
    assert radius.max() < 1.0001
    if suffix != "stl":
        assert np.abs(dataset.colors.astype(int) - [200, 40, 40]).max() <= 2
    # Of a ball one sees less than half; occlusion must leave every ray on the near side.
    towards = dataset.poses.centres[dataset.observations.image] - dataset.landmarks[dataset.observations.landmark]
    assert (np.einsum("nd,nd->n", towards, dataset.landmarks[dataset.observations.landmark]) > 0).all()


def test_vertices_as_landmarks_and_rescaling(tmp_path):
    sphere().export(tmp_path / "ball.ply")
    surface = mesh(tmp_path / "ball.ply", "vertices", True, 41.0)
    assert len(surface.fixed) == len(sphere().vertices)
    assert np.linalg.norm(surface.vertices, axis=1).mean() == pytest.approx(41.0, rel=0.02)
    config = Config("ball", Mesh("mesh", tmp_path / "ball.ply", 5000, sampling="vertices"), trajectory=AROUND)
    dataset = generate(config, seed=0)
    assert len(dataset.landmarks) < len(sphere().vertices)
    distance = np.linalg.norm(dataset.landmarks[:, None] - sphere().vertices[None], axis=2).min(axis=1)
    assert distance.max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("occlusion", ["surfels", "poisson", "none"])
def test_point_clouds_hide_their_far_side(tmp_path, occlusion):
    points, faces = trimesh.sample.sample_surface(sphere(), 2500, seed=0)
    normals = sphere().face_normals[faces]
    np.savetxt(tmp_path / "ball.xyz", np.column_stack([points, normals]))
    scene = PointCloud("pointcloud", tmp_path / "ball.xyz", landmarks=1000, occlusion=occlusion)
    dataset = generate(Config("ball", scene, trajectory=AROUND, camera=Camera(focal=500.0)), seed=0)
    rows = dataset.observations
    towards = dataset.poses.centres[rows.image] - dataset.landmarks[rows.landmark]
    near = np.einsum("nd,nd->n", towards, dataset.landmarks[rows.landmark]) > 0
    assert near.mean() > 0.999
    # Nor are points hidden by their own surface: nearly all near-side pairs within the angle are there.
    expected = 0
    for i in range(12):
        ray = dataset.poses.centres[i] - dataset.landmarks
        cosine = np.einsum("nd,nd->n", ray, dataset.landmarks) / np.linalg.norm(ray, axis=1)
        expected += (cosine > np.cos(np.radians(75))).sum()
    assert len(rows) > 0.95 * expected


def test_normals_are_estimated_where_a_cloud_has_none(tmp_path):
    points, _ = trimesh.sample.sample_surface(sphere(), 3000, seed=0)
    trimesh.PointCloud(points).export(tmp_path / "ball.ply")
    surface = pointcloud(tmp_path / "ball.ply", "surfels", 2.0, None)
    cosine = np.abs(np.einsum("nd,nd->n", surface.fixed.normals, surface.fixed.positions))
    assert np.median(cosine) > 0.99
    assert surface.two_sided
    with pytest.raises(InputError, match="no normals"):
        pointcloud(tmp_path / "ball.ply", "poisson", 2.0, None)
