"""Is this a reconstruction? Decided from the observations alone: evidence (figures), checks of it, one verdict."""

from initfree.certificate.evidence import Evidence
from initfree.certificate.history import History
from initfree.certificate.verdict import Certificate, certify, judge

__all__ = ["Certificate", "Evidence", "History", "certify", "judge"]
