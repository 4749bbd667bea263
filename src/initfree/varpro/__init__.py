"""Variable projection: compiled kernels, the reduced camera system and Levenberg-Marquardt."""
