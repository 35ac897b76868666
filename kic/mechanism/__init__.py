"""The types that a user holds: mechanisms, configurations and evaluators."""
