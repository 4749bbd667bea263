"""The command `initfree`: a thin layer over the public functions.

Exit codes: 0 reconstruction accepted, 3 finished but not accepted, 2 bad input or usage, 1 our fault.
"""

import sys

_INTERRUPTED = 130


def _commands() -> dict:
    from initfree.commands import bench
    from initfree.commands.blender import blender
    from initfree.commands.evaluate import evaluate
    from initfree.commands.generate import generate
    from initfree.commands.solve import solve

    return {"solve": solve, "evaluate": evaluate, "generate": generate, "blender": blender, "bench": bench.bench}


def main(arguments: list[str] | None = None) -> None:
    """Run one sub-command; each is a function whose return value is the exit code."""
    try:
        # Imported here, so that an interrupt while they load ends as quietly as any other.
        import tyro

        from initfree.commands import bench
        from initfree.errors import InputError
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] == ["bench"]:
            code = tyro.extras.subcommand_cli_from_dict(
                bench.COMMANDS, prog="initfree bench", description=bench.bench.__doc__, args=arguments[1:]
            )
        else:
            code = tyro.extras.subcommand_cli_from_dict(
                _commands(),
                prog="initfree",
                description="Bundle adjustment that starts from nothing: from image observations alone to a "
                "metric 3D reconstruction.",
                args=arguments,
            )
    except InputError as error:
        print(f"initfree: error: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("initfree: interrupted", file=sys.stderr)
        code = _INTERRUPTED
    sys.exit(code)
