"""Command-line interface `kic`."""
