"""`python -m initfree`."""

from initfree.commands.cli import main

main()
