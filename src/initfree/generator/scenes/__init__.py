"""Scenes: what the cameras look at. One file for each kind; `build` picks by the configuration's kind."""

import numpy as np

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.scenes.surface import Candidates, Surface

__all__ = ["Candidates", "Surface", "build"]


def build(scene: config.Scene, rng: np.random.Generator) -> Surface:
    """The surface that a scene's configuration describes."""
    # Imported here so that a courthouse needs no mesh reader and only a .blend file needs Blender.
    if isinstance(scene, config.Courthouse):
        from initfree.generator.scenes.courthouse import courthouse

        return courthouse()
    if isinstance(scene, config.Town):
        from initfree.generator.scenes.town import town

        return town(scene.blocks, scene.spacing, rng)
    if isinstance(scene, config.Mesh):
        from initfree.generator.scenes.mesh import mesh

        return mesh(scene.path, scene.sampling, scene.two_sided, scene.spread)
    if isinstance(scene, config.PointCloud):
        from initfree.generator.scenes.pointcloud import pointcloud

        return pointcloud(scene.path, scene.occlusion, scene.surfel_size, scene.spread)
    if isinstance(scene, config.Blend):
        from initfree.generator.blender.scene import blend

        return blend(scene)
    if isinstance(scene, config.Parts):
        from initfree.generator.scenes.parts import parts

        return parts(scene, rng)
    raise InputError(f"a scene of kind {scene.kind} has no surface")
