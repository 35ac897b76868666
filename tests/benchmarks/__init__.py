"""Speed of kic beside its peers, off by default: `python tests/benchmarks` writes one table."""
