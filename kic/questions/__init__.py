"""What a mechanism can be asked about itself: freedoms, drives, assemblies, singularities, sensitivities."""
