"""Inputs of strangers, by the thousand: does every command end in one sentence, in bounded time and memory?

    python benchmarks/fuzz.py [--count 100] [--seed N] [--kinds bytes aimed] [--readers colmap-binary bal.txt ...]

For every format, and for what `initfree solve` writes, sound inputs are damaged: some of their bytes (`bytes`), or a value,
a name, a type, a table or a whole file where it hurts most (`aimed`: tests/hostile.py; among them hostile names, bombs,
FIFOs and devices). Each is read in a process of its own, solved, and where it has poses checked, evaluated against itself,
converted to something and shown by `view --export`. Good are: a valid read, or exit code 2 with one line on stderr that
names the file. Prints one line for each format and kind, and ends with 1 if a case is not good: tracebacks, crashes, hangs
(over 20 s of work, or two minutes), more than 1 GiB, anything else printed, anything written outside the output. The seed is
another one each time, and printed.
"""

import argparse
import os
import random
import resource
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from hostile import write_aimed  # noqa: E402  # pyright: ignore[reportMissingImports]
from mutations import inputs, one_gibibyte, write_mutated  # noqa: E402  # pyright: ignore[reportMissingImports]

from initfree.api import evaluate, solve  # noqa: E402
from initfree.commands.view import view  # noqa: E402
from initfree.data.observations import Intrinsics  # noqa: E402
from initfree.errors import InputError  # noqa: E402
from initfree.io.convert import TARGETS, convert  # noqa: E402
from initfree.io.formats import FORMATS, format_of  # noqa: E402
from initfree.io.load import load  # noqa: E402
from initfree.models.check import check  # noqa: E402

SECONDS, WAITED = 20, 120
"""of work, and of a clock that a busy machine lets run"""
MEBIBYTES = 1024
KINDS = {"bytes": write_mutated, "aimed": write_aimed}
WRITTEN = "solve's output"


def read(path: Path, out: Path, intrinsics: Intrinsics, poses: bool, to: str) -> int:
    """What commands do with an input, whose format has poses or not; 2 if one refuses it, and the first one's sentence."""
    steps: list[Callable[[], object]] = [lambda: solve(load(path, 3, intrinsics))]
    if poses:
        steps += [
            lambda: evaluate(path, path),
            lambda: check(path),
            lambda: convert(path, out / "converted", to, images=path if to == "splats" else None),
        ]
    if path.name.startswith(WRITTEN):
        steps.append(lambda: view(path, export=(out / "page.html",)))
    code = 0
    for step in steps:
        try:
            step()
        except InputError as error:
            if code == 0:
                print(f"initfree: error: {error}", file=sys.stderr)
            code = 2
    return code


def everything(place: Path) -> dict[str, str]:
    """All files below a directory, with what is in them."""
    return {
        str(path): blake2b(path.read_bytes()).hexdigest() if path.is_file() and path.stat().st_size else ""
        for path in place.rglob("*")
    }


def run_case(path: Path, root: Path, intrinsics: Intrinsics, poses: bool, to: str) -> tuple[str, str, float]:
    """(verdict, what was printed, peak MiB) of one input, read in a fork of this process."""
    shutil.rmtree(root / "out", ignore_errors=True)
    (root / "out").mkdir()
    before, printed = everything(path.parent), root / "printed"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            output = os.open(printed, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(output, 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.chdir(root / "work")
            signal.alarm(WAITED)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
            with one_gibibyte():
                code = read(path, root / "out", intrinsics, poses, to)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    text = printed.read_text(errors="replace")
    peak = usage.ru_maxrss / 1024
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGALRM, -signal.SIGXCPU):
        return "hang", text, peak
    if code < 0:
        return "crash", text, peak
    if peak > MEBIBYTES:
        return "memory", text, peak
    if everything(path.parent) != before or any((root / "work").iterdir()):
        return "files written", text, peak
    if code == 2 and text.count("\n") == 1 and text[:-1].isprintable() and (str(path) in text or "output" in text):
        return "refused", text, peak
    if code == 0 and not text:
        return "read", text, peak
    return ("traceback" if "Traceback" in text else "other output"), text, peak


def _intrinsics(source: Path) -> tuple[Intrinsics, ...]:
    """What can be asked of a sound input: detections alone come without intrinsics."""
    try:
        load(source, 3, "known")
    except InputError:
        return ("unknown",)
    return ("known", "unknown")


def sound_inputs(place: Path) -> dict[str, Path]:
    """One of every format at least, and what `solve` writes."""
    found = inputs(place)
    solve(load(found["colmap-binary"])).write(place / WRITTEN)
    found[WRITTEN] = place / WRITTEN
    lacking = {one.name for one in FORMATS} - {format_of(path).name for path in found.values()}
    assert not lacking, f"no sound input of {lacking}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100, help="inputs of each kind for each format")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--readers", nargs="*", help="of which formats; all by default")
    parser.add_argument("--show", action="store_true", help="print the messages, each kind once")
    parser.add_argument("--keep", type=Path, help="directory for the inputs that are not good")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    total, peaks = Counter[str](), [0.0]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        sound = sound_inputs(root / "sound")
        (root / "work").mkdir()
        for name, source in sound.items():
            if arguments.readers and name not in arguments.readers:
                continue
            poses, asked = format_of(source).model is not None, _intrinsics(source)
            targets = [one.name for one in TARGETS if one.name != "picture"] + ["splats", "table"]
            # What is loaded here needs no loading in each of the forks.
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
                for intrinsics in asked:
                    read(source, Path(tempfile.mkdtemp(dir=root)), intrinsics, poses, "json")
            for kind in arguments.kinds:
                verdicts, began, peak = Counter[str](), time.perf_counter(), 0.0
                messages: dict[str, str] = {}
                for k in range(arguments.count):
                    rng = random.Random(f"{name} {kind} {arguments.seed} {k}")
                    folder = root / "case"
                    shutil.rmtree(folder, ignore_errors=True)
                    folder.mkdir()
                    target = folder / f"{source.stem}{source.suffix}"
                    KINDS[kind](source, target, rng)
                    verdict, text, used = run_case(target, root, rng.choice(asked), poses, rng.choice(targets))
                    peak = max(peak, used)
                    verdicts[verdict] += 1
                    if verdict not in ("refused", "read"):
                        print(f"{name}, {kind}, seed {arguments.seed}, case {k}: {verdict}\n{text[-2000:]}", flush=True)
                        if arguments.keep is not None:
                            shutil.copytree(folder, arguments.keep / f"{name}-{kind}-{k}", symlinks=True)
                    messages.setdefault("".join(c for c in text.replace(str(target), "INPUT") if not c.isdigit()), text)
                told = ", ".join(f"{verdict} {count}" for verdict, count in sorted(verdicts.items()))
                seconds = time.perf_counter() - began
                print(f"{name:16} {kind:6} {arguments.count}: {told}; peak {peak:.0f} MiB, {seconds:.0f} s", flush=True)
                total += verdicts
                peaks.append(peak)
                if arguments.show:
                    print("".join(sorted(messages.values())))
    told = ", ".join(f"{verdict} {count}" for verdict, count in sorted(total.items()))
    print(f"all {total.total()}: {told}; peak {max(peaks):.0f} MiB")
    sys.exit(1 if set(total) - {"refused", "read"} else 0)


if __name__ == "__main__":
    main()
