"""Layout of the packed tables that the kernels read and write.

A model and a query are passed as two arrays, because passing an array to compiled code costs as much as
computing a frame: `plan` (rows, 5) int64 and `numbers` (rows, 13) of the scalar type. Their sections have the
order of this file. The first rows of the plan (HEADER) hold the lengths of the sections and the request.

A *column* is one degree of freedom of the spanning tree and also one moving frame. A parent always precedes
its children.

A *table* (B, width) holds P rows with respect to M coordinates for B configurations: the P values, then
G (P, M), H (P, M, M) and D (P, M, M, M), each in C order, side by side.
"""

from __future__ import annotations

from math import cos

PLAN_WIDTH, NUMBERS_WIDTH = 5, 13

# plan, row 0: lengths of the sections; row 1: the request, and number of terms; row 2, for `transfer`: number
# of items of the system, of their rows, of unused closure rows, pairs of second order, requested order (for
# queries along motions, the length of a state)
COLUMNS, ITEMS, BODIES, FORCES, SPRINGS = 0, 1, 2, 3, 4
ORDER, ROWS, SIZE, WANT, TERMS = 0, 1, 2, 3, 4
SYSTEM, HEIGHT, LEFT_OUT, PAIRS, ASKED = 0, 1, 2, 3, 4
STATE_SIZE = ASKED
HEADER = 3
WANT_INERTIA, WANT_LOADS, WANT_CURVATURE, WANT_FORWARD, WANT_SERIES, WANT_REGRESSOR = 1, 2, 4, 8, 16, 32
# of a regressor: six rows of ground instead of those of the coordinates
WANT_GROUND = 64

# plan, columns (M): one row for each column of the tree
PARENT = 0  # column of the frame that carries this one, -1 for ground
KIND = 1  # REVOLUTE, PRISMATIC or BALL
LO = 2  # axis n is moved by the columns m of its path with m < LO[n]
STATE = 3  # first entry of this column (of its ball joint) in the state
GROUP = 4  # first column of its ball joint, else the column itself; NO_FRAME for columns without a frame
NO_FRAME = -1  # the query does not need the frame of this column

REVOLUTE, PRISMATIC, BALL = 0, 1, 2

# numbers, geometry (M): offset (3) from the parent's origin and zero rotation (9), both in the parent's
# frame, then the value of the coordinate in the reference configuration
OFFSET, TURN0, DRAWN = 0, 3, 12

# frames (M, 20): origin, axis, rotation (row-major), all in world axes; then the column g_n of the current
# row, and cosine and sine (length, quaternion) of the column's coordinate
ORIGIN, AXIS, ROTATION, EFFECT, MOTION, FRAME_WIDTH = 0, 3, 6, 15, 18, 20

# series (M + 1, 18) of frames along a motion, ground first: rotation, and motion of the origin
ANGULAR_VELOCITY, VELOCITY, ANGULAR_ACCELERATION, ACCELERATION, ANGULAR_JERK, JERK = 0, 3, 6, 9, 12, 15
SERIES_WIDTH = 18

# wrenches (M, 6) on frames: moment about the frame's origin, and force
WRENCH_MOMENT, WRENCH_FORCE = 0, 3

# scratch, one array for each call, because kernels do not allocate: the frames; then the scratch of
# `dynamics`, or two tables of three rows, and the frames' blocks in other coordinates (see
# `transferred_influence`)

# plan, items: kind, frames and row
ITEM, FRAME_B, FRAME_A, ROW = 0, 1, 2, 3
ORDERED = 4  # 1 if a ball joint is on a path, so that H and D are not symmetric
WEIGHTED_POINT = -1  # a term that is added to 3 rows: extra[0] times the position of a point fixed in B
POINT = 0  # 3 rows: position of a point fixed in frame B, minus that of one in A if A is given
DIRECTION = 1  # 3 rows: a vector fixed in frame B (used inside products)
OMEGA = 2  # 3 rows: angular velocity of B, minus that of A if A is given
COORDINATE = 3  # 1 row: column B itself
PLANE_ANGLE = 4  # 1 row: angle of B about the constant normal `extra`, all axes parallel to it
DISTANCE = 5  # 1 row: |pB - pA|
DOT1 = 6  # 1 row: direction of B . direction of A
DOT2 = 7  # 1 row: direction `extra` of A . (pB - pA)
RELATIVE_OMEGA = 8  # 1 row: direction `extra` of A . (omega_B - omega_A)
LINEAR_TERM = 9  # a term that is added to a row: extra[0] times column B, minus extra[1]
ANGLE = 10  # 1 row: angle whose sine and cosine, times any length, are the two rows before it
ARCSINE = 11  # 1 row: angle with the sine 1 row before, and a cosine as long as the rows 4 and 3 before
NORM = 12  # 1 row: norm of the two rows before it, which are DOT2 rows of the same points and frames
NONE = -2  # no frame A
# numbers, vectors of items: fixed in B, fixed in A, and a third; for LINEAR_TERM its factor and offset
LOCAL_B, LOCAL_A, EXTRA = 0, 3, 6
RATIO, RATIO_OFFSET = 6, 7
SCALE = 9  # of a system's item: scale by which its rows are divided
LEVER = 10  # of a system's item: its longest lever arm, divided by its scale
CLOSED_VALUE = 11  # of a closure row's item: value of its rows for closed loops
CLOSED_FACTOR = 12  # of a closure row's item: inverse of the largest residual of a closed state; else 0

# pairs (a, b) of second order that a table holds, in this order: all, or those with b <= a
EVERY, LOWER = 0, 1

# plan, bodies and forces: the frame in which each is fixed
CARRIER = 0
# numbers, inertias of bodies: mass, centre of mass (3), inertia about it
# xx yy zz xy xz yz, in the frame's axes
MASS, CENTRE, MOMENTS = 0, 1, 4
# numbers, bodies of a regressor: point (3) of the moments and axes (9), in the frame, as OFFSET and TURN0 of
# columns; inertial parameters of each: mass, first moments (3), and inertia xx yy zz xy xz yz about the point
N_INERTIAL, FIRST_MOMENTS, DIAGONAL, PRODUCTS = 10, 1, 4, 7

# plan, forces: carrier, FORCE or MOMENT, axes; numbers, places: the local point
FORCE_KIND, FORCE_AXES = 1, 2
FORCE, MOMENT = 0, 1
WORLD_AXES, BODY_AXES = 0, 1

# plan, springs: frames of the two ends; numbers: the two local points, stiffness, free length, damping
END_A, END_B = 0, 1
POINT_A, POINT_B, STIFFNESS, FREE_LENGTH, DAMPING = 0, 3, 6, 7, 8
# numbers, laws (M) of each column: spring, damper and armature of its joint; of systems, also its scale
JOINT_STIFFNESS, FREE_VALUE, JOINT_DAMPING, COLUMN_SCALE, ARMATURE = 0, 1, 2, 3, 5
# numbers, last row: gravity, and the absolute tolerance on unused closure rows
GRAVITY, ALLOWED = 0, 4

# plan, last rows, for linear maps: nonzero terms of the map A, a linked list for column n from row n on:
# coordinate, next term or -1; numbers: factor. Further columns of these rows have the terms of all couplings:
# column of the tree, or -1 after the last, and 1 at the end of a coupling; numbers: factor of the coordinate,
# and constant, relative to the largest residual of a closed state
TARGET, NEXT, COUPLED, COUPLING_END = 0, 1, 2, 3
FACTOR, COUPLING_FACTOR, COUPLING_CONSTANT = 0, 1, 2

# choice (6, n) of a square system: used rows, columns in the order of elimination and items of the used rows;
# unused closure rows, and their items; index of the coordinate of each used row, or -1
USED_ROW, ELIMINATED, USED_ITEM, UNUSED_ROW, UNUSED_ITEM, INPUT = 0, 1, 2, 3, 4, 5
CHOICE_HEIGHT = 6

# quality (B, 8): ratio of the smallest pivot to the largest entry; then, dimensionless, the largest
# coefficient of the tree's columns for each order, and the largest residual of unused closure rows for each
# order; then the largest residual of closure rows in value, relative to that of a closed state
PIVOT, LARGEST, LEFT, GAP, QUALITY_WIDTH = 0, 1, 4, 7, 8
# a pivot ratio below this requires an exact condition number
GOOD_PIVOT = 1e-3

# number of energies that are integrated with the motion: work of efforts, work of loads, dissipation
N_ENERGIES = 3

# parts of a stage of a Runge–Kutta step: close the loops, evaluate the derivatives
PREPARE, EVALUATE = 1, 2
# control of a Runge–Kutta step: its start, the end of the run, the next length, end and length of the step,
# the shortest length, the largest factor on the next length, relative tolerance, exponent of the error, and 1
# if a rejected step is repeated at once; results: 1 if the step is accepted, and the number of steps tried;
# number n of stages, 1 if the error is controlled, first stage (-1 for the start of the step), end of the
# stages, task, 1 for the first call of a step. For several steps in one call: their largest number, the index
# of the next output, the largest drive measure, the last pivot, and the first length tried for the last step;
# results: number of records, and 1 if rotations are far from their reference. Then the weights
# (n, n + 1), two rows of weights of the error, the weights (n + 1, DENSE_WIDTH) of the dense output, absolute
# tolerances, and times of outputs
STEP_START, STEP_BOUND, STEP_NEXT, STEP_END, STEP_LENGTH, STEP_MIN, STEP_FACTOR_MAX = 0, 1, 2, 3, 4, 5, 6
STEP_RTOL, STEP_EXPONENT, STEP_REPEATED, STEP_ACCEPTED, STEP_COUNT, STEP_STAGES = 7, 8, 9, 10, 11, 12
STEP_CONTROLLED, STEP_FIRST, STEP_LAST, STEP_TASK, STEP_BEGINS, STEP_MOST = 13, 14, 15, 16, 17, 18
STEP_OUTPUT, STEP_DRIVE_MAX, STEP_PIVOT, STEP_TRIAL, STEP_RECORDS, STEP_TURNED = 19, 20, 21, 22, 23, 24
CONTROL_WIDTH = 25
# largest factor on the next step
FACTOR_MAX = 10.0
# dense output: products x, x (1 − x), x² (1 − x), … of the share x of the step
DENSE_WIDTH = 7
# records of steps and outputs: time, 1 for the end of a step, the unknowns, and the closed state if the
# unknowns do not contain it
RECORD_TIME, RECORD_END, RECORD_UNKNOWNS = 0, 1, 2
# rows of the indices of a stage: row of the goal for each value, its coordinate; prescribed coordinates, and
# their values among the unknowns; the last two rows are scratch
AIM, VALUED, HELD, HELD_VALUE, STAGE_WHOLE, STAGE_HEIGHT = 0, 1, 2, 3, 4, 6
# largest rotation that the three rows of an orientation describe at once (rad), and the trace of its matrix;
# beyond 60° the rows are ambiguous
ORIENTATION_TURN_MAX = 0.5
TRACE_MIN = 1 + 2 * cos(ORIENTATION_TURN_MAX)
# largest number of steps on a path to a near target
TRIES = 100
# columns of the table of motors, as in `DriveTrain`; then voltage or torque, and the Jacobian of the angle
MOTOR_INERTIA, MOTOR_DAMPING, MOTOR_ELECTRICAL, MOTOR_RESISTANCE, MOTOR_INDUCTANCE = 0, 1, 2, 3, 4
MOTOR_TORQUE_CONSTANT, MOTOR_SPEED_CONSTANT, MOTOR_WIDTH, MOTOR_SUPPLY, MOTOR_SHAFT = 5, 6, 7, 7, 8

# metric of redundancy resolution: identity, mass matrix, or a given matrix
UNIT_METRIC, INERTIA_METRIC, GIVEN_METRIC = 0, 1, 2
# smallest ratio of a pivot to its diagonal entry in a regular matrix: a metric or the inertia of a task
PIVOT_SHARE_MIN = 1e-12
