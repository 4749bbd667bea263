"""Is this a reconstruction? Said from the observations alone: evidence (figures), checks of it, one verdict."""

from initfree.certificate.evidence import Evidence
from initfree.certificate.verdict import Certificate, certify, judge

__all__ = ["Certificate", "Evidence", "certify", "judge"]
