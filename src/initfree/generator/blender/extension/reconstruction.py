# pyright: reportMissingImports=false
"""A reconstruction in the scene: cameras with their images, coloured by the verdict, and landmarks as a point cloud."""

from pathlib import Path

import bpy
import numpy as np
from bpy.props import BoolProperty, StringProperty

from . import spawned
from .fields import Problem
from .jobs import Job, folder_of

RESULT, LANDMARKS, PYRAMIDS = "initfree reconstruction", "initfree landmarks", "initfree pyramids"
COLOUR = "colour"
"""colour attribute of landmarks and pyramids"""
_RED = (224, 36, 24)
_VERDICTS = {1: (40, 190, 70), 0: _RED, -1: (70, 110, 235)}
"""colours of accepted, not accepted, not judged"""
_WORDS = {1: "Accepted: ", 0: "Not accepted: ", -1: ""}
_EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)])
"""of a camera's pyramid: four corners of the image, and the centre"""


def show(path: Path, images: Path | None) -> tuple:
    """The arrays of `initfree blender arrays` as objects; the numbers of cameras and landmarks, and the verdict."""
    with np.load(path, allow_pickle=False) as file:
        a = dict(file)
    where = spawned.collection(RESULT)
    shown = spawned.shown_size(a["camera_to_world"][:, :3, 3])
    for k, name in enumerate(a["names"].tolist()):
        thing = spawned.camera(name, a["camera_to_world"][k], 0.5, float(a["shape"][k, 0]), shown, where)
        picture = images / name if images is not None else None
        if picture is not None and picture.is_file():
            thing.data.show_background_images = True
            thing.data.background_images.new().image = bpy.data.images.load(str(picture), check_existing=True)
    pyramids(a, 0.5 * shown, where)
    cloud(a["xyz"], a["rgb"], where)
    return len(a["names"]), len(a["xyz"]), f"{_WORDS[int(a['accepted'])]}{a['verdict']}"


def pyramids(a: dict, size: float, where: bpy.types.Collection) -> None:
    """Cameras as rods along the edges of their pyramids, `size` half as wide, which, unlike cameras, have colours."""
    half = a["shape"] * size / a["shape"][:, :1]
    corners = half[:, None] * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (0, 0)])
    depth = np.repeat(size / a["shape"][:, :1], 5, axis=1) * (1.0, 1.0, 1.0, 1.0, 0.0)
    local = np.concatenate([corners, depth[..., None]], axis=2)
    world = np.einsum("nij,nkj->nki", a["camera_to_world"][:, :3, :3], local) + a["camera_to_world"][:, None, :3, 3]
    start, way = world[:, _EDGES[:, 0]], world[:, _EDGES[:, 1]] - world[:, _EDGES[:, 0]]
    across = np.cross(way, np.eye(3)[np.argmin(np.abs(way), axis=2)])
    across /= np.linalg.norm(across, axis=2, keepdims=True)
    other = np.cross(way, across) / np.linalg.norm(way, axis=2, keepdims=True)
    turns = 2.0 * np.pi * np.arange(3)[:, None] / 3.0
    ring = 0.08 * size * (np.cos(turns) * across[:, :, None] + np.sin(turns) * other[:, :, None])
    rods = np.stack([start[:, :, None] + ring, start[:, :, None] + way[:, :, None] + ring], axis=2)
    sides = np.array([(k, (k + 1) % 3, (k + 1) % 3 + 3, k + 3) for k in range(3)])
    rgb = np.where(a["failing"][:, None], _RED, _VERDICTS[int(a["accepted"])])
    solids(PYRAMIDS, rods.reshape(-1, 6, 3), sides, np.repeat(rgb, len(_EDGES), axis=0), where).hide_select = True


def cloud(xyz: np.ndarray, rgb: np.ndarray, where: bpy.types.Collection) -> None:
    """Landmarks as tetrahedra, which every engine draws; the smaller, the more there are."""
    extent = float(np.linalg.norm(np.quantile(xyz, 0.95, axis=0) - np.quantile(xyz, 0.05, axis=0))) if len(xyz) else 1.0
    radius = extent * min(max(0.4 / max(len(xyz), 1) ** 0.5, 0.001), 0.01)
    corners = radius * np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]) / 3**0.5
    solids(LANDMARKS, xyz[:, None] + corners, np.array([(0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2)]), rgb, where)


def solids(
    name: str, points: np.ndarray, faces: np.ndarray, rgb: np.ndarray, where: bpy.types.Collection
) -> bpy.types.Object:
    """Solids of one kind, `points` (n, k, 3) and `faces` of the k, with a colour each."""
    n, k = points.shape[:2]
    corners = (k * np.arange(n)[:, None, None] + faces).ravel()
    mesh = bpy.data.meshes.new(name)
    mesh.vertices.add(n * k)
    mesh.vertices.foreach_set("co", points.astype(np.float32).ravel())
    mesh.loops.add(len(corners))
    mesh.loops.foreach_set("vertex_index", corners.astype(np.int32))
    mesh.polygons.add(n * len(faces))
    mesh.polygons.foreach_set("loop_start", np.arange(0, len(corners), faces.shape[1], dtype=np.int32))
    spawned.paint(mesh, COLOUR, np.repeat(rgb, k, axis=0), "POINT")
    mesh.materials.append(_glowing())
    mesh.update(calc_edges=True)
    return spawned.marked(name, mesh, where)


def _glowing() -> bpy.types.Material:
    """A material that shines in the colour of the attribute."""
    found = bpy.data.materials.get(RESULT)
    if found is not None:
        return found
    made = bpy.data.materials.new(RESULT)
    made.use_nodes = True
    nodes, links = made.node_tree.nodes, made.node_tree.links
    nodes.clear()
    own, light, output = (nodes.new(f"ShaderNode{kind}") for kind in ("Attribute", "Emission", "OutputMaterial"))
    own.attribute_name = COLOUR
    links.new(own.outputs["Color"], light.inputs["Color"])
    links.new(light.outputs[0], output.inputs["Surface"])
    return made


class INITFREE_OT_load(Job, bpy.types.Operator):
    """Load a reconstruction: what solve wrote, or a COLMAP model; aligned to the exported truth where there is one"""

    bl_idname = "initfree.load"
    bl_label = "Load reconstruction"

    directory: StringProperty(subtype="DIR_PATH", description="By default the folder of the last solve")

    def arguments(self, context: bpy.types.Context) -> list:
        problem = None if self.directory else folder_of(context.scene)
        found = Path(bpy.path.abspath(self.directory)).resolve() if problem is None else problem / "solved"
        if not found.is_dir():
            raise Problem(f"There is no folder {found}; solve the problem, or choose the folder of a reconstruction")
        self.images = next((one / "images" for one in (found, *found.parents[:2]) if (one / "images").is_dir()), None)
        words = ["blender", "arrays", str(found), "--output", "scene.npz"]
        truth = None if problem is None else problem / "sparse" / "0"
        return words + (["--truth", str(truth)] if truth is not None and truth.is_dir() else [])

    def done(self, context: bpy.types.Context) -> str:
        cameras, landmarks, verdict = show(self.folder / "scene.npz", self.images)
        if context.area is not None and context.area.type == "VIEW_3D":
            context.area.spaces[0].shading.color_type = "VERTEX"
        context.scene.initfree.figures = f"{cameras} cameras, {landmarks} landmarks\n{verdict}"
        return f"{cameras} cameras, {landmarks} landmarks"


class INITFREE_OT_load_other(bpy.types.Operator):
    """Load any reconstruction: a folder that solve wrote, or one with a COLMAP model; its world stays as it is"""

    bl_idname = "initfree.load_other"
    bl_label = "Load other reconstruction"

    directory: StringProperty(subtype="DIR_PATH")
    filter_folder: BoolProperty(default=True, options={"HIDDEN"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return INITFREE_OT_load.poll(context)

    def invoke(self, context: bpy.types.Context, _: bpy.types.Event) -> set:
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, _: bpy.types.Context) -> set:
        return bpy.ops.initfree.load("INVOKE_DEFAULT", directory=self.directory)


def register() -> None:
    bpy.utils.register_class(INITFREE_OT_load)
    bpy.utils.register_class(INITFREE_OT_load_other)


def unregister() -> None:
    bpy.utils.unregister_class(INITFREE_OT_load_other)
    bpy.utils.unregister_class(INITFREE_OT_load)
