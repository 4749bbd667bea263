"""`initfree formats`: what can be read, with an example each."""

from rich.console import Console
from rich.table import Table

from initfree.io.formats import FORMATS


def formats() -> int:
    """List the formats that can be read, what each looks like and a command that reads it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for one in FORMATS:
        table.add_row(one.name, one.looks)
        table.add_row("", one.example, style="dim")
    Console(highlight=False, markup=False).print(table)
    return 0
