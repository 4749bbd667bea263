"""Input and output of the solver: observations, the problem, the reconstruction."""
