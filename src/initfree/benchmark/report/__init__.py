"""The report on a sweep: one self-contained page, and every table as CSV and LaTeX.

from initfree.benchmark.report import write_report
write_report(Path("sweep"), Path("sweep/report"))
"""

from initfree.benchmark.report.write import write_report

__all__ = ["write_report"]
