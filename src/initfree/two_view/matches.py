"""Tracks from verified matches: a track is a connected component of matched keypoints, with at most one keypoint of an
image.

A wrong match merges two landmarks into a component that has two keypoints of some image. Such a component is rebuilt from
its strongest match to its weakest, without matches that would join two keypoints of one image. The result is a maximum
spanning forest under that condition, whose trees are tracks. The strength of a match is the number of keypoints of other
images that match both its ends (triangles: a wrong match has hardly any), then the number of inliers of its image pair.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from initfree.data.tracks import Array, Index
from initfree.engine.kernels import kernel

ONE_PLACE = 1.0
"""pixels: connected keypoints of one image closer than this are merged"""


@dataclass(frozen=True)
class MatchedTracks:
    """Observations of tracks, sorted by track and image: at most one an image, at least two a track."""

    image: Index
    keypoint: Index
    track: Index
    """(observations,) from zero"""
    joined: int
    """merged keypoints: at the same place as another, or within a pixel of it in the same track"""
    conflicting: int
    """components with two keypoints of an image, which were cut at their weakest matches"""
    cut: int
    """matches that were cut"""


def tracks_from_matches(keypoints: list[Array], image: Index, ptr: Index, keypoint: Index) -> MatchedTracks:
    """Tracks of image pairs (pairs, 2) and their matches `keypoint[ptr[n]:ptr[n + 1]]` (matches, 2).

    `keypoints` are those of every image in pixels.
    """
    first = np.concatenate([[0], np.cumsum([len(xy) for xy in keypoints])]).astype(np.int64)
    inliers = np.diff(ptr)
    # Keypoints that are matched are the nodes of a graph, numbered from zero.
    node, ends = np.unique(first[np.repeat(image, inliers, axis=0)] + keypoint, return_inverse=True)
    image_of = np.searchsorted(first, node, side="right") - 1
    xy = np.concatenate([np.empty((0, 2)), *keypoints])[node]
    same = _at_one_place(image_of, xy)
    edges, strength = _distinct(same[ends.reshape(-1, 2)], np.repeat(inliers, inliers))
    component = _components(edges, len(node))
    near = _within_a_pixel(component, image_of, xy, np.bincount(edges.reshape(-1), minlength=len(node)), same)
    edges, strength = _distinct(near[edges], strength)
    alive = np.flatnonzero(near[same] == np.arange(len(node)))
    conflicting = _conflicting(component, image_of, alive)
    torn = conflicting[component[edges[:, 0]]]
    label = _taken_apart(edges[torn], strength[torn], image_of, len(keypoints)) if torn.any() else np.arange(len(node))
    label = np.where(conflicting[component], len(node) + label, component)
    cut = int(np.count_nonzero(label[edges[:, 0]] != label[edges[:, 1]]))
    _, track, length = np.unique(label[alive], return_inverse=True, return_counts=True)
    alive = alive[length[track] >= 2]
    _, track = np.unique(label[alive], return_inverse=True)
    order = np.lexsort((image_of[alive], track))
    kept = alive[order]
    return MatchedTracks(
        image_of[kept], node[kept] - first[image_of[kept]], track[order],
        int(np.count_nonzero(near[same] != np.arange(len(node)))), int(np.count_nonzero(conflicting)), cut,
    )  # fmt: skip


def _at_one_place(image: Index, xy: Array) -> Index:
    """The first keypoint of the image with the same coordinates: SIFT repeats a place for each of its orientations."""
    order = np.lexsort((np.arange(len(image)), xy[:, 1], xy[:, 0], image))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(image[order]) != 0) | (np.diff(xy[order], axis=0) != 0.0).any(axis=1)
    same = np.empty(len(order), dtype=np.int64)
    same[order] = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    return same


def _distinct(edges: Index, strength: Index) -> tuple[Index, Index]:
    """Each edge once, smaller end first, with the largest of its strengths."""
    low, high = edges.min(axis=1), edges.max(axis=1)
    order = np.lexsort((-strength, high, low))
    low, high, strength = low[order], high[order], strength[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(low) != 0) | (np.diff(high) != 0)
    new &= low != high
    return np.stack([low[new], high[new]], axis=1), strength[new]


def _components(edges: Index, nodes: int) -> Index:
    graph = coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(nodes, nodes))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _within_a_pixel(component: Index, image: Index, xy: Array, degree: Index, same: Index) -> Index:
    """Merge keypoints of one image in one component that are all within a pixel; the best connected one represents them."""
    near = np.arange(len(same))
    order = np.flatnonzero(same == near)
    order = order[np.lexsort((order, -degree[order], image[order], component[order]))]
    if len(order) == 0:
        return near
    begin = np.flatnonzero(np.concatenate([[True], (np.diff(component[order]) != 0) | (np.diff(image[order]) != 0)]))
    extent = np.maximum.reduceat(xy[order], begin) - np.minimum.reduceat(xy[order], begin)
    size = np.diff(np.append(begin, len(order)))
    joined = np.repeat((extent <= ONE_PLACE).all(axis=1), size)
    near[order[joined]] = np.repeat(order[begin], size)[joined]
    return near


def _conflicting(component: Index, image: Index, alive: Index) -> NDArray[np.bool_]:
    """Whether each component has two keypoints of an image."""
    order = alive[np.lexsort((image[alive], component[alive]))]
    twice = (np.diff(component[order]) == 0) & (np.diff(image[order]) == 0)
    result = np.zeros(int(component.max(initial=-1)) + 1, dtype=bool)
    result[component[order[1:][twice]]] = True
    return result


def _taken_apart(edges: Index, inliers: Index, image: Index, images: int) -> Index:
    """Labels of the nodes after joining them by the strongest edges first, never two keypoints of an image."""
    nodes, local = np.unique(edges, return_inverse=True)
    a, b = local.reshape(-1, 2).T
    graph = coo_array((np.ones(len(a), dtype=np.int32), (a, b)), shape=(len(nodes), len(nodes))).tocsr()
    graph = graph + graph.T
    triangles = (graph @ graph).multiply(graph).tocsr()
    common = np.asarray(triangles[a, b]).reshape(-1)
    order = np.lexsort((b, a, -inliers, -common))
    label = np.arange(len(image))
    label[nodes] = nodes[_join(a[order], b[order], image[nodes], images)]
    return label


@kernel(strict=True, allocates=True)
def _join(a, b, image, images):
    """Union-find with the members of a set in a ring, so that the images of two sets can be compared before they join."""
    root = np.arange(image.size)
    following = np.arange(image.size)
    stamp = np.full(images, -1)
    for e in range(a.size):
        i, j = a[e], b[e]
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        while root[j] != j:
            root[j] = root[root[j]]
            j = root[j]
        if i == j:
            continue
        member = i
        while True:
            stamp[image[member]] = e
            member = following[member]
            if member == i:
                break
        member, apart = j, True
        while True:
            if stamp[image[member]] == e:
                apart = False
                break
            member = following[member]
            if member == j:
                break
        if apart:
            root[j] = i
            following[i], following[j] = following[j], following[i]
    for i in range(image.size):
        j = i
        while root[j] != j:
            j = root[j]
        root[i] = j
    return root
