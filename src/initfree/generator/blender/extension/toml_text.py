"""A configuration as TOML text: Python reads TOML and does not write it."""

import json


def to_toml(table: dict) -> str:
    """Numbers, strings, booleans and lists of them, and tables one level deep; deeper ones inline."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    text = "".join(f"{key} = {_value(value)}\n" for key, value in plain.items())
    for key, value in table.items():
        if isinstance(value, dict):
            text += f"\n[{key}]\n" + "".join(f"{name} = {_value(one)}\n" for name, one in value.items())
    return text


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
