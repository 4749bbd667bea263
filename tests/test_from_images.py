"""From images to a model, end to end: rendered by the generator, SIFT and matches of COLMAP, solved from the database."""

import json

import numpy as np
import pycolmap
import pytest

import initfree
from initfree.commands.cli import main
from initfree.io.quiet import quiet

pytestmark = pytest.mark.slow

pytest.importorskip("embreex")


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """Eight images of a walk along the building, and what SIFT finds in them."""
    from initfree.generator import generate, write

    folder = tmp_path_factory.mktemp("rendered")
    dataset = generate("set8", 0, cameras=8, points=300, density=4.0, width=480, height=360)
    write(dataset, folder, database=False, figures=False, render=True)
    camera = dataset.cameras[0]
    reading = pycolmap.ImageReaderOptions()
    reading.camera_model, reading.camera_params = camera.model.name, camera.params_to_string()
    with quiet():
        pycolmap.extract_features(
            folder / "database.db", folder / "images", camera_mode=pycolmap.CameraMode.SINGLE, reader_options=reading,
            device=pycolmap.Device.cpu,
        )  # fmt: skip
        pycolmap.match_exhaustive(folder / "database.db", device=pycolmap.Device.cpu)
    return folder


def test_rendered_images_become_a_model(rendered, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        # Eight images of a straight walk do not determine the focal length: that of the database is said to be known.
        main([
            "solve", str(rendered / "database.db"), "--intrinsics", "known",
            "--output", str(tmp_path / "out"), "--images", str(rendered / "images"),
        ])  # fmt: skip
    assert ended.value.code == 0
    written = pycolmap.Reconstruction(str(tmp_path / "out" / "sparse" / "0"))
    assert written.num_reg_images() == 8
    metrics = initfree.evaluate(written, rendered / "sparse" / "0")
    assert metrics.rotation_auc5 > 95.0
    assert metrics.translation_auc5 > 90.0
    # Every SIFT keypoint is there, sky and stone are of different colours, and nothing is off by more than 4 px.
    with pycolmap.Database.open(rendered / "database.db") as database:
        assert {i: image.num_points2D() for i, image in written.images.items()} == {
            image.image_id: database.num_keypoints_for_image(image.image_id) for image in database.read_all_images()
        }
    assert np.std([point.color for point in written.points3D.values()]) > 5.0
    assert max(point.error for point in written.points3D.values()) < 4.0
    report = json.loads((tmp_path / "out" / "run.json").read_text())
    assert report["model"]["points"] == written.num_points3D()
    assert "arbitrary" in report["model"]["unit"]
