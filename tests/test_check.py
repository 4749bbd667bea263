"""`initfree.check`: models of other programs, right and wrong, with the matches that they were made from and without."""

import json
from pathlib import Path

import numpy as np
import pycolmap
import pytest
from commanding import run
from scipy.spatial.transform import Rotation

import initfree
from initfree.errors import InputError
from initfree.generator import generate
from initfree.generator.database import write_database
from initfree.io.colmap import observations_of
from initfree.io.convert import convert
from initfree.models.judged import without_images

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset():
    return generate("set2", seed=3, noise=0.5, outliers=0.05, cameras=16, points=1500, shuffle=True)


@pytest.fixture(scope="module")
def matches(dataset, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("matches") / "database.db"
    write_database(dataset, path)
    return path


def kept(dataset) -> pycolmap.Reconstruction:
    """The true poses, without the observations that miss."""
    model = dataset.to_colmap(noisy=True)
    pycolmap.ObservationManager(model).filter_all_points3D(4.0, 0.5)
    return model


def turn(model: pycolmap.Reconstruction, image: pycolmap.Image, degrees: float) -> None:
    """About the scene's middle."""
    middle = np.median([point.xyz for point in model.points3D.values()], axis=0)
    R = Rotation.from_rotvec(np.radians(degrees) * np.array([0.6, 0.0, 0.8])).as_matrix()
    pose = image.cam_from_world()
    A = pose.rotation.matrix() @ R.T
    centre = R @ (image.projection_center() - middle) + middle
    frame = image.frame
    assert frame is not None
    frame.rig_from_world = pycolmap.Rigid3d(pycolmap.Rotation3d(A), -A @ centre)


def test_a_right_model_is_accepted_with_all_matches_and_without(dataset, matches):
    model = kept(dataset)
    alone, found = initfree.check(model), initfree.check(model, matches)
    assert alone.accepted, alone.reason
    assert found.accepted, found.reason
    assert "kept of its matches" in alone.reason
    assert found.problem.observations.source == str(matches)
    assert not found.untrusted
    assert found.weight < 0.9
    assert all(not one.contradicted for one in found.intrinsics)
    assert "join" in found.take_again


def test_order_and_ids_of_the_database_are_its_own(dataset, matches):
    """Images of the model have other ids, and other observations in another order, than those of the database."""
    found = initfree.check(kept(dataset), initfree.load(matches))
    again = initfree.check(kept(dataset), matches)
    assert found.accepted
    assert found.certificate.margin == pytest.approx(again.certificate.margin)


def test_a_camera_that_was_moved_is_named(dataset, matches):
    model = kept(dataset)
    image = model.images[5]
    turn(model, image, 15.0)
    pycolmap.ObservationManager(model).filter_all_points3D(4.0, 0.5)
    alone, found = initfree.check(model), initfree.check(model, matches)
    assert alone.verdict == found.verdict == "not accepted"
    assert image.name in {one.name for one in alone.untrusted}
    assert image.name in {one.name for one in found.untrusted}
    assert image.name in found.reason


def test_a_wrong_image_leaves_the_others_to_be_accepted(dataset):
    """The model as it is stays refused: it has the wrong image in it."""
    model = kept(dataset)
    image = model.images[5]
    turn(model, image, 15.0)
    pycolmap.ObservationManager(model).filter_all_points3D(4.0, 0.5)
    found = initfree.check(model)
    assert not found.accepted
    assert found.accepted_without == (image.name,)
    assert f"without {image.name} it is accepted: 15 of 16 images" in found.reason
    assert initfree.check(without_images(model, {image.name})).accepted
    assert model.images[5].has_pose


def test_an_image_that_is_only_doubtful_is_named_and_the_others_accepted(dataset, tmp_path):
    model = kept(dataset)
    image = model.images[5]
    rng = np.random.default_rng(0)
    # Every third keypoint off by a few pixels: it comes near and does not fit.
    for point in [one for one in image.points2D if one.has_point3D()][::3]:
        point.xy = point.xy + rng.choice([-1.0, 1.0], 2) * 2.2
    found = initfree.check(model)
    assert found.accepted, found.reason
    assert found.accepted_without == (image.name,)
    assert [one.name for one in found.untrusted] == [image.name]
    assert "15 of 16 images; nothing vouches for" in found.reason
    found.write(tmp_path / "verdict")
    assert "accepted, in part" in (tmp_path / "verdict" / "summary.html").read_text()


def test_an_image_with_few_observations_is_not_vouched_for(dataset):
    """All of them fit, and the image may be degrees off."""
    model = kept(dataset)
    image = model.images[5]
    seen = [k for k, point in enumerate(image.points2D) if point.has_point3D()]
    xy = np.array([image.points2D[k].xy for k in seen])
    from_middle = np.argsort(np.linalg.norm(xy - np.median(xy, axis=0), axis=1))
    for k in np.array(seen)[from_middle[8:]].tolist():
        model.delete_observation(5, k)
    found = initfree.check(model)
    assert found.accepted_without == (image.name,)
    (witness,) = (one for one in found.witnesses if one.name == "certain images")
    assert witness.doubts
    assert witness.images == (image.name,)


def test_landmarks_that_an_uncertain_focal_length_moves_are_a_doubt():
    """Cameras in a line before a facade: exact cameras with landmarks a tenth of their distance off, and no residual."""
    made = generate("set7", seed=3, noise=1.0, shuffle=True)
    model = kept(made)
    known, found = initfree.check(model, known=True), initfree.check(model)
    assert known.accepted, known.reason
    assert found.verdict == "undecided"
    (witness,) = (one for one in found.witnesses if one.name == "landmarks")
    assert witness.doubts
    assert "how far away things are" in found.reason


def test_a_wrong_focal_length_is_contradicted(dataset):
    model = kept(dataset)
    camera = model.camera(1)
    camera.params = (np.array(camera.params) * [1.15, 1.0, 1.0, 1.0]).tolist()
    options = pycolmap.BundleAdjustmentOptions()
    options.refine_focal_length = options.refine_extra_params = options.print_summary = False
    pycolmap.bundle_adjustment(model, options)
    pycolmap.ObservationManager(model).filter_all_points3D(4.0, 0.5)
    found = initfree.check(model)
    assert found.verdict == "not accepted"
    assert "contradict the focal length" in found.reason
    (one,) = found.intrinsics
    assert one.contradicted
    assert one.found == pytest.approx(420.0, rel=0.03)


def test_parts_that_share_nothing_are_not_vouched_for(dataset):
    model = kept(dataset)
    half = {image_id for image_id in model.images if image_id % 2}
    for point_id in list(model.points3D):
        sides = {e.image_id in half for e in model.points3D[point_id].track.elements}
        if len(sides) > 1:
            seen = [(e.image_id, e.point2D_idx) for e in model.points3D[point_id].track.elements if e.image_id not in half]
            for image_id, place in seen:
                if model.images[image_id].points2D[place].has_point3D():
                    model.delete_observation(image_id, place)
    found = initfree.check(model)
    assert found.verdict == "not accepted"
    assert found.untrusted


def test_poses_without_observations_need_a_database(dataset, matches):
    model = kept(dataset)
    turned = pycolmap.Reconstruction(model)
    turn(turned, turned.images[2], 10.0)
    for bare in (model, turned):
        for point_id in list(bare.points3D):
            bare.delete_point3D(point_id)
    with pytest.raises(InputError, match="--database"):
        initfree.check(model)
    assert initfree.check(model, matches).accepted
    assert not initfree.check(turned, matches).accepted


def test_images_that_the_database_lacks_are_told(dataset, matches):
    model = kept(dataset)
    model.images[3].name = "elsewhere.png"
    with pytest.raises(InputError, match=r"elsewhere\.png"):
        initfree.check(model, matches)


def test_names_may_lack_folders_and_endings(dataset, matches, tmp_path):
    """Metashape's labels have no endings, nerfstudio's names have a folder."""
    for name in ("{}", "images/{}.png"):
        model = kept(dataset)
        for image in model.images.values():
            image.name = name.format(image.name.removesuffix(".png"))
        assert initfree.check(model, matches).accepted


def test_transforms_are_judged_by_the_database(dataset, matches, tmp_path):
    """Poses alone, in another program's axes."""
    model = kept(dataset)
    for turned in (False, True):
        if turned:
            turn(model, model.images[2], 10.0)
        model.write(str(tmp_path))
        convert(tmp_path, tmp_path / "transforms.json", overwrite=True)
        assert run("check", tmp_path / "transforms.json", "--database", matches, "--quiet") == (3 if turned else 0)


def test_sizes_that_differ_are_told(dataset):
    model, other = kept(dataset), kept(dataset)
    camera = other.camera(1)
    camera.width, camera.height = 1280, 960
    with pytest.raises(InputError, match="1280 x 960"):
        initfree.check(model, observations_of(other, "the other", "known"))


def test_command_writes_what_it_says_and_ends_with_its_verdict(dataset, matches, tmp_path, capsys):
    model = kept(dataset)
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.mkdir()
    wrong.mkdir()
    model.write(str(right))
    turn(model, model.images[5], 15.0)
    model.write(str(wrong))
    assert run("check", right, "--database", matches, "--output", tmp_path / "out") == 0
    assert "accepted: " in capsys.readouterr().out
    told = json.loads((tmp_path / "out" / "check.json").read_text())
    assert told["verdict"] == "accepted"
    assert len(told["images"]) == 16
    assert "Witnesses" in (tmp_path / "out" / "summary.html").read_text()
    assert run("check", wrong, "--quiet") == 3
    assert capsys.readouterr().out.startswith("not accepted: ")
    assert run("check", wrong, "--json") == 3
    assert json.loads(capsys.readouterr().out)["accepted"] is False
    assert run("check", tmp_path / "nothing") == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "summary.html").write_text("mine")
    assert run("check", right, "--output", tmp_path / "mine") == 2
    assert (tmp_path / "mine" / "summary.html").read_text() == "mine"


def test_view_shows_what_the_check_says(dataset, tmp_path):
    model = kept(dataset)
    turn(model, model.images[5], 15.0)
    model.write(str(tmp_path))
    assert run("view", tmp_path, "--check", "--export", tmp_path / "page.html") == 0
    assert "0004.png" in (tmp_path / "page.html").read_text()
    assert run("view", tmp_path, "--database", tmp_path / "database.db", "--export", tmp_path / "page.html") == 2


def test_photographs_take_the_place_of_a_database_where_they_may_be_kept(dataset, matches, tmp_path, capsys):
    model = tmp_path / "model"
    model.mkdir()
    kept(dataset).write(str(model))
    assert run("check", model, "--images", tmp_path) == 2
    assert "--output" in capsys.readouterr().err
    assert run("check", model, "--images", tmp_path, "--database", matches, "--output", tmp_path / "out") == 2
    assert "one of the two" in capsys.readouterr().err
    assert run("check", model, "--images", tmp_path, "--output", tmp_path / "out") == 2  # there is none


def test_arrays_of_a_network_are_a_model():
    dataset = generate("set2", 0, noise=0.5, cameras=12, points=800)
    tracks = np.full((12, len(dataset.landmarks), 2), np.nan)
    tracks[dataset.noisy.image, dataset.noisy.landmark] = dataset.noisy.pixel
    extrinsics = np.concatenate([dataset.poses.rotations, dataset.poses.translations[:, :, None]], axis=2)
    K = dataset.cameras[0].calibration_matrix()
    size = (640, 480)
    for points in (None, dataset.landmarks):
        model = initfree.model_from_arrays(extrinsics, K, tracks, points=points, sizes=size)
        assert model.num_reg_images() == 12
        model.update_point_3d_errors()
        assert model.compute_mean_reprojection_error() < 1.0
        assert initfree.check(model).accepted
    with pytest.raises(InputError, match="expected as many"):
        initfree.model_from_arrays(extrinsics[:5], K, tracks, sizes=size)
    with pytest.raises(InputError, match="for a rotation"):
        initfree.model_from_arrays(extrinsics * [1.0, 1.0, 0.0, 1.0], K, tracks, sizes=size)
    with pytest.raises(InputError, match="3 dimensions"):
        initfree.model_from_arrays(extrinsics[0], K, tracks, sizes=size)
