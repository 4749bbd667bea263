"""The verdict as a person would say it, and what to do about a refusal: the same on the terminal, the page and in the view.

All of it is read from what run.json holds.
"""

from dataclasses import dataclass
from typing import Any

_NAMED = 5
"""images that a sentence names"""
_FIT = 0.8
"""share of its detections from which a camera agrees with the others"""
UNDETERMINED = 90.0
"""degrees: a rotation of a larger standard deviation may be any"""
_FEW = 1.0 / 3.0
"""of the cameras, up to which those that fail are the ones that do not fit"""


@dataclass(frozen=True)
class Advice:
    """A row of the table in docs/faq.md."""

    says: str
    """how the reason begins, or an example of it"""
    means: str
    try_this: str
    checks: tuple[str, ...]
    """names of the certificate's checks that say it"""


ADVICE = (
    Advice(
        "image 'x' fits only 12% of its observations",
        "the camera has wrong matches, or shows another place",
        "better matches, or leave it out (`--image-list`)",
        (
            "share of every camera",
            "purity of every camera",
            "consensus of every camera",
            "consensus share of every camera",
            "even cameras",
        ),
    ),
    Advice(
        "even the better cameras miss their observations by 2.3 px",
        "keypoints are inexact, the camera model lacks a distortion, or the rig is not synchronised",
        "`--intrinsics refine` or `unknown`; for points clicked in large images, scale coordinates and intrinsics down, "
        "because limits are in pixels",
        ("noise",),
    ),
    Advice(
        "only 60% of the observations lie within 4 px",
        "too many matches are wrong, or the intrinsics are",
        "`--intrinsics refine` or `unknown`; stricter matching",
        ("share", "purity"),
    ),
    Advice(
        "12 landmarks join 5 images (a, ...) with the others, and 4 of them fit both",
        "too few landmarks connect two parts",
        "more images between them",
        ("weakest joint", "even joints", "safe joints"),
    ),
    Advice(
        "not determined: ... are joined by 40 landmarks along a line, about which they may turn",
        "the parts share a pole, a wire or a line of the floor only",
        "images that see more of both",
        ("hinge", "determined", "certain cameras", "held by intact tracks"),
    ),
    Advice(
        "... look at the same places from the same sides, but share only 20% of what they should",
        "parts that look alike (facades, towers) were probably merged",
        "images that show the difference; of a video, `--pairs sequential`",
        ("not doubled", "nothing twice", "one joint", "none belongs"),
    ),
    Advice(
        "rotations alone explain the images to 0.8 px: the cameras only turn",
        "the cameras hardly moved, or all landmarks lie on a plane: nothing tells depths",
        "images from other places",
        ("baselines", "parallax", "safe parallax"),
    ),
    Advice(
        "the images do not determine the focal length",
        "the motion of the camera does not determine it",
        "give intrinsics, or also turn the camera",
        ("focal length", "one focal length", "certain focal length", "shared cameras"),
    ),
    Advice(
        "ambiguous: the same turned inside out fits as well",
        "from afar, depths may be reversed",
        "closer images",
        ("not reversed", "no other"),
    ),
    Advice(
        "errors of neighbouring observations point the same way",
        "the model is bent, or the camera model lacks a distortion",
        "`--intrinsics refine`",
        ("coherent errors", "lens", "metric cameras"),
    ),
    Advice(
        "only 20 of 24 images form one consistent reconstruction",
        "the named images contradict the others",
        "look at those images",
        ("left out", "one scene"),
    ),
    Advice(
        "2 images do not check each other",
        "two images fit each other wherever they stand",
        "a third image, or more",
        ("enough images", "redundancy", "spread"),
    ),
)
"""by what the certificate says; docs/faq.md has the same table"""


_MEND = Advice(
    "cam3 fits if x and y are exchanged", "its detections fit the other cameras then", "mend the table and solve again", ()
)
_STEP = Advice(
    "cam4 is out of step",
    "its recording began at another moment, or its trigger lags",
    "correct its frame numbers and solve again",
    (),
)


_NOTHING = Advice(
    "only 17% of the observations fit any cameras that were found",
    "most matches are wrong: what has one number are different places",
    "look at two images with their matches; stricter matching",
    (),
)
_HARDLY = 0.3
"""share of the observations that fit, below which the sentence says that, and no finer reason"""
_LATE = "is out of step"
_LEFT = "form one consistent reconstruction"
"""of the certificate's reason where images were left out"""


@dataclass(frozen=True)
class Verdict:
    """What to say first."""

    accepted: bool
    title: str
    """accepted, or not accepted"""
    sentence: str
    """without a full stop; it counts what is missing"""
    advice: tuple[Advice, ...] = ()
    """what to do about a refusal"""
    begins_with_name: bool = False

    @property
    def line(self) -> str:
        """The sentence with a capital and a full stop; a name stays as it is."""
        first = self.sentence[:1]
        return (first if self.begins_with_name else first.upper()) + self.sentence[1:] + "."


def verdict_of(run: dict[str, Any]) -> Verdict:
    """The verdict on a run, from its run.json."""
    certificate = run["certificate"]
    accepted = bool(certificate["accepted"])
    said = _agreement(run) if accepted else _placed(run) + _objection(run)
    sentence = "; ".join([said, *_others(run)])
    failed = [check["check"] for check in certificate["checks"] if not _passed(check)] if not accepted else []
    advice = tuple(one for one in ADVICE if any(check in one.checks for check in failed))
    mistakes = [] if accepted else list(_mistakes(run).values())
    if mistakes:
        late = [what.startswith(_LATE) for what in mistakes]
        advice = tuple(one for one, there in ((_MEND, not all(late)), (_STEP, any(late))) if there)
    elif not accepted and _fits_nothing(run):
        advice = (_NOTHING,)
    names = (*(run.get("cameras") or {}), *run["problem"]["dropped"]["images"])
    named = any(sentence.startswith((f"{name} ", f"{name}, ")) for name in names)
    return Verdict(accepted, "accepted" if accepted else "not accepted", sentence, advice, named)


def _passed(check: dict[str, Any]) -> bool:
    return check["margin"] is not None and check["margin"] >= 0.0


def counted(count: int, what: str) -> str:
    """1 image, 2 images."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def listed(names: list[str]) -> str:
    """Some of many names."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def reasons_below(run: dict[str, Any]) -> list[str]:
    """Reasons of a refusal that its sentence does not quote."""
    sentence, alone = verdict_of(run).sentence, _alone(run)
    return [one for one in run["certificate"]["reason"].split("; ") if one not in sentence and not (alone and _LEFT in one)]


def _noun(run: dict[str, Any]) -> str:
    return "camera" if run["problem"].get("array") else "image"


def _agreement(run: dict[str, Any]) -> str:
    placed, missing = run["problem"]["cameras"], len(run["problem"]["dropped"]["images"])
    cameras = run.get("cameras") or {}
    if missing:
        return f"{placed} of {placed + missing} {_noun(run)}s agree with each other"
    return f"all {len(cameras) or placed} {_noun(run)}s agree with each other"


def _placed(run: dict[str, Any]) -> str:
    placed, missing = run["problem"]["cameras"], len(run["problem"]["dropped"]["images"])
    named = _mistakes(run) or _alone(run)
    return f"{placed} of {placed + missing} {_noun(run)}s placed: " if missing and not named else ""


def _mistakes(run: dict[str, Any]) -> dict[str, str]:
    """By name, for cameras that do not fit: the mistake in the table that explains it."""
    bad = {*run["certificate"]["failing"], *run["problem"]["dropped"]["images"]}
    late = {name: f"{_LATE}: it {how}" for name, how in (run.get("out_of_step") or {}).items() if name in bad}
    return late | (run.get("exchanges") or {})


def _alone(run: dict[str, Any]) -> str:
    """The sentence on few images that were left out of others that agree; empty where they are not what failed."""
    gone, placed = run["problem"]["dropped"]["images"], run["problem"]["cameras"]
    failed = [check for check in run["certificate"]["checks"] if not _passed(check) and not check.get("doubt")]
    if [check["check"] for check in failed] != ["left out"] or len(gone) > _FEW * (placed + len(gone)):
        return ""
    why = failed[0]["reason"].partition(" (")[2].removesuffix(")")
    verb = "does" if len(gone) == 1 else "do"
    return f"{listed(gone)} {verb} not fit the other {placed} ({why}); the other {placed} agree"


def _objection(run: dict[str, Any]) -> str:
    """The images that do not fit, if they are few; otherwise the first reason."""
    certificate, cameras = run["certificate"], run.get("cameras") or {}
    explained = [f"{name} {what}" for name, what in _mistakes(run).items()]
    if explained or _alone(run):
        return "; ".join(explained) or _alone(run)
    failing = [name for name in certificate["failing"] if name in cameras]
    fits = {name: 1.0 - one["wrong"] / max(one["detections"], 1) for name, one in cameras.items()}
    others = [name for name in cameras if name not in failing]
    alone = 0 < len(failing) <= _FEW * len(cameras) and all(fits[name] >= _FIT for name in others)
    if alone and all(fits[name] < _FIT for name in failing):
        verb, share = ("does", "its") if len(failing) == 1 else ("do", "their")
        worst = min(fits[name] for name in failing)
        at_most = "" if len(failing) == 1 else "at least "
        return (
            f"{listed(failing)} {verb} not fit the other {len(others)} ({at_most}{worst:.0%} of {share} detections fit); "
            f"the other {len(others)} agree"
        )
    reasons = certificate["reason"].split("; ")
    if _fits_nothing(run):
        share = f"only {certificate['inlier_share']:.0%} of the observations fit any cameras that were found"
        return f"{share} ({counted(len(reasons), 'reason')}, below)"
    return reasons[0] + (f" (and {counted(len(reasons) - 1, 'more reason')}, below)" if len(reasons) > 1 else "")


def _fits_nothing(run: dict[str, Any]) -> bool:
    """What nothing fits has no finer reasons."""
    share = run["certificate"].get("inlier_share")
    return share is not None and share < _HARDLY


def _others(run: dict[str, Any]) -> list[str]:
    """What the reconstruction does not hold: other scenes, and images that belong to none."""
    scenes = [scene for scene in run.get("scenes", [])[1:]]
    elsewhere = {name for scene in scenes for name in scene["images"]}
    said = {} if run["certificate"]["accepted"] else _mistakes(run)
    alone = not run["certificate"]["accepted"] and not said and bool(_alone(run))
    missing = [name for name in run["problem"]["dropped"]["images"] if name not in elsewhere and name not in said]
    found = [
        f"{len(scene['images'])} form another part ({scene['model']}, {'accepted' if scene['accepted'] else 'not accepted'})"
        for scene in scenes
    ]
    if missing and not alone:
        found.append(f"{counted(len(missing), _noun(run))} left out: {listed(missing)}")
    if run["certificate"]["accepted"]:
        found += [f"{name} {what}" for name, what in _mistakes(run).items()]
    if not scenes and run["problem"]["dropped"]["components"] > 1:
        found.append(f"the input has {run['problem']['dropped']['components']} parts that nothing joins")
    return found


def why_not_the_cheapest(run: dict[str, Any]) -> str:
    """Why the start of the result has not the lowest cost; empty where it has."""
    starts = {start["name"]: start for start in run["starts"]}
    won = starts.get(run.get("winner") or "")
    if won is None:
        return ""
    cheapest = min(starts.values(), key=lambda start: start["cost"])
    if cheapest["cost"] >= 0.999 * won["cost"]:
        return ""
    if won["accepted"] and not cheapest["accepted"]:
        return f"“{cheapest['name']}” cost less, but is not accepted"
    return (
        f"“{cheapest['name']}” cost less where starts are compared; what came of “{won['name']}” was the better one after "
        "intrinsics and wrong matches"
    )
