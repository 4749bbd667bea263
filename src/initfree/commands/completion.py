"""`initfree completion`: what a shell needs to complete commands and flags."""

from typing import Annotated, Any, Literal, Union

import tyro

from initfree.commands.cli import BENCH, COMMANDS, _load
from initfree.extras import missing_extra


def completion(shell: tyro.conf.Positional[Literal["bash", "zsh", "tcsh"]], /) -> int:
    """Print the completion script of a shell.

    bash: initfree completion bash > ~/.local/share/bash-completion/completions/initfree. zsh: into a file _initfree of a
    directory of $fpath.

    Args:
        shell: Whose script.
    """

    def many(command: Any) -> None:
        """Sweeps."""

    many.__annotations__["command"] = tyro.conf.OmitSubcommandPrefixes[_choice(BENCH)]
    tyro.cli(_choice(COMMANDS, bench=many), prog="initfree", args=["--tyro-print-completion", shell])
    return 0


def _choice(table: dict[str, tuple[str, str]], **given: Any) -> Any:
    """The commands of a table as a choice that tyro knows; those whose extra is not installed are left out."""
    found = []
    for name, (place, summary) in table.items():
        function = given.get(name)
        if place:
            try:
                function = _load(place)
            except ImportError as error:
                if missing_extra(error, f"initfree {name}") is None:
                    raise
                continue
        found.append(Annotated[Any, tyro.conf.subcommand(name=name, description=summary, constructor=function)])
    return Union[tuple(found)]  # noqa: UP007, made at run time
