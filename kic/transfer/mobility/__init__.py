"""Mobility of closed mechanisms: degrees of freedom, redundant conditions, and proofs of finite motions."""
