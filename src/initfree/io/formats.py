"""The registry of input formats: one entry a format, one reader a file. `initfree formats` lists them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from initfree import io
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
        lambda path, asked: io.database.read_observations(path, asked.intrinsics, asked.names),
    ),
    Format(
        "OpenSfM",
        "tracks.csv and camera_models.json in the directory (exif/ for several cameras, reconstruction.json for poses)",
        "initfree solve opensfm-project --output out",
        lambda path: io.opensfm.is_opensfm(path),
        lambda path, asked: io.opensfm.read_observations(path, asked.intrinsics),
        lambda path: io.opensfm.reconstruction_of(path),
    ),
    Format(
        "Bundler",
        "bundle.out, with list.txt beside it for the images' names",
        "initfree solve bundle/bundle.out --output out",
        lambda path: io.bundler.is_bundler(path),
        lambda path, asked: io.bundler.read_observations(path, asked.intrinsics),
        lambda path: io.bundler.reconstruction_of(path),
    ),
    Format(
        "NVM",
        "a model of VisualSFM that begins with NVM_V3",
        "initfree solve model.nvm --output out",
        lambda path: io.nvm.is_nvm(path),
        lambda path, asked: io.nvm.read_observations(path, asked.intrinsics),
        lambda path: io.nvm.reconstruction_of(path),
    ),
    Format(
        "Kapture",
        "sensors/ and reconstruction/ in the directory, with keypoints and observations",
        "initfree solve kapture-project --output out",
        lambda path: io.kapture.is_kapture(path),
        lambda path, asked: io.kapture.read_observations(path, asked.intrinsics),
        lambda path: io.kapture.reconstruction_of(path),
    ),
    Format(
        "openMVG",
        "sfm_data.json with structure and observations",
        "initfree solve sfm_data.json --output out",
        lambda path: io.openmvg.is_openmvg(path),
        lambda path, asked: io.openmvg.read_observations(path, asked.intrinsics),
        lambda path: io.openmvg.reconstruction_of(path),
    ),
    Format(
        "Metashape",
        "cameras as XML; poses and markers, no tie points",
        "initfree check cameras.xml --database database.db",
        lambda path: io.metashape.is_metashape(path),
        lambda path, asked: io.metashape.read_observations(path, asked.intrinsics),
        lambda path: io.metashape.reconstruction_of(path),
    ),
    Format(
        "nerfstudio",
        "transforms.json; poses alone",
        "initfree check transforms.json --database database.db",
        lambda path: io.nerfstudio.is_nerfstudio(path),
        lambda path, asked: io.nerfstudio.read_observations(path, asked.intrinsics),
        lambda path: io.nerfstudio.reconstruction_of(path),
    ),
    Format(
        "MultiCamSelfCal",
        "points.dat, IdMat.dat, Res.dat in the directory; BASENAMEn.rad for intrinsics",
        "initfree solve CalibData --output out",
        lambda path: io.multicamselfcal.is_multicamselfcal(path),
        lambda path, asked: io.multicamselfcal.read_observations(path, asked.intrinsics),
    ),
    Format(
        "caliscope",
        "xy.csv and camera_array.toml in the directory",
        "initfree solve recording --output out",
        lambda path: io.caliscope.is_caliscope(path),
        lambda path, asked: io.caliscope.read_observations(path, asked.intrinsics),
        lambda path: io.caliscope.reconstruction_of(path),
    ),
    Format(
        "DeepLabCut",
        "a directory with one CSV of DeepLabCut for each camera",
        "initfree solve dlc-tables --output out",
        lambda path: io.deeplabcut.is_deeplabcut(path),
        lambda path, asked: io.deeplabcut.read_observations(path, asked.intrinsics),
    ),
    Format(
        "SLEAP",
        "a directory with one NAME.analysis.h5 for each camera (needs h5py)",
        "initfree solve sleap-analyses --output out",
        lambda path: io.sleap.is_sleap(path),
        lambda path, asked: io.sleap.read_observations(path, asked.intrinsics),
    ),
    Format(
        "OpenPose",
        "a directory with one for each camera, of NAME_FRAME_keypoints.json",
        "initfree solve openpose-output --output out",
        lambda path: io.openpose.is_openpose(path),
        lambda path, asked: io.openpose.read_observations(path, asked.intrinsics),
    ),
    Format(
        "Idiap",
        "ba_problem.txt of the multi-camera calibration suite: clicked points of fixed cameras",
        "initfree solve ba_problem.txt --output out",
        lambda path: io.idiap.is_idiap(path),
        lambda path, asked: io.idiap.read_observations(path, asked.intrinsics),
    ),
    Format(
        "table",
        "CSV or Parquet with the columns camera, frame, point, x, y[, confidence][, width, height]",
        "initfree solve detections.csv --output out",
        lambda path: io.table.is_table(path),
        lambda path, asked: io.table.read_observations(path, asked.intrinsics),
    ),
    Format(
        "BAL",
        "a problem of Bundle Adjustment in the Large (.txt, .bz2, .gz)",
        "initfree solve problem-16-22106-pre.txt.bz2 --output out",
        lambda path: io.bal.is_bal(path),
        lambda path, asked: io.bal.read_observations(path),
        lambda path: io.bal.reconstruction_of(path),
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
    raise InputError(f"{path} {kind}; expected {_expected()} (`initfree formats` tells what each looks like)")


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
