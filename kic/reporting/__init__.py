"""Reports: the account of a mechanism in one posture, as tables, as plots, as one page."""
