"""`initfree formats`: input and output formats, with an example each."""

from rich.console import Console
from rich.table import Table

from initfree.io.convert import OTHERS, TARGETS
from initfree.io.formats import FORMATS


def formats() -> int:
    """List the formats that can be read, each with a command that reads it, and those that `initfree convert` writes."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_row("photographs", "a folder of images, or of folders of images; a video (extra video)")
    table.add_row("", "initfree solve photographs --output out", style="dim")
    for one in FORMATS:
        table.add_row(one.name, one.looks)
        table.add_row("", one.example, style="dim")
    for target in TARGETS:
        table.add_row(f"to {target.name}", target.looks)
    for name, looks in OTHERS.items():
        table.add_row(f"to {name}", looks)
    table.add_row("convert", "initfree convert out cameras.toml; initfree convert out splats --images photographs")
    Console(highlight=False, markup=False, emoji=False).print(table)
    return 0
