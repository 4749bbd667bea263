"""Arrays of cameras: rigs, a report on each camera, offsets in time."""
