"""What is written: readable, consistent both ways, the same on every run."""

import hashlib
import json

import numpy as np
import pycolmap
import pytest

from initfree.generator import database, generate, write

pytestmark = pytest.mark.slow

DEGRADED = {
    "noise": 0.5,
    "outliers": 0.05,
    "merged": 0.05,
    "rotation_noise": 1.0,
    "translation_noise": 0.5,
    "landmark_noise": 0.2,
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "set4"
    dataset = generate("set4", seed=7, points=400, cameras=24, density=4, **DEGRADED)
    description = write(dataset, folder)
    return dataset, folder, description


def check_both_ways(model):
    """Every track element points at a point2D that points back, and the reverse."""
    elements = 0
    for point_id, point in model.points3D.items():
        images = [element.image_id for element in point.track.elements]
        assert len(images) == len(set(images))
        for element in point.track.elements:
            assert model.image(element.image_id).points2D[element.point2D_idx].point3D_id == point_id
            elements += 1
    assert elements == sum(point.has_point3D() for image in model.images.values() for point in image.points2D)


@pytest.mark.parametrize("place", ["sparse/0", "noisy/0"])
def test_pycolmap_opens_models_and_tracks_agree_both_ways(written, place):
    dataset, folder, _ = written
    model = pycolmap.Reconstruction(folder / place)
    text = pycolmap.Reconstruction()
    text.read_text(folder / place)
    for opened in (model, text):
        assert opened.num_reg_images() == 24
        assert opened.compute_num_observations() == len(dataset.observations)
        check_both_ways(opened)
    for image_id, image in model.images.items():
        assert np.allclose(image.cam_from_world().matrix(), text.image(image_id).cam_from_world().matrix())


def test_ids_names_and_keypoints_agree_between_truth_and_noisy(written):
    dataset, folder, _ = written
    truth, noisy = (pycolmap.Reconstruction(folder / place) for place in ("sparse/0", "noisy/0"))
    assert set(noisy.points3D) < set(truth.points3D)
    away = []
    for image_id, image in truth.images.items():
        other = noisy.image(image_id)
        assert other.name == image.name
        exact = np.array([point.xy for point in image.points2D])
        given = np.array([point.xy for point in other.points2D])
        away.append(given - exact)
    away = np.concatenate(away)
    assert abs(away.std() - 0.5) < 0.03
    labels = [
        truth.image(k).points2D[i].point3D_id != point.point3D_id
        for k, image in noisy.images.items()
        for i, point in enumerate(image.points2D)
    ]
    assert sum(labels) == dataset.wrong.sum() > 0


def test_the_same_seed_gives_identical_files_and_another_seed_does_not(tmp_path):
    def digest(seed, name):
        dataset = generate("set2", seed=seed, points=150, cameras=10, density=3, noise=0.3, outliers=0.02)
        write(dataset, tmp_path / name, render=False)
        return {
            path.relative_to(tmp_path / name): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((tmp_path / name).rglob("*"))
            if path.is_file()
        }

    first, again, other = digest(3, "a"), digest(3, "b"), digest(4, "c")
    assert first == again
    assert len(first) >= 24
    assert first.keys() == other.keys()
    assert all(first[path] != other[path] for path in first if path.name in ("images.bin", "database.db"))


def test_description_says_everything(written):
    dataset, folder, description = written
    stored = json.loads((folder / "dataset.json").read_text())
    assert stored == json.loads(json.dumps(description))
    assert stored["seed"] == 7
    assert stored["config"]["degradation"]["outliers"] == 0.05
    assert stored["versions"]["pycolmap"] == pycolmap.__version__
    figures = stored["statistics"]
    lengths = np.bincount(dataset.observations.landmark)
    assert figures["observations_a_landmark"]["mean"] == pytest.approx(lengths.mean())
    assert figures["covisibility"]["connected_components"] == 1
    assert figures["degraded"]["wrong_observations"] == dataset.wrong.sum()
    assert 0 < figures["parallax"]["median"] < 180
    for picture in ("covisibility.png", "overview.png", "gallery.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_no_noisy_model_unless_asked(tmp_path):
    write(generate("thin4", seed=0), tmp_path / "out", database=False, figures=False)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".initfree", "dataset.json", "sparse"]


def test_database_holds_the_same_keypoints_and_matches(written):
    dataset, folder, _ = written
    noisy = pycolmap.Reconstruction(folder / "noisy/0")
    with pycolmap.Database.open(folder / "database.db") as opened:
        assert opened.num_images() == 24
        for image in opened.read_all_images():
            given = np.array([point.xy for point in noisy.image(image.image_id).points2D])
            assert np.allclose(opened.read_keypoints(image.image_id)[:, :2], given, atol=1e-4)
        pairs, matches = opened.read_all_matches()
        expected = dataset.noisy.covisibility(24, len(dataset.landmarks)).toarray()
        assert len(pairs) == np.count_nonzero(np.triu(expected, 1))
        for pair, found in zip(pairs, matches, strict=True):
            first, second = pycolmap.pair_id_to_image_pair(pair)
            assert len(found) == expected[first - 1, second - 1]
            a, b = noisy.image(first).points2D, noisy.image(second).points2D
            assert all(a[int(i)].point3D_id == b[int(j)].point3D_id for i, j in found)


def test_large_sets_match_each_image_with_its_strongest_partners(monkeypatch):
    dataset = generate("set1", seed=0, points=500, density=6)
    everything = set(database.pairs(dataset))
    assert len(everything) > 600
    monkeypatch.setattr(database, "EXHAUSTIVE", 20)
    monkeypatch.setattr(database, "PARTNERS", 3)
    chosen = database.pairs(dataset)
    assert chosen == sorted(chosen)
    assert set(chosen) < everything
    counts = dataset.observations.covisibility(40, len(dataset.landmarks)).toarray()
    np.fill_diagonal(counts, 0)
    for i in range(40):
        mine = sorted((counts[i, j] for pair in chosen if i in pair for j in pair if j != i), reverse=True)
        assert mine[:3] == sorted(counts[i], reverse=True)[:3]


def test_colmaps_global_mapper_registers_all_cameras_of_set1(tmp_path):
    dataset = generate("set1", seed=0, noise=0.5)
    write(dataset, tmp_path / "set1", figures=False)
    options = pycolmap.GlobalPipelineOptions()
    options.random_seed = 0
    (tmp_path / "mapped").mkdir()
    models = pycolmap.global_mapping(tmp_path / "set1" / "database.db", tmp_path, tmp_path / "mapped", options)
    assert max(model.num_reg_images() for model in models.values()) == 40
