"""`python -m initfree.benchmark.report DIR`: the same as `initfree bench report DIR`."""

from pathlib import Path

import tyro

from initfree.benchmark.report import write_report

if __name__ == "__main__":
    print(tyro.cli(write_report, prog="python -m initfree.benchmark.report") or Path())
