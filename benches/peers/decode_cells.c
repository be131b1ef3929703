/* The peer of decode_column: what a driver in C does for each cell of a bound column, PyUnicode_DecodeUTF16. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *decode_cells(PyObject *module, PyObject *args)
{
    Py_buffer data, lengths;
    Py_ssize_t stride;
    if (!PyArg_ParseTuple(args, "y*y*n", &data, &lengths, &stride))
        return NULL;
    Py_ssize_t n = lengths.len / (Py_ssize_t)sizeof(long long);
    const long long *length = lengths.buf;
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        int order = -1; /* little-endian; 0 would eat a leading U+FEFF */
        const char *cell = (const char *)data.buf + i * stride;
        PyObject *text = PyUnicode_DecodeUTF16(cell, (Py_ssize_t)length[i], NULL, &order);
        if (!text) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, text);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&lengths);
    return list;
}

static PyMethodDef methods[] = {
    {"decode_cells", decode_cells, METH_VARARGS, "decode_cells(data, lengths, stride): a list of str, UTF-16 little-endian"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "decode_cells", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_decode_cells(void)
{
    return PyModule_Create(&module);
}
