"""Kinematics of open chains to third order (Chapter II and Appendix A of the source).

Modules, from the bottom up: generalized products, jets (G, H, D) with composition and inversion, coefficients
with names, the spanning tree and its states, output rows, constraint rows of cut joints, and kernel queries.

Equation index
--------------
======================  ========================================
equation                function
======================  ========================================
(2-1) to (2-4)          `kic.Configuration.value`
(2-5) to (2-6)          `kic.Coefficients`
(2-7) to (2-10)         `kic.Coefficients.velocity`
(2-11) to (2-27)        `kic.Coefficients.acceleration`
(2-17)                  `kic.Coefficients`
(2-20), (2-35), (2-43)  `kic.products.form`
(2-28) to (2-44)        `kic.Coefficients.jerk`
(2-42)                  `kic.Coefficients`
(2-45) to (2-50)        `kic.from_dh`
(2-45) to (2-50)        `kic.kernels.frames.frames`
Tables 2-1 to 2-2       `kic.DHRow`
(2-51) to (2-118)       `kic.Configuration.coefficients`
Tables 2-3 to 2-5       `kic.Configuration.coefficients`
Table 2-3               `kic.kernels.influence.first`
Table 2-4               `kic.kernels.influence.second`
Table 2-5               `kic.kernels.influence.third`
(2-172)                 `kic.products.cross`
(2-190)                 `kic.products.cross`
(3-4)                   `kic.Coefficients.acceleration`
(3-6) to (3-7)          `kic.Coefficients`
(3-8)                   `kic.Coefficients.velocity`
(3-9)                   `kic.Coefficients.acceleration`
(3-22)                  `kic.kinematics.jets.compose`
(3-26)                  `kic.kinematics.jets.compose`
Appendix A.1            `kic.products.quadratic`
Appendix A.1            `kic.products.bilinear`
Appendix A.2            `kic.products.form`
Appendix A.3            `kic.products.dot`
Appendix A.4            `kic.products.dot`
======================  ========================================
"""
