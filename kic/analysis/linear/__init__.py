"""Small motions: stiffness, modes, equilibria, motors, state space.

Equation index
--------------
======================  ===============================================
equation                function
======================  ===============================================
(2-43)                  `kic.analysis.linear.linearize.acceleration_derivatives`
(2-200)                 `kic.results.StateSpace`
(2-201)                 `kic.results.Linearization.inverse_dynamics`
(2-201) to (2-226)      `kic.Configuration.linearize`
(2-203) to (2-204)      `kic.results.Linearization`
(2-208)                 `kic.analysis.linear.linearize.geometric_stiffness`
(2-216) to (2-224)      `kic.analysis.linear.linearize.Stiffness`
(2-225) to (2-226)      `kic.results.Linearization`
(2-227)                 `kic.results.Linearization.state_space`
(2-227)                 `kic.analysis.linear.linearize.load_gains`
(2-241)                 `kic.results.StateSpace`
(2-241) to (2-252)      `kic.results.Linearization.state_space`
(2-241) to (2-252)      `kic.analysis.linear.state_space.StateSpaceBuilder`
======================  ===============================================

For the transfer of a state space to other coordinates, (3-48) to (3-53), see the index of `kic.transfer`.
"""
