"""Blender as an optional worker process in an environment of its own.

bpy pins an exact Python and numpy < 2, so it never shares an environment with initfree. Observations and
visibility always come from the ray-cast path on Blender's evaluated meshes; Blender adds pictures and reads
`.blend` files.
"""
