# pyright: reportMissingImports=false
"""A reconstruction in the scene: cameras with their images, landmarks as a point cloud, coloured by the verdict."""

from itertools import pairwise
from pathlib import Path

import bpy
import numpy as np
from bpy.props import StringProperty

from . import spawned
from .jobs import Job, folder_of
from .settings import Problem

RESULT, LANDMARKS = "initfree reconstruction", "initfree landmarks"
COLOUR = "colour"
"""colour attribute of the landmarks"""
_VERDICTS = {1: (0.1, 0.7, 0.2, 1.0), 0: (0.9, 0.15, 0.1, 1.0), -1: (0.4, 0.5, 0.9, 1.0)}
"""accepted, not accepted, not judged"""
_FAILING = (0.9, 0.15, 0.1, 1.0)


def show(path: Path, images: Path | None) -> tuple:
    """The arrays of `initfree blender arrays` as objects; the numbers of cameras and landmarks, and the verdict."""
    with np.load(path, allow_pickle=False) as file:
        a = dict(file)
    where = spawned.collection(RESULT)
    colour, shown = _VERDICTS[int(a["accepted"])], spawned.shown_size(a["camera_to_world"][:, :3, 3])
    for k, name in enumerate(a["names"].tolist()):
        half = a["shape"][k]
        thing = spawned.camera(name, a["camera_to_world"][k], 0.5, float(half[0]), shown, where)
        thing.color = _FAILING if a["failing"][k] else colour
        picture = images / name if images is not None else None
        if picture is not None and picture.is_file():
            thing.data.show_background_images = True
            thing.data.background_images.new().image = bpy.data.images.load(str(picture), check_existing=True)
    cloud(a["xyz"], a["rgb"], where)
    return len(a["names"]), len(a["xyz"]), str(a["verdict"])


def cloud(xyz: np.ndarray, rgb: np.ndarray, where: bpy.types.Collection) -> bpy.types.Object:
    """Points with a colour each; geometry nodes give them a size, so that they are seen and render."""
    mesh = bpy.data.meshes.new(LANDMARKS)
    mesh.vertices.add(len(xyz))
    mesh.vertices.foreach_set("co", xyz.astype(np.float32).ravel())
    attribute = mesh.color_attributes.new(COLOUR, "BYTE_COLOR", "POINT")
    values = np.concatenate([rgb / 255.0, np.ones((len(rgb), 1))], axis=1).astype(np.float32)
    attribute.data.foreach_set("color_srgb", values.ravel())
    mesh.materials.append(_material())
    mesh.update()
    thing = spawned.marked(LANDMARKS, mesh, where)
    extent = float(np.linalg.norm(np.quantile(xyz, 0.95, axis=0) - np.quantile(xyz, 0.05, axis=0))) if len(xyz) else 1.0
    thing.modifiers.new("Points", "NODES").node_group = _points(0.002 * extent)
    return thing


def _points(radius: float) -> bpy.types.NodeTree:
    """Geometry nodes: mesh to points of this radius, with the material."""
    tree = bpy.data.node_groups.new(LANDMARKS, "GeometryNodeTree")
    tree.interface.new_socket("Geometry", in_out="INPUT", socket_type="NodeSocketGeometry")
    tree.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    nodes = [tree.nodes.new(kind) for kind in _NODES]
    nodes[1].inputs["Radius"].default_value = radius
    nodes[2].inputs["Material"].default_value = _material()
    for a, b in pairwise(nodes):
        tree.links.new(a.outputs[0], b.inputs[0])
    return tree


_NODES = ("NodeGroupInput", "GeometryNodeMeshToPoints", "GeometryNodeSetMaterial", "NodeGroupOutput")


def _material() -> bpy.types.Material:
    """Shows the points' own colours."""
    found = bpy.data.materials.get(LANDMARKS)
    if found is not None:
        return found
    made = bpy.data.materials.new(LANDMARKS)
    made.use_nodes = True
    nodes, links = made.node_tree.nodes, made.node_tree.links
    nodes.clear()
    colour, light, output = (nodes.new(f"ShaderNode{kind}") for kind in ("Attribute", "Emission", "OutputMaterial"))
    colour.attribute_name = COLOUR
    links.new(colour.outputs["Color"], light.inputs["Color"])
    links.new(light.outputs[0], output.inputs["Surface"])
    return made


class INITFREE_OT_load(Job, bpy.types.Operator):
    """Load a reconstruction: what solve wrote, or a COLMAP model; aligned to the exported truth where there is one"""

    bl_idname = "initfree.load"
    bl_label = "Load reconstruction"

    directory: StringProperty(subtype="DIR_PATH", description="By default the folder of the last solve")

    def arguments(self, context: bpy.types.Context) -> list:
        found = Path(bpy.path.abspath(self.directory)) if self.directory else folder_of(context.scene) / "solved"
        if not found.is_dir():
            raise Problem(f"There is no folder {found}; solve the problem, or choose the folder of a reconstruction")
        truth = self._truth(context.scene)
        words = ["blender", "arrays", str(found.resolve()), "--output", "scene.npz"]
        return words + (["--truth", str(truth)] if truth is not None and not self.directory else [])

    def done(self, context: bpy.types.Context) -> str:
        images = folder_of(context.scene) / "images" if not self.directory else None
        cameras, landmarks, verdict = show(self.folder / "scene.npz", images)
        context.scene.initfree.figures = verdict
        return f"{cameras} cameras, {landmarks} landmarks"

    @staticmethod
    def _truth(scene: bpy.types.Scene) -> Path | None:
        try:
            truth = folder_of(scene) / "sparse" / "0"
        except Problem:
            return None
        return truth if truth.is_dir() else None


def register() -> None:
    bpy.utils.register_class(INITFREE_OT_load)


def unregister() -> None:
    bpy.utils.unregister_class(INITFREE_OT_load)
