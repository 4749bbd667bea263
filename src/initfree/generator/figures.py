"""Pictures that let a person see what was made."""

from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.sparse import csr_array

from initfree.data.camera_graph import seriated
from initfree.generator.dataset import Dataset
from initfree.generator.render import render
from initfree.generator.visibility import RayCaster

# No timestamps or versions in the files: the same dataset gives the same bytes.
_METADATA = {"Software": None}


def covisibility(dataset: Dataset, path: Path) -> None:
    """The covisibility matrix in the paper's colours: cyan weak, magenta strong, white none.

    Cameras stand in an order that puts those next to each other that share most: a shuffled set shows its structure too.
    """
    images = len(dataset.names)
    shared = dataset.observations.covisibility(images, len(dataset.landmarks))
    order = seriated(csr_array(shared))
    moved = not np.array_equal(order, np.arange(images))
    counts = csr_array(shared).toarray().astype(float)[np.ix_(order, order)]
    np.fill_diagonal(counts, 0)
    pairs = counts[np.triu_indices(images, 1)]
    shared = pairs[pairs > 0]
    figure = Figure(figsize=(6.4, 5.6), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    colors = LinearSegmentedColormap.from_list("covisibility", ["#00e5ff", "#6a5cff", "#ff00c8"])
    colors = colors.with_extremes(bad="white")
    shown = axes.imshow(np.where(counts > 0, counts, np.nan), cmap=colors, vmin=1, interpolation="nearest")
    figure.colorbar(shown, ax=axes, label="landmarks seen by both cameras")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("camera, sorted by what they share" if moved else "camera")
    axes.set_ylabel("camera")
    share = f"{len(shared)} of {len(pairs)} pairs share landmarks" if len(pairs) else "one camera"
    middle = f", median {np.median(shared):g}" if len(shared) else ""
    axes.set_title(f"{dataset.config.name}: {share}{middle}", fontsize=10)
    figure.savefig(path, metadata=_METADATA)


def overview(dataset: Dataset, path: Path) -> None:
    """Landmarks and cameras from above and from the side, and how often landmarks are seen."""
    centres, landmarks = dataset.poses.centres, dataset.landmarks
    forward = dataset.poses.rotations[:, 2]
    rng = np.random.default_rng(0)
    # A few landmarks far off (real models have them) would shrink the picture.
    low, high = np.percentile(landmarks, [0.5, 99.5], axis=0)
    slack = 0.25 * (high - low) + 1e-9
    inside = ((landmarks >= low - slack) & (landmarks <= high + slack)).all(axis=1)
    some = rng.permutation(np.flatnonzero(inside))[:20_000]
    figure = Figure(figsize=(12, 7.2), dpi=110, layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1])
    size = float(np.ptp(np.concatenate([centres, landmarks[some]]), axis=0)[:2].max())
    panels = (
        (figure.add_subplot(grid[:, 0]), (0, 1), "along z: from above", "x", "y"),
        (figure.add_subplot(grid[0, 1]), (0, 2), "along y: from the front", "x", "z"),
    )
    order = np.arange(len(centres))
    dots = None
    for axes, (a, b), title, horizontal, vertical in panels:
        axes.scatter(landmarks[some, a], landmarks[some, b], s=1.5, c=dataset.colors[some] / 255 * 0.85, lw=0)
        arrows = forward[:, [a, b]] * 0.06 * size
        axes.quiver(
            *centres[:, [a, b]].T,
            *arrows.T,
            angles="xy",
            scale_units="xy",
            scale=1,
            width=0.0025,
            color="#555555",
            zorder=2,
        )
        dots = axes.scatter(centres[:, a], centres[:, b], c=order, cmap="viridis", s=22, zorder=3)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(horizontal)
        axes.set_ylabel(vertical)
    assert dots is not None
    figure.colorbar(
        dots,
        ax=panels[0][0],
        label="camera, in file order; arrows: optical axes",
        shrink=0.7,
        ticks=MaxNLocator(integer=True),
    )
    lengths = dataset.observations.track_lengths(len(landmarks))
    axes = figure.add_subplot(grid[1, 1])
    axes.hist(lengths, bins=np.arange(lengths.min(), lengths.max() + 2) - 0.5, color="#3b7dd8", edgecolor="white")
    axes.axvline(lengths.mean(), color="#d8503b")
    axes.set_title(f"observations a landmark, mean {lengths.mean():.2f} (line)", fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("observations")
    axes.set_ylabel("landmarks")
    figure.suptitle(
        f"{dataset.config.name} (seed {dataset.seed}): {len(centres)} cameras, {len(landmarks)} landmarks, "
        f"{len(dataset.observations)} observations"
    )
    figure.savefig(path, metadata=_METADATA)


def gallery(dataset: Dataset, path: Path) -> None:
    """What the generator makes of a scene, as the paper's overview shows it, for the first image.

    The image, its observations (blue) over the projected landmarks (red), its depth, the covisibility matrix, and landmarks
    with cameras. Data without a surface, as existing models, has neither image nor depth.
    """
    camera = dataset.cameras[dataset.camera_of_image[0]]
    figure = Figure(figsize=(17, 3.4), dpi=110, layout="constrained")
    shown, overlay, deep, shared, scene = figure.subplots(1, 5, width_ratios=[1.3, 1.3, 1.3, 1, 1.1])
    if dataset.surface is not None:
        picture = render(dataset.surface, RayCaster(dataset.surface), camera, dataset.poses, 0)
        shown.imshow(picture.image)
        overlay.imshow(picture.image, alpha=0.45)
        deep.imshow(np.where(picture.depth > 0, picture.depth, np.nan), cmap="viridis_r")
    here = dataset.noisy.image == 0
    seen = dataset.landmarks[dataset.noisy.landmark[here]]
    in_camera = (seen - dataset.poses.centres[0]) @ dataset.poses.rotations[0].T
    projected = camera.img_from_cam(in_camera)
    overlay.scatter(*projected.T, s=9, c="#d62728", lw=0)
    overlay.scatter(*dataset.noisy.pixel[here].T, s=14, facecolors="none", edgecolors="#1f5fd0", lw=0.6)
    images = len(dataset.names)
    counts = dataset.observations.covisibility(images, len(dataset.landmarks)).toarray().astype(float)
    np.fill_diagonal(counts, np.nan)
    shared.imshow(counts, cmap="cool")
    some = np.random.default_rng(0).permutation(len(dataset.landmarks))[:8000]
    scene.scatter(*dataset.landmarks[some][:, :2].T, s=0.6, c="#8a94a3", lw=0)
    scene.scatter(*dataset.poses.centres[:, :2].T, s=12, c="#d62728", lw=0)
    scene.set_aspect("equal", adjustable="datalim")
    titles = ("image", "observations (blue), landmarks (red)", "depth", "covisibility", "landmarks and cameras")
    for axes, title in zip((shown, overlay, deep, shared, scene), titles, strict=True):
        axes.set_title(title, fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
    for axes in (shown, overlay, deep):
        axes.set(xlim=(0, camera.width), ylim=(camera.height, 0))
        axes.set_aspect("equal")
    figure.savefig(path, metadata=_METADATA)
