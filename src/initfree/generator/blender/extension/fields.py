# pyright: reportMissingImports=false
"""Blender's properties from the JSON schema of the generator's configuration: same names, defaults, limits, descriptions."""

import json
from pathlib import Path

import bpy
import numpy as np

DEFINITIONS = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))["$defs"]
_LARGEST = 2**31 - 1
_USE = "use_"
"""A field that may be absent has a switch of this name beside it."""


class Problem(Exception):
    """Something that the user can mend, in one sentence."""


def schema(table: str) -> dict:
    """name -> JSON schema of the fields of a table of the configuration, such as Camera."""
    return DEFINITIONS[table]["properties"]


def properties(table: str, left_out: tuple = ()) -> dict:
    """Annotations of a property group with the fields of a table."""
    found = {}
    for name, field in schema(table).items():
        if name not in left_out:
            if _optional_number(field):
                found[_USE + name] = bpy.props.BoolProperty(name=_title(name), description=f"Whether {_title(name)} is set")
            found[name] = _property(name, field)
    return found


def to_table(group: bpy.types.PropertyGroup, table: str, left_out: tuple = ()) -> dict:
    """The group's values as the configuration has them; what is absent is left out."""
    return {
        name: value
        for name, field in schema(table).items()
        if name not in left_out and (value := _read(group, name, field)) is not None
    }


def from_table(group: bpy.types.PropertyGroup, table: str, values: dict, left_out: tuple = ()) -> None:
    """The group's fields from a table; those that it does not have get their defaults."""
    for name, field in schema(table).items():
        if name in left_out:
            continue
        value = values.get(name)
        if _optional_number(field):
            setattr(group, _USE + name, value is not None)
        if value is None:
            group.property_unset(name)
        elif _numbers(field):
            setattr(group, name, ", ".join(f"{number:.17g}" for number in value))
        else:
            setattr(group, name, value)


def draw(layout: bpy.types.UILayout, group: bpy.types.PropertyGroup, table: str, left_out: tuple = ()) -> None:
    """One row a field; a field that may be absent is grey until its switch is on."""
    for name, field in schema(table).items():
        if name in left_out:
            continue
        if _optional_number(field):
            row = layout.row(heading=_title(name))
            row.prop(group, _USE + name, text="")
            value = row.row()
            value.enabled = getattr(group, _USE + name)
            value.prop(group, name, text="")
        else:
            layout.prop(group, name)


def plain(value: float) -> float:
    """The shortest decimal that is this single-precision number: Blender keeps 0.2 as 0.200000003."""
    return float(str(np.float32(value)))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _optional_number(field: dict) -> bool:
    return any(one.get("type") in ("number", "integer") for one in field.get("anyOf", ()))


def _numbers(field: dict) -> bool:
    return any(one.get("type") == "array" for one in field.get("anyOf", ()))


def _property(name: str, field: dict) -> object:
    kind = next((one for one in field.get("anyOf", ()) if one.get("type") != "null"), field)
    said = {"name": _title(name), "description": field.get("description", _title(name)).replace("\n", " ").rstrip(".")}
    default = field.get("default")
    given = {} if default is None else {"default": default}
    if "enum" in kind:
        return bpy.props.EnumProperty(items=[(one, one, "") for one in kind["enum"]], **said, **given)
    match kind["type"]:
        case "boolean":
            return bpy.props.BoolProperty(**said, **given)
        case "integer":
            limits = {"min": int(kind.get("minimum", -_LARGEST)), "max": int(kind.get("maximum", _LARGEST))}
            return bpy.props.IntProperty(**said, **given, **limits)
        case "number":
            low = kind.get("minimum", kind.get("exclusiveMinimum", -1e30) + (1e-6 if "exclusiveMinimum" in kind else 0.0))
            high = kind.get("maximum", kind.get("exclusiveMaximum", 1e30) - (1e-6 if "exclusiveMaximum" in kind else 0.0))
            return bpy.props.FloatProperty(**said, **given, min=low, max=high, precision=4)
        case "array" if default is not None:
            return bpy.props.FloatVectorProperty(**said, size=3, default=default)
        case _:
            return bpy.props.StringProperty(**said, **given)


def _read(group: bpy.types.PropertyGroup, name: str, field: dict) -> object:
    value = getattr(group, name)
    if _numbers(field):
        try:
            return [float(word) for word in value.replace(",", " ").split()] or None
        except ValueError as error:
            raise Problem(f"{_title(name)} = {value}: expected numbers with commas between them, or nothing") from error
    if _optional_number(field) and not getattr(group, _USE + name):
        return None
    if isinstance(value, float):
        return plain(value)
    return [plain(one) for one in value] if field.get("type") == "array" else value
