"""Speed of kic and its peers, not run by default: `python tests/benchmarks` writes one table."""
