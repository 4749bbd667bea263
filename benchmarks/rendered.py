"""Rendered collections of photographs with exact truth: what strangers' photographs have and curated sets have not.

A collection is a yard with things in it, photographed in one of the ways of `KINDS`, rendered by ray casting, spoilt, saved
as JPEG and matched by COLMAP. What is written is what `photographs.py` reads: `KIND-SEED.db` with the cameras as EXIF or a
guess has them, `KIND-bare-SEED.db` without EXIF, and the truth in `reference/`, in one folder or one for each scene.

python benchmarks/rendered.py /tmp/rendered --seeds 0 1
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pycolmap
import tyro
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter, gaussian_filter1d

from initfree.generator.render import render
from initfree.generator.scenes import Surface
from initfree.generator.scenes.solids import Solid, box, cylinder
from initfree.generator.trajectories import Poses, looking
from initfree.generator.visibility import RayCaster
from initfree.io.quiet import quiet
from initfree.photographs.cameras import share_cameras

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 480, 360
FEATURES = 800
GUESS = 1.2
"""times the longer side: COLMAP's focal length where nothing is known"""
FILM_DIAGONAL = 43.2666
"""millimetres"""
SHUTTER_ROWS = 15
"""of an image that are taken at one moment"""


@dataclass(frozen=True)
class Thing:
    """A solid, and the places of its vertices in the stone pattern: equal things have equal ones."""

    solid: Solid
    color: tuple[int, int, int]
    pattern: Floats


@dataclass(frozen=True)
class Shot:
    """A photograph: where from, with which camera, and what spoils it."""

    eye: Floats
    target: Floats
    focal: float
    """in widths"""
    scene: int = 0
    lens: int = 0
    """number of the camera that the input has for it"""
    said: float | None = None
    """focal length of EXIF, in widths; None: there is no EXIF"""
    k1: float = 0.0
    passing: tuple[Thing, ...] = ()
    """things that are there at this moment"""
    shutter: Floats = field(default_factory=lambda: np.zeros(3))
    """way of the camera while the rows are read"""
    blur: float = 0.0
    """pixels: of a lens out of focus;"""
    shake: float = 0.0
    """of the hand, along the rows"""
    light: float = 1.0
    noise: float = 1.0
    """grey levels"""


@dataclass(frozen=True)
class Collection:
    """Scenes, and photographs of them."""

    scenes: tuple[tuple[Thing, ...], ...]
    shots: tuple[Shot, ...]


def made(rng: np.random.Generator, solid: Solid, scale: float) -> Thing:
    """Of any colour, with a pattern of its own: blocks of 1.6 by 0.8 m over the scale."""
    r, g, b = rng.integers(90, 230, 3)
    return Thing(solid, (int(r), int(g), int(b)), rng.uniform(-1e3, 1e3, 3) + scale * solid[0])


def placed(thing: Thing, x: float, y: float, z: float = 0.0, turn: float = 0.0) -> Thing:
    """The same thing elsewhere, turned about its upright axis."""
    c, s = np.cos(turn), np.sin(turn)
    vertices = thing.solid[0] @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + [x, y, z]
    return replace(thing, solid=(vertices, thing.solid[1]))


def yard(rng: np.random.Generator, things: int = 9, size: float = 8.0, scale: float = 1.0) -> list[Thing]:
    """A floor, two walls behind it, and boxes and columns at random."""
    low, high = (-size, -size, -0.2), (size, size, 0.0)
    found = [made(rng, box(low, high), 1.5 * scale)]
    found.append(made(rng, box((-size, size, 0.0), (size, size + 0.3, 5.0)), 1.5 * scale))
    found.append(made(rng, box((-size - 0.3, -size / 2, 0.0), (-size, size, 4.0)), 1.5 * scale))
    for k in range(things):
        x, y = rng.uniform(-0.6 * size, 0.6 * size, 2)
        wide, deep, high = rng.uniform(0.6, 2.2), rng.uniform(0.6, 2.2), rng.uniform(0.6, 3.0)
        solid = cylinder(x, y, 0.0, high, wide / 2) if k % 3 == 2 else box((x, y, 0.0), (x + wide, y + deep, high))
        found.append(made(rng, solid, scale * rng.uniform(1.5, 3.0)))
    return found


def arc(rng: np.random.Generator, images: int, degrees: float = 90.0, radius: float = 11.0) -> list[Shot]:
    """Round the front of the yard, at the heights of a hand, about its middle."""
    angles = np.radians(-75.0 + np.linspace(-degrees / 2, degrees / 2, images) + rng.normal(0.0, 1.0, images))
    shots = []
    for angle in angles:
        away = radius * rng.uniform(0.85, 1.15)
        eye = np.array([away * np.cos(angle), away * np.sin(angle), rng.uniform(1.2, 3.0)])
        shots.append(Shot(eye, np.array([0.0, 0.0, 1.2]) + rng.normal(0.0, 0.7, 3), 1.0))
    return shots


def right(rng: np.random.Generator) -> Collection:
    """One camera, whose focal length EXIF has to a few percent."""
    f = rng.uniform(0.75, 1.3)
    said = f * rng.uniform(0.97, 1.03)
    return Collection((tuple(yard(rng)),), tuple(replace(s, focal=f, said=said, k1=-0.02) for s in arc(rng, 12)))


def internet(rng: np.random.Generator) -> Collection:
    """A camera an image; two thirds have EXIF, a fifth of which is wrong by 1.5 to 2.5 times."""
    shots = []
    for k, shot in enumerate(arc(rng, 14)):
        f = rng.uniform(0.7, 1.6)
        wrong = rng.uniform(1.5, 2.5) if rng.random() < 0.2 else rng.uniform(0.96, 1.04)
        said = f * wrong if rng.random() < 0.67 else None
        shots.append(replace(shot, focal=f, said=said, lens=k, k1=rng.uniform(-0.05, 0.02), noise=rng.uniform(1.0, 4.0)))
    return Collection((tuple(yard(rng)),), tuple(shots))


def wrong_exif(rng: np.random.Generator) -> Collection:
    """One camera, whose focal length EXIF has wrong by 1.6 to 2.6 times: a crop, or a converter."""
    f = rng.uniform(0.75, 1.3)
    said = f * rng.uniform(1.6, 2.6) ** rng.choice([-1.0, 1.0])
    return Collection((tuple(yard(rng)),), tuple(replace(s, focal=f, said=said) for s in arc(rng, 12)))


def equal_things(rng: np.random.Generator) -> Collection:
    """Two equal cupboards at the two ends of a room, turned against each other, and what lies between them."""
    cupboard = made(rng, box((0.0, 0.0, 0.0), (rng.uniform(1.5, 2.2), 0.8, rng.uniform(1.8, 2.6))), 2.0)
    turn = np.radians(rng.uniform(35.0, 70.0))
    between = [one for one in yard(rng, 8, 9.0) if abs(one.solid[0][:, 0].mean()) < 3.0]
    things = [*between, placed(cupboard, -5.8, 1.0), placed(cupboard, 4.2, 1.0, turn=turn)]
    shots = []
    for x in np.concatenate([np.linspace(-6.5, -3.5, 5), np.linspace(-2.5, 2.5, 4), np.linspace(3.5, 6.5, 5)]):
        facing = turn * np.clip(x / 5.0, 0.0, 1.0)
        middle = np.array([1.1 * x, 1.2, 1.1])
        away = np.array([4.5 * np.sin(facing), -4.5 * np.cos(facing), rng.uniform(0.2, 0.9)])
        eye = middle + away + rng.normal(0.0, 0.15, 3)
        shots.append(Shot(eye, middle + rng.normal(0.0, 0.15, 3), 0.95, said=0.95))
    return Collection((tuple(things),), tuple(shots))


def plain(rng: np.random.Generator) -> Collection:
    """Walls and things with hardly any texture."""
    shots = tuple(replace(s, focal=0.9, said=0.9, noise=1.5) for s in arc(rng, 12))
    return Collection((tuple(yard(rng, scale=0.3)),), shots)


def dim(rng: np.random.Generator) -> Collection:
    """At dusk: four fifths of the light, and noise."""
    shots = tuple(replace(s, focal=1.0, said=1.0, light=0.8, noise=rng.uniform(1.5, 3.0)) for s in arc(rng, 12))
    return Collection((tuple(yard(rng)),), shots)


def blurred(rng: np.random.Generator) -> Collection:
    """Every third photograph shaken or out of focus."""
    shots = [
        replace(s, focal=1.0, said=1.0, blur=rng.uniform(1.0, 2.2) if k % 3 == 1 else 0.0, shake=4.0 if k % 6 == 4 else 0.0)
        for k, s in enumerate(arc(rng, 12))
    ]
    return Collection((tuple(yard(rng)),), tuple(shots))


def video(rng: np.random.Generator) -> Collection:
    """A telephone carried past, with a rolling shutter and a lens that nothing is known of."""
    f, k1 = rng.uniform(0.75, 1.0), rng.uniform(-0.03, 0.03)
    way = np.linspace(-6.0, 6.0, 14)
    step = way[1] - way[0]
    height = np.cumsum(rng.normal(0.0, 0.08, 14))
    shots = []
    for x, up in zip(way, height, strict=True):
        eye, target = np.array([x, -8.0 + 0.05 * x**2, 1.6 + up]), np.array([0.45 * x, 1.0, 1.2 + up])
        shots.append(Shot(eye, target, f, k1=k1, shutter=np.array([0.02 * step, 0.0, 0.0]), shake=1.0))
    return Collection((tuple(yard(rng)),), tuple(shots))


def passers(rng: np.random.Generator) -> Collection:
    """Two to four people before the scene, elsewhere in each photograph and always the same."""
    people = [made(rng, box((0.0, 0.0, 0.0), (0.5, 0.4, 1.8)), 4.0) for _ in range(rng.integers(2, 5))]
    shots = []
    for shot in arc(rng, 13):
        spots = [shot.eye * (1.0 - rng.uniform(0.25, 0.7)) + rng.normal(0.0, 1.3, 3) for _ in people]
        passing = tuple(placed(one, spot[0], spot[1]) for one, spot in zip(people, spots, strict=True))
        shots.append(replace(shot, focal=0.9, said=0.9, passing=passing))
    return Collection((tuple(yard(rng)),), tuple(shots))


def wide_rig(rng: np.random.Generator) -> Collection:
    """A pair of very wide cameras carried about, each photograph with COLMAP's guess, almost four times too long."""
    f, k1, base = 0.31, -0.03, 0.35
    shots = []
    for k, shot in enumerate(arc(rng, 7, 70.0, 5.5)):
        ahead = shot.target - shot.eye
        across = np.cross(ahead, [0.0, 0.0, 1.0])
        across *= base / np.linalg.norm(across)
        for side in (-0.5, 0.5):
            eye = shot.eye + side * across
            shots.append(Shot(eye, eye + ahead, f, lens=2 * k + int(side > 0), k1=k1))
    return Collection((tuple(yard(rng)),), tuple(shots))


def two_scenes(rng: np.random.Generator) -> Collection:
    """Two places in one folder."""
    shots = [
        replace(s, focal=1.0, said=1.0, scene=k) for k, count in enumerate((9, 6)) for s in arc(rng, count, 8.0 * count)
    ]
    return Collection((tuple(yard(rng)), tuple(yard(rng))), tuple(shots))


def strip(rng: np.random.Generator) -> Collection:
    """A drone along two lines over houses, its camera tilted; EXIF has its focal length to a tenth."""
    found = [made(rng, box((-30.0, -15.0, -0.5), (30.0, 15.0, 0.0)), 0.7)]
    for _ in range(22):
        x, y = rng.uniform(-28.0, 26.0), rng.uniform(-13.0, 11.0)
        high = rng.uniform(1.0, 5.0)
        found.append(made(rng, box((x, y, 0.0), (x + rng.uniform(2.0, 4.0), y + rng.uniform(2.0, 4.0), high)), 0.9))
    f = rng.uniform(0.75, 1.0)
    said = f * rng.uniform(0.9, 1.1)
    shots = []
    for y, way in ((-3.5, np.linspace(-15.0, 15.0, 7)), (3.5, np.linspace(15.0, -15.0, 7))):
        for x in way:
            eye = np.array([x, y - 5.0, 18.0]) + rng.normal(0.0, 0.3, 3)
            shots.append(Shot(eye, eye + np.array([0.0, 0.45, -1.0]) + rng.normal(0.0, 0.05, 3), f, said=said))
    return Collection((tuple(found),), tuple(shots))


def windows(rng: np.random.Generator) -> Collection:
    """A front with two rows of equal windows, and a few things before it."""
    window = made(rng, box((0.0, 0.0, 0.0), (1.5, 0.25, 1.8)), 3.0)
    things = [
        made(rng, box((-14.0, 8.0, 0.0), (14.0, 8.3, 6.0)), 1.2),
        made(rng, box((-14.0, -9.0, -0.2), (14.0, 8.0, 0.0)), 1.2),
        *(placed(window, x, 7.8, z) for x in np.arange(-12.0, 12.0, 2.4) for z in (0.8, 3.4)),
        *yard(rng, 6, 6.0)[3:],
    ]
    shots = []
    for x in np.linspace(-8.0, 8.0, 13):
        eye = np.array([x, -3.5 + rng.normal(0.0, 0.4), rng.uniform(1.4, 2.2)])
        shots.append(Shot(eye, np.array([0.75 * x, 8.0, 2.2]) + rng.normal(0.0, 0.3, 3), 0.9, said=0.9))
    return Collection((tuple(things),), tuple(shots))


KINDS: dict[str, Callable[[np.random.Generator], Collection]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        right, internet, wrong_exif, equal_things, windows, plain, dim, blurred, video, passers, wide_rig, two_scenes, strip,
    )
}  # fmt: skip


def surface_of(things: tuple[Thing, ...]) -> Surface:
    """All of them, with their patterns."""
    first = np.cumsum([0, *(len(thing.solid[0]) for thing in things)])
    return Surface(
        np.concatenate([thing.solid[0] for thing in things]),
        np.concatenate([thing.solid[1] + k for thing, k in zip(things, first[:-1], strict=True)]),
        np.concatenate([np.tile(np.array(thing.color, np.uint8), (len(thing.solid[1]), 3, 1)) for thing in things]),
        two_sided=False,
        textured=True,
        pattern=np.concatenate([thing.pattern for thing in things]),
    )


def camera_of(shot: Shot) -> pycolmap.Camera:
    """The true one."""
    params = [shot.focal * WIDTH, WIDTH / 2, HEIGHT / 2, shot.k1]
    return pycolmap.Camera(model="SIMPLE_RADIAL", width=WIDTH, height=HEIGHT, params=params, camera_id=shot.lens + 1)


def photograph(things: tuple[Thing, ...], shot: Shot, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Rendered, and spoilt as the shot says."""
    surface = surface_of((*things, *shot.passing))
    caster, whole = RayCaster(surface), camera_of(shot)
    rows = SHUTTER_ROWS if shot.shutter.any() else HEIGHT
    parts = []
    for top in range(0, HEIGHT, rows):
        strip_of = pycolmap.Camera(
            model="SIMPLE_RADIAL", width=WIDTH, height=rows,
            params=[whole.params[0], whole.params[1], whole.params[2] - top, whole.params[3]],
        )  # fmt: skip
        when = (top + rows / 2) / HEIGHT - 0.5
        pose = looking(shot.eye[None], (shot.target - shot.eye)[None])
        eye = shot.eye + when * shot.shutter
        pose = Poses(pose.rotations, -np.einsum("nij,j->ni", pose.rotations, eye))
        parts.append(render(surface, caster, strip_of, pose, 0).image)
    image = np.concatenate(parts).astype(np.float64)
    if shot.blur > 0.0:
        image = gaussian_filter(image, (shot.blur, shot.blur, 0.0))
    if shot.shake > 0.0:
        image = gaussian_filter1d(image, shot.shake / 2.0, axis=1)
    image = shot.light * image + rng.normal(0.0, shot.noise, image.shape)
    return np.clip(image + 0.5, 0, 255).astype(np.uint8)


def write(name: str, seed: int, folder: Path) -> list[Path]:
    """A collection of a kind, rendered and matched, with its truth; the paths of its databases: as it is and, where it has
    EXIF, without (`NAME-bare-SEED`), as photographs come over networks."""
    rng = np.random.default_rng([list(KINDS).index(name), seed])
    collection = KINDS[name](rng)
    known = any(shot.said is not None for shot in collection.shots)
    paths = [folder / f"{name}-{word}{seed}.db" for word in (("", "bare-") if known else ("",))]
    with tempfile.TemporaryDirectory(prefix="initfree-") as scratch:
        images, extracted = Path(scratch), Path(scratch, "extracted.db")
        save(collection, images, rng)
        extraction = pycolmap.FeatureExtractionOptions()
        extraction.sift.max_num_features, extraction.num_threads, extraction.use_gpu = FEATURES, 1, False
        with quiet():
            pycolmap.extract_features(
                extracted, images, camera_mode=pycolmap.CameraMode.PER_IMAGE, extraction_options=extraction,
                device=pycolmap.Device.cpu,
            )  # fmt: skip
        for path, shots in zip(
            paths, (collection.shots, tuple(replace(s, said=None) for s in collection.shots)), strict=False
        ):
            work = Path(scratch, path.name)
            shutil.copy(extracted, work)
            _match(work, shots)
            write_truth(collection, folder / "reference" / path.stem)
            shutil.move(work, path)
    return paths


def save(collection: Collection, folder: Path, rng: np.random.Generator) -> None:
    """Its photographs as JPEG files, with the focal length of EXIF where there is one: whole millimetres of 35 mm film."""
    for k, shot in enumerate(collection.shots):
        exif = Image.Exif()
        if shot.said is not None:
            exif.get_ifd(0x8769)[41989] = round(shot.said * WIDTH * FILM_DIAGONAL / np.hypot(WIDTH, HEIGHT))
        pixels = photograph(collection.scenes[shot.scene], shot, rng)
        Image.fromarray(pixels).save(folder / f"{k:03d}.jpg", quality=90, exif=exif)


def _match(path: Path, shots: tuple[Shot, ...]) -> None:
    """Cameras as the input has them, and verified pairs."""
    matching, names = pycolmap.FeatureMatchingOptions(), [f"{k:03d}.jpg" for k in range(len(shots))]
    matching.num_threads, matching.use_gpu = 1, False
    with quiet():
        with pycolmap.Database.open(path) as database:
            ids = {image.name: image.camera_id for image in database.read_all_images()}
            for shot, name in zip(shots, names, strict=True):
                f = (GUESS if shot.said is None else shot.said) * WIDTH
                camera = pycolmap.Camera(
                    camera_id=ids[name], model="SIMPLE_RADIAL", width=WIDTH, height=HEIGHT,
                    params=[f, WIDTH / 2, HEIGHT / 2, 0.0], has_prior_focal_length=shot.said is not None,
                )  # fmt: skip
                database.update_camera(camera)
        share_cameras(path, names, "single" if len({shot.lens for shot in shots}) == 1 else "image")
        pycolmap.match_exhaustive(path, matching_options=matching, device=pycolmap.Device.cpu)
        with pycolmap.Database.open(path) as database:
            database.clear_descriptors()


def write_truth(collection: Collection, folder: Path) -> None:
    """A model for each scene, without points."""
    several = len(collection.scenes) > 1
    for scene in range(len(collection.scenes)):
        model = pycolmap.Reconstruction()
        for k, shot in enumerate(collection.shots):
            if shot.scene != scene:
                continue
            camera = camera_of(shot)
            if camera.camera_id not in model.cameras:
                model.add_camera_with_trivial_rig(camera)
            pose = looking(shot.eye[None], (shot.target - shot.eye)[None])
            image = pycolmap.Image(name=f"{k:03d}.jpg", camera_id=camera.camera_id, image_id=k + 1)
            world = pycolmap.Rigid3d(np.column_stack([pose.rotations[0], pose.translations[0]]))
            model.add_image_with_trivial_frame(image, world)
        place = folder / str(scene) if several else folder
        place.mkdir(parents=True, exist_ok=True)
        model.write(str(place))


def main(folder: tyro.conf.Positional[Path], kinds: tuple[str, ...] = tuple(KINDS), seeds: tuple[int, ...] = (0,)) -> None:
    """Write collections; those that are there stay.

    Args:
        folder: Of the databases; made if it is not there.
        kinds: Names, by default all.
        seeds: One collection of each kind for each.
    """
    for seed in seeds:
        for kind in kinds:
            if not (folder / f"{kind}-{seed}.db").is_file():
                print(*write(kind, seed, folder), flush=True)


if __name__ == "__main__":
    tyro.cli(main)
