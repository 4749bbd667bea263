"""The stages of a solve, from first cameras to a Euclidean bundle adjustment, and the list that runs them."""
