"""The main job, on a problem made here: observations of a ring of cameras, shuffled, to a metric reconstruction.

python examples/01_demo.py [OUTPUT]
"""

import subprocess
import sys
from pathlib import Path

import initfree


def main(output: Path) -> int:
    print("1. A problem: 40 cameras around a building, in random order, 0.5 px noise. Its truth is kept for the end.\n")
    dataset, result = output / "dataset", output / "result"
    command = [sys.executable, "-m", "initfree"]
    flags = ["--output", str(dataset), "--shuffle", "--noise", "0.5", "--seed", "1"]
    subprocess.run([*command, "generate", "set2", *flags], check=True)
    print("\n2. From the observations alone to cameras and landmarks, with `initfree solve`.\n")
    solve = [*command, "solve", str(dataset / "noisy" / "0"), "--output", str(result)]
    code = subprocess.run([*solve, "--truth", str(dataset / "sparse" / "0")], check=False).returncode
    if code == 0:
        print("\n3. The same in Python:")
        metrics = initfree.evaluate(result, dataset / "sparse" / "0")
        print(f"   initfree.evaluate(...).rotation_auc5 = {metrics.rotation_auc5:.2f}")
        print(f"\nThe reconstruction is a COLMAP model: {result / 'sparse' / '0'}")
        print(f"The run on a page:                   {result / 'summary.html'}")
        print(f"What was made, as pictures:           {dataset / 'overview.png'}, {dataset / 'covisibility.png'}")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")))
