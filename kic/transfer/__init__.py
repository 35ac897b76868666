"""Transfer of generalized coordinates and closed loops (Chapters III and IV of the source).

The spanning tree of a mechanism is an open chain with coordinates φ. A transfer expresses everything in other
coordinates q: `CoordinateTransfer` solves chosen rows and closure conditions for φ, and `IdentityTransfer`
stands for an open chain in its own coordinates. Where φ is linear in q, because couplings are the only
closure conditions, `LinearTransfer` uses the kernels of open chains. `compiled_model` makes and caches them.

The source transfers tensors that were formed in φ. The kernels apply the same equations link by link, and
never form the tensors of the tree. Equations (3-4) to (3-10) restate Chapter II for φ and q. (4-72) is not
the derivative of (4-68), and (3-53) needs a correction for angular velocities; see the functions. The models
of Appendices B to E are `wrist-partitioned`, `five-bar`, `spatial-slider-crank` and `bricard`, and
`three-legged-robot`.

Equation index
--------------
======================  =================================================================
equation                function
======================  =================================================================
(3-1) to (3-2)          `kic.Configuration.coefficients`
(3-3)                   `kic.Configuration.dynamics`
(3-11) to (3-19)        `kic.Coefficients.inverse`
(3-11) to (3-13)        `kic.transfer.coordinate_transfer.CoordinateTransfer.tree_motion`
(3-15)                  `kic.kinematics.jets.invert`
(3-17) to (3-19)        `kic.kinematics.jets.invert`
(3-20) to (3-26)        `kic.Configuration.coefficients`
(3-20) to (3-22)        `kic.kernels.transferred_influence.first_motion`
(3-22)                  `kic.Coefficients.compose`
(3-23) to (3-26)        `kic.kernels.transferred_influence.second_motion`
(3-26)                  `kic.Coefficients.compose`
(3-27) to (3-28)        `kic.Coefficients.identity`
(3-27) to (3-28)        `kic.transfer.identity.IdentityTransfer.jets`
(3-29) to (3-36)        `kic.Dynamics.transfer`
(3-34) to (3-42)        `kic.Configuration.dynamics`
(3-34) to (3-35)        `kic.kernels.newton_euler.inertia_tables`
(3-37) to (3-42)        `kic.kernels.transfer.chosen_loads`
(3-43) to (3-44)        `kic.Coefficients.jerk`
(3-45) to (3-47)        `kic.Coefficients.inverse`
(3-47)                  `kic.Configuration.coefficients`
(3-47)                  `kic.kinematics.jets.invert`
(3-47)                  `kic.kernels.transferred_influence.third_motion`
(3-48)                  `kic.results.Linearization.state_space`
(3-49) to (3-52)        `kic.results.StateSpace.transfer`
(3-53)                  `kic.results.Linearization`
(3-53)                  `kic.analysis.linear.linearize.commutator`
(4-1) to (4-2)          `kic.Configuration.coefficients`
(4-1) to (4-2)          `kic.kinematics.closure_rows.all_closure_rows`
(4-3) to (4-5)          `kic.Configuration.dynamics`
(4-6) to (4-17)         `kic.transfer.constraint_system.ConstraintSystem`
(4-11)                  `kic.Coefficients.stack`
(4-18) to (4-23)        `kic.Configuration.coefficients`
(4-18) to (4-19)        `kic.transfer.coordinate_transfer.CoordinateTransfer.jets`
(4-20) to (4-23)        `kic.kernels.transfer.right_sides`
(4-24) to (4-29)        `kic.Configuration.dynamics`
(4-24) to (4-27)        `kic.kernels.newton_euler.inertia_tables`
(4-28) to (4-29)        `kic.kernels.transfer.chosen_loads`
(4-30)                  `kic.transfer.constraint_system.ConstraintSystem`
(4-31)                  `kic.Configuration.joint_forces`
(4-31)                  `kic.analysis.joint_forces.reactions.joint_forces`
(4-31) to (4-32)        `kic.Dynamics.transfer`
(4-33) to (4-34)        `kic.Coefficients.columns_of`
(4-35) to (4-36)        `kic.Coefficients.identity`
(4-37) to (4-38)        `kic.Configuration.coefficients`
(4-39)                  `kic.Coefficients.inverse`
(4-40) to (4-41)        `kic.Configuration.dynamics`
(4-42) to (4-44)        `kic.Coefficients.inverse`
(4-45) to (4-47)        `kic.Dynamics.transfer`
(4-48) to (4-49)        `kic.Dynamics.__add__`
(4-50) to (4-53)        `kic.Configuration.dynamics`
(4-54) to (4-60)        `kic.Coefficients.stack`
(4-61) to (4-62)        `kic.Dynamics.transfer`
(4-63) to (4-64)        `kic.Coefficients.inverse`
(4-65) to (4-66)        `kic.Configuration.coefficients`
(4-67)                  `kic.Configuration.dynamics`
(4-68) to (4-72)        `kic.Configuration.resolve_redundancy`
(4-68)                  `kic.tasks.operational_space.redundancy.RedundancyTask`
(4-69) to (4-70)        `kic.tasks.operational_space.weighting.RightInverse`
(4-71)                  `kic.tasks.operational_space.redundancy.RedundancyTask`
(4-72)                  `kic.tasks.operational_space.weighting.RightInverse.instantaneous`
(4-73) to (4-75)        `kic.results.RedundancyResolution.dynamics`
(4-76) to (4-79)        `kic.Configuration.actuator_dynamics`
(4-76)                  `kic.tasks.actuation.distribution.ActuationProblem`
(4-77)                  `kic.tasks.actuation.distribution.actuator_dynamics`
(4-78) to (4-79)        `kic.tasks.actuation.distribution.ActuationProblem`
(4-80) to (4-86)        `kic.Configuration.distribute`
(4-80) to (4-85)        `kic.tasks.actuation.internal_loads.EffortSpace.minimum_effort`
(4-86)                  `kic.tasks.actuation.internal_loads.EffortSpace.inverse`
(4-87) to (4-90)        `kic.Configuration.actuator_dynamics`
(4-87) to (4-90)        `kic.tasks.actuation.distribution.actuator_dynamics`
(B-1) to (B-15)         `kic.classics.WristPartitioned.inverse_coefficients`
(B-4)                   `kic.Coefficients.inverse`
Table B-1               `kic.classics.WristPartitioned.wrist_coefficients`
(C-1) to (C-4)          `kic.Configuration.coefficients`
(C-5) to (C-7)          `kic.Dynamics.transfer`
Table C-1               `kic.Configuration.joint_forces`
Table C-2               `kic.Configuration.coefficients`
Tables C-2 to C-3       `kic.Configuration.dynamics`
(D-1)                   `kic.Mechanism.mobility`
(D-2)                   `kic.Configuration.coefficients`
(E-1) to (E-2)          `kic.Configuration.dynamics`
(E-3) to (E-4)          `kic.Coefficients.inverse`
(E-5)                   `kic.Dynamics.__add__`
(E-6)                   `kic.Coefficients.stack`
(E-7)                   `kic.Dynamics.transfer`
Tables E-1 to E-2       `kic.Dynamics.transfer`
======================  =================================================================
"""
