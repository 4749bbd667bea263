"""How photographs are matched."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from initfree.errors import InputError

Pairs = Literal["auto", "exhaustive", "sequential"]
Cameras = Literal["auto", "single", "folder", "image", "rig"]


@dataclass(frozen=True)
class Matching:
    """Of photographs or a video: features, pairs and cameras. Other inputs are matched already."""

    features: int = 4096
    """Most features of a photograph, those of the largest scale first."""
    image_size: int = 1600
    """Longer side, in pixels, to which larger photographs are scaled for their features."""
    pairs: Pairs = "auto"
    """Which photographs are matched: exhaustive, each with each; sequential, each with those that follow by name, for a
    video of one pass; auto, exhaustive up to 150, beyond with those that follow and those that look alike."""
    cameras: Cameras = "auto"
    """Which photographs share a camera: all (single), those of a folder, none (image); auto, those of a folder with one
    size and one focal length (EXIF); rig, those of a folder, and photographs of one name in several were taken at once."""
    masks: Path | None = None
    """Folder of masks, NAME.png for the photograph NAME; black is left out."""
    frames: int = 150
    """Most frames of a video."""

    def __post_init__(self) -> None:
        for name, least in (("features", 100), ("image_size", 100), ("frames", 3)):
            value = getattr(self, name)
            if value < least:
                raise InputError(f"{name} is {value}; expected at least {least}")

    def of_features(self) -> dict[str, Any]:
        """What the features depend on: others need another extraction."""
        masks = None if self.masks is None else str(self.masks.resolve())
        return {"features": self.features, "image_size": self.image_size, "masks": masks}
