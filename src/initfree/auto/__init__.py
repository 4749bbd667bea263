"""The default strategy: several starts, their ranking, and finishing steps."""
