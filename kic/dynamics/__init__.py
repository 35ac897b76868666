"""Dynamics of open chains and motors: mass matrix I*, Christoffel symbols P* and loads (Chapter II).

Equation index
--------------
======================  =====================================================
equation                function
======================  =====================================================
(2-119) to (2-125)      `kic.Configuration.dynamics`
(2-125)                 `kic.kernels.loads.virtual_work`
(2-126) to (2-144)      `kic.Dynamics`
(2-140)                 `kic.Dynamics.kinetic_energy`
(2-145)                 `kic.Dynamics.inverse_dynamics`
(2-146)                 `kic.Dynamics.forward_dynamics`
(2-147)                 `kic.Configuration.dynamics`
(2-147)                 `kic.kernels.loads.gravity_loads`
(2-148) to (2-151)      `kic.Configuration.inverse_dynamics`
(2-152) to (2-194)      `kic.Configuration.body_contributions`
(2-157) to (2-158)      `kic.kernels.body_contributions.add_link`
(2-164)                 `kic.kernels.inertia.rotated_inertia`
(2-193) to (2-194)      `kic.kernels.body_contributions.add_link`
(2-195)                 `kic.Dynamics.inverse_dynamics`
(2-196) to (2-197)      `kic.Dynamics`
(2-198)                 `kic.Dynamics.inverse_dynamics`
(2-199)                 `kic.Dynamics.forward_dynamics`
(2-228) to (2-236)      `kic.Motor`
(2-228) to (2-236)      `kic.kernels.runge_kutta.add_motors`
(2-231)                 `kic.dynamics.drive_train.DriveTrain.torques`
(2-231) to (2-240)      `kic.Configuration.motor_demand`
(2-232)                 `kic.dynamics.drive_train.DriveTrain`
(2-236)                 `kic.results.MotorDemand`
(2-237)                 `kic.Configuration.dynamics`
(2-237)                 `kic.dynamics.drive_train.DriveTrain.dynamics`
(2-238)                 `kic.results.MotorDemand`
(2-239)                 `kic.dynamics.drive_train.DriveTrain.drive`
(2-240)                 `kic.dynamics.drive_train.DriveTrain.steady_voltages`
(3-5)                   `kic.Dynamics.inverse_dynamics`
(3-10)                  `kic.Dynamics.transfer`
======================  =====================================================

For the transfer to other coordinates (3-34, 3-35, 3-36) see `kic.dynamics.dynamics.Dynamics.transfer`; the
operator ``+`` adds mechanisms (4-48). `kic.mechanism.evaluator` evaluates (2-198) and (2-199) without
tensors.
"""
