/* hl_python.h: what the Python extensions of pipelines share: arguments from Python objects, errors to Python exceptions. C11 and C++17.
 *
 * A pipeline's wrapper is `PyObject *hl_python_NAME(PyObject *module, PyObject *args, PyObject *kwargs)`; HL_PYTHON_MODULE defines a module of them.
 * Everything here is static, so that the wrappers of several pipelines can be linked into one module.
 */
#ifndef HL_PYTHON_H
#define HL_PYTHON_H

#include <limits.h>
#include <string.h>

/* A buffer argument: the view is released by hl_python_release. */
typedef struct {
    Py_buffer view;
    int has_view;
    struct halide_buffer_t *buffer;
    struct halide_buffer_t own;
    halide_dimension_t dim[PyBUF_MAX_NDIM];
} hl_python_buffer;

static inline void hl_python_release(hl_python_buffer *b) {
    if (b->has_view) {
        PyBuffer_Release(&b->view);
    }
    b->has_view = 0;
}

/* A Buffer of halide_py or Halide hands out its own description, mins included. Gives 1 if it did, 0 if it is something else, -1 on an error. */
static inline int hl_python_take_raw(PyObject *object, hl_python_buffer *b) {
    PyObject *number;
    if (!PyObject_HasAttrString(object, "_get_raw_halide_buffer_t")) {
        return 0;
    }
    number = PyObject_CallMethod(object, "_get_raw_halide_buffer_t", NULL);
    if (!number) {
        return -1;
    }
    b->buffer = (struct halide_buffer_t *)PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : b->buffer != NULL;
}

/* The element type that a struct module's format stands for; 0 if pipelines have no such type. */
static inline int hl_python_element(const char *format, Py_ssize_t size, struct halide_type_t *type) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    const char native = '>';
#else
    const char native = '<';
#endif
    const char *p = format ? format : "B";
    int code;
    if (*p == '@' || *p == '=' || *p == native || (*p && strchr("<>!", *p) && size == 1)) {
        p++;
    }
    if (!*p || p[1]) {
        return 0;
    }
    code = strchr("efd", *p) ? 2 : strchr("bhilqn", *p) ? 0 : strchr("?BHILQN", *p) ? 1 : -1;
    if (code < 0) {
        return 0;
    }
    memset(type, 0, sizeof(*type));
    type->code = (__typeof__(type->code))code;
    type->bits = (uint8_t)(*p == '?' ? 1 : 8 * size);
    type->lanes = 1;
    return 1;
}

/* Describe an object with the buffer protocol. Dimension 0 is the last axis of an array in C order, the first of one in Fortran order.
 * Gives 0, or -1 with an exception set. */
static inline int hl_python_take(PyObject *object, const char *name, int dimensions, int writable, hl_python_buffer *b) {
    int i, raw = hl_python_take_raw(object, b), fortran;
    if (raw) {
        return raw > 0 ? 0 : -1;
    }
    if (PyObject_GetBuffer(object, &b->view, PyBUF_FORMAT | PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0)) < 0) {
        PyErr_Format(PyExc_ValueError, "Invalid argument %s: not %s with the buffer protocol", name, writable ? "a writable array" : "an array");
        return -1;
    }
    b->has_view = 1;
    if (b->view.ndim != dimensions) {
        PyErr_Format(PyExc_ValueError, "Invalid argument %s: Expected %d dimensions, got %d", name, dimensions, b->view.ndim);
        return -1;
    }
    fortran = PyBuffer_IsContiguous(&b->view, 'F');
    if (!fortran && !PyBuffer_IsContiguous(&b->view, 'C')) {
        PyErr_Format(PyExc_ValueError, "Invalid argument %s: neither C nor Fortran contiguous", name);
        return -1;
    }
    memset(&b->own, 0, sizeof(b->own));
    if (!hl_python_element(b->view.format, b->view.itemsize, &b->own.type)) {
        PyErr_Format(PyExc_ValueError, "Invalid argument %s: no pipeline takes elements of format %s", name, b->view.format);
        return -1;
    }
    for (i = 0; i < dimensions; i++) {
        int axis = fortran ? i : dimensions - 1 - i;
        Py_ssize_t stride = b->view.strides[axis] / b->view.itemsize;
        if (b->view.shape[axis] > INT_MAX || stride > INT_MAX) {
            PyErr_Format(PyExc_ValueError, "Invalid argument %s: axis %d is too large", name, axis);
            return -1;
        }
        b->dim[i].min = 0;
        b->dim[i].extent = (int32_t)b->view.shape[axis];
        b->dim[i].stride = (int32_t)stride;
        b->dim[i].flags = 0;
    }
    b->own.host = (uint8_t *)b->view.buf;
    b->own.dimensions = dimensions;
    b->own.dim = b->dim;
    b->buffer = &b->own;
    return 0;
}

/* An integer of `bits` bits from a Python one. Gives 0, or -1 with an exception set. */
static inline int hl_python_int(PyObject *object, const char *name, int is_signed, int bits, int64_t *value) {
    PyObject *number = PyNumber_Index(object);
    if (number && is_signed) {
        *value = PyLong_AsLongLong(number);
    } else if (number) {
        *value = (int64_t)PyLong_AsUnsignedLongLong(number);
    }
    Py_XDECREF(number);
    if (!PyErr_Occurred() && bits < 64) {
        int64_t low = is_signed ? -((int64_t)1 << (bits - 1)) : 0, high = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
        if (*value < low || *value > high) {
            PyErr_SetNone(PyExc_OverflowError);
        }
    }
    if (!PyErr_Occurred()) {
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Format(PyExc_OverflowError, "Invalid argument %s: %S does not fit %sint%d", name, object, is_signed ? "" : "u", bits);
    } else {
        PyErr_Format(PyExc_TypeError, "Invalid argument %s: an integer is needed, not %S", name, object);
    }
    return -1;
}

/* A truth value from a bool of Python or NumPy, or from 0 or 1. Gives 0, or -1 with an exception set. */
static inline int hl_python_bool(PyObject *object, const char *name, int *value) {
    PyObject *number = PyNumber_Check(object) && !PyFloat_Check(object) ? PyNumber_Long(object) : NULL;
    long given = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    *value = given == 1;
    if (given == 0 || given == 1) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "Invalid argument %s: a bool is needed, not %S", name, object);
    return -1;
}

/* A float from a Python number. Gives 0, or -1 with an exception set. */
static inline int hl_python_float(PyObject *object, const char *name, double *value) {
    *value = PyFloat_AsDouble(object);
    if (*value == -1.0 && PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "Invalid argument %s: a number is needed, not %S", name, object);
        return -1;
    }
    return 0;
}

/* The exception for a code that a pipeline gave. What the pipeline reported is a note of it, which Python 3.11 and later show. */
static inline PyObject *hl_python_fail(int code) {
    PyObject *type, *value, *trace, *notes;
#ifndef HALIDE_PYTHON_EXTENSION_OMIT_ERROR_AND_PRINT_HANDLERS
    PyErr_Format(PyExc_RuntimeError, "Halide Runtime Error: %d", code);
#else
    PyErr_Format(PyExc_ValueError, "Halide error %d", code);
#endif
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    notes = Py_BuildValue("[s]", hl_last_error());
    if (!value || !notes || PyObject_SetAttrString(value, "__notes__", notes) < 0) {
        PyErr_Clear(); /* the code alone, then */
    }
    Py_XDECREF(notes);
    PyErr_Restore(type, value, trace);
    return NULL;
}

static inline void hl_python_error(void *user_context, const char *message) {
    (void)user_context;
    hl_set_last_error(message);
#ifdef HALIDE_PYTHON_EXTENSION_LOG_ERRORS_TO_STDERR
    PyGILState_STATE state = PyGILState_Ensure();
    PySys_FormatStderr("%s\n", message);
    PyGILState_Release(state);
#endif
}

static inline void hl_python_print(void *user_context, const char *message) {
    PyGILState_STATE state = PyGILState_Ensure();
    (void)user_context;
    PySys_FormatStdout("%s", message);
    PyGILState_Release(state);
}

/* What a module does when it is imported. */
static inline PyObject *hl_python_start(struct PyModuleDef *definition) {
#ifndef HALIDE_PYTHON_EXTENSION_OMIT_ERROR_AND_PRINT_HANDLERS
    halide_set_error_handler(hl_python_error);
    halide_set_custom_print(hl_python_print);
#endif
    return PyModule_Create(definition);
}

#define HL_PYTHON_TEXT_(x) #x
#define HL_PYTHON_TEXT(x) HL_PYTHON_TEXT_(x)
#define HL_PYTHON_JOIN_(a, b) a##b
#define HL_PYTHON_JOIN(a, b) HL_PYTHON_JOIN_(a, b)

#endif /* HL_PYTHON_H */
