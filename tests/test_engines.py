"""The plain engine, which needs Numba's documented interface alone, ends where the fast one does; when it runs."""

import os
import subprocess
import sys

import numpy as np
import pytest
from synthetic import ring

SOLVE = """
import sys
import numpy as np
import initfree
from initfree.engine import choice

xy = np.load(sys.argv[1])
problem = initfree.Problem.from_tracks(xy["image"], xy["landmark"], xy["xy"], cameras=xy["K"], sizes=(640, 480))
result = initfree.solve(problem)
np.savez(sys.argv[2], plain=choice.PLAIN, R=result.reconstruction.R, xyz=result.reconstruction.xyz, accepted=result.accepted)
"""


def run(program: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_both_engines_end_at_the_same_reconstruction(tmp_path):
    scene = ring(cameras=10, landmarks=150, noise=0.5, keep=0.7, min_observations=3)
    K = np.array([[scene.focal, 0.0, 320.0], [0.0, scene.focal, 240.0], [0.0, 0.0, 1.0]])
    given = tmp_path / "given.npz"
    np.savez(given, image=scene.tracks.cam, landmark=scene.tracks.landmark, xy=scene.m * scene.focal + K[:2, 2], K=K)
    ends = []
    for name in ("fast", "plain"):
        done = run(SOLVE, given, tmp_path / f"{name}.npz", INITFREE_ENGINE=name)
        assert done.returncode == 0, done.stderr
        ends.append(np.load(tmp_path / f"{name}.npz"))
    fast, plain = ends
    assert (bool(fast["plain"]), bool(plain["plain"])) == (False, True)
    assert bool(fast["accepted"])
    assert bool(plain["accepted"])
    np.testing.assert_allclose(plain["R"], fast["R"], atol=1e-5)
    np.testing.assert_allclose(plain["xyz"], fast["xyz"], atol=1e-4 * np.abs(fast["xyz"]).max())


LATER = "import numba; numba.version_info = numba.version_info._replace(short=(0, 99))"
IMPORT = (
    "from initfree.engine.choice import PLAIN; from initfree.engine.vectors import chosen; print(PLAIN, chosen.__name__)"
)


@pytest.mark.parametrize(
    ("before", "environment", "expected"),
    [
        ("", {"INITFREE_ENGINE": ""}, "False initfree.engine.simd"),
        ("", {"INITFREE_ENGINE": "plain"}, "True initfree.engine.plain_vectors"),
        (LATER, {"INITFREE_ENGINE": ""}, "True initfree.engine.plain_vectors"),
        (LATER, {"INITFREE_ENGINE": "fast"}, "False initfree.engine.simd"),
    ],
)
def test_the_engine_follows_the_environment_and_the_version_of_numba(before, environment, expected):
    done = run(f"{before}\n{IMPORT}", **environment)
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize(
    ("before", "environment", "words"),
    [
        ("import sys; sys._is_gil_enabled = lambda: False", {}, "without its global interpreter lock"),
        ("", {"INITFREE_ENGINE": "quick"}, "INITFREE_ENGINE is 'quick'; expected fast or plain"),
    ],
)
def test_what_no_engine_runs_with_is_refused_in_a_sentence(before, environment, words):
    program = "import sys; sys.argv[1:] = ['warmup']; from initfree.commands.cli import main; main()"
    done = run(f"{before}\n{program}", **environment)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
