"""pylinop's C face (src/c/py/module/py_capi.h) by ctypes."""

import ctypes

import pylinop as pl


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("typecode", ctypes.c_int64),
        ("ndim", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("reserved", ctypes.c_int64),
    ]


def as_c(arrays):
    keep = []
    for a in arrays:
        dims = (ctypes.c_int64 * max(a.ndim, 1))(*a.shape)
        steps = (ctypes.c_int64 * max(a.ndim, 1))(*a.strides)
        keep.append(Array(a.ctypes.data, ord(a.dtype.char), a.ndim, dims, steps, 0))
    return (Array * len(arrays))(*keep)


def c_face(name, restype, *argtypes):
    get = ctypes.pythonapi
    get.PyCapsule_GetName.restype = ctypes.c_char_p
    get.PyCapsule_GetName.argtypes = [ctypes.py_object]
    get.PyCapsule_GetPointer.restype = ctypes.c_void_p
    get.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = pl._core.__pyx_capi__[name]
    address = get.PyCapsule_GetPointer(capsule, get.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(restype, *argtypes)(address)


def run_program():
    """lop_capi_call(program, len, nargs, args, nout, out, flags)."""
    arrays = ctypes.POINTER(Array)
    size = ctypes.c_int64
    given = (ctypes.c_char_p, size, size, arrays, size, arrays, ctypes.c_int32)
    return c_face("lop_capi_call", ctypes.c_int32, *given)


def last_error(size=400):
    """(its whole length, its text cut to `size` bytes)"""
    ask = c_face("lop_capi_error", ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64)
    said = ctypes.create_string_buffer(size)
    length = ask(said, size)
    return length, said.value.decode()
