/* The UTF-8 of each str of a list, in the two ways of CPython's C API: cached on the str, and as
bytes. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *as_utf8_and_size(PyObject *module, PyObject *list)
{
    Py_ssize_t total = 0, n = PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t size;
        if (!PyUnicode_AsUTF8AndSize(PyList_GET_ITEM(list, i), &size))
            return NULL;
        total += size;
    }
    return PyLong_FromSsize_t(total);
}

static PyObject *as_utf8_string(PyObject *module, PyObject *list)
{
    Py_ssize_t total = 0, n = PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *utf8 = PyUnicode_AsUTF8String(PyList_GET_ITEM(list, i));
        if (!utf8)
            return NULL;
        total += PyBytes_GET_SIZE(utf8);
        Py_DECREF(utf8);
    }
    return PyLong_FromSsize_t(total);
}

static PyMethodDef methods[] = {
    {"as_utf8_and_size", as_utf8_and_size, METH_O, "as_utf8_and_size(list): bytes of UTF-8 in all; leaves a cache behind each"},
    {"as_utf8_string", as_utf8_string, METH_O, "as_utf8_string(list): bytes of UTF-8 in all, by way of a bytes each"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "as_utf8", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_as_utf8(void)
{
    return PyModule_Create(&module);
}
