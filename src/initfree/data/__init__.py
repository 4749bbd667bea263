"""What is given and what comes out: observations, the problem that they pose, the reconstruction."""
