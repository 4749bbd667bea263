"""What a sweep's configuration expands to, and the keys of its runs."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_sweeps import RING, TINY, rows_of, sweep

from initfree.benchmark import SetConfig, load, presets
from initfree.benchmark.config import UPGRADES, Condition
from initfree.benchmark.data import Place, load_data
from initfree.benchmark.jobs import PIPELINE, expand
from initfree.benchmark.presets import as_table, parse
from initfree.errors import InputError

pytestmark = pytest.mark.slow


def test_expansion_is_the_product_and_rotations_belong_to_pose_rot():
    config = sweep(
        formulations=("pose", "pose-rot"), inits=("normal", "spectral"), losses=("none", "cauchy"), min_obs=(3, 6),
        rotations=("truth", "estimated"), seeds=(0, 1, 2), methods=("auto", "oracle"),
    )  # fmt: skip
    jobs = expand(config)
    runs = [job for job in jobs if job.method == PIPELINE]
    assert len(runs) == 2 * 3 * (1 + 2) * 2 * 2
    assert len(jobs) - len(runs) == 2 * 3 * 2
    assert {job.rotations for job in runs if job.formulation == "pose"} == {""}
    assert {job.rotations for job in runs if job.formulation == "pose-rot"} == {"truth", "estimated"}
    assert all(job.upgrades == UPGRADES for job in runs)
    keys = [key for job in jobs for key in job.row_keys]
    assert len(set(keys)) == len(keys)


def test_every_run_of_the_trial_has_a_problem(tmp_path):
    """The first command of the documentation: a set that min_obs leaves nothing of makes errors of half its rows."""
    for spec in {job.data.key: job.data for job in expand(load("smoke"))}.values():
        problem = load_data(spec, Place(tmp_path)).problem
        assert problem.tracks.cameras >= 12, spec
        assert problem.tracks.landmarks >= 50, spec


def test_sets_override_the_sweep():
    one = replace(RING, min_obs=(4,), seeds=(7,), formulations=("rose",), inits=("spectral",), methods=())
    jobs = expand(sweep(sets=(one,), methods=("oracle",)))
    assert [(j.data.min_obs, j.data.seed, j.formulation, j.init) for j in jobs] == [(4, 7, "rose", "spectral")]


def test_terms_of_inexact_solvers_are_an_axis():
    config = sweep(linear_solvers=("exact", "power"), inner_iterations=(10, 20))
    jobs = [job for job in expand(config) if job.solver]
    assert [(j.solver.linear_solver, j.solver.inner_iterations) for j in jobs if j.solver] == [
        ("exact", 20), ("power", 10), ("power", 20),
    ]  # fmt: skip
    assert len({job.key for job in jobs}) == 3


def test_a_set_has_a_title_and_its_own_axes():
    hidden = replace(RING, title="my ring", visibility="frustum", losses=("cauchy",), linear_solvers=("power",))
    jobs = expand(sweep(sets=(RING, hidden)))
    assert [(j.data.set, j.data.visibility, j.loss) for j in jobs] == [
        ("set2", "surface", "none"), ("my ring", "frustum", "cauchy"),
    ]  # fmt: skip
    # Listed twice, a set is the same one; two that differ need two titles.
    again = replace(RING, inits=("spectral",))
    assert len({job.data.key for job in expand(sweep(sets=(RING, again)))}) == 1
    with pytest.raises(InputError, match="two sets are called 'set2'"):
        expand(sweep(sets=(RING, replace(RING, points=81))))


def test_keys_are_the_same_in_another_process_and_directory(tmp_path: Path):
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    code = "import sys; from initfree.benchmark import load; from initfree.benchmark.jobs import expand;"
    code += "print(*[k for j in expand(load(sys.argv[1])) for k in j.row_keys])"
    other = tmp_path / "elsewhere"
    other.mkdir()
    output = subprocess.run([sys.executable, "-c", code, str(file)], cwd=other, check=True, capture_output=True, text=True)
    assert output.stdout.split() == [key for job in expand(load(file)) for key in job.row_keys]


def test_keys_tell_everything_apart_that_decides_the_outcome():
    base = expand(sweep())[0]
    changed = [
        sweep(solver=replace(sweep().solver, alpha=0.1)), sweep(seeds=(1,)), sweep(min_obs=(4,)),
        sweep(conditions=(Condition(noise=0.5),)), sweep(sets=(replace(RING, points=81),)), sweep(shuffle=True),
        sweep(losses=("cauchy",)), sweep(inits=("spectral",)), sweep(sets=(replace(RING, densification="generate"),)),
    ]  # fmt: skip
    keys = [base.key, *(expand(config)[0].key for config in changed)]
    assert len(set(keys)) == len(keys)
    # More upgrades are more rows of the same job; a description decides nothing.
    more = expand(sweep(upgrades=("before",), adjust=True, description="another"))[0]
    assert more.key == base.key
    assert more.row_key("before") == base.row_key("before")


def test_presets_expand_and_survive_a_round_trip(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("INITFREE_DATA", raising=False)
    found = presets()
    assert {"paper", "smoke", "thin", "init-study", "bal", "attribution"} <= set(found)
    for name, config in found.items():
        assert parse(as_table(config), name) == config
        if config.source == "generated":
            jobs = expand(config)
            # Set 5 is real data, which this machine does not claim to have.
            assert "set5" not in {job.data.set for job in jobs}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sets = []", "no sets"),
        ('sets = ["set99"]', "set99"),
        ('sets = ["set2"]\nformulations = ["pOSE"]', "unknown formulation 'pOSE'"),
        ('sets = ["set2"]\ninits = ["circle"]', "unknown init 'circle'"),
        ('sets = ["set2"]\nlosses = ["geman"]', "unknown loss 'geman'; expected some of none, cauchy, soft-l1, huber"),
        ('sets = ["set2"]\nlinear_solvers = ["cg"]', "unknown linear solver 'cg'; expected some of exact, power, pcg"),
        ('sets = ["set2"]\n[solver]\nlinear_solver = "cg"', "unknown linear solver 'cg'"),
        ('sets = ["set2"]\nmin_obs = [1]', "min_obs.0"),
        ('sets = ["set2"]\nupgrade = ["linear"]', "upgrade"),
        ('sets = ["set2"]\nupgrades = ["lineal"]', "unknown upgrade 'lineal'; expected some of before, linear1997"),
        ('sets = [{ name = "set2", cameras = 1 }]', "cameras"),
        ('sets = ["set2"]\nimports = ["no_such_module"]', "no_such_module"),
        ('sets = ["set2"]\n[solver]\nalpha = 2.0', "solver.alpha"),
        ("sets = [", "not a TOML file"),
        ('source = "bal"\nmethods = ["colmap-global"]', "not run on BAL"),
    ],
)
def test_bad_configurations_are_refused_in_one_sentence(tmp_path: Path, text: str, complaint: str):
    from initfree.benchmark import run

    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=complaint):
        run(load(file), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_bal_files_are_found_by_name(tmp_path: Path):
    from initfree.benchmark.sources import bal_problems

    for name in ("ladybug-problem-49-7776-pre.txt.bz2", "notes.md", "README.txt"):
        (tmp_path / name).touch()
    folder = tmp_path / "venice"
    folder.mkdir()
    (folder / "problem-52-64053-pre.txt.bz2").touch()
    assert list(bal_problems(tmp_path)) == ["ladybug-49"]
    assert list(bal_problems(folder)) == ["venice-52"]
    config = sweep(source="bal", sets=(SetConfig("ladybug-49"),))
    assert [job.data.set for job in expand(config, tmp_path)] == ["ladybug-49"]
    with pytest.raises(InputError, match="no BAL problem venice-1"):
        expand(sweep(source="bal", sets=(SetConfig("venice-1"),)), tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        bal_problems(tmp_path / "nowhere")


def test_protocol_axes_multiply_and_rotations_always_get_rays():
    config = sweep(
        formulations=("pose", "pose-rot"), intrinsics=("rays", "paper"), alphas=(0.05, 0.01), betas=(1.0, 0.1), seeds=(0, 1)
    )
    jobs = expand(config)
    of = {name: [job for job in jobs if job.formulation == name and job.data.seed == 0] for name in ("pose", "pose-rot")}
    # beta is the rotations' alone; pose-rot is the same under both protocols and runs once.
    assert len(of["pose"]) == 2 * 2
    assert len(of["pose-rot"]) == 2 * 2
    assert {job.data.intrinsics for job in of["pose"]} == {"rays", "pixels"}
    assert {job.data.intrinsics for job in of["pose-rot"]} == {"rays"}
    assert {job.solver.alpha for job in jobs if job.solver} == {0.05, 0.01}
    both = expand(sweep(linear_solvers=("exact", "power")))
    assert [job.solver.linear_solver for job in both if job.solver] == ["exact", "power"]
    assert both[0].key == expand(sweep())[0].key != both[1].key
    # Both protocols read one generated set.
    assert len({job.data.key for job in of["pose"]}) == 1
    assert [job.data.seed for job in jobs] == sorted(job.data.seed for job in jobs)


def test_losses_and_linear_solvers_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One module beside one TOML file, and a line in the tables of losses and of linear solvers."""
    from initfree.benchmark.report.sweep import complete
    from initfree.benchmark.report.tables import summary_tables
    from initfree.benchmark.worker import import_modules
    from initfree.engine import linear_solver, losses

    monkeypatch.setitem(losses.LOSSES, "my-loss", losses.Cauchy)
    monkeypatch.setitem(linear_solver.LINEAR_SOLVERS, "my-solver", linear_solver.LINEAR_SOLVERS["pcg"])
    (tmp_path / "my_robust_parts.py").write_text(
        "from initfree.engine.linear_solver import LINEAR_SOLVERS\n"
        "from initfree.engine.losses import LOSSES, Huber\n"
        "LOSSES['my-loss'] = Huber\n"
        "LINEAR_SOLVERS['my-solver'] = LINEAR_SOLVERS['power']\n"
    )
    (tmp_path / "mine.toml").write_text(
        'sets = [{ name = "set2", cameras = 10, points = 90 }]\nlosses = ["none", "huber", "my-loss"]\n'
        'linear_solvers = ["power", "my-solver"]\nupgrades = ["linear1997"]\nimports = ["my_robust_parts"]\n'
        "[solver]\nmax_iterations = 5\n"
    )
    import_modules(("my_robust_parts",), (str(tmp_path),))
    rows = rows_of(expand(load(tmp_path / "mine.toml")), tmp_path / "cache")
    assert (rows["error"] == "").all()
    cost = rows.set_index(["linear_solver", "loss"])["ose_cost"]
    for solver in ("power", "my-solver"):
        assert cost[solver, "huber"] == cost[solver, "my-loss"] < cost[solver, "none"]
    assert (cost["power"] == cost["my-solver"]).all()
    (table,) = (one for one in summary_tables(complete(rows)) if one.name == "robust-average-linear1997")
    assert table.frame["loss"].tolist() == ["none", "huber", "my-loss"]
    # Runs with the first of the two solvers: none are exact.
    assert "3 runs" in table.note


def test_starts_and_upgrades_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One module beside one TOML file; the rows stand beside the paper's."""
    from initfree.benchmark.worker import import_modules
    from initfree.stages import initialization, upgrade

    for registry in (initialization.INITIALIZATIONS, upgrade.UPGRADES):
        monkeypatch.setitem(registry, "mine-only", next(iter(registry.values())))
    (tmp_path / "my_parts.py").write_text(
        "from initfree.stages.initialization import INITIALIZATIONS\n"
        "from initfree.stages.upgrade import UPGRADES\n"
        "INITIALIZATIONS['mine-only'] = INITIALIZATIONS['unit-circle']\n"
        "UPGRADES['mine-only'] = UPGRADES['calibrated']\n"
    )
    import_modules(("my_parts",), (str(tmp_path),))
    config = sweep(inits=("unit-circle", "mine-only"), upgrades=("calibrated", "mine-only"), imports=("my_parts",))
    rows = rows_of(expand(config), tmp_path / "cache").set_index(["init", "upgrade"])
    assert (rows["error"] == "").all()
    same = rows["rotation_auc5"]
    assert same["mine-only", "mine-only"] == same["unit-circle", "calibrated"]
