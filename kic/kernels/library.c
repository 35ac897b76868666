/* Extension module `kic.kernels._library`: calls of compiled kernels from Python.

   It uses the limited API of Python 3.11, and the layout of NumPy's arrays, which is part of NumPy's stable ABI
   (PyArrayObject_fields). `table.h` is written by linking.py: the kernels of each processor, and for each the
   types of its arguments, two characters for one argument:

     d, l, D   array of float64, int64, complex128, contiguous and writeable; then its number of axes
     i, f, b   integer, float, bool; then a space
     n         None; then a space

   A kernel reads its arguments from an array of 64-bit words: a number is one word, an array of n axes has
   5 + 2 n, in the order of Numba's structure of an array: two owners, which are not used, the number of
   members, the size of one, the data, the shape and the strides. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#endif

typedef int (*Call)(const int64_t *words, int64_t *result);

typedef struct {
    const char *types; /* two characters for each argument */
    char result;       /* i, b or n */
    Call call;
} Signature;

typedef struct {
    const char *name;
    const Signature *signatures; /* the last has no types */
} Entry;

typedef struct {
    const char *processor;
    const Entry *entries; /* the last has no name */
} Table;

#include "table.h" /* ARGUMENTS_MAX, WORDS_MAX, and `tables`, the best processor first */

/* NumPy's ABI */
typedef struct {
    PyObject_HEAD
    char *data;
    int n_axes;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
} Array;

typedef struct {
    PyObject_HEAD
    PyObject *scalar;
    char kind, character, byte_order, unused;
    int number;
} DType;

enum { CONTIGUOUS = 0x1, ALIGNED = 0x100, WRITEABLE = 0x400 };

static PyTypeObject *array_type;
static int float64, int64, complex128; /* numbers of types */

/* Numba's status of a kernel without and with a result */
enum { DONE = 0, RETURNED_NONE = -2 };

/* Called by `reshape` in kernels, which all have contiguous arrays in C order. */
int numba_attempt_nocopy_reshape(intptr_t n, const intptr_t *shape, const intptr_t *strides, intptr_t new_n,
                                 const intptr_t *new_shape, intptr_t *new_strides, intptr_t size, int fortran)
{
    (void)n, (void)shape, (void)strides, (void)fortran;
    for (intptr_t k = new_n - 1; k >= 0; k--) {
        new_strides[k] = size;
        size *= new_shape[k];
    }
    return 1;
}

/* Append the words of an array, or return NULL if it is not of the demanded kind. */
static int64_t *pack_array(const char *type, PyObject *given, int64_t *words)
{
    Array *a = (Array *)given;
    int number = type[0] == 'd' ? float64 : type[0] == 'l' ? int64 : complex128;
    int flags = CONTIGUOUS | ALIGNED | WRITEABLE, n = type[1] - '0';
    if (Py_TYPE(given) != array_type
        && (!PyObject_TypeCheck(given, array_type) || PyObject_HasAttrString(given, "mask")))
        return NULL;
    DType *dtype = (DType *)a->dtype;
    if (a->n_axes != n || dtype->number != number || dtype->byte_order != '=' || (a->flags & flags) != flags)
        return NULL;
    int64_t count = 1;
    for (int k = 0; k < n; k++) {
        count *= words[5 + k] = a->shape[k];
        words[5 + n + k] = a->strides[k];
    }
    words[0] = words[1] = 0;
    words[2] = count;
    words[3] = type[0] == 'D' ? 16 : 8;
    words[4] = (int64_t)(intptr_t)a->data;
    return words + 5 + 2 * n;
}

/* Append the words of an argument, or return NULL if it is of another type. */
static int64_t *pack(const char *type, PyObject *given, int64_t *words)
{
    double number;
    switch (type[0]) {
    case 'n':
        *words = 0;
        return given == Py_None ? words + 1 : NULL;
    case 'b':
        *words = given == Py_True;
        return PyBool_Check(given) ? words + 1 : NULL;
    case 'i':
        if (PyBool_Check(given) || !PyIndex_Check(given))
            return NULL;
        if (Py_TYPE(given) != &PyLong_Type && PyObject_TypeCheck(given, array_type))
            return NULL;
        *words = PyLong_AsLongLong(given);
        break;
    case 'f':
        if (!PyFloat_Check(given))
            return NULL;
        number = PyFloat_AsDouble(given);
        memcpy(words, &number, sizeof number);
        break;
    default:
        return pack_array(type, given, words);
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    return words + 1;
}

typedef struct {
    PyObject_HEAD
    const Entry *entry;
    PyObject *function, *fallback; /* None: a TypeError */
} Kernel;

static PyObject *run(const Entry *entry, const Signature *signature, const int64_t *words)
{
    int64_t result = 0;
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = signature->call(words, &result);
    Py_END_ALLOW_THREADS
    if (status != DONE && status != RETURNED_NONE)
        return PyErr_Format(PyExc_ValueError,
                            "The kernel %s stopped: shapes of its arrays disagree, or a complex divisor is zero.",
                            entry->name);
    if (signature->result == 'i')
        return PyLong_FromLongLong(result);
    PyObject *found = signature->result == 'n' ? Py_None : result ? Py_True : Py_False;
    Py_INCREF(found);
    return found;
}

static PyObject *kernel_call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    Kernel *kernel = (Kernel *)self;
    Py_ssize_t n = PyTuple_Size(arguments);
    PyObject *given[ARGUMENTS_MAX];
    int64_t words[WORDS_MAX];
    if (n <= ARGUMENTS_MAX && keywords == NULL) {
        for (Py_ssize_t k = 0; k < n; k++)
            given[k] = PyTuple_GetItem(arguments, k);
        for (const Signature *s = kernel->entry->signatures; s->types; s++) {
            const char *type = s->types;
            int64_t *end = words;
            for (Py_ssize_t k = 0; k < n && end != NULL; k++, type += 2)
                end = *type ? pack(type, given[k], end) : NULL;
            if (end != NULL && !*type)
                return run(kernel->entry, s, words);
        }
    }
    if (kernel->fallback != Py_None)
        return PyObject_Call(kernel->fallback, arguments, keywords);
    return PyErr_Format(PyExc_TypeError, "The kernel %s has no machine code for these arguments.", kernel->entry->name);
}

static PyTypeObject *kernel_type;

static PyObject *new_kernel(const Entry *entry, PyObject *function, PyObject *fallback)
{
    Kernel *kernel = PyObject_New(Kernel, kernel_type);
    if (kernel == NULL)
        return NULL;
    kernel->entry = entry;
    Py_INCREF(kernel->function = function);
    Py_INCREF(kernel->fallback = fallback);
    return (PyObject *)kernel;
}

static void kernel_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((Kernel *)self)->function);
    Py_DECREF(((Kernel *)self)->fallback);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *kernel_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<kernel %s of the library>", ((Kernel *)self)->entry->name);
}

static PyObject *kernel_function(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *function = ((Kernel *)self)->function;
    Py_INCREF(function);
    return function;
}

static PyObject *kernel_precompiled(PyObject *self, void *unused)
{
    (void)unused;
    return new_kernel(((Kernel *)self)->entry, ((Kernel *)self)->function, Py_None);
}

static PyObject *kernel_types(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (const Signature *s = ((Kernel *)self)->entry->signatures; list != NULL && s->types; s++) {
        PyObject *text = PyUnicode_FromString(s->types);
        if (text == NULL || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyGetSetDef kernel_attributes[] = {
    {"py_func", kernel_function, NULL, "Function that was compiled.", NULL},
    {"precompiled", kernel_precompiled, NULL, "Kernel that raises a TypeError for other arguments.", NULL},
    {"types", kernel_types, NULL, "Types of arguments, as in table.h.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_call, kernel_call},           {Py_tp_dealloc, kernel_dealloc},    {Py_tp_repr, kernel_repr},
    {Py_tp_getset, kernel_attributes},   {0, NULL},
};

static PyType_Spec kernel_spec = {
    "kic.kernels._library.Kernel", sizeof(Kernel), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kernel_slots,
};

static PyObject *make_kernel(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *processor, *name;
    PyObject *function, *fallback;
    if (!PyArg_ParseTuple(arguments, "ssOO", &processor, &name, &function, &fallback))
        return NULL;
    for (const Table *t = tables; t->processor; t++)
        for (const Entry *e = t->entries; e->name && !strcmp(t->processor, processor); e++)
            if (!strcmp(e->name, name))
                return new_kernel(e, function, fallback);
    /* a kernel without machine code, once in a process */
    static const Signature none[] = {{NULL, 0, NULL}};
    Entry *empty = PyMem_Malloc(sizeof *empty + strlen(name) + 1);
    if (empty == NULL)
        return PyErr_NoMemory();
    empty->name = strcpy((char *)(empty + 1), name);
    empty->signatures = none;
    return new_kernel(empty, function, fallback);
}

/* Return true if this machine runs code for a processor; all features of the x86-64 level are needed, since a masked
   LZCNT, for example, would run as another instruction. */
static int runs(const char *processor)
{
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    unsigned int a, b, basic, d, extended;
    if (!__get_cpuid(1, &a, &b, &basic, &d) || !__get_cpuid(0x80000001, &a, &b, &extended, &d))
        return 0;
    const unsigned int v2 = bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT;
    const unsigned int v3 = bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C;
    if ((basic & v2) != v2 || !(extended & bit_LAHF_LM))
        return 0;
    if (!strcmp(processor, "x86-64-v2"))
        return 1;
    if (!strcmp(processor, "x86-64-v3")) {
        __builtin_cpu_init(); /* also asks whether the system saves the wide registers */
        return (basic & v3) == v3 && (extended & bit_LZCNT) && __builtin_cpu_supports("avx2")
               && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    }
#endif
    return !strncmp(processor, "x86-64-v", 8) ? 0 : 1;
}

static PyObject *processors(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    for (const Table *t = tables; list != NULL && t->processor; t++) {
        if (!runs(t->processor))
            continue;
        PyObject *text = PyUnicode_FromString(t->processor);
        if (text == NULL || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyMethodDef methods[] = {
    {"kernel", make_kernel, METH_VARARGS, "Return the kernel of a processor and name."},
    {"processors", processors, METH_NOARGS, "Return the names of processors whose code runs here, the best first."},
    {NULL, NULL, 0, NULL},
};

/* Read the number of an array's type, or raise an ImportError if NumPy's arrays have another layout. */
static int read_type(PyObject *numpy, const char *name, int *number)
{
    PyObject *made = PyObject_CallMethod(numpy, "zeros", "(ii)s", 2, 3, name);
    if (made == NULL)
        return -1;
    Array *a = (Array *)made;
    int flags = CONTIGUOUS | ALIGNED | WRITEABLE, size = !strcmp(name, "complex128") ? 16 : 8;
    int known = PyObject_TypeCheck(made, array_type) && a->n_axes == 2 && a->shape[0] == 2 && a->shape[1] == 3
                && a->strides[0] == 3 * size && a->strides[1] == size && (a->flags & flags) == flags
                && ((DType *)a->dtype)->byte_order == '=';
    *number = known ? ((DType *)a->dtype)->number : 0;
    Py_DECREF(made);
    if (!known)
        PyErr_SetString(PyExc_ImportError, "the layout of NumPy's arrays is unknown");
    return known ? 0 : -1;
}

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_library", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__library(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy"), *module = NULL;
    if (numpy == NULL)
        return NULL;
    array_type = (PyTypeObject *)PyObject_GetAttrString(numpy, "ndarray");
    if (array_type != NULL && read_type(numpy, "float64", &float64) == 0 && read_type(numpy, "int64", &int64) == 0
        && read_type(numpy, "complex128", &complex128) == 0) {
        kernel_type = (PyTypeObject *)PyType_FromSpec(&kernel_spec);
        module = kernel_type == NULL ? NULL : PyModule_Create(&definition);
    }
    Py_DECREF(numpy);
    return module;
}
