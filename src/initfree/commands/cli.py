"""The command `initfree`: a thin layer over the public functions.

Exit codes: 0 reconstruction accepted, 3 finished but not accepted, 2 bad input or usage, 1 our fault, 130 interrupted
(Ctrl-C), 143 terminated (SIGTERM).

Names and summaries stand in a table here and a command's module is imported when the command is chosen: `initfree --help`
needs none of Numba, SciPy and pycolmap.
"""

import os
import signal
import sys
from typing import Any, NoReturn

COMMANDS = {
    "solve": ("initfree.commands.solve:solve", "reconstruct cameras and landmarks from image observations alone"),
    "view": ("initfree.commands.view:view", "see a reconstruction in the browser, as a page or as a picture"),
    "check": ("initfree.commands.check:check", "judge a model of any program: is it right?"),
    "adjust": ("initfree.commands.adjust:adjust", "adjust a model of any program to its own observations"),
    "evaluate": ("initfree.commands.evaluate:evaluate", "compare a reconstruction with the truth"),
    "convert": ("initfree.commands.convert:convert", "from what can be read to what other programs read"),
    "formats": ("initfree.commands.formats:formats", "list what can be read, with an example each"),
    "generate": ("initfree.commands.generate:generate", "make a problem with exact ground truth"),
    "bench": ("", "many runs on generated and real data: run a sweep, look at it, export it"),
    "blender": ("initfree.commands.blender:blender", "set up Blender for rendering, optional"),
    "warmup": ("initfree.commands.warmup:warmup", "compile all kernels once, so that the first solve does not"),
    "completion": ("initfree.commands.completion:completion", "print what a shell needs to complete commands and flags"),
    "doctor": ("initfree.commands.doctor:doctor", "say what is installed, what is missing and how to get it"),
}
"""command: where its function is (empty: it has commands of its own), what it does"""
BENCH = {
    "run": ("initfree.commands.bench:run", "run a sweep, or what is missing of it"),
    "status": ("initfree.commands.bench:status", "say how far a sweep is"),
    "report": ("initfree.commands.report:report", "write the report on a sweep: a page, tables"),
    "reproduction": ("initfree.commands.report:reproduction", "write what of the paper sweeps reproduce"),
    "export": ("initfree.commands.bench:export", "write a sweep's rows and summary for other programs"),
}
"""the commands of `initfree bench`"""
_ABOUT = "Bundle adjustment that starts from nothing: from image observations alone to a 3D reconstruction."
_INTERRUPTED = 128 + signal.SIGINT
_PIPE_CLOSED = 128 + 13
"""13 is SIGPIPE, which Windows lacks"""
_SIMILAR = 0.5
"""of difflib: how much of a mistyped command must agree with one that exists"""


def main(arguments: list[str] | None = None) -> None:
    """Run one command; each is a function whose return value is the exit code."""
    # Nothing was written yet and nothing needs to be put away: an interrupt while libraries load just ends.
    before = {s: signal.signal(s, _end_at_once) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = _main(sys.argv[1:] if arguments is None else arguments)
        print(end="", flush=True)
    except KeyboardInterrupt:
        print("initfree: interrupted", file=sys.stderr)
        code = _INTERRUPTED
    except BrokenPipeError:
        # `initfree ... | head` has read enough; what is left in the buffer must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _PIPE_CLOSED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    sys.exit(code)


def _main(arguments: list[str]) -> int:
    prog, commands = "initfree", COMMANDS
    while True:
        chosen = arguments[0] if arguments else None
        if chosen in (None, "-h", "--help", "help"):
            print(_help(prog, commands))
            return 0 if arguments else 2
        if prog == "initfree" and chosen in ("-V", "--version"):
            from initfree import __version__

            print(f"initfree {__version__}")
            return 0
        if chosen not in commands:
            return _fail(_unknown(prog, str(chosen), commands))
        place, prog, arguments = commands[chosen][0], f"{prog} {chosen}", arguments[1:]
        if place:
            return _run(place, prog, arguments)
        commands = BENCH


def _help(prog: str, commands: dict[str, tuple[str, str]]) -> str:
    about = _ABOUT if commands is COMMANDS else f"{COMMANDS['bench'][1].capitalize()}."
    width = max(map(len, commands))
    lines = [f"usage: {prog} COMMAND [...]", "", about, "", "commands:"]
    lines += [f"  {name:<{width}}  {summary}" for name, (_, summary) in commands.items()]
    lines += ["", f"`{prog} COMMAND --help` shows the options of a command."]
    if commands is COMMANDS:
        lines[-1] += " `initfree --version` shows the version."
    return "\n".join(lines)


def _unknown(prog: str, name: str, commands: dict[str, tuple[str, str]]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, commands, n=1, cutoff=_SIMILAR)
    hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(commands)}"
    return f"{name!r} is no command of `{prog}`; {hint}"


def _run(place: str, prog: str, arguments: list[str]) -> int:
    """The function at `place` ("module:function") with these arguments."""
    import logging
    import warnings

    from initfree.errors import InputError
    from initfree.extras import missing_extra

    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)  # commands say themselves what they compile
    logging.getLogger("initfree").addHandler(handler)
    if not sys.warnoptions:
        # NumPy's words on numbers of a file, which are judged where they matter.
        warnings.simplefilter("ignore", RuntimeWarning)
    try:
        function = _load(place)
        from initfree.commands.usage import parsed

        if {"-h", "--help"} & set(arguments):
            from initfree.commands.options import in_plain_words

            function = in_plain_words(function)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, _terminate)
        return parsed(function, prog, arguments)()
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            raise
        return _fail(f"{error.filename}: {error.strerror}")
    except ImportError as error:
        message = missing_extra(error, prog)
        if message is None:
            raise
        return _fail(message)


def _load(place: str) -> Any:
    from importlib import import_module

    from initfree.system_signals import held

    module, name = place.split(":")
    # pycolmap answers SIGTERM with a stack trace from the moment it is imported: import it before our own handler is set,
    # and let a signal that comes meanwhile wait for that handler.
    with held({signal.SIGINT, signal.SIGTERM}):
        import pycolmap  # noqa: F401

        signal.signal(signal.SIGTERM, _end_at_once)
    return getattr(import_module(module), name)


def _fail(message: str) -> int:
    print(f"initfree: error: {message}", file=sys.stderr)
    return 2


def _end_at_once(number: int, _: object) -> NoReturn:
    os._exit(128 + number)


def _terminate(number: int, _: object) -> NoReturn:
    """As an exception, so that a folder that is being written is removed on the way out."""
    sys.exit(128 + number)
