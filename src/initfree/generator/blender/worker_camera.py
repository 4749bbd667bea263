# pyright: reportMissingImports=false
"""Runs inside Blender's own Python: COLMAP's cameras as Blender's."""

import hashlib
import math
import os
import tempfile

import bpy

LENS = """
shader colmap_camera(output point position = 0, output vector direction = 0, output color throughput = 1)
{
    point raster = camera_shader_raster_position();
    float column = raster[0] * %(width)d.0;
    float row = (1.0 - raster[1]) * %(height)d.0;
    %(snap)s
    float xd = (column - (%(cx)r)) / (%(fx)r);
    float yd = (row - (%(cy)r)) / (%(fy)r);
    float k1 = %(k1)r, k2 = %(k2)r, k3 = %(k3)r, k4 = %(k4)r;
    float q1 = %(q1)r, q2 = %(q2)r, q3 = %(q3)r;
    float p1 = %(p1)r, p2 = %(p2)r, s1 = %(s1)r, s2 = %(s2)r;
    float x = xd, y = yd, r2 = 0, ex = 0, ey = 0;
    // Newton's method on distort(x, y) = (xd, yd), with what COLMAP's models have among them: radial terms
    // k over q, tangential p, thin prism s.
    for (int i = 0; i <= %(iterations)d; ++i) {
        r2 = x * x + y * y;
        float q = 1.0 + r2 * (q1 + r2 * (q2 + r2 * q3));
        float g = (1.0 + r2 * (k1 + r2 * (k2 + r2 * (k3 + r2 * k4)))) / q;
        ex = x * g + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) + s1 * r2 - xd;
        ey = y * g + 2.0 * p2 * x * y + p1 * (r2 + 2.0 * y * y) + s2 * r2 - yd;
        if (i == %(iterations)d)
            break;
        float dk = k1 + r2 * (2.0 * k2 + r2 * (3.0 * k3 + r2 * 4.0 * k4));
        float dg = (dk - g * (q1 + r2 * (2.0 * q2 + r2 * 3.0 * q3))) / q;
        float cross = 2.0 * (x * y * dg + p1 * x + p2 * y);
        float xx = g + 2.0 * (x * x * dg + p1 * y + 3.0 * p2 * x + s1 * x);
        float xy = cross + 2.0 * s1 * y;
        float yx = cross + 2.0 * s2 * x;
        float yy = g + 2.0 * (y * y * dg + 3.0 * p1 * y + p2 * x + s2 * y);
        float det = xx * yy - xy * yx;
        x -= (yy * ex - xy * ey) / det;
        y -= (xx * ey - yx * ex) / det;
    }
    // Beyond the fold two directions share a pixel, and some pixels have none: no ray.
    if (!(r2 < (%(fold)r) * (%(fold)r)) || !(ex * ex + ey * ey < 1e-9))
        throughput = color(0);
    direction = normalize(vector(x, -y, 1.0));
    if (%(fisheye)d) {
        // (x, y) is as long as the angle to the optical axis.
        float angle = sqrt(r2);
        float along = angle > 1e-6 ? sin(angle) / angle : 1.0;
        direction = vector(along * x, -along * y, cos(angle));
    }
}
"""
TERMS = ("k1", "k2", "k3", "k4", "q1", "q2", "q3", "p1", "p2", "s1", "s2")
SENSOR = 36.0


def set_lens(camera, lens: dict, size: list, snap: bool) -> None:
    """Compile the camera's exact distortion for Cycles; `snap` sends rays through pixel centres (for depth)."""
    source = LENS % {
        **lens,
        "width": size[0],
        "height": size[1],
        "snap": "column = floor(column) + 0.5; row = floor(row) + 0.5;" if snap else "",
        "iterations": 12 if any(lens[name] for name in TERMS) else 0,
    }
    # Blender's own update of a custom camera needs the module oslquery, which the bpy wheel lacks; a shader
    # without parameters needs only its bytecode.
    import _cycles

    with tempfile.TemporaryDirectory() as place:
        written, compiled = os.path.join(place, "camera.osl"), os.path.join(place, "camera.oso")
        with open(written, "w", encoding="ascii") as file:
            file.write(source)
        if not _cycles.osl_compile(written, compiled):
            raise SystemExit("initfree: Blender cannot compile the camera's shader")
        with open(compiled, encoding="utf-8") as file:
            bytecode = file.read()
    camera.type, camera.custom_mode = "CUSTOM", "INTERNAL"
    camera.custom_shader = bpy.data.texts.get("camera.osl") or bpy.data.texts.new("camera.osl")
    camera.custom_bytecode = bytecode
    camera.custom_bytecode_hash = hashlib.md5(bytecode.encode(), usedforsecurity=False).hexdigest()
    camera.update_tag()


def set_pinhole(scene, camera, lens: dict, size: list) -> None:
    """The camera without its distortion, for the engines that draw triangles."""
    (width, height), fx, fy = size, lens["fx"], lens["fy"]
    camera.type, camera.sensor_fit, camera.sensor_width = "PERSP", "HORIZONTAL", SENSOR
    camera.lens = SENSOR * fx / width
    scene.render.pixel_aspect_x, scene.render.pixel_aspect_y = max(1.0, fy / fx), max(1.0, fx / fy)
    camera.shift_x = (width / 2 - lens["cx"]) / width
    camera.shift_y = (lens["cy"] - height / 2) / width * fx / fy


def set_clipping(camera, lens: dict, size: list, nearest: float, farthest: float) -> None:
    """Clipping planes as tight as the distances of the scene allow.

    The depth buffer's relative error is that of its numbers times depth / near, so the near plane decides.
    """
    corner = max(abs(lens["cx"]), abs(size[0] - lens["cx"])) / lens["fx"]
    corner = math.hypot(corner, max(abs(lens["cy"]), abs(size[1] - lens["cy"])) / lens["fy"])
    camera.clip_start = max(0.99 * nearest / math.hypot(1.0, corner), 1e-3)
    camera.clip_end = max(1.01 * farthest, 2.0 * camera.clip_start)
