"""One way to draw: what the page of a run, the viewer and the benchmark's report share.

`scene.py` is what can be seen of a reconstruction, `packed.py` how a page holds it, `page.py` the frame of every page with
its style, its scene and its charts, `summary.py` the page of a run, `raster.py` a scene as a picture.
"""
