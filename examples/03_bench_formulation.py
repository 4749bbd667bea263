"""A new formulation in the benchmark: a second row in its tables, beside pOSE.

    python examples/03_bench_formulation.py [OUTPUT]

The formulation is that of example 02, which registers it when it is imported. A sweep's `imports` name such modules, here
and in a TOML file (`initfree bench run my.toml`, with the module beside it or installed), and every worker imports them. A
package may instead declare the entry point `initfree.formulations`; then nothing needs to be named.
"""

import sys
from pathlib import Path

from initfree.benchmark import SetConfig, SweepConfig, run
from initfree.benchmark.summary import summary

SWEEP = SweepConfig(
    name="my-formulation",
    sets=(SetConfig("set2", cameras=16, points=400), SetConfig("set7", cameras=16, points=400)),
    formulations=("pose", "pose-and-depth"),
    inits=("normal", "unit-circle-shuffled", "spectral"),
    upgrades=("calibrated",),
    imports=("02_new_formulation",),
)


def main(output: Path) -> None:
    store = run(SWEEP, output, search=(str(Path(__file__).resolve().parent),))
    columns = ["formulation", "Rot. A20", "Trans. A20", "Lmk. RMSE", "failed %", "runs"]
    print(summary(store.rows())[columns].to_string(index=False, float_format="%.2f"))
    print(f"\nThe same as a page: initfree bench report {output}")


# Workers are new processes that import this file: without the guard each would start a sweep of its own.
if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "bench-output"))
