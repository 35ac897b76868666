"""Export of questions: a list of operations, and emitters for C, CasADi, JAX, PyTorch, SymPy and NumPy."""
