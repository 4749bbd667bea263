"""Frames of a video as photographs: the sharpest of each stretch."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from numpy.typing import NDArray

from initfree.data.files import opened
from initfree.data.image_sizes import check_pixels
from initfree.errors import InputError
from initfree.io.staged import staged_directory
from initfree.photographs.database import OnProgress

_ABOUT = "video.json"
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts"
"""of FFmpeg's: others are lists of further files and addresses, which it opens"""


def frames_of(video: Path, folder: Path, count: int, on_progress: OnProgress | None = None) -> Path:
    """Write at most `count` frames as JPEG into `folder`, and return it; what was written of the same video is kept."""
    about = {"video": str(video.resolve()), "bytes": video.stat().st_size, "frames": count}
    if _read(folder / _ABOUT) == about:
        return folder
    with staged_directory(folder, "solve", ["."]) as staging:
        for k, (number, image) in enumerate(_sharpest(video, count)):
            pycolmap.Bitmap.from_array(image).write(str(staging / f"frame_{number:06d}.jpg"))
            if on_progress is not None:
                on_progress("frames", k + 1, count)
        (staging / _ABOUT).write_text(json.dumps(about) + "\n", encoding="utf-8")
    return folder


def _sharpest(video: Path, count: int) -> Iterator[tuple[int, Any]]:
    """Of each of `count` stretches of equal length, the frame with the largest variance of its Laplacian, and its number."""
    import av
    from av.error import FFmpegError

    try:
        with opened(video) as file, av.open(file, "r", options={"format_whitelist": _FORMATS}) as container:
            stream = container.streams.video[0]
            check_pixels(video, stream.codec_context.width, stream.codec_context.height)
            total = stream.frames or sum(1 for _ in container.decode(stream))
            container.seek(0)
            best: tuple[float, int, Any] | None = None
            stretch = 0
            for number, frame in enumerate(container.decode(stream)):
                now = number * count // max(total, count)
                if now != stretch and best is not None:
                    yield best[1], best[2].to_ndarray(format="rgb24")
                    best, stretch = None, now
                sharp = _sharpness(np.asarray(frame.to_ndarray(format="gray"), dtype=np.uint8))
                if best is None or sharp > best[0]:
                    best = sharp, number, frame
            if best is not None:
                yield best[1], best[2].to_ndarray(format="rgb24")
    except (FFmpegError, IndexError) as error:
        reason = (isinstance(error, FFmpegError) and error.strerror) or "it has no pictures"
        raise InputError(f"{video} cannot be read as a video: {reason}") from error


def _sharpness(grey: NDArray[np.uint8]) -> float:
    g = grey.astype(np.float32)
    laplacian = g[:-2, 1:-1] + g[2:, 1:-1] + g[1:-1, :-2] + g[1:-1, 2:] - 4.0 * g[1:-1, 1:-1]
    return float(laplacian.var())


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
