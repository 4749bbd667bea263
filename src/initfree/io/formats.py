"""The registry of input formats: one entry a format, one reader a file. `initfree formats` lists them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from initfree.data.files import regular
from initfree.data.observations import Intrinsics, Observations
from initfree.data.reconstruction import Reconstruction
from initfree.errors import InputError
from initfree.io import colmap
from initfree.io.boundary import boundary
from initfree.io.sqlite import is_database


@dataclass(frozen=True)
class Asked:
    """Options of the user for an input."""

    intrinsics: Intrinsics | None = None
    """None: what the input says of them"""
    names: frozenset[str] | None = None
    """images to read; None: all"""


@dataclass(frozen=True)
class Format:
    """A kind of input."""

    name: str
    looks: str
    """what there is at the path"""
    example: str
    """a command that reads it"""
    recognises: Callable[[Path], bool]
    read: Callable[[Path, Asked], Observations]
    model: Callable[[Path], Reconstruction] | None = None
    """its own poses and landmarks, where it has them"""

    def __post_init__(self) -> None:
        """Put the readers behind the boundary, so that a new format need not handle damaged files."""
        for name in ("recognises", "read", "model"):
            function = getattr(self, name)
            if function is not None:
                object.__setattr__(self, name, self._bounded(function))

    def _bounded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def bounded(path: Path, *asked: Asked) -> Any:
            with boundary(path, f"{self.name} ({self.looks})"):
                return function(path, *asked)

        return bounded


def _colmap_observations(path: Path, asked: Asked) -> Observations:
    directory = _colmap_directory(path)
    # A folder of `initfree generate` has the exact truth in sparse/0: nobody means to solve from that.
    degraded = path / "noisy" / "0"
    if directory != path and (path / "dataset.json").is_file() and colmap.find_model(degraded) == degraded:
        directory = degraded
    found = colmap.read_observations(directory, asked.intrinsics or "known")
    database = path / "database.db"
    if directory in (path, degraded) or not database.is_file():
        return found
    note = f"the observations are those of the model in {directory}; {database} is another input, with all matches"
    return replace(found, notes=(*found.notes, note))


def _colmap_directory(path: Path) -> Path:
    directory = colmap.find_model(path)
    assert directory is not None  # recognised
    return directory


def _of(reader: str, function: str) -> Callable[..., Any]:
    """A function of a reader, which is imported at the first use: an input has one format, and to import all readers takes
    longer than to read a small input."""
    return lambda *arguments: getattr(import_module(f"initfree.io.{reader}"), function)(*arguments)


def _module(reader: str, *, poses: bool = False) -> Any:
    """`is_NAME`, `read_observations` and with `poses` `reconstruction_of` of io/NAME.py."""
    read = _of(reader, "read_observations")
    return {
        "recognises": _of(reader, f"is_{reader}"),
        "read": lambda path, asked: read(path, asked.intrinsics),
        "model": _of(reader, "reconstruction_of") if poses else None,
    }


FORMATS = (
    Format(
        "COLMAP model",
        "cameras, images and points3D (.bin or .txt) in the directory, in its sparse or its sparse/0",
        "initfree solve project/sparse/0 --output out",
        lambda path: path.is_dir() and colmap.find_model(path) is not None,
        _colmap_observations,
        lambda path: colmap.reconstruction_of(colmap.read_model(_colmap_directory(path))),
    ),
    Format(
        "COLMAP database",
        "database.db with verified matches, of COLMAP or hloc",
        "initfree solve database.db --output out",
        is_database,
        lambda path, asked: _of("database", "read_observations")(path, asked.intrinsics, asked.names),
    ),
    Format(
        "OpenSfM",
        "tracks.csv and camera_models.json in the directory (exif/ for several cameras, reconstruction.json for poses)",
        "initfree solve opensfm-project --output out",
        **_module("opensfm", poses=True),
    ),
    Format(
        "Bundler",
        "bundle.out, with list.txt beside it for the images' names",
        "initfree solve bundle/bundle.out --output out",
        **_module("bundler", poses=True),
    ),
    Format(
        "NVM",
        "a model of VisualSFM that begins with NVM_V3",
        "initfree solve model.nvm --output out",
        **_module("nvm", poses=True),
    ),
    Format(
        "Kapture",
        "sensors/ and reconstruction/ in the directory, with keypoints and observations",
        "initfree solve kapture-project --output out",
        **_module("kapture", poses=True),
    ),
    Format(
        "openMVG",
        "sfm_data.json with structure and observations",
        "initfree solve sfm_data.json --output out",
        **_module("openmvg", poses=True),
    ),
    Format(
        "Metashape",
        "cameras as XML; poses and markers, no tie points",
        "initfree check cameras.xml --database database.db",
        **_module("metashape", poses=True),
    ),
    Format(
        "nerfstudio",
        "transforms.json; poses alone",
        "initfree check transforms.json --database database.db",
        **_module("nerfstudio", poses=True),
    ),
    Format(
        "MultiCamSelfCal",
        "points.dat, IdMat.dat, Res.dat in the directory; BASENAMEn.rad for intrinsics",
        "initfree solve CalibData --output out",
        **_module("multicamselfcal"),
    ),
    Format(
        "caliscope",
        "xy.csv and camera_array.toml in the directory",
        "initfree solve recording --output out",
        **_module("caliscope", poses=True),
    ),
    Format(
        "DeepLabCut",
        "a directory with one CSV of DeepLabCut for each camera",
        "initfree solve dlc-tables --output out",
        **_module("deeplabcut"),
    ),
    Format(
        "SLEAP",
        "a directory with one NAME.analysis.h5 for each camera (needs h5py)",
        "initfree solve sleap-analyses --output out",
        **_module("sleap"),
    ),
    Format(
        "OpenPose",
        "a directory with one for each camera, of NAME_FRAME_keypoints.json",
        "initfree solve openpose-output --output out",
        **_module("openpose"),
    ),
    Format(
        "Idiap",
        "ba_problem.txt of the multi-camera calibration suite: clicked points of fixed cameras",
        "initfree solve ba_problem.txt --output out",
        **_module("idiap"),
    ),
    Format(
        "table",
        "CSV or Parquet with the columns camera, frame, point, x, y[, confidence][, width, height]",
        "initfree solve detections.csv --output out",
        **_module("table"),
    ),
    Format(
        "BAL",
        "a problem of Bundle Adjustment in the Large (.txt, .bz2, .gz)",
        "initfree solve problem-16-22106-pre.txt.bz2 --output out",
        _of("bal", "is_bal"),
        lambda path, _asked: _of("bal", "read_observations")(path),
        _of("bal", "reconstruction_of"),
    ),
)
"""in the order of the trials"""


PHOTOGRAPHS = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".ppm", ".pgm")
"""endings of files that are images"""
_LOOKED_AT = 1000
"""entries of a directory in the search for images"""


def format_of(path: Path) -> Format:
    """The format of the file or folder at `path`."""
    if not path.exists():
        raise InputError(f"{path} does not exist; expected {_expected()}")
    if not path.is_dir():
        regular(path)
    found = recognised(path)
    if found is not None:
        return found
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes); expected {_expected()}")
    if _photographs(path):
        raise InputError(
            f"{path} holds photographs, which are not matched yet; `initfree solve {path} --output OUT` matches and solves "
            "them, in Python initfree.photographs.match(FOLDER, DATABASE) writes the database to load"
        )
    kind = "holds nothing that can be read" if path.is_dir() else "is of no format that can be read"
    raise InputError(f"{path} {kind}; expected {_expected()} (`initfree formats` lists the files of each)")


def recognised(path: Path) -> Format | None:
    """The format of what is at `path`, None where it has none."""
    return next((one for one in FORMATS if one.recognises(path)), None)


def _photographs(path: Path) -> bool:
    """Whether it is an image, or a directory of some or of directories of some."""
    found = [path] if path.is_file() else list(islice((*path.glob("*"), *path.glob("*/*")), _LOOKED_AT))
    return any(one.suffix.lower() in PHOTOGRAPHS for one in found)


def _expected() -> str:
    names = [one.name for one in FORMATS]
    return f"one of {', '.join(names[:-1])} or {names[-1]}"
