"""`initfree formats`: input and output formats, with an example each."""

from rich.console import Console
from rich.table import Table

from initfree.io.convert import TARGETS
from initfree.io.formats import FORMATS


def formats() -> int:
    """List the formats that can be read, each with a command that reads it, and those that `initfree convert` writes."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for one in FORMATS:
        table.add_row(one.name, one.looks)
        table.add_row("", one.example, style="dim")
    for target in TARGETS:
        table.add_row(f"to {target.name}", target.looks)
    table.add_row("", "initfree convert out/sparse/0 cameras.toml", style="dim")
    Console(highlight=False, markup=False, emoji=False).print(table)
    return 0
