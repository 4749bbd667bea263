"""The default: several ways to start, repaired, ranked, confirmed, and cleaned at the end."""
