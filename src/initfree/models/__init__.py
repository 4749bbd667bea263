"""Models of any program: adjusted, and judged."""
