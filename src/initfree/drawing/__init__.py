"""Drawing, shared by the page of a run, the viewer and the benchmark's report.

`scene.py` has the visible parts of a reconstruction, `packed.py` their encoding in a page, `page.py` the frame of every
page with its style, scene and charts, `summary.py` the page of a run, `raster.py` a scene as a picture.
"""
