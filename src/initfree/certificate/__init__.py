"""The certificate: evidence (figures), checks and a verdict, from the observations alone."""

from initfree.certificate.evidence import Evidence
from initfree.certificate.history import History
from initfree.certificate.verdict import Certificate, certify, judge

__all__ = ["Certificate", "Evidence", "History", "certify", "judge"]
