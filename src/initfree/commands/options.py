"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import tyro

Output = Annotated[Path, tyro.conf.arg(aliases=["-o"])]
"""where to write"""
Overwrite = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(name="overwrite")]
"""replace also what this command did not write"""
OptionalOutput = Annotated[Path | None, tyro.conf.arg(aliases=["-o"])]
"""where to write, if not where the command would by itself"""
