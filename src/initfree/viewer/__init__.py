"""`initfree view`: a written reconstruction in the browser, as a page, as a picture; optional.

from initfree.viewer import read_scene
scene = read_scene(Path("out"))
"""

from initfree.viewer.reading import read_scene

__all__ = ["read_scene"]
