"""Arrays of 20 cameras whose given intrinsics are a few percent off: accepted, near the truth, and said so."""

import numpy as np
import pytest
from rooms import adjusted_from_truth, room

import initfree

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("given", ["known", "refine"])
@pytest.mark.parametrize("kind", ["level", "narrow"])
def test_given_intrinsics_that_are_off_are_refined_and_that_is_said(kind, given):
    """Focal lengths 2 to 6% off, principal points 20 to 60 px, distortion up to 40%, 2% of the detections wrong."""
    array = room(kind, seed=1, frames=500 if kind == "narrow" else 250)
    result = initfree.solve(array.problem(given))
    assert result.accepted, result.certificate.reason
    metrics = initfree.evaluate(result, array.truth())
    assert metrics.cameras_recovered == 20
    best = initfree.evaluate(adjusted_from_truth(array), array.truth())
    assert metrics.rotation_auc5 > max(94.0, best.rotation_auc5 - 0.8)
    assert metrics.translation_auc5 > max(97.0, best.translation_auc5 - 0.8)
    true = np.array([array.cameras[array.names.index(name)].mean_focal_length() for name in result.problem.names])
    assert np.abs(result.focal_pixels / true - 1.0).max() < 0.006
    (told,) = (note for note in result.notes if "the given intrinsics were refined; focal lengths changed by" in note)
    changes = [
        array.cameras[k].mean_focal_length() / array.given[k].mean_focal_length() - 1.0 for k in range(len(array.cameras))
    ]
    said = float(told.split("changed by ")[1].split("%")[0]) / 100.0
    assert said == pytest.approx(np.median(changes), abs=0.006)
    # Nearly every wrong detection is counted as one, and hardly any other.
    assert sum(camera.wrong for camera in result.cameras) == pytest.approx(len(array.wrong), abs=5)
