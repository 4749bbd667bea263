"""The benchmark: sweeps over the paper's grid, and the report on what they found."""
