"""Transfer of generalized coordinates and closed loops (Chapters III and IV of the source).

The spanning tree of a mechanism is an open chain with coordinates φ. A transfer expresses everything in other
coordinates q: `CoordinateTransfer` solves chosen rows and closure conditions for φ, and `IdentityTransfer`
stands for an open chain in its own coordinates. Where φ is linear in q, because couplings are the only
closure conditions, `LinearTransfer` uses the kernels of open chains. `compiled_model` makes and caches them.

The source transfers tensors that were formed in φ. The kernels apply the same equations link by link, and
never form the tensors of the tree. Equations (3-4) to (3-10) restate Chapter II for φ and q. (4-72) is not
the derivative of (4-68), and (3-53) needs a correction for angular velocities; see the functions.

Equation index
--------------
=====================  =================================================================
equation               function
=====================  =================================================================
(3-1) to (3-2)         `kic.Configuration.coefficients`
(3-3)                  `kic.Configuration.dynamics`
(3-11) to (3-13)       `kic.transfer.coordinate_transfer.CoordinateTransfer.tree_motion`
(3-14)                 `kic.kinematics.coefficients.Coefficients.inverse`
(3-15)                 `kic.kinematics.jets.invert`
(3-16)                 `kic.kinematics.coefficients.Coefficients.inverse`
(3-19)                 `kic.kinematics.jets.invert`
(3-20) to (3-22)       `kic.kernels.transferred_influence.first_motion`
(3-22)                 `kic.kinematics.coefficients.Coefficients.compose`
(3-23) to (3-26)       `kic.kernels.transferred_influence.second_motion`
(3-26)                 `kic.kinematics.coefficients.Coefficients.compose`
(3-27) to (3-28)       `kic.transfer.identity.IdentityTransfer.jets`
(3-29) to (3-36)       `kic.dynamics.dynamics.Dynamics.transfer`
(3-34) to (3-35)       `kic.kernels.newton_euler.inertia_tables`
(3-37) to (3-42)       `kic.kernels.transfer.chosen_loads`
(3-43) to (3-44)       `kic.kinematics.jets.Jet.jerk`
(3-45) to (3-46)       `kic.kinematics.coefficients.Coefficients.inverse`
(3-47)                 `kic.kinematics.jets.invert`
(3-47)                 `kic.kernels.transferred_influence.third_motion`
(3-48)                 `kic.linear.linearize.Linearization.state_space`
(3-49) to (3-52)       `kic.linear.state_space.StateSpace.transfer`
(3-53)                 `kic.linear.linearize.commutator`
(4-1) to (4-2)         `kic.kinematics.closure_rows.all_closure_rows`
(4-3) to (4-5)         `kic.Configuration.dynamics`
(4-6) to (4-17)        `kic.transfer.constraint_system.ConstraintSystem`
(4-18) to (4-19)       `kic.transfer.coordinate_transfer.CoordinateTransfer.jets`
(4-20) to (4-23)       `kic.kernels.transfer.right_sides`
(4-24) to (4-27)       `kic.kernels.newton_euler.inertia_tables`
(4-28) to (4-29)       `kic.kernels.transfer.chosen_loads`
(4-30)                 `kic.transfer.constraint_system.ConstraintSystem`
(4-31)                 `kic.joint_forces.reactions.joint_forces`
(4-31) to (4-32)       `kic.dynamics.dynamics.Dynamics.transfer`
(4-33) to (4-34)       `kic.kinematics.coefficients.Coefficients.columns_of`
(4-35) to (4-36)       `kic.kinematics.coefficients.Coefficients.identity`
(4-37) to (4-38)       `kic.Configuration.coefficients`
(4-39)                 `kic.kinematics.coefficients.Coefficients.inverse`
(4-40) to (4-41)       `kic.Configuration.dynamics`
(4-42) to (4-44)       `kic.kinematics.coefficients.Coefficients.inverse`
(4-45) to (4-47)       `kic.dynamics.dynamics.Dynamics.transfer`
(4-48) to (4-49)       `kic.dynamics.dynamics.Dynamics.__add__`
(4-50) to (4-53)       `kic.Configuration.dynamics`
(4-54) to (4-60)       `kic.kinematics.coefficients.Coefficients.stack`
(4-61) to (4-62)       `kic.dynamics.dynamics.Dynamics.transfer`
(4-63) to (4-64)       `kic.kinematics.coefficients.Coefficients.inverse`
(4-65) to (4-66)       `kic.Configuration.coefficients`
(4-67)                 `kic.Configuration.dynamics`
(4-68)                 `kic.operational_space.redundancy.RedundancyEvaluator`
(4-69) to (4-70)       `kic.operational_space.weighting.RightInverse`
(4-71)                 `kic.operational_space.redundancy.RedundancyEvaluator`
(4-72)                 `kic.operational_space.weighting.RightInverse.instantaneous`
(4-73) to (4-75)       `kic.operational_space.redundancy.RedundancyResolution.dynamics`
(4-76)                 `kic.actuation.distribution.ActuationProblem`
(4-77)                 `kic.actuation.distribution.actuator_dynamics`
(4-78) to (4-79)       `kic.actuation.distribution.ActuationProblem`
(4-80) to (4-85)       `kic.actuation.internal_loads.EffortSpace.minimum_effort`
(4-86)                 `kic.actuation.internal_loads.EffortSpace.inverse`
(4-87) to (4-90)       `kic.actuation.distribution.actuator_dynamics`
=====================  =================================================================
"""
