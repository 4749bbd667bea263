"""`initfree completion`: what a shell needs to complete commands, flags, presets and files."""

from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import tyro

from initfree.commands.cli import BENCH, COMMANDS, _load
from initfree.commands.options import in_plain_words
from initfree.extras import missing_extra

_PRESETS = {"generate": "generator", "bench run": "benchmark"}
"""commands that take one, and the packages whose folder `presets` has them"""


def completion(shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]], /) -> int:
    """Print the completion script of a shell.

    bash: initfree completion bash > ~/.local/share/bash-completion/completions/initfree. fish: initfree completion fish >
    ~/.config/fish/completions/initfree.fish. zsh: into a file _initfree of a directory of $fpath.

    Args:
        shell: Whose script.
    """

    def many(command: Any) -> None:
        """Sweeps."""

    many.__annotations__["command"] = tyro.conf.OmitSubcommandPrefixes[_choice(BENCH)]
    with redirect_stdout(StringIO()) as script, suppress(SystemExit):
        tyro.cli(_choice(COMMANDS, bench=many), prog="initfree", args=["--tyro-print-completion", shell])
    print(_improved(script.getvalue()), end="")
    return 0


def _improved(script: str) -> str:
    """tyro's script with what commands do, presets, and files where nothing else fits; flags once a dash is typed.

    tyro knows no positional arguments: it would offer flags where an input is expected, and never a file.
    """
    presets = {name: _names(package) for name, package in _PRESETS.items()}
    offered = f"{presets!r}.get(' '.join(words[:current_word_index]), ())"
    changes = {
        "if flag.startswith(current_word)": "if current_word and flag.startswith(current_word)",
        "\n    return completions\n\n\ndef main": (
            f"\n    completions += [name + chr(9) + 'preset' for name in {offered} if name.startswith(current_word)]"
            "\n    return completions\n\n\ndef main"
        ),
        'if [[ "$completions" == "__TYRO_COMPLETE_FILES__" ]]': (
            'if [[ -z "$completions" || "$completions" == "__TYRO_COMPLETE_FILES__" ]]'
        ),
        # tyro's word begins with the words before it, which colons might have cut.
        'COMPREPLY=($(compgen -f -- "$cur"))': (
            'compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))'
        ),
        '-c "$pycode" $words $current': '-c "$pycode" $words "$(commandline -ct)" $current',
        'if test "$results" = __TYRO_COMPLETE_FILES__': 'if test -z "$results" -o "$results" = __TYRO_COMPLETE_FILES__',
    }
    for name, (_, summary) in (COMMANDS | BENCH).items():
        # In single quotes for Python, within double ones for fish.
        changes[f"{name!r}: {{'description': {name!r}"] = f"{name!r}: {{'description': '{summary.replace(chr(39), '’')}'"
    for old, new in changes.items():
        script = script.replace(old, new)
    return script


def _names(package: str) -> list[str]:
    folder = Path(__file__).parents[1] / package / "presets"
    return sorted(path.stem for path in folder.glob("*.toml"))


def _choice(table: dict[str, tuple[str, str]], **given: Any) -> Any:
    """The commands of a table as a choice that tyro knows; those whose extra is not installed are left out."""
    found = []
    for name, (place, summary) in table.items():
        function = given.get(name)
        if place:
            try:
                function = in_plain_words(_load(place))
            except ImportError as error:
                if missing_extra(error, f"initfree {name}") is None:
                    raise
                continue
        found.append(Annotated[Any, tyro.conf.subcommand(name=name, description=summary, constructor=function)])
    return Union[tuple(found)]  # noqa: UP007, made at run time
