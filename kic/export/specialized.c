/* Driver of a specialized program: straight-line code of one mechanism, evaluated for LANES states at once.

   `evaluate.h` is written by specialize.py: the sizes of the arrays and the function `evaluate`. Each lane is computed
   by the same operations, whatever the others hold, so that results do not depend on the batch. */

#include <math.h>
#include <stdint.h>

enum { LANES = 4 };
typedef double V __attribute__((vector_size(8 * LANES)));
typedef int64_t Bits __attribute__((vector_size(8 * LANES)));

static inline V each(double x)
{
    return x - (V){0};
}

static inline V choose(Bits mask, V a, V b)
{
    return (V)(((Bits)a & mask) | ((Bits)b & ~mask));
}

/* NaN remains */
static inline V KIC_MIN(V a, V b)
{
    return choose((Bits)(b < a) | (Bits)(b != b), b, a);
}

static inline V KIC_MAX(V a, V b)
{
    return choose((Bits)(b > a) | (Bits)(b != b), b, a);
}

static inline V fabsv(V x)
{
    return (V)((Bits)x & INT64_MAX);
}

static inline V sqrtv(V x)
{
    V y;
    for (int l = 0; l < LANES; l++)
        y[l] = sqrt(x[l]);
    return y;
}

static inline V atan2v(V a, V b)
{
    V y;
    for (int l = 0; l < LANES; l++)
        y[l] = atan2(a[l], b[l]);
    return y;
}

/* Subtract the nearest multiple of pi/2 from angles below ANGLE_MAX, and return its number modulo 2^52. The parts of
   pi/2, and the polynomials below, are those of fdlibm: errors are about one unit in the last place. */
#define ANGLE_MAX 1e5

static inline Bits reduce(V x, V *rest)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    V k = x * 0.63661977236758134308 + shift;
    Bits n = (Bits)k;
    k -= shift;
    *rest = ((x - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
    return n;
}

static inline V sine_of_rest(V r)
{
    V z = r * r, p = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10);
    p = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * p);
    return r + r * z * (-1.66666666666666324348e-01 + z * p);
}

static inline V cosine_of_rest(V r)
{
    V z = r * r, p = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11);
    p = -1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * p);
    p = z * z * (4.16666666666666019037e-02 + z * p);
    V half = 0.5 * z, w = 1.0 - half;
    return w + (((1.0 - w) - half) + p);
}

static inline V sinv(V x)
{
    V r, y;
    Bits n = reduce(x, &r);
    y = choose(-(n & 1), cosine_of_rest(r), sine_of_rest(r));
    y = (V)((Bits)y ^ ((n & 2) << 62));
    for (int l = 0; l < LANES; l++)
        if (!(fabs(x[l]) < ANGLE_MAX))
            y[l] = sin(x[l]);
    return y;
}

static inline V cosv(V x)
{
    V r, y;
    Bits n = reduce(x, &r);
    y = choose(-(n & 1), sine_of_rest(r), cosine_of_rest(r));
    y = (V)((Bits)y ^ (((n + 1) & 2) << 62));
    for (int l = 0; l < LANES; l++)
        if (!(fabs(x[l]) < ANGLE_MAX))
            y[l] = cos(x[l]);
    return y;
}

/* GUARD_MIN, INPUT_MAX, PLACE, AXES, INPUTS, OUTPUTS, SIZE_IN, SIZE_OUT, `sizes`, and `evaluate` */
#include "evaluate.h"

/* Evaluate the states of a batch; for the words see library.c. The result is the number of states without results,
   because a divisor is small, loops are open, inputs are large, or inputs or results are not finite; -1 if shapes
   disagree. */
int specialized_words(const int64_t *words, int64_t *result)
{
    double *data[INPUTS + OUTPUTS];
    int64_t count = words[2] / sizes[0], rejected = 0;
    for (int k = 0; k < INPUTS + OUTPUTS; k++, words += 5 + 2 * AXES) {
        data[k] = (double *)(intptr_t)words[4];
        if (words[2] != count * sizes[k] || (AXES == 2 && words[6] != sizes[k])) {
            *result = -1;
            return 0;
        }
    }
    for (int64_t b = 0; b < count; b += LANES) {
        PLACE V in[SIZE_IN], out[SIZE_OUT + 2]; /* then the residual, and the guard */
        V sum = {0};
        int used = count - b < LANES ? (int)(count - b) : LANES, place = 0;
        for (int k = 0; k < INPUTS; place += sizes[k++])
            for (int l = 0; l < LANES; l++) {
                const double *from = data[k] + (b + (l < used ? l : 0)) * sizes[k];
                for (int j = 0; j < sizes[k]; j++)
                    in[place + j][l] = from[j];
            }
        evaluate(in, out);
        for (int j = 0; j < SIZE_OUT; j++)
            sum += 0.0 * out[j];
        Bits fine = (Bits)(out[SIZE_OUT] <= 1.0) & (Bits)(out[SIZE_OUT + 1] >= GUARD_MIN) & (Bits)(sum == 0.0);
        for (int j = 0; j < SIZE_IN; j++) /* results need not depend on all inputs */
            fine &= (Bits)(in[j] <= INPUT_MAX) & (Bits)(in[j] >= -INPUT_MAX);
        for (int l = 0; l < used; l++) {
            V *from = out;
            rejected += !fine[l];
            for (int k = INPUTS; k < INPUTS + OUTPUTS && fine[l]; from += sizes[k++]) {
                double *to = data[k] + (b + l) * sizes[k];
                for (int j = 0; j < sizes[k]; j++)
                    to[j] = from[j][l];
            }
        }
    }
    *result = rejected;
    return 0;
}
