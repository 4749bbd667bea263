"""What the paper's text says beyond its lessons, sentence by sentence, and which question to the rows answers it."""

from collections.abc import Iterable

from initfree.benchmark.report.lessons import SEPARATES, Lesson
from initfree.benchmark.report.names import PAPER_INITS, display
from initfree.benchmark.report.paper import PaperTable, paper_table
from initfree.benchmark.report.questions import (
    A20,
    FAILED,
    PROJECTIVE,
    PURE,
    RANDOM,
    SOLVED,
    affine_better,
    bal_separates,
    best_structure,
    best_unconstrained,
    case_rescued,
    classical_collapses,
    densification_helps,
    estimated_as_good,
    low_ose_is_no_certificate,
    none_everywhere,
    on_set,
    rpose_slowest,
    rpose_weakest,
    same_ose_opposite_outcome,
    upgrade_necessary,
)

_ALL_BUT_RPOSE = (*PROJECTIVE, "pose-rot")


def claims() -> list[Lesson]:
    """Every claim of the text that rows can answer, in the order of the paper."""
    return [*_of_figures(), *_of_formulations(), *_of_sets(), *_of_rescues(), *_of_the_rest(), *_of_the_appendix()]


def _listed(table: PaperTable, column: str, names: Iterable[str]) -> str:
    return ", ".join(f"{display(n)} {table.value(column, n):.1f}" for n in names)


def _of_figures() -> list[Lesson]:
    """Claims that the paper's figures show."""
    return [
        Lesson(
            "classical", "Classical bundle adjustment from random cameras collapses", "a picture of Set 3",
            "at least 90% of runs fail", classical_collapses, "Figure 2a",
        ),
        Lesson(
            "gap", "Similar OSE values lead to different reconstructions", "pictures of Sets 2 and 5",
            "runs of one set and formulation with OSE residuals within 5%, one good and one failed",
            same_ose_opposite_outcome, "Figure 3, abstract",
        ),
        Lesson(
            "low-ose", "A low OSE error does not ensure a valid reconstruction", "a figure without numbers",
            "at least 10% of the third of runs with the lowest OSE residual fail", low_ose_is_no_certificate, "Figure 4",
        ),
    ]  # fmt: skip


def _of_formulations() -> list[Lesson]:
    """Means of the formulations over the sets."""
    pose = paper_table("tab:summary_formulations_pose_linear1997")
    rmse = paper_table("tab:summary_formulations_landmarks_linear1997")
    return [
        Lesson(
            "unconstrained", "Without rotations, expOSE has the best rotation and rOSE the best translation",
            f"rotation {_listed(pose, A20, PURE)}; translation rOSE {pose.value('translation_auc20', 'rose'):.1f}",
            "first in the mean of the sets", best_unconstrained, "Section V-C2",
        ),
        Lesson(
            "structure", "expOSE and rOSE have the best structure without rotations",
            f"landmark RMSE {_listed(rmse, 'landmark_rmse', PURE)}", "the two lowest landmark RMSEs", best_structure,
            "Section V-C2",
        ),
        Lesson(
            "rpose-weakest", "RpOSE is the weakest formulation", _listed(pose, A20, (*PURE, "pose-rot")),
            "the lowest rotation AUC@20", rpose_weakest, "Section V-C2",
        ),
    ]  # fmt: skip


def _of_sets() -> list[Lesson]:
    """Sections V-C2 and V-C3, set by set."""
    return [
        Lesson(
            "dense-sets-1", "Set 1 is solved by all but RpOSE from random cameras", "“converge reliably”",
            f"rotation AUC@20 of each at least {SOLVED:g}",
            on_set("set1", _ALL_BUT_RPOSE, RANDOM, lambda c: c.min() >= SOLVED), "Section V-C2",
        ),
        Lesson(
            "dense-sets-3", "Set 3 is solved by all but RpOSE from random cameras", "“converge reliably”",
            f"rotation AUC@20 of each at least {SOLVED:g}",
            on_set("set3", _ALL_BUT_RPOSE, RANDOM, lambda c: c.min() >= SOLVED), "Section V-C2",
        ),
        Lesson(
            "rpose-set-3", "RpOSE remains poor on Set 3", "13 to 50", "rotation AUC@20 at most 60 from every start",
            on_set("set3", ("rpose",), PAPER_INITS, lambda c: c.max() <= 60.0), "Section V-C2",
        ),
        Lesson(
            "set-8-circle", "On Set 8 the unit circle works although the cameras move along a line", "96 to 99",
            f"rotation AUC@20 of pOSE, rOSE and RpOSE at least {SOLVED:g}",
            on_set("set8", ("pose", "rose", "rpose"), ("unit-circle",), lambda c: c.min() >= SOLVED), "Section V-C3",
        ),
        Lesson(
            "set-2-random", "On Set 2 random starts collapse for pOSE, rOSE and expOSE", "at most 4",
            f"rotation AUC@20 of each below {FAILED:g}, the paper's limit of failure",
            on_set("set2", PROJECTIVE, RANDOM, lambda c: c.max() < FAILED), "Section V-C3",
        ),
        Lesson(
            "set-2-circle", "On Set 2 the unit circle substantially rescues them", "44 to 81",
            "rotation AUC@20 of each at least 40",
            on_set("set2", PROJECTIVE, ("unit-circle",), lambda c: c.min() >= 40.0), "Section V-C3",
        ),
        Lesson(
            "set-2-rotations", "On Set 2 pOSE+rot remains strong under normal initialisation", "97.4",
            f"rotation AUC@20 at least {SOLVED:g}",
            on_set("set2", ("pose-rot",), ("normal",), lambda c: c.min() >= SOLVED), "Section V-C3",
        ),
        Lesson(
            "set-4-circle", "On Set 4 the unit circle does not rescue pOSE, rOSE and expOSE", "below 10",
            f"rotation AUC@20 of each below {FAILED:g}",
            on_set("set4", PROJECTIVE, ("unit-circle",), lambda c: c.max() < FAILED), "Section V-C3",
        ),
        Lesson(
            "set-4-rotations", "On Set 4 pOSE+rot is near-perfect under all three starts", "“near-perfect”",
            f"rotation AUC@20 at least {SOLVED:g}",
            on_set("set4", ("pose-rot",), PAPER_INITS, lambda c: c.min() >= SOLVED), "Section V-C3",
        ),
        Lesson(
            "set-6", "Set 6 resists every formulation and start", "at most 11", f"rotation AUC@20 of each below {FAILED:g}",
            on_set("set6", (*PURE, "pose-rot"), PAPER_INITS, lambda c: c.max() < FAILED), "Section V-C3",
        ),
    ]  # fmt: skip


def _of_rescues() -> list[Lesson]:
    """Cases of the paper's table of rescues by the Cauchy loss."""
    rescue = paper_table("tab:robust_rescue_cases_minobs3_linear1997")
    return [
        *(
            Lesson(
                f"rescue-{name}", f"Cauchy rescues {display(name)} on Set 2, {display(init).lower()} start",
                f"none {rescue.value(f'{A20}/none', 'set2', name, init):.1f}, "
                f"Cauchy {rescue.value(f'{A20}/cauchy', 'set2', name, init):.1f}",
                "rescued in one seed or more", case_rescued(name, init), "Table VI",
            )
            for name, init in (("pose", "normal"), ("rose", "normal"), ("pose-rot", "uniform"))
        ),
    ]  # fmt: skip


def _of_the_rest() -> list[Lesson]:
    """Densification, the upgrade, and the conclusion."""
    dense = paper_table("tab:summary_densification_delta")
    change = paper_table("tab:metric_upgrade_effect")
    return [
        Lesson(
            "denser", "Six observations a landmark instead of three help, with Cauchy more than without",
            f"none {dense.value(A20, 'none'):+.1f}, Cauchy {dense.value(A20, 'cauchy'):+.1f}",
            "the rotation AUC@20 rises with both losses", densification_helps, "Table VII",
        ),
        Lesson(
            "upgrade-needed", "The metric upgrade is necessary",
            f"rotation {change.value(A20, 'mean change'):+.1f}, translation "
            f"{change.value('translation_auc20', 'mean change'):+.1f}, RMSE "
            f"{change.value('landmark_rmse', 'mean change'):+.1f} (before: {change.value(A20, 'before'):.1f} / "
            f"{change.value('translation_auc20', 'before'):.1f})",
            "rotation and translation rise and the RMSE falls against the projective reconstruction read as metric",
            upgrade_necessary, "Table X",
        ),
        Lesson(
            "none-everywhere", "No method consistently succeeds", "in words", "every formulation fails somewhere",
            none_everywhere, "Conclusion",
        ),
    ]  # fmt: skip


def _of_the_appendix() -> list[Lesson]:
    """BAL, estimated rotations, the regulariser of pOSE+rot, runtimes."""
    rotated = paper_table("tab:appendix_poserot_gt_vs_estimated")
    runtime = paper_table("tab:appendix_runtime_decomposition")
    return [
        Lesson(
            "bal", "On BAL the refinement residual separates success from failure, the OSE residual does not",
            "a figure without numbers", f"ROC AUC of the refinement residual at least {SEPARATES:g}, of the OSE below",
            bal_separates, "Figure 11",
        ),
        Lesson(
            "estimated", "Estimated rotations are about as good as true ones",
            f"true {rotated.value(A20, 'truth'):.1f}, estimated {rotated.value(A20, 'estimated'):.1f}",
            "a loss of at most two points of rotation AUC@20", estimated_as_good, "Appendix A, Table XII",
        ),
        Lesson(
            "affine", "pOSE+rot is significantly better with the affine regulariser than with its own", "in words",
            "the higher rotation AUC@20 on the same runs", affine_better, "Appendix A",
        ),
        Lesson(
            "rpose-slowest", "RpOSE takes longest before the refinement",
            ", ".join(f"{display(n)} {runtime.value('pre_stage_2', n):.1f} s" for n in (*PURE, "pose-rot")),
            "the longest median time", rpose_slowest, "Table XI",
        ),
    ]  # fmt: skip
