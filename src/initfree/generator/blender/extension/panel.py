# pyright: reportMissingImports=false
"""The panel: 3D view, sidebar (N), tab initfree. Everyday settings first, then one section a table of the configuration."""

import textwrap

import bpy

from . import fields
from .jobs import INITFREE_OT_cancel, INITFREE_OT_evaluate, INITFREE_OT_export, INITFREE_OT_solve, INITFREE_OT_spawn
from .preset_menu import INITFREE_MT_presets, INITFREE_OT_load_settings, INITFREE_OT_save_settings
from .reconstruction import INITFREE_OT_load, INITFREE_OT_load_other
from .settings import LEFT_OUT, LOOK, PATH, SCENE, TABLES
from .spawned import INITFREE_OT_clear

LETTER = 8
"""pixels of the panel's width that a letter takes"""


class _Section:
    bl_space_type, bl_region_type, bl_category = "VIEW_3D", "UI", "initfree"


class INITFREE_PT_main(_Section, bpy.types.Panel):
    """What is done, from curves to an evaluated reconstruction."""

    bl_idname = "INITFREE_PT_main"
    bl_label = "initfree"

    def draw(self, context: bpy.types.Context) -> None:
        s, layout = context.scene.initfree, self.layout
        layout.use_property_split = True
        row = layout.row(align=True)
        row.menu(INITFREE_MT_presets.bl_idname, icon="PRESET")
        row.operator(INITFREE_OT_load_settings.bl_idname, text="", icon="FILE_FOLDER")
        row.operator(INITFREE_OT_save_settings.bl_idname, text="", icon="FILE_TICK")
        box = layout.box()
        box.label(text="Cameras along curves", icon="OUTLINER_OB_CURVE")
        box.prop(s, "curves")
        fields.draw(box, s.path, PATH, LEFT_OUT[PATH])
        box = layout.box()
        box.label(text="Where they look", icon="TRACKER")
        if s.look_at.kind in ("point", "away"):
            box.prop(s, "target")
        fields.draw(box, s.look_at, LOOK, (*LEFT_OUT[LOOK], *(() if s.look_at.kind == "parallel" else ("direction",))))
        row = layout.row(align=True)
        row.operator(INITFREE_OT_spawn.bl_idname, icon="CAMERA_DATA")
        row.operator(INITFREE_OT_clear.bl_idname, text="", icon="TRASH")
        layout.separator()
        for name in ("folder", "seed", "shuffle", "database", "images"):
            layout.prop(s, name)
        column = layout.column(align=True)
        column.operator(INITFREE_OT_export.bl_idname, icon="EXPORT")
        column.operator(INITFREE_OT_solve.bl_idname, icon="PLAY")
        row = column.row(align=True)
        row.operator(INITFREE_OT_load.bl_idname, icon="IMPORT")
        row.operator(INITFREE_OT_load_other.bl_idname, text="", icon="FILE_FOLDER")
        column.operator(INITFREE_OT_evaluate.bl_idname, icon="VIEWZOOM")
        if s.status:
            layout.operator(INITFREE_OT_cancel.bl_idname, icon="CANCEL")
        for line in (s.status or s.figures).splitlines():
            for part in textwrap.wrap(line, max(20, int(context.region.width / LETTER))):
                layout.label(text=part)


class INITFREE_PT_scene(_Section, bpy.types.Panel):
    """What landmarks lie on."""

    bl_idname, bl_parent_id, bl_label = "INITFREE_PT_scene", "INITFREE_PT_main", "Landmarks"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012

    def draw(self, context: bpy.types.Context) -> None:
        s, layout = context.scene.initfree, self.layout
        layout.use_property_split = True
        layout.prop(s, "objects")
        fields.draw(layout, s.scene, SCENE, LEFT_OUT[SCENE])


def _draw_table(self: bpy.types.Panel, context: bpy.types.Context) -> None:
    self.layout.use_property_split = True
    fields.draw(self.layout, getattr(context.scene.initfree, self.table), TABLES[self.table])


def _panel(table: str) -> type:
    names = {"bl_idname": f"INITFREE_PT_{table}", "bl_parent_id": "INITFREE_PT_main", "bl_label": table.capitalize()}
    members = names | {"bl_options": {"DEFAULT_CLOSED"}, "table": table, "draw": _draw_table}
    return type(names["bl_idname"], (_Section, bpy.types.Panel), members)


_PANELS = (INITFREE_PT_main, INITFREE_PT_scene, *(_panel(table) for table in TABLES))


def register() -> None:
    for panel in _PANELS:
        bpy.utils.register_class(panel)


def unregister() -> None:
    for panel in reversed(_PANELS):
        bpy.utils.unregister_class(panel)
