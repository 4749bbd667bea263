"""`initfree.adjust` finds Ceres' optimum: every camera model, rigs, what stays, losses, known positions."""

import json
from typing import Any

import numpy as np
import pycolmap
import pytest
from commanding import run, write_ring
from models import CAMERA_PARAMS

from initfree.errors import InputError
from initfree.models.adjust import AdjustOptions, Known, adjust

pytestmark = pytest.mark.slow

SAME = 1e-6
"""of the cost"""
ALL_PARAMS = CAMERA_PARAMS | {
    "FOV": [420.0, 425.0, 320.0, 240.0, 0.3],
    "SIMPLE_DIVISION": [420.0, 320.0, 240.0, -0.05],
    "DIVISION": [420.0, 425.0, 320.0, 240.0, -0.05],
    "SIMPLE_FISHEYE": [420.0, 320.0, 240.0],
    "FISHEYE": [420.0, 425.0, 320.0, 240.0],
    "RAD_TAN_THIN_PRISM_FISHEYE": [420.0, 425.0, 320.0, 240.0, 0.01, *[0.0] * 11],
    "EUCM": [420.0, 425.0, 320.0, 240.0, 0.6, 1.1],
}
"""every model of COLMAP that has a focal length"""


def synthesized(model: str = "SIMPLE_RADIAL", seed: int = 1, noise: float = 0.7, **options) -> pycolmap.Reconstruction:
    """Images around points with noise in everything."""
    pycolmap.set_random_seed(seed)
    asked = pycolmap.SyntheticDatasetOptions()
    asked.num_frames_per_rig, asked.num_rigs, asked.num_points3D = 7, 1, 120
    asked.camera_model_id = pycolmap.CameraModelId.__members__[model]
    asked.camera_width, asked.camera_height, asked.camera_params = 640, 480, ALL_PARAMS[model]
    for name, value in options.items():
        setattr(asked, name, value)
    found = pycolmap.synthesize_dataset(asked)
    noises = pycolmap.SyntheticNoiseOptions()
    noises.point2D_stddev, noises.rig_from_world_translation_stddev = noise, 0.02
    noises.rig_from_world_rotation_stddev, noises.point3D_stddev = 0.2, 0.02
    pycolmap.synthesize_noise(noises, found)
    return found


def by_ceres(model: pycolmap.Reconstruction, options=None, change=None) -> tuple[float, pycolmap.Reconstruction]:
    """Its final cost, and the model."""
    options = pycolmap.BundleAdjustmentOptions() if options is None else options
    options.print_summary, options.refine_sensor_from_rig = False, False
    options.ceres.solver_options.num_threads = 1
    config, result = pycolmap.BundleAdjustmentConfig(), pycolmap.Reconstruction(model)
    for image_id in result.reg_image_ids():
        config.add_image(image_id)
    config.fix_gauge(
        pycolmap.BundleAdjustmentGauge.UNSPECIFIED if change else pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD
    )
    if change is not None:
        change(config)
    summary: Any = pycolmap.create_default_bundle_adjuster(options, config, result).solve()
    return summary.ceres_summary.final_cost, result


def pose_of(image: Any) -> pycolmap.Rigid3d:
    """Of its frame."""
    return image.frame.rig_from_world


def poses(model: pycolmap.Reconstruction) -> dict[str, np.ndarray]:
    return {image.name: image.cam_from_world().matrix() for image in model.images.values()}


@pytest.mark.parametrize("model", sorted(ALL_PARAMS))
def test_optimum_is_that_of_ceres_with_every_camera_model(model):
    start = synthesized(model, num_points3D=400)
    before = poses(start)
    found = adjust(start)
    assert found.cost == pytest.approx(by_ceres(start)[0], rel=SAME)
    assert found.cost < 0.5 * found.initial_cost
    assert all((poses(start)[name] == before[name]).all() for name in before)  # the given model stays
    errors = [point.error for point in found.model.points3D.values()]
    assert np.median(errors) < 2.0


def test_principal_points_and_all_parameters_move_where_free():
    start = synthesized("OPENCV", noise=0.3)
    options = pycolmap.BundleAdjustmentOptions()
    options.refine_principal_point = True
    found = adjust(start, AdjustOptions(free=("focal", "distortion", "principal-point")))
    assert found.cost == pytest.approx(by_ceres(start, options)[0], rel=SAME)
    assert adjust(start, options).cost == pytest.approx(found.cost, rel=1e-9)
    kept = adjust(start, AdjustOptions(free=()))
    assert kept.model.camera(1).params == pytest.approx(start.camera(1).params)
    assert kept.cost > found.cost


@pytest.mark.parametrize("loss", ["CAUCHY", "SOFT_L1", "HUBER"])
def test_losses_are_those_of_ceres(loss):
    start = synthesized(noise=2.0)
    options = pycolmap.BundleAdjustmentOptions()
    options.ceres.loss_function_type = pycolmap.LossFunctionType.__members__[loss]
    options.ceres.loss_function_scale = 1.5
    options.ceres.solver_options.max_num_iterations = 300
    found = adjust(start, AdjustOptions(loss=AdjustOptions.like(options).loss, scale=1.5, max_iterations=300))
    assert found.cost == pytest.approx(by_ceres(start, options)[0], rel=SAME)


def test_rigs_move_as_a_whole():
    start = synthesized(
        num_cameras_per_rig=3, num_rigs=2, num_frames_per_rig=5, sensor_from_rig_translation_stddev=0.1,
        sensor_from_rig_rotation_stddev=20.0,
    )  # fmt: skip
    found = adjust(start)
    # Sensors that stay hold the scale: no camera need be fixed, and two would be too many.
    assert found.cost == pytest.approx(by_ceres(start, change=lambda _: None)[0], rel=SAME)
    for image_id, image in start.images.items():
        after = found.model.images[image_id]
        for a, b in ((image, after),):
            before = a.cam_from_world() * a.frame.rig_from_world.inverse()
            assert (b.cam_from_world() * b.frame.rig_from_world.inverse()).matrix() == pytest.approx(
                before.matrix(), abs=1e-9
            )


def test_an_image_may_see_a_point_twice():
    start = synthesized()
    rng = np.random.default_rng(0)
    for point_id in list(start.points3D)[:40]:
        elements = start.points3D[point_id].track.elements
        image = start.images[elements[0].image_id]
        other = next(p for p in start.points3D if p != point_id and start.images[image.image_id].has_point3D(p))
        elements_of_other = start.points3D[other].track.elements
        place = next(e.point2D_idx for e in elements_of_other if e.image_id == image.image_id)
        start.delete_observation(image.image_id, place)
        image.points2D[place].xy = image.points2D[elements[0].point2D_idx].xy + rng.normal(0.0, 1.0, 2)
        start.add_observation(point_id, pycolmap.TrackElement(image.image_id, place))
    found = adjust(start)
    assert found.observations == start.compute_num_observations()
    assert found.cost == pytest.approx(by_ceres(start)[0], rel=SAME)


def test_observations_behind_their_camera_cost_nothing():
    start = synthesized("SIMPLE_PINHOLE")
    for point_id in list(start.points3D)[:3]:
        elements = start.points3D[point_id].track.elements
        before = start.images[elements[0].image_id]
        place = 1.3 * before.projection_center()  # cameras stand around the world's middle
        start.points3D[point_id].xyz = place
        for element in elements:
            image = start.images[element.image_id]
            if (pixel := image.project_point(place)) is not None:
                image.points2D[element.point2D_idx].xy = pixel
        assert before.project_point(place) is None
    found = adjust(start)
    assert found.behind >= 3
    assert found.initial_cost < 1e6
    assert found.cost == pytest.approx(by_ceres(start)[0], rel=SAME)


def test_what_is_constant_stays():
    start = synthesized()
    names = tuple(sorted(image.name for image in start.images.values())[:2])
    held = [image for image in start.images.values() if image.name in names]
    points = tuple(sorted(start.points3D)[:5])

    def change(config):
        for image in held:
            config.set_constant_rig_from_world_pose(image.frame_id)
        for point_id in points:
            config.add_constant_point(point_id)
        config.set_constant_cam_intrinsics(held[0].camera_id)

    found = adjust(start, AdjustOptions(fix_poses=names, fix_points=points, fix_cameras=(held[0].camera_id,)))
    cost, theirs = by_ceres(start, change=change)
    assert found.cost == pytest.approx(cost, rel=SAME)
    for image in held:
        after = found.model.images[image.image_id].cam_from_world().matrix()
        assert after == pytest.approx(image.cam_from_world().matrix(), abs=1e-12)
    for point_id in points:
        assert found.model.points3D[point_id].xyz == pytest.approx(start.points3D[point_id].xyz, abs=1e-12)
    # Nothing of the gauge is left: the models themselves are equal.
    assert all(poses(found.model)[name] == pytest.approx(pose, abs=1e-4) for name, pose in poses(theirs).items())


def test_known_positions_pull_the_model_to_their_place_and_scale():
    start = synthesized()
    truth = {image.name: image.projection_center() for image in start.images.values()}
    start.transform(pycolmap.Sim3d(0.3, pycolmap.Rotation3d(np.array([0.5, 0.5, 0.5, 0.5])), np.array([4.0, 5.0, 6.0])))
    known = {name: Known(tuple(centre), 0.001) for name, centre in truth.items()}
    found = adjust(start, AdjustOptions(positions=known))
    loose = adjust(start, AdjustOptions(positions={name: Known(one.centre, 1e3) for name, one in known.items()}))
    centres = {image.name: image.projection_center() for image in found.model.images.values()}
    misses = [np.linalg.norm(centres[name] - truth[name]) for name in truth]
    freely = {image.name: image.projection_center() for image in loose.model.images.values()}
    assert max(misses) < 0.01 < max(np.linalg.norm(freely[name] - truth[name]) for name in truth)
    assert loose.cost == pytest.approx(adjust(start).cost, rel=1e-4)
    assert found.cost > loose.cost
    # The same cost as residuals and positions have in the model that came out.
    squared = sum(
        np.sum((image.project_point(found.model.points3D[p.point3D_id].xyz) - p.xy) ** 2)
        for image in found.model.images.values()
        for p in image.points2D
        if p.has_point3D()
    )
    assert found.cost == pytest.approx(0.5 * squared + 0.5 * sum((miss / 0.001) ** 2 for miss in misses), rel=1e-6)


def test_positions_pull_as_pose_priors_of_colmap_do():
    start, rng = synthesized(), np.random.default_rng(0)
    centres = {image.name: image.projection_center() + rng.normal(0.0, 0.01, 3) for image in start.images.values()}
    found = adjust(start, AdjustOptions(positions={name: Known(tuple(c), 0.01) for name, c in centres.items()}))
    result, config, priors = pycolmap.Reconstruction(start), pycolmap.BundleAdjustmentConfig(), []
    for image_id, image in result.images.items():
        config.add_image(image_id)
        prior = pycolmap.PosePrior(position=centres[image.name], position_covariance=np.eye(3) * 1e-4)
        prior.coordinate_system = pycolmap.PosePriorCoordinateSystem.CARTESIAN
        prior.pose_prior_id, prior.corr_data_id = image_id, image.data_id
        priors.append(prior)
    options = pycolmap.BundleAdjustmentOptions()
    options.ceres.solver_options.num_threads, options.print_summary = 1, False
    theirs = pycolmap.PosePriorBundleAdjustmentOptions()
    theirs.alignment_ransac.random_seed = 0
    summary: Any = pycolmap.create_pose_prior_bundle_adjuster(options, theirs, config, priors, result).solve()
    assert found.cost == pytest.approx(summary.ceres_summary.final_cost, rel=SAME)
    assert all(poses(found.model)[name] == pytest.approx(pose, abs=1e-4) for name, pose in poses(result).items())


def test_positions_of_sensors_beside_the_middle_of_a_rig():
    start = synthesized(
        num_cameras_per_rig=2, num_frames_per_rig=6, sensor_from_rig_translation_stddev=0.3,
        sensor_from_rig_rotation_stddev=20.0,
    )  # fmt: skip
    known = {image.name: Known(tuple(image.projection_center()), 0.003) for image in start.images.values()}
    found = adjust(start, AdjustOptions(positions=known))
    assert found.convergence.reason == "converged"
    assert found.cost < found.initial_cost


def test_deviations_come_on_request():
    found = adjust(synthesized(num_points3D=300))
    assert set(found.deviations) == {image.name for image in found.model.images.values()}
    rotation, centre, focal = np.array(list(found.deviations.values())).T
    assert ((rotation > 0.0) & (rotation < 1.0)).all()
    assert ((centre > 0.0) & (centre < 0.05) & (focal > 0.0)).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fix_poses": ("nobody.jpg",)}, "nobody.jpg"),
        ({"fix_points": (10**9,)}, "1000000000"),
        ({"fix_cameras": (99,)}, "camera 99"),
        ({"positions": {"nobody.jpg": Known((0.0, 0.0, 0.0))}}, "nobody.jpg"),
    ],
)
def test_what_the_model_has_not_is_told(options, told):
    with pytest.raises(InputError, match=told):
        adjust(synthesized(), AdjustOptions(**options))


@pytest.mark.parametrize("options", [{"free": ("lens",)}, {"loss": "tukey"}, {"scale": 0.0}])
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(InputError, match="expected"):
        AdjustOptions(**options)


def test_a_model_without_observations_is_refused():
    with pytest.raises(InputError, match="has poses of 0 images"):
        adjust(pycolmap.Reconstruction())


def test_command_writes_the_model_and_what_was_done(tmp_path, capsys):
    model = write_ring(tmp_path)
    out = tmp_path / "out"
    assert run("adjust", model, "--output", out, "--free", "focal", "--loss", "cauchy", "--deviations") == 0
    told = json.loads((out / "adjust.json").read_text())
    assert told["free"] == ["focal"]
    assert told["cost"] <= told["initial_cost"]
    assert len(told["deviations"]) == 10
    assert len(pycolmap.Reconstruction(str(out / "sparse" / "0")).images) == 10
    assert "written" in capsys.readouterr().out
    assert run("adjust", model, "--output", out) == 0  # its own files it replaces


def test_command_refuses_what_it_would_lose_or_not_understand(tmp_path, capsys):
    model = write_ring(tmp_path)
    assert run("adjust", model, "--output", tmp_path / "out", "--fix-poses", "nobody.jpg") == 2
    assert "nobody.jpg" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    target = tmp_path / "mine"
    (target / "sparse" / "0").mkdir(parents=True)
    (target / "sparse" / "0" / "cameras.bin").write_bytes(b"mine")
    assert run("adjust", model, "--output", target) == 2
    assert (target / "sparse" / "0" / "cameras.bin").read_bytes() == b"mine"


def test_command_takes_known_positions(tmp_path, capsys):
    model = write_ring(tmp_path)
    places = {image.name: image.projection_center() for image in pycolmap.Reconstruction(str(model)).images.values()}
    table = tmp_path / "gnss.csv"
    rows = [f"{name},{','.join(str(2.0 * x + 1.0) for x in place)},0.01" for name, place in places.items()]
    table.write_text("image,x,y,z,deviation\n" + "\n".join(rows))
    assert run("adjust", model, "--output", tmp_path / "out", "--positions", table) == 0
    found = pycolmap.Reconstruction(str(tmp_path / "out" / "sparse" / "0"))
    for image in found.images.values():
        assert image.projection_center() == pytest.approx(2.0 * places[image.name] + 1.0, abs=0.01)
    table.write_text("image,x,y,z,deviation\na.jpg,1,2\n")
    assert run("adjust", model, "--output", tmp_path / "out", "--positions", table) == 2
    assert "line 2" in capsys.readouterr().err
