"""Small motions: stiffness, modes, equilibria, motors, state space."""
