"""What a run says first: who is missing, who does not fit, what to do; the same on the terminal and the page."""

import json
from pathlib import Path

import numpy as np
import pycolmap
import pytest
from commanding import run
from models import to_reconstruction
from synthetic import ring

import initfree
from initfree.certificate.checks import CHECKS
from initfree.drawing.verdict import ADVICE, counted, reasons_below, verdict_of, why_not_the_cheapest

DOCS = Path(__file__).resolve().parents[1] / "docs"


def together(first: pycolmap.Reconstruction, second: pycolmap.Reconstruction, shift: int = 1000) -> pycolmap.Reconstruction:
    """Both in one model; images of the second are named b..."""
    for image in second.images.values():
        more = pycolmap.Image(
            name=f"b{image.name}",
            keypoints=np.array([point.xy for point in image.points2D]),
            camera_id=image.camera_id,
            image_id=image.image_id + shift,
        )
        first.add_image_with_trivial_frame(more, image.cam_from_world())
    for k, point in second.points3D.items():
        track = [pycolmap.TrackElement(e.image_id + shift, e.point2D_idx) for e in point.track.elements]
        first.add_point3D_with_id(k + 100_000, pycolmap.Point3D(xyz=point.xyz, track=pycolmap.Track(track)))
    return first


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    first, second = (ring(cameras=k, landmarks=200, min_observations=3, noise=0.3, seed=k) for k in (14, 10))
    together(to_reconstruction(first), to_reconstruction(second)).write(str(folder))
    return folder


def test_two_scenes_are_two_models_each_with_its_verdict(two, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("solve", two, "-o", out) == 0
    printed = capsys.readouterr().out
    assert "accepted: 14 of 24 images agree with each other; 10 form another part (sparse/1, accepted)" in printed
    assert f"written: {out / 'sparse' / '0'} {out / 'sparse' / '1'} and" in printed
    assert "every camera" not in printed
    report = json.loads((out / "run.json").read_text())
    assert [(scene["model"], len(scene["images"])) for scene in report["scenes"]] == [("sparse/0", 14), ("sparse/1", 10)]
    assert "every camera" not in report["certificate"]["reason"]
    for number, count in ((0, 14), (1, 10)):
        model = pycolmap.Reconstruction(str(out / "sparse" / str(number)))
        assert model.num_reg_images() == count
    own = json.loads((out / "sparse" / "1" / "run.json").read_text())
    assert own["verdict"] == "all 10 images agree with each other"
    page = (out / "summary.html").read_text()
    assert "Nothing joins the parts" in page
    assert page.index("14 of 24 images") < page.index("Landmarks")
    assert run("view", out / "sparse" / "1", "--export", tmp_path / "one.html") == 0
    assert "All 10 images agree with each other" in (tmp_path / "one.html").read_text()


def test_two_scenes_in_memory_are_said_too(two):
    result = initfree.solve(two)
    assert repr(result).startswith("Result(14 of 24 cameras")
    assert "14 of 24" in result._repr_html_()
    assert result.notes[-1].startswith("nothing joins the 2 parts of the input; 10 images are not in this one")


def test_a_users_second_model_is_not_replaced_by_a_second_scene(two, tmp_path, capsys):
    (tmp_path / "sparse" / "1").mkdir(parents=True)
    (tmp_path / "sparse" / "1" / "mine.bin").write_text("keep")
    assert run("solve", two, "-o", tmp_path) == 2
    assert "sparse/1/mine.bin would be replaced" in capsys.readouterr().err


def test_the_second_scene_of_an_earlier_run_goes(two, tmp_path):
    to_reconstruction(ring(cameras=8, landmarks=150, min_observations=3)).write(str(tmp_path))
    out = tmp_path / "out"
    assert run("solve", two, "-o", out, "--quiet") == 0
    assert run("solve", tmp_path, "-o", out, "--quiet") == 0
    assert [path.name for path in (out / "sparse").iterdir()] == ["0"]


def a_run(**changes: object) -> dict:
    cameras = {f"cam{k}": {"detections": 600, "wrong": 0} for k in range(6)}
    certificate = {"accepted": True, "reason": "fits", "failing": [], "checks": []}
    problem = {"cameras": 6, "dropped": {"images": [], "components": 1}}
    return {"problem": problem, "certificate": certificate, "cameras": cameras, "starts": []} | changes


def refused(failing: list[str], *reasons: str, check: str = "share of every camera") -> dict:
    checks = [{"check": check, "margin": -1.0, "reason": reasons[0]}]
    return {"accepted": False, "reason": "; ".join(reasons), "failing": failing, "checks": checks}


def test_one_camera_that_does_not_fit_is_one_sentence():
    found = a_run(certificate=refused(["cam4"], "image 'cam4' fits only 1%", "97 landmarks join 1 image", "a", "b", "c"))
    found["cameras"]["cam4"]["wrong"] = 594
    verdict = verdict_of(found)
    assert verdict.sentence == "cam4 does not fit the other 5 (1% of its detections fit); the other 5 agree"
    assert [advice.try_this for advice in verdict.advice] == ["better matches, or leave it out (`--image-list`)"]


def test_what_nothing_fits_has_no_finer_reason():
    certificate = refused([], "cameras that only turn fit no worse (394 px)", "b", "c") | {"inlier_share": 0.17}
    verdict = verdict_of(a_run(certificate=certificate))
    assert verdict.sentence == "only 17% of the observations fit any cameras that were found (3 reasons, below)"
    assert [advice.try_this for advice in verdict.advice] == ["look at two images with their matches; stricter matching"]
    certificate["inlier_share"] = 0.9
    assert verdict_of(a_run(certificate=certificate)).sentence.startswith("cameras that only turn")


def left_out(name: str, why: str, **changes: object) -> dict:
    """A run whose one reason is a camera that was left out."""
    reason = f"only 5 of 6 images form one consistent reconstruction, without {name} ({why})"
    problem = {"cameras": 5, "dropped": {"images": [name], "components": 1}, "array": True}
    return a_run(certificate=refused([], reason, check="left out"), problem=problem) | changes


def test_a_camera_that_was_left_out_is_one_sentence_and_no_reason_comes_twice():
    found = left_out("cam4", "image 'cam4' fits only 1% of its observations")
    sentence = "cam4 does not fit the other 5 (image 'cam4' fits only 1% of its observations); the other 5 agree"
    assert verdict_of(found).sentence == sentence
    assert reasons_below(found) == []


def test_a_mistake_that_explains_a_camera_is_the_sentence():
    how = "shows in each frame what the others show 3.00 frames earlier (± 0.001)"
    late = verdict_of(left_out("cam4", "fits little", out_of_step={"cam4": how}))
    assert late.sentence == f"cam4 is out of step: it {how}"
    assert [advice.try_this for advice in late.advice] == ["correct its frame numbers and solve again"]
    swapped = verdict_of(left_out("cam4", "fits little", exchanges={"cam4": "fits if x and y are exchanged"}))
    assert swapped.sentence == "cam4 fits if x and y are exchanged"
    assert [advice.try_this for advice in swapped.advice] == ["mend the table and solve again"]
    # An offset of a camera that fits is no reason of the refusal.
    other = left_out("cam4", "fits little", out_of_step={"cam1": how})
    assert verdict_of(other).sentence.startswith("cam4 does not fit")


def test_arrays_have_cameras():
    assert verdict_of(a_run(problem=a_run()["problem"] | {"array": True})).sentence == "all 6 cameras agree with each other"


def test_others_are_said_to_agree_only_if_they_do():
    found = a_run(certificate=refused(["cam4"], "image 'cam4' fits only 1%", "the noise is high"))
    found["cameras"]["cam4"]["wrong"], found["cameras"]["cam1"]["wrong"] = 594, 300
    assert verdict_of(found).sentence == "image 'cam4' fits only 1% (and 1 more reason, below)"


def test_what_is_missing_is_in_the_sentence():
    found = a_run(problem={"cameras": 6, "dropped": {"images": ["cam6"], "components": 1}})
    assert verdict_of(found).sentence == "6 of 7 images agree with each other; 1 image left out: cam6"
    found["certificate"] = refused([], "noise")
    assert verdict_of(found).sentence == "6 of 7 images placed: noise; 1 image left out: cam6"


def test_grammar():
    assert [counted(k, "image") for k in (0, 1, 2, 1200)] == ["0 images", "1 image", "2 images", "1,200 images"]


def test_a_start_that_is_not_the_cheapest_says_why():
    starts = [{"name": "a", "cost": 80.0, "accepted": True}, {"name": "b", "cost": 30.0, "accepted": False}]
    assert why_not_the_cheapest({"starts": starts, "winner": "a"}) == "“b” cost less, but is not accepted"
    starts[1]["accepted"] = True
    assert "“b” cost less where starts are compared" in why_not_the_cheapest({"starts": starts, "winner": "a"})
    assert why_not_the_cheapest({"starts": starts, "winner": "b"}) == ""


def test_every_check_has_its_advice_and_the_faq_is_the_same_table():
    named = {check for advice in ADVICE for check in advice.checks}
    import initfree.certificate.checks as module

    source = Path(module.__file__).read_text()
    assert len(named) >= sum(len(group) for group in CHECKS)
    for name in named:
        assert f'"{name}"' in source, name
    table = "\n".join(f"| `{one.says}` | {one.means} | {one.try_this} |" for one in ADVICE)
    assert table in (DOCS / "faq.md").read_text()
