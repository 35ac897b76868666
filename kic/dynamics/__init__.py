"""Dynamics of open chains and motors: mass matrix I*, Christoffel symbols P* and loads (Chapter II).

Equation index
--------------
=====================  ==========================================================
equation               function
=====================  ==========================================================
(2-125)                `kic.kernels.loads.virtual_work`
(2-140)                `kic.dynamics.dynamics.Dynamics.kinetic_energy`
(2-145)                `kic.dynamics.dynamics.Dynamics.inverse_dynamics`
(2-147)                `kic.kernels.loads.gravity_loads`
(2-157)                `kic.kernels.body_contributions.add_link`
(2-158)                `kic.kernels.body_contributions.add_link`
(2-164)                `kic.kernels.inertia.rotated_inertia`
(2-193)                `kic.kernels.body_contributions.add_link`
(2-194)                `kic.kernels.body_contributions.add_link`
(2-195)                `kic.dynamics.dynamics.Dynamics.inverse_dynamics`
(2-196)                `kic.dynamics.dynamics.Dynamics`
(2-197)                `kic.dynamics.dynamics.Dynamics`
(2-198)                `kic.dynamics.dynamics.Dynamics.inverse_dynamics`
(2-199)                `kic.dynamics.dynamics.Dynamics.forward_dynamics`
(2-228) to (2-236)     `kic.description.motors.Motor`
(2-228) to (2-236)     `kic.kernels.runge_kutta.add_motors`
(2-231)                `kic.dynamics.drive_train.DriveTrain.torques`
(2-232)                `kic.dynamics.drive_train.DriveTrain`
(2-236)                `kic.dynamics.drive_train.MotorDemand`
(2-237)                `kic.dynamics.drive_train.DriveTrain.dynamics`
(2-238)                `kic.dynamics.drive_train.MotorDemand`
(2-239)                `kic.dynamics.drive_train.DriveTrain.drive`
(2-240)                `kic.dynamics.drive_train.DriveTrain.steady_voltages`
(3-5)                  `kic.dynamics.dynamics.Dynamics.inverse_dynamics`
(3-10)                 `kic.dynamics.dynamics.Dynamics.transfer`
=====================  ==========================================================

For the transfer to other coordinates (3-34, 3-35, 3-36) see `kic.dynamics.dynamics.Dynamics.transfer`; the
operator ``+`` adds mechanisms (4-48). `kic.evaluator` evaluates (2-198) and (2-199) without tensors.
"""
