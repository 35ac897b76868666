"""Redundant actuation: distribution of efforts, internal loads, motors."""
