"""Features and verified matches of photographs, in parcels, so that a run can be interrupted and shows how far it is."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pycolmap

from initfree.data.image_sizes import check_image
from initfree.errors import InputError
from initfree.io.quiet import quiet
from initfree.photographs.cameras import share_cameras
from initfree.photographs.files import check_masks, photographs_in
from initfree.photographs.kept import open_kept
from initfree.photographs.pairs import LARGEST, Descriptors, chosen_pairs
from initfree.photographs.settings import Matching

OnProgress = Callable[[str, int, int], None]
"""what, how many of them are done, and of how many"""
_A_CORE = 4
"""photographs of a parcel, for each core"""
_PAIRS = 200
"""pairs of a parcel"""
_SEED = 0


def match(
    folder: str | Path,
    database: str | Path,
    settings: Matching | None = None,
    *,
    names: Sequence[str] | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> tuple[str, ...]:
    """Extract features, match and verify; the names of the photographs in the database, in order.

    What the database has already is not done again. A database that was not made here, or with other settings or of other
    photographs, is replaced only with `overwrite`.

    Args:
        folder: Of photographs, in folders or not.
        database: To write or to complete; `photographs.json` beside it says what it was made of.
        settings: Of features, pairs and cameras.
        names: Of the photographs, relative to `folder`; by default all but those beside the database.
        threads: By default one for each core.
        overwrite: Start anew where the database cannot be completed.
        on_progress: Called after every parcel.
    """
    folder, database, settings = Path(folder), Path(database), settings or Matching()
    progress = on_progress or (lambda what, done, total: None)
    names = list(names) if names is not None else photographs_in(folder, _apart(database, folder, settings))
    _check(folder, names, settings)
    cores = threads or os.cpu_count() or 1
    open_kept(database, folder, names, settings, overwrite=overwrite)
    with quiet():
        _restore_names(database, names)
        _extract(folder, database, names, settings, cores, progress)
        ids = share_cameras(database, names, settings.cameras)
        unread = [name for name in names if name not in ids]
        if len(ids) < 3:
            lost = f"; {unread[0]} cannot be read as an image" if unread else ""
            raise InputError(f"{folder} has {len(ids)} photographs that can be read, expected at least 3{lost}")
        placed = [name for name in names if name in ids]
        pairs = chosen_pairs(placed, settings.pairs, lambda k: _largest(database, ids[placed[k]]))
        _match(database, [(placed[a], placed[b]) for a, b in pairs], ids, cores, progress)
    return tuple(placed)


def _apart(database: Path, folder: Path, settings: Matching) -> list[Path]:
    """Folders within that of the photographs whose pictures are others: the output, the masks."""
    apart = [database.parent, *([settings.masks] if settings.masks else [])]
    return [path for path in apart if path.resolve() != folder.resolve()]


def _check(folder: Path, names: list[str], settings: Matching) -> None:
    if not hasattr(pycolmap, "CancellationToken"):
        raise InputError(f"photographs need pycolmap 4; {pycolmap.__version__} is installed")
    if len(names) < 3:
        held = "1 photograph" if len(names) == 1 else f"{len(names)} photographs"
        raise InputError(f"{folder} holds {held}; expected at least 3, because two do not check each other")
    missing = next((name for name in names if not (folder / name).is_file()), None)
    if missing is not None:
        raise InputError(f"{folder} has no photograph {missing!r}")
    for name in names:
        check_image(folder / name)
    if settings.masks is not None:
        check_masks(settings.masks, names)


def _extract(folder: Path, database: Path, names: list[str], settings: Matching, cores: int, progress: OnProgress) -> None:
    options = pycolmap.FeatureExtractionOptions()
    options.max_image_size, options.num_threads, options.use_gpu = settings.image_size, cores, False
    options.sift.max_num_features = settings.features
    reader = pycolmap.ImageReaderOptions()
    if settings.masks is not None:
        reader.mask_path = str(settings.masks)
    with pycolmap.Database.open(database) as opened:
        have = {image.name for image in opened.read_all_images() if opened.exists_descriptors(image.image_id)}
    missing = [name for name in names if name not in have]
    done = len(names) - len(missing)
    progress("features", done, len(names))
    size = _A_CORE * cores
    for k in range(0, len(missing), size):
        parcel = missing[k : k + size]
        _interruptible(
            pycolmap.extract_features, database, folder, image_names=parcel, camera_mode=pycolmap.CameraMode.PER_IMAGE,
            reader_options=reader, extraction_options=options, device=pycolmap.Device.cpu,
        )  # fmt: skip
        progress("features", done + k + len(parcel), len(names))


def _largest(database: Path, image: int) -> Descriptors:
    """Descriptors of the features of the largest scale."""
    with pycolmap.Database.open(database) as opened:
        shape = opened.read_keypoints(image)[:, 2:6]
        descriptors = np.asarray(opened.read_descriptors(image).data)
    # Columns 2 to 5 are the affine shape of the feature; its area orders features by scale.
    area = np.abs(shape[:, 0] * shape[:, 3] - shape[:, 1] * shape[:, 2])
    return descriptors[np.argsort(-area, kind="stable")[:LARGEST]]


def _match(database: Path, pairs: list[tuple[str, str]], ids: dict[str, int], cores: int, progress: OnProgress) -> None:
    matching = pycolmap.FeatureMatchingOptions()
    matching.num_threads, matching.use_gpu = cores, False
    verification = pycolmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = _SEED
    pairing = pycolmap.ImportedPairingOptions()
    with pycolmap.Database.open(database) as opened:
        missing = [pair for pair in pairs if not opened.exists_two_view_geometry(ids[pair[0]], ids[pair[1]])]
    done = len(pairs) - len(missing)
    progress("pairs", done, len(pairs))
    spaced = [name for name in ids if any(character.isspace() for character in name)]
    with tempfile.TemporaryDirectory(prefix="initfree-") as scratch, _without_spaces(database, spaced, ids):
        pairing.match_list_path = str(Path(scratch, "pairs.txt"))
        for k in range(0, len(missing), _PAIRS):
            parcel = missing[k : k + _PAIRS]
            lines = [" ".join(_quoted(name) if name in spaced else name for name in pair) for pair in parcel]
            Path(pairing.match_list_path).write_text("\n".join(lines) + "\n", encoding="utf-8")
            _interruptible(
                pycolmap.match_image_pairs, database, matching_options=matching, pairing_options=pairing,
                verification_options=verification, device=pycolmap.Device.cpu,
            )  # fmt: skip
            progress("pairs", done + k + len(parcel), len(pairs))


def _interruptible(function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """A call of pycolmap that a signal ends: it runs in a thread, and this one is free to be interrupted."""
    token = pycolmap.CancellationToken()
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(function, *arguments, cancellation_token=token, **options)
        try:
            future.result()
        except BaseException:
            token.cancel()
            raise


def _quoted(name: str) -> str:
    return quote(name, safe="/")


@contextmanager
def _without_spaces(database: Path, names: list[str], ids: dict[str, int]) -> Iterator[None]:
    """COLMAP's list of pairs separates names by spaces: those that have some get others as long as pairs are matched."""
    _rename(database, {ids[name]: _quoted(name) for name in names})
    try:
        yield
    finally:
        _rename(database, {ids[name]: name for name in names})


def _restore_names(database: Path, names: list[str]) -> None:
    """After a run that was killed while names were others."""
    wanted = set(names)
    with pycolmap.Database.open(database) as opened:
        images = [(image.image_id, image.name) for image in opened.read_all_images()]
    _rename(database, {k: unquote(name) for k, name in images if name not in wanted and unquote(name) in wanted})


def _rename(database: Path, names: dict[int, str]) -> None:
    if not names:
        return
    with pycolmap.Database.open(database) as opened, pycolmap.DatabaseTransaction(opened):
        for image_id, name in names.items():
            image = opened.read_image(image_id)
            image.name = name
            opened.update_image(image)
