"""For arrays of cameras: rigs, a report on each camera, cameras that are out of step."""
