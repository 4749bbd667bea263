"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import tyro

Output = Annotated[Path, tyro.conf.arg(aliases=["-o"])]
"""where to write"""
OptionalOutput = Annotated[Path | None, tyro.conf.arg(aliases=["-o"])]
"""where to write, if not where the command would by itself"""
