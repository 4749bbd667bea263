"""`python -m initfree`."""

from initfree.cli import main

main()
