/* Header fields by way of objects: PyUnicode_AsLatin1String of each name and value of a list of pairs, let go again. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *encode(PyObject *module, PyObject *list)
{
    Py_ssize_t total = 0, n = PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PyList_GET_ITEM(list, i);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(pair); k++) {
            PyObject *latin1 = PyUnicode_AsLatin1String(PyTuple_GET_ITEM(pair, k));
            if (!latin1)
                return NULL;
            total += PyBytes_GET_SIZE(latin1);
            Py_DECREF(latin1);
        }
    }
    return PyLong_FromSsize_t(total);
}

static PyMethodDef methods[] = {
    {"encode", encode, METH_O, "encode(list of tuples): bytes of Latin-1 in all, by way of a bytes each"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "latin1_objects", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_latin1_objects(void)
{
    return PyModule_Create(&module);
}
