"""Kinematics of open chains to third order (Chapter II and Appendix A of the source).

Modules, from the bottom up: generalized products, jets (G, H, D) with composition and inversion, coefficients
with names, the spanning tree and its states, output rows, constraint rows of cut joints, and kernel queries.

Equation index
--------------
=====================  ==========================================================
equation               function
=====================  ==========================================================
(2-6)                  `kic.kinematics.coefficients.Coefficients`
(2-7)                  `kic.kinematics.jets.Jet.velocity`
(2-17)                 `kic.kinematics.coefficients.Coefficients`
(2-27)                 `kic.kinematics.jets.Jet.acceleration`
(2-42)                 `kic.kinematics.coefficients.Coefficients`
(2-44)                 `kic.kinematics.jets.Jet.jerk`
(2-45) to (2-50)       `kic.kernels.frames.frames`
Table 2-3              `kic.kernels.influence.first`
Table 2-4              `kic.kernels.influence.second`
Table 2-5              `kic.kernels.influence.third`
(2-172)                `kic.kinematics.products.cross`
(2-190)                `kic.kinematics.products.cross`
(3-4)                  `kic.kinematics.jets.Jet.acceleration`
(3-6) to (3-7)         `kic.kinematics.coefficients.Coefficients`
(3-8)                  `kic.kinematics.jets.Jet.velocity`
(3-9)                  `kic.kinematics.jets.Jet.acceleration`
(3-15)                 `kic.kinematics.jets.invert`
(3-17) to (3-18)       `kic.kinematics.jets.invert`
(3-19)                 `kic.kinematics.jets.invert`
(3-22)                 `kic.kinematics.jets.compose`
(3-26)                 `kic.kinematics.jets.compose`
(3-47)                 `kic.kinematics.jets.invert`
Appendix A.1           `kic.kinematics.products.quadratic`
Appendix A.1           `kic.kinematics.products.bilinear`
Appendix A.2           `kic.kinematics.products.form`
Appendix A.3           `kic.kinematics.products.dot`
Appendix A.4           `kic.kinematics.products.dot`
=====================  ==========================================================
"""
