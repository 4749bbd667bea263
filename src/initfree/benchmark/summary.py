"""The rows of a sweep in few: one line a method, formulation and upgrade, as the paper's summary tables."""

import pandas as pd

from initfree.benchmark.rows import Frame

COLUMNS = {
    "rotation_auc5": "Rot. A5",
    "rotation_auc20": "Rot. A20",
    "translation_auc5": "Trans. A5",
    "translation_auc20": "Trans. A20",
    "landmark_median": "Lmk. Med.",
    "landmark_rmse": "Lmk. RMSE",
    "landmark_p90": "Lmk. P90",
}
_GROUP = ["method", "formulation", "rotations", "upgrade"]


def summary(rows: Frame) -> Frame:
    """Means over sets, seeds, inits and losses; failures in percent. A row with an error counts as an AUC of zero."""
    aucs = [name for name in COLUMNS if "auc" in name]
    rows = rows.assign(**{name: rows[name].fillna(0.0) for name in aucs}, errors=rows["error"] != "")
    groups = rows.groupby(_GROUP, sort=True)
    table = groups[list(COLUMNS)].mean().rename(columns=COLUMNS)
    table["failed %"] = 100.0 * groups["failed"].mean()
    table["runs"] = groups.size()
    table["errors"] = groups["errors"].sum()
    table["seconds"] = groups["seconds_total"].median()
    return table.reset_index()


def latex(table: Frame) -> str:
    """A booktabs table."""

    def cell(value: object) -> str:
        text = f"{value:.2f}" if isinstance(value, float) else str(value)
        return text.replace("%", r"\%").replace("_", r"\_")

    lines = [" & ".join(cell(value) for value in values) + r" \\" for values in table.itertuples(index=False)]
    head = " & ".join(rf"\textbf{{{cell(name)}}}" for name in table.columns) + r" \\"
    kinds = "".join("r" if pd.api.types.is_numeric_dtype(kind) else "l" for kind in table.dtypes)
    body = [rf"\begin{{tabular}}{{@{{}}{kinds}@{{}}}}", r"\toprule", head, r"\midrule", *lines, r"\bottomrule"]
    return "\n".join([*body, r"\end{tabular}", ""])
