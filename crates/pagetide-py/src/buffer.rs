//! Numbers in an object with a buffer (`array.array`, numpy, a memoryview), without a copy.
//!
//! Uses Python's buffer protocol. It is part of the stable ABI from Python 3.11 on. The extension
//! also supports 3.10, where the functions and the structure are the same ([PEP 3118]) but not
//! guaranteed, so they are declared here.
//!
//! Invariant: the memory stays valid during the lifetime of a [`Buffer`], which holds a reference
//! to its owner. Other threads may write to the memory, so each number is read atomically
//! (relaxed), never through a slice.
//!
//! [PEP 3118]: https://peps.python.org/pep-3118/

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `Py_buffer`.
#[repr(C)]
struct PyBufferView {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

/// `PyBUF_FORMAT
/// PyBUF_ND`: contiguous memory, with the type of its numbers.
const CONTIGUOUS: c_int = 0x0004 | 0x0008;

extern "C" {
    fn PyObject_GetBuffer(
        object: *mut ffi::PyObject,
        view: *mut PyBufferView,
        flags: c_int,
    ) -> c_int;
    fn PyBuffer_Release(view: *mut PyBufferView);
}

/// A contiguous sequence of integers of 4 or 8 bytes.
pub struct Buffer {
    view: Box<PyBufferView>,
    is_signed: bool,
}

// Safety: the view is only read, and is released with the interpreter attached. Threads read
// numbers atomically.
unsafe impl Send for Buffer {}
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The numbers of an object.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        let mut view = Box::new(PyBufferView {
            buf: std::ptr::null_mut(),
            obj: std::ptr::null_mut(),
            len: 0,
            itemsize: 0,
            readonly: 0,
            ndim: 0,
            format: std::ptr::null_mut(),
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        });
        // Safety: the object lives, and the view is one to be filled in. It stays where it is, in
        // its box.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, CONTIGUOUS) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        let mut buffer = Buffer { view, is_signed: false };
        let format = match buffer.view.format.is_null() {
            true => b"B".to_vec(),
            // Safety: the owner keeps this string valid while the view exists.
            false => unsafe { CStr::from_ptr(buffer.view.format) }.to_bytes().to_vec(),
        };
        // Native numbers. `<` means the same on a little-endian computer.
        let kind = match format.as_slice() {
            [kind] | [b'@' | b'=', kind] => Some(*kind),
            [b'<', kind] if cfg!(target_endian = "little") => Some(*kind),
            _ => None,
        };
        let (view, kind) = (&buffer.view, kind.unwrap_or(0));
        if view.ndim != 1 || !b"IiLlQqNn".contains(&kind) || ![4, 8].contains(&view.itemsize) {
            return Err(PyTypeError::new_err(
                "pages must be integers of 32 or 64 bits, contiguous: array('Q', ...), or numpy's uint64",
            ));
        }
        if view.len > 0 && view.buf.addr() % view.itemsize.unsigned_abs() != 0 {
            return Err(PyValueError::new_err("the numbers are not aligned; pass a copy"));
        }
        buffer.is_signed = kind.is_ascii_lowercase();
        Ok(buffer)
    }

    pub fn len(&self) -> usize {
        (self.view.len / self.view.itemsize).unsigned_abs()
    }

    /// The number at an index; a negative number becomes larger than any page.
    ///
    /// # Panics
    /// The index is out of range.
    #[inline]
    pub fn at(&self, place: usize) -> u64 {
        assert!(place < self.len());
        // Safety: the index is in the buffer, which is aligned and valid while the view exists. The
        // atomic load never sees a partially written number.
        unsafe {
            if self.view.itemsize == 8 {
                AtomicU64::from_ptr(self.view.buf.cast::<u64>().add(place)).load(Ordering::Relaxed)
            } else {
                let number = AtomicU32::from_ptr(self.view.buf.cast::<u32>().add(place));
                let number = number.load(Ordering::Relaxed);
                match self.is_signed {
                    true => i64::from(number.cast_signed()).cast_unsigned(),
                    false => number.into(),
                }
            }
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Safety: the view was initialised, and the interpreter is attached.
        Python::attach(|_| unsafe { PyBuffer_Release(&raw mut *self.view) });
    }
}
