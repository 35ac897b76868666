/* Model exchange and co-simulation of a mechanism by FMI 3.0 (https://fmi-standard.org).
 *
 * model.h, which kic generates, has sizes, start values and the function FORWARD. The values of an instance
 * are in the order of the value references. Loops are closed by Newton steps from the last accepted state,
 * in pieces of at most REACH; those of start values are proved to stay in the assembly mode of the export.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"

#ifdef __GNUC__ /* arguments are prescribed */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
#ifndef FMI3_FUNCTION_PREFIX
#define FMI3_FUNCTION_PREFIX
#endif
#define JOINED(prefix, name) prefix##name
#define PREFIXED(prefix, name) JOINED(prefix, name)
#define FMI(name) PREFIXED(FMI3_FUNCTION_PREFIX, fmi3##name)

#define RESIDUAL_MAX 1e-9   /* largest residual of closed loops (rad, shares of the length) */
#define PIECES_MAX 1e5      /* largest number of pieces of a way */
#define PARAMETER_PIECES 16 /* least number of them if parameters change */
#define START_PIECES 100    /* how many times shorter those of start values begin */
#define SHARE_MIN 1e-9      /* shortest piece, a share of the way */

typedef enum { OK, Warning, Discard, Error, Fatal } Status;
typedef uint32_t Reference;
typedef void (*Log)(void *environment, Status status, const char *category, const char *message);

/* q and qd are the continuous states, qd and qdd their derivatives */
enum { TIME, Q, QD = Q + DOF, QDD = QD + DOF, EFFORT = QDD + DOF, PARAMETER = EFFORT + DOF,
       STEP = PARAMETER + PARAMETERS, RESIDUAL, BRANCH, GUARD, VALUES };

typedef struct {
    double value[VALUES];
    double state[STATES];                               /* closed, of `value` */
    double accepted[STATES], known[DOF + PARAMETERS];   /* the last accepted state, its q and parameters */
    bool fresh, started, warned;
    Status status;                                      /* of the last evaluation */
    Log log;
    void *environment;
} Instance;

static Status say(Instance *m, Status status, const char *message)
{
    static const char *const NAME[] = {"logStatusOK", "logStatusWarning", "logStatusDiscard", "logStatusError",
                                       "logStatusFatal"};
    if (m->log) m->log(m->environment, status, NAME[status], message);
    return status;
}

/* discard an evaluation; it fails until a value changes */
static Status fail(Instance *m, const char *message)
{
    m->fresh = true;
    return m->status = say(m, Discard, message);
}

static double target(const Instance *m, int i)
{
    return m->value[i < DOF ? Q + i : PARAMETER + i - DOF];
}

/* close the loops at a share of the way from the last accepted values, from `state` to `next` */
static bool closes(Instance *m, double share, double next[], double branch[])
{
    double given[DOF + PARAMETERS], radius[1];
    double *const v = m->value;
    int i;
    for (i = 0; i < DOF + PARAMETERS; i++)
        given[i] = share < 1 ? m->known[i] + (target(m, i) - m->known[i]) * share : target(m, i);
    FORWARD(given, v + QD, v + EFFORT, given + DOF, m->state, v + QDD, next, v + RESIDUAL, radius, branch, v + GUARD);
    return v[RESIDUAL] <= RESIDUAL_MAX;
}

/* close the loops, and compute accelerations, residual, branch and guard */
static Status evaluate(Instance *m)
{
    double next[STATES], branch[1], way = 0, others = 0, done = 0, share, longest;
    double *const v = m->value;
    bool finite = true, proof;
    int i, pieces = 0;
    if (m->fresh) return m->status;
    for (i = 0; i < DOF; i++) way += fabs(v[Q + i] - m->known[i]) / REACH[i];
    for (i = DOF; i < DOF + PARAMETERS; i++)
        if (target(m, i) != m->known[i]) others = PARAMETER_PIECES;
    way += others;
    memcpy(m->state, m->accepted, sizeof next);
    /* without a proof at the exported configuration there is none elsewhere: parameters change lengths */
    proof = !m->started && closes(m, 0, next, branch) && !isnan(branch[0]);
    if (!m->started) way *= START_PIECES;
    if (!(way < (proof ? PIECES_MAX * START_PIECES : PIECES_MAX)))
        return fail(m, "Coordinates are too far from the last accepted ones.");
    v[BRANCH] = 0;
    longest = 1 / fmax(way, 1);
    for (share = longest; done < 1; pieces++) {
        const double end = done + share < 1 - SHARE_MIN ? done + share : 1;
        if (closes(m, end, next, branch) && !(proof && isnan(branch[0]))) {
            memcpy(m->state, next, sizeof next);
            done = end;
            if (!isnan(v[BRANCH])) v[BRANCH] = branch[0];
            if (proof || share < longest) share *= 2;
        } else
            share /= 2;
        if (share < SHARE_MIN || pieces > PIECES_MAX)
            return fail(m, m->started
                ? "The loops do not close: coordinates are out of reach, singular, or too far from the last ones."
                : "The loops do not close on the way from the exported configuration to the start: it is out of "
                  "reach, singular or too far. Export at a configuration near the start.");
    }
    for (i = 0; i < DOF; i++) finite = finite && isfinite(v[QDD + i]);
    if (!finite)
        return fail(m, "Accelerations are not finite: coordinates are singular, or rates or efforts too large.");
    m->fresh = true;
    m->status = v[GUARD] < 1 ? Warning : OK;
    if (m->status == Warning && !m->warned) {
        m->warned = true;
        say(m, Warning, "The guard is below one: results may have lost digits. Export nearer.");
    }
    if (way > 0 && !m->started && !proof) {
        m->status = Warning;
        say(m, Warning, "There are parameters of lengths, so that the assembly mode of the start is not proved.");
    }
    return m->status;
}

static Status accept(Instance *m)
{
    const Status status = evaluate(m);
    int i;
    if (status >= Discard) return status;
    memcpy(m->accepted, m->state, sizeof m->state);
    for (i = 0; i < DOF + PARAMETERS; i++) m->known[i] = target(m, i);
    return status;
}

/* one step of the classical Runge-Kutta method of fourth order */
static Status step(Instance *m, double h)
{
    static const double WEIGHT[] = {1, 2, 2, 1}, SHARE[] = {0.5, 0.5, 1};
    double start[2 * DOF], sum[2 * DOF] = {0};
    double *const x = m->value + Q, *const rate = m->value + QD;
    int i, k;
    memcpy(start, x, sizeof start);
    for (k = 0; k < 4; k++) {
        const Status status = evaluate(m);
        if (status >= Discard) return status;
        for (i = 0; i < 2 * DOF; i++) {
            sum[i] += WEIGHT[k] * rate[i];
            x[i] = start[i] + h * (k < 3 ? SHARE[k] * rate[i] : sum[i] / 6); /* upwards: rates overlap x */
        }
        m->fresh = false;
    }
    m->value[TIME] += h;
    return accept(m);
}

API Status FMI(Reset)(Instance *m)
{
    int i;
    memcpy(m->value, START, sizeof m->value);
    memcpy(m->accepted, NEAR, sizeof m->accepted);
    for (i = 0; i < DOF + PARAMETERS; i++) m->known[i] = target(m, i);
    m->fresh = m->started = m->warned = false;
    return OK;
}

static Instance *instance(const char *token, void *environment, Log log)
{
    Instance *m;
    if (!token || strcmp(token, TOKEN) != 0) {
        if (log) log(environment, Error, "logStatusError", "The instantiation token is that of another model.");
        return NULL;
    }
    m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->log = log;
    m->environment = environment;
    FMI(Reset)(m);
    return m;
}

API const char *FMI(GetVersion)(void) { return "3.0"; }
API Status FMI(SetDebugLogging)(Instance *m, bool on, size_t n, const char *const categories[]) { return OK; }

API Instance *FMI(InstantiateModelExchange)(const char *name, const char *token, const char *resources,
    bool visible, bool logging, void *environment, Log log)
{
    return instance(token, environment, log);
}

API Instance *FMI(InstantiateCoSimulation)(const char *name, const char *token, const char *resources,
    bool visible, bool logging, bool events, bool early, const Reference required[], size_t n,
    void *environment, Log log, void (*update)(void))
{
    return instance(token, environment, log);
}

API void *FMI(InstantiateScheduledExecution)(const char *name, const char *token, const char *resources,
    bool visible, bool logging, void *environment, Log log, void (*clock)(void), void (*lock)(void),
    void (*unlock)(void))
{
    return NULL;
}

API void FMI(FreeInstance)(Instance *m) { free(m); }

API Status FMI(EnterInitializationMode)(Instance *m, bool tolerant, double tolerance, double start, bool ends,
    double stop)
{
    m->value[TIME] = start;
    return OK;
}

API Status FMI(ExitInitializationMode)(Instance *m)
{
    const Status status = accept(m);
    m->started = true;
    return status >= Discard ? Error : status;
}

API Status FMI(EnterEventMode)(Instance *m) { return OK; }
API Status FMI(EnterContinuousTimeMode)(Instance *m) { return OK; }
API Status FMI(EnterStepMode)(Instance *m) { return OK; }
API Status FMI(Terminate)(Instance *m) { return OK; }
API Status FMI(EvaluateDiscreteStates)(Instance *m) { return OK; }

API Status FMI(UpdateDiscreteStates)(Instance *m, bool *again, bool *terminate, bool *nominals, bool *states,
    bool *timed, double *time)
{
    *again = *terminate = *nominals = *states = *timed = false;
    return OK;
}

API Status FMI(GetFloat64)(Instance *m, const Reference r[], size_t n, double values[], size_t size)
{
    Status status = OK;
    size_t k;
    if (n != size) return say(m, Error, "There must be one value for each reference.");
    for (k = 0; k < n; k++) {
        if (r[k] >= VALUES) return say(m, Error, "No variable has this value reference.");
        if ((r[k] >= QDD && r[k] < EFFORT) || r[k] >= RESIDUAL) status = evaluate(m);
        if (status >= Discard) return status;
        values[k] = m->value[r[k]];
    }
    return status;
}

API Status FMI(SetFloat64)(Instance *m, const Reference r[], size_t n, const double values[], size_t size)
{
    size_t k;
    if (n != size) return say(m, Error, "There must be one value for each reference.");
    for (k = 0; k < n; k++) {
        const bool start = (r[k] >= Q && r[k] < QDD) || r[k] == STEP, input = r[k] >= EFFORT && r[k] < STEP;
        if (!input && (m->started || !start)) return say(m, Error, "Efforts and parameters can be set, and "
            "before the end of initialization positions, velocities and the step.");
        if (!isfinite(values[k])) return say(m, Error, "Values must be finite.");
        m->value[r[k]] = values[k];
        m->fresh = false;
    }
    return OK;
}

API Status FMI(SetTime)(Instance *m, double time) { m->value[TIME] = time; return OK; }

static Status copy(Instance *m, double to[], const double from[], size_t n, Status status)
{
    if (n != 2 * DOF) return say(m, Error, "The number of states is wrong.");
    memcpy(to, from, n * sizeof *to);
    return status;
}

API Status FMI(SetContinuousStates)(Instance *m, const double x[], size_t n)
{
    m->fresh = false;
    return copy(m, m->value + Q, x, n, OK);
}

API Status FMI(GetContinuousStates)(Instance *m, double x[], size_t n)
{
    return copy(m, x, m->value + Q, n, OK);
}

API Status FMI(GetContinuousStateDerivatives)(Instance *m, double rate[], size_t n)
{
    return copy(m, rate, m->value + QD, n, evaluate(m));
}

API Status FMI(GetNominalsOfContinuousStates)(Instance *m, double nominals[], size_t n)
{
    size_t k;
    for (k = 0; k < n; k++) nominals[k] = 1;
    return OK;
}

API Status FMI(GetNumberOfContinuousStates)(Instance *m, size_t *n) { *n = 2 * DOF; return OK; }
API Status FMI(GetNumberOfEventIndicators)(Instance *m, size_t *n) { *n = 0; return OK; }
API Status FMI(GetEventIndicators)(Instance *m, double z[], size_t n) { return OK; }

API Status FMI(CompletedIntegratorStep)(Instance *m, bool final, bool *event, bool *terminate)
{
    *event = *terminate = false;
    return accept(m);
}

API Status FMI(DoStep)(Instance *m, double time, double h, bool final, bool *event, bool *terminate,
    bool *early, double *last)
{
    const double count = ceil(h / m->value[STEP] - 1e-9);
    int k;
    *event = *terminate = *early = false;
    *last = m->value[TIME] = time;
    if (!(m->value[STEP] > 0 && h > 0 && count < 1e9))
        return say(m, Error, "The communication step and the parameter step_size must be positive.");
    for (k = 0; k < (int)count; k++) {
        const Status status = step(m, h / count);
        if (status >= Discard) return Error;
        *last = m->value[TIME];
    }
    *last = m->value[TIME] = time + h;
    return m->status;
}

#ifdef DERIVATIVES
/* seeds times derivatives of positions, velocities and accelerations by positions, velocities and efforts,
 * along closed states; with `adjoint` by the transposed matrix */
static Status differentiate(Instance *m, const Reference of[], size_t n, const Reference by[], size_t k,
    const double seed[], double found[], bool adjoint)
{
    double J[3][DOF * DOF], qdd[DOF], guard[1];
    double *const v = m->value;
    const Status status = evaluate(m);
    size_t i, j;
    if (status >= Discard) return status;
    DERIVATIVES(m->state, v + QD, v + EFFORT, v + Q, v + PARAMETER, qdd, J[0], J[1], J[2], guard);
    for (i = 0; i < (adjoint ? k : n); i++) found[i] = 0;
    for (i = 0; i < n; i++) {
        for (j = 0; j < k; j++) {
            const Reference column = by[j] < QDD ? by[j] - Q : by[j] - EFFORT + 2 * DOF;
            double slope = of[i] == by[j];
            if (of[i] < Q || of[i] >= EFFORT || by[j] < Q || (by[j] >= QDD && by[j] < EFFORT) || by[j] >= PARAMETER)
                return say(m, Error, "Derivatives are those of q, qd and qdd by q, qd and effort.");
            if (of[i] >= QDD) slope = J[column / DOF][(of[i] - QDD) * DOF + column % DOF];
            found[adjoint ? j : i] += slope * seed[adjoint ? i : j];
        }
    }
    return status;
}

API Status FMI(GetDirectionalDerivative)(Instance *m, const Reference of[], size_t n, const Reference by[],
    size_t k, const double seed[], size_t seeds, double found[], size_t size)
{
    if (seeds != k || size != n) return say(m, Error, "There must be one value for each reference.");
    return differentiate(m, of, n, by, k, seed, found, false);
}

API Status FMI(GetAdjointDerivative)(Instance *m, const Reference of[], size_t n, const Reference by[],
    size_t k, const double seed[], size_t seeds, double found[], size_t size)
{
    if (seeds != n || size != k) return say(m, Error, "There must be one value for each reference.");
    return differentiate(m, of, n, by, k, seed, found, true);
}
#endif

/* the state is the instance itself */
API Status FMI(FreeFMUState)(Instance *m, Instance **state) { free(*state); *state = NULL; return OK; }

API Status FMI(GetFMUState)(Instance *m, Instance **state)
{
    if (!*state) *state = malloc(sizeof *m);
    if (!*state) return Fatal;
    **state = *m;
    return OK;
}

API Status FMI(SetFMUState)(Instance *m, const Instance *state) { *m = *state; return OK; }

/* functions for features that a mechanism does not have; FMI requires them */
#define NONE(name, ...) \
    API Status FMI(name)(Instance *m, __VA_ARGS__) { return say(m, Error, "fmi3" #name " is not supported."); }
#define OTHER(type, kind) \
    NONE(Get##type, const Reference r[], size_t n, kind values[], size_t size) \
    NONE(Set##type, const Reference r[], size_t n, const kind values[], size_t size)
#define CLOCKS(name, ...) NONE(name, const Reference r[], size_t n, __VA_ARGS__)
OTHER(Float32, float)
OTHER(Int8, int8_t)
OTHER(UInt8, uint8_t)
OTHER(Int16, int16_t)
OTHER(UInt16, uint16_t)
OTHER(Int32, int32_t)
OTHER(UInt32, uint32_t)
OTHER(Int64, int64_t)
OTHER(UInt64, uint64_t)
OTHER(Boolean, bool)
OTHER(String, char *)
NONE(GetBinary, const Reference r[], size_t n, size_t sizes[], const uint8_t *values[], size_t size)
NONE(SetBinary, const Reference r[], size_t n, const size_t sizes[], const uint8_t *const values[], size_t size)
CLOCKS(GetClock, bool values[])
CLOCKS(SetClock, const bool values[])
CLOCKS(GetIntervalDecimal, double intervals[], int qualifiers[])
CLOCKS(SetIntervalDecimal, const double intervals[])
CLOCKS(GetIntervalFraction, uint64_t counters[], uint64_t resolutions[], int qualifiers[])
CLOCKS(SetIntervalFraction, const uint64_t counters[], const uint64_t resolutions[])
CLOCKS(GetShiftDecimal, double shifts[])
CLOCKS(SetShiftDecimal, const double shifts[])
CLOCKS(GetShiftFraction, uint64_t counters[], uint64_t resolutions[])
CLOCKS(SetShiftFraction, const uint64_t counters[], const uint64_t resolutions[])
CLOCKS(GetOutputDerivatives, const int32_t orders[], double values[], size_t size)
NONE(ActivateModelPartition, Reference clock, double time)
NONE(GetNumberOfVariableDependencies, Reference r, size_t *n)
NONE(GetVariableDependencies, Reference r, size_t of[], Reference on[], size_t entries[], int kinds[], size_t n)
NONE(SerializedFMUStateSize, const Instance *state, size_t *size)
NONE(SerializeFMUState, const Instance *state, uint8_t bytes[], size_t size)
NONE(DeserializeFMUState, const uint8_t bytes[], size_t size, Instance **state)
#ifndef DERIVATIVES
NONE(GetDirectionalDerivative, const Reference of[], size_t n, const Reference by[], size_t k,
     const double seed[], size_t seeds, double found[], size_t size)
NONE(GetAdjointDerivative, const Reference of[], size_t n, const Reference by[], size_t k,
     const double seed[], size_t seeds, double found[], size_t size)
#endif
API Status FMI(EnterConfigurationMode)(Instance *m) { return say(m, Error, "There is no configuration mode."); }
API Status FMI(ExitConfigurationMode)(Instance *m) { return say(m, Error, "There is no configuration mode."); }
