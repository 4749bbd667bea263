"""What a dataset is made of, as frozen dataclasses; the TOML presets have exactly these fields.

Lengths are in the scene's unit (metres for the courthouse), angles in degrees, the world's z axis points up.
"""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(gt=0, le=1)]
SpoiltShare = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
Vector = tuple[float, float, float]

_strict = ConfigDict(extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True, config=_strict)
class Courthouse:
    """The procedural courthouse: steps, columns, pediment, roof, windows, a hall inside; about 100 m."""

    kind: Literal["courthouse"] = "courthouse"
    landmarks: Count = 4000


@dataclass(frozen=True, config=_strict)
class Town:
    """`blocks` x `blocks` houses of random height on flat ground, for aerial trajectories."""

    kind: Literal["town"] = "town"
    landmarks: Count = 20000
    blocks: Count = 20
    spacing: Positive = 30.0


@dataclass(frozen=True, config=_strict)
class Mesh:
    """A mesh that trimesh reads (PLY, OBJ, GLB, STL ...); `spread` rescales it to that landmark spread."""

    kind: Literal["mesh"]
    path: Path
    landmarks: Count = 4000
    sampling: Literal["area", "vertices"] = "area"
    two_sided: bool = True
    spread: Positive | None = None


@dataclass(frozen=True, config=_strict)
class PointCloud:
    """A point cloud (PLY, XYZ); its points are the landmarks, `occlusion` says what hides them.

    `surfels`: a small square on every point, across its normal (estimated where the file has none).
    `poisson`: the surface that COLMAP's Poisson meshing finds (needs normals in the file).
    """

    kind: Literal["pointcloud"]
    path: Path
    landmarks: Count = 4000
    occlusion: Literal["surfels", "poisson", "none"] = "surfels"
    surfel_size: Positive = 2.0
    """Side of a surfel in units of the median distance between neighbouring points."""
    spread: Positive | None = None


@dataclass(frozen=True, config=_strict)
class Blend:
    """A Blender file: its evaluated meshes at the current frame (needs `initfree blender setup`)."""

    kind: Literal["blend"]
    path: Path
    landmarks: Count = 4000
    objects: tuple[str, ...] = ()
    """Names of the objects that landmarks lie on, by default all that render; the others hide them all the same. A mesh
    without faces is a point cloud: its points are the landmarks."""
    sampling: Literal["area", "vertices"] = "area"
    two_sided: bool = True


@dataclass(frozen=True, config=_strict)
class ColmapModel:
    """An existing COLMAP model, taken as it is: cameras, landmarks and measured observations."""

    kind: Literal["colmap"]
    path: Path | None = None
    """The model's directory; None looks in the directory named by INITFREE_DATA."""
    spread: Positive | None = None
    """Rescale it, cameras and all, to this rms distance of the landmarks from their mean."""


@dataclass(frozen=True, config=_strict)
class Cluster:
    """Landmarks of one shape, at random places of it (`size` is its extent along the axes).

    `box`: anywhere inside (a wall, a pole, a spot are thin boxes); `cubic`: on the twisted cubic
    centre + size/2 (s, s², s³), -1 <= s <= 1;
    `hyperboloid`: on (x/a)² + (y/b)² - (z/c)² = 1, |z| <= c, with size (2a, 2b, 2c) about the centre.
    """

    landmarks: Count = 500
    shape: Literal["box", "cubic", "hyperboloid"] = "box"
    centre: Vector = (0.0, 0.0, 0.0)
    size: tuple[Positive, Positive, Positive] = (1.0, 1.0, 1.0)
    equal_to: Annotated[int, Field(ge=0)] | None = None
    """An earlier part that looks the same: its landmarks again, about this centre; its shape, size and number count."""
    moves: Vector = (0.0, 0.0, 0.0)
    """The way that a box goes, straight and evenly, from the first image of the trajectory to the last: what noisy/0 sees of
    it. The truth has it where the first image sees it."""
    turns: float = 0.0
    """Degrees that it turns about its upright axis on that way."""


@dataclass(frozen=True, config=_strict)
class Parts:
    """Clusters of landmarks and nothing that hides them: scenes that are hard for their geometry alone."""

    kind: Literal["parts"]
    parts: Annotated[tuple[Cluster, ...], Field(min_length=1)]
    landmarks: Count = 1_000_000
    """Most landmarks; all of the parts' by default."""


Scene = Annotated[Courthouse | Town | Mesh | PointCloud | Blend | ColmapModel | Parts, Field(discriminator="kind")]


@dataclass(frozen=True, config=_strict)
class LookAt:
    """Where the optical axes point.

    `centre`: the scene's centroid; `point`: `point`; `away`: from `point` (or the centre);
    `path`: along the trajectory; `parallel`: `direction` for all.
    """

    kind: Literal["centre", "point", "away", "path", "parallel"] = "centre"
    point: Vector | None = None
    direction: Vector = (0.0, 1.0, 0.0)
    jitter: NotNegative = 0.0
    """Standard deviation of the target's position (of the direction's components for path and parallel)."""


@dataclass(frozen=True, config=_strict)
class Ring:
    """A horizontal circle (or an arc of it) around the z axis; angles count from the x axis."""

    radius: Positive
    height: float
    start: float = 0.0
    arc: Annotated[float, Field(gt=0, le=360)] = 360.0


@dataclass(frozen=True, config=_strict)
class Rings:
    """One or more rings; cameras are shared out evenly and listed ring by ring, along each ring."""

    kind: Literal["rings"]
    cameras: Count
    rings: Annotated[tuple[Ring, ...], Field(min_length=1)]
    centre: Vector = (0.0, 0.0, 0.0)
    jitter: NotNegative = 0.0
    look_at: LookAt = field(default_factory=LookAt)


@dataclass(frozen=True, config=_strict)
class Lateral:
    """A straight line from `start` to `end`, evenly spaced."""

    kind: Literal["lateral"]
    cameras: Count
    start: Vector
    end: Vector
    jitter: NotNegative = 0.0
    look_at: LookAt = field(default_factory=lambda: LookAt(kind="parallel"))


@dataclass(frozen=True, config=_strict)
class Orbit:
    """A ring whose height swings `waves` times between the two `heights`."""

    kind: Literal["orbit"]
    cameras: Count
    radius: Positive
    heights: tuple[float, float]
    waves: Positive = 3.0
    jitter: NotNegative = 0.0
    look_at: LookAt = field(default_factory=LookAt)


@dataclass(frozen=True, config=_strict)
class Grid:
    """An aerial survey: `size` in x and y at `altitude`, flown to and fro."""

    kind: Literal["grid"]
    cameras: Count
    size: tuple[Positive, Positive]
    altitude: float
    jitter: NotNegative = 0.0
    look_at: LookAt = field(default_factory=lambda: LookAt(kind="parallel", direction=(0.0, 0.0, -1.0)))


@dataclass(frozen=True, config=_strict)
class Curve:
    """A curve through control points, evenly spaced by length.

    `catmull-rom` passes through every point; `bezier` chains cubic pieces: point, handle, handle, point, ...
    """

    kind: Literal["curve"]
    cameras: Count
    points: Annotated[tuple[Vector, ...], Field(min_length=2)]
    interpolation: Literal["catmull-rom", "bezier"] = "catmull-rom"
    closed: bool = False
    jitter: NotNegative = 0.0
    look_at: LookAt = field(default_factory=LookAt)


@dataclass(frozen=True, config=_strict)
class PoseFile:
    """Explicit poses: a COLMAP model's directory, or a TUM file.

    TUM: time tx ty tz qx qy qz qw on every line, camera to world.
    """

    kind: Literal["poses"]
    path: Path


@dataclass(frozen=True, config=_strict)
class BlenderPath:
    """A curve or an animated camera of the `.blend` scene, by its object name."""

    kind: Literal["blender"]
    object: str
    cameras: Count = 20
    jitter: NotNegative = 0.0
    look_at: LookAt = field(default_factory=LookAt)
    """Used for curves; an animated camera brings its own orientation."""


Route = Annotated[Rings | Lateral | Orbit | Grid | Curve | BlenderPath, Field(discriminator="kind")]


@dataclass(frozen=True, config=_strict)
class Groups:
    """Several trajectories, one after the other, each with its own targets."""

    kind: Literal["groups"]
    groups: Annotated[tuple[Route, ...], Field(min_length=1)]


Trajectory = Annotated[Rings | Lateral | Orbit | Grid | Curve | PoseFile | BlenderPath | Groups, Field(discriminator="kind")]


@dataclass(frozen=True, config=_strict)
class Camera:
    """Intrinsics by COLMAP model name; `params`, in COLMAP's order, overrides the other numbers."""

    model: str = "SIMPLE_RADIAL"
    width: Count = 640
    height: Count = 480
    focal: Positive = 420.0
    k1: float = 0.0
    params: tuple[float, ...] | None = None
    focal_variation: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Each image gets its own focal length, uniform within this share of the nominal one."""
    focal_drift: Annotated[float, Field(gt=-1, lt=1)] = 0.0
    """Share by which it changes from the first image of the trajectory to the last."""


@dataclass(frozen=True, config=_strict)
class Visibility:
    """Who sees what: limits of the distance along the optical axis, and what of the surface counts.

    `surface`: `occlusion` hides what lies behind, and rays steeper than `max_angle` to the normal are not seen; `frustum`: a
    landmark is seen wherever it is in the image, as in the public generator of the paper's authors (mateosss/colder).
    """

    kind: Literal["surface", "frustum"] = "surface"
    near: Positive = 0.1
    far: Positive = 1e6
    max_angle: Annotated[float, Field(gt=0, le=90)] = 80.0
    occlusion: bool = True


@dataclass(frozen=True, config=_strict)
class Density:
    """Which of the visible observations are kept; the truth written to sparse/0 has these and no others."""

    landmark_share: Share = 1.0
    observation_share: Share = 1.0
    """Each observation stays with this probability."""
    image_share: Share = 1.0
    """Each image keeps exactly this share of what it sees, at random (POINT_2D_DENSITY of mateosss/colder, 0.2 there)."""
    mean_observations: Annotated[float, Field(ge=2)] | None = None
    """Target mean of observations a landmark; None keeps what is visible."""
    track_dispersion: NotNegative = 0.0
    """How unequal tracks are around that mean: what they have beyond the minimum, μ on average, has the variance
    μ + dispersion μ². 0 is Poisson, where hardly a track is much longer than the mean; with 8 most have the minimum and a
    few are long, as matchers leave them, so that a filter for long tracks leaves a problem."""
    track_angle: Annotated[float, Field(gt=0, le=180)] = 180.0
    """Widest change of view a track survives: the angle at the landmark from one randomly chosen camera
    of its track (matchers lose a feature beyond some 30 to 60 degrees). The nearest views always stay."""
    min_observations: Annotated[int, Field(ge=2)] = 3
    min_camera_observations: Annotated[int, Field(ge=1)] = 6
    """Thinning leaves every camera at least this many (6 is what resection needs)."""


@dataclass(frozen=True, config=_strict)
class Degradation:
    """What noisy/0 and database.db suffer and sparse/0 does not; every part has its own random stream."""

    noise: NotNegative = 0.0
    """Standard deviation of Gaussian pixel noise."""
    outliers: SpoiltShare = 0.0
    """Share of observations assigned to a wrong track: matches between real keypoints."""
    merged: SpoiltShare = 0.0
    """Share of tracks merged, in twos, with a track of unrelated images (repeated structure)."""
    equal: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the landmarks of parts that look the same which are taken for one, where no image sees both."""
    rotation_noise: NotNegative = 0.0
    """Initial orientations for classical bundle adjustment, degrees."""
    translation_noise: NotNegative = 0.0
    """Initial camera centres, scene units."""
    landmark_noise: NotNegative = 0.0
    """Initial landmarks, scene units."""


@dataclass(frozen=True, config=_strict)
class Adversity:
    """What happens to real images, see `generator.adversity`; sparse/0 does not suffer it."""

    given: Literal["true", "shared", "pinhole", "exchanged", "unknown"] = "true"
    """What noisy/0 says of the cameras: one for all images, without distortion, the first two exchanged; `unknown` is for
    whoever solves it: the intrinsics are not to be used."""
    shutter: NotNegative = 0.0
    """Share of the way to the next image that passes while the rows of one are read."""
    joint_share: SpoiltShare = 0.0
    """Share of the tracks between the first trajectory and others that is seen at another scale,"""
    joint_scale: Positive = 1.3
    """this one."""
    joint_random: SpoiltShare = 0.0
    """Share of the same tracks that is matched at random."""
    wrong_pairs: Annotated[int, Field(ge=0)] = 0
    """Pairs of images of two equal parts that are matched."""
    still: SpoiltShare = 0.0
    """Share of the tracks that stay where they are in the images."""
    waves: NotNegative = 0.0
    """Pixels by which the lower part of the scene moves,"""
    waving: Share = 0.4
    """so much of it."""
    mirrored: Annotated[int, Field(ge=0)] = 0
    """Images the wrong way round."""
    noise_ratio: Annotated[float, Field(ge=1)] = 1.0
    """Largest over smallest noise of an image, about half a pixel."""
    heavy: SpoiltShare = 0.0
    """Share of the observations with 5 px of noise."""


@dataclass(frozen=True, config=_strict)
class Render:
    """How images and depth maps are rendered."""

    backend: Literal["raycast", "blender"] = "raycast"
    engine: Literal["cycles", "workbench", "eevee"] = "cycles"
    """Blender's engine. `cycles`: the exact distortion, on the CPU; `workbench`: fast depth and plain pictures of
    pinhole cameras, with OpenGL; `eevee`: pictures of pinhole cameras, with a GPU."""
    samples: Count = 32
    """Samples a pixel of Cycles' and EEVEE's pictures; depth is exact with any number."""
    depth: Literal["exr", "png"] = "exr"
    """Single-precision EXR, or 16-bit PNG in hundredths."""


@dataclass(frozen=True, config=_strict)
class Config:
    """Everything but the seed."""

    name: str
    scene: Scene
    description: str = ""
    determined: bool = True
    """Whether the observations determine the reconstruction; false where a preset is made so that they do not."""
    trajectory: Trajectory | None = None
    camera: Camera = field(default_factory=Camera)
    visibility: Visibility = field(default_factory=Visibility)
    density: Density = field(default_factory=Density)
    degradation: Degradation = field(default_factory=Degradation)
    adversity: Adversity = field(default_factory=Adversity)
    render: Render = field(default_factory=Render)
    shuffle: bool = False
    """List the cameras in a seeded random order instead of along the trajectory."""
