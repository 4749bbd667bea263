"""Damaged inputs, by the hundred: does a reader end in one sentence, in bounded time and memory?

    python benchmarks/fuzz.py [--count 500] [--seed 0] [--readers colmap-binary bal.txt ...]

Every case is read in a process of its own, as input and as truth, as `initfree solve INPUT --truth INPUT` reads them. Good
are: a valid read, or exit code 2 with one line on stderr that names the file. Prints one line a reader and ends with 1 if a
case is not good: tracebacks, crashes, hangs (over 20 s), more than 1 GiB, anything else printed, files written.
"""

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from mutations import inputs, one_gibibyte, write_mutated  # noqa: E402  # pyright: ignore[reportMissingImports]

from initfree.data.observations import Intrinsics  # noqa: E402
from initfree.errors import InputError  # noqa: E402
from initfree.io.formats import format_of  # noqa: E402
from initfree.io.load import load, load_model  # noqa: E402

SECONDS = 20
MEBIBYTES = 1024


def read(path: Path, intrinsics: Intrinsics, poses: bool) -> int:
    """What the command does with an input, whose format has poses or not; the exit code."""
    try:
        load(path, 3, intrinsics)
        if poses:
            load_model(path)
    except InputError as error:
        print(f"initfree: error: {error}", file=sys.stderr)
        return 2
    return 0


def run_case(path: Path, place: Path, intrinsics: Intrinsics, poses: bool) -> tuple[str, str, float]:
    """(verdict, what was printed, peak MiB) of one input, read in a fork of this process."""
    printed = place / "printed"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            output = os.open(printed, os.O_CREAT | os.O_WRONLY)
            os.dup2(output, 1)
            os.dup2(output, 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.chdir(place / "work")
            signal.alarm(SECONDS)
            with one_gibibyte():
                code = read(path, intrinsics, poses)
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
    if code == -signal.SIGALRM:
        return "hang", text, peak
    if code < 0:
        return "crash", text, peak
    if peak > MEBIBYTES:
        return "memory", text, peak
    if any((place / "work").iterdir()):
        return "files written", text, peak
    if code == 2 and text.count("\n") == 1 and str(path) in text:
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500, help="damaged inputs for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", nargs="*", help="of which formats; all by default")
    parser.add_argument("--show", action="store_true", help="print the messages, each kind once")
    arguments = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        sound = inputs(root / "sound")
        (root / "work").mkdir()
        for name, source in sound.items():
            if arguments.readers and name not in arguments.readers:
                continue
            poses, kinds = format_of(source).model is not None, _intrinsics(source)
            assert all(read(source, kind, poses) == 0 for kind in kinds), "a sound input must be read"
            verdicts: Counter[str] = Counter()
            began, peak = time.perf_counter(), 0.0
            messages: dict[str, str] = {}
            for k in range(arguments.count):
                rng = random.Random(f"{name} {arguments.seed} {k}")
                target = root / f"{source.stem}-{k}{source.suffix}"
                write_mutated(source, target, rng)
                verdict, text, used = run_case(target, root, rng.choice(kinds), poses)
                (root / "printed").unlink()
                peak = max(peak, used)
                verdicts[verdict] += 1
                if verdict not in ("refused", "read"):
                    bad += 1
                    print(f"{name}, seed {arguments.seed}, case {k}: {verdict}\n{text[-2000:]}")
                messages.setdefault("".join(c for c in text.replace(str(target), "INPUT") if not c.isdigit()), text)
            told = ", ".join(f"{verdict} {count}" for verdict, count in sorted(verdicts.items()))
            seconds = time.perf_counter() - began
            print(f"{name:14} {arguments.count} damaged inputs: {told}; peak {peak:.0f} MiB, {seconds:.0f} s", flush=True)
            if arguments.show:
                print("".join(sorted(messages.values())))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
