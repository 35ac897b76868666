"""Parameters from measurements: masses, inertias, friction and springs."""
