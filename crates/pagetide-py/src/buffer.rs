//! Numbers of an object with a buffer (`array.array`, numpy, a memoryview), without a copy.
//!
//! Python's buffer protocol. It is part of the stable ABI from Python 3.11 on, and the extension is for 3.10 as well:
//! there the functions and the structure are the same ([PEP 3118]), only not promised. So they are declared here.
//!
//! Invariant: the memory is there while a [`Buffer`] lives, which has its owner keep it. Others may write to it
//! meanwhile, so each number is read at once (relaxed), never as a slice.
//!
//! [PEP 3118]: https://peps.python.org/pep-3118/

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `Py_buffer`.
#[repr(C)]
struct View {
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

/// `PyBUF_FORMAT | PyBUF_ND`: one stretch of memory, with the kind of its numbers.
const CONTIGUOUS: c_int = 0x0004 | 0x0008;

extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

/// Whole numbers of 4 or 8 bytes in a row.
pub struct Buffer {
    view: Box<View>,
    is_signed: bool,
}

// Safety: the view is only read, until it is released with the interpreter attached; reading numbers from several
// threads is reading atomics.
unsafe impl Send for Buffer {}
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The numbers of an object.
    ///
    /// # Errors
    /// It has no buffer, or one of other things.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        let mut view = Box::new(View {
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
        // Safety: the object lives, and the view is one to be filled in. It stays where it is, in its box.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, CONTIGUOUS) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        let mut buffer = Buffer { view, is_signed: false };
        let format = match buffer.view.format.is_null() {
            true => b"B".to_vec(),
            // Safety: it is a text that the owner keeps while the view is there.
            false => unsafe { CStr::from_ptr(buffer.view.format) }.to_bytes().to_vec(),
        };
        // Numbers as this computer has them; `<` says the same where it is one of little ends.
        let kind = match format.as_slice() {
            [kind] | [b'@' | b'=', kind] => Some(*kind),
            [b'<', kind] if cfg!(target_endian = "little") => Some(*kind),
            _ => None,
        };
        let (view, kind) = (&buffer.view, kind.unwrap_or(0));
        if view.ndim != 1 || !b"IiLlQqNn".contains(&kind) || ![4, 8].contains(&view.itemsize) {
            return Err(PyTypeError::new_err(
                "pages are whole numbers of 32 or 64 bits in one row: array('Q', ...), or numpy's uint64",
            ));
        }
        if view.len > 0 && view.buf.addr() % view.itemsize.unsigned_abs() != 0 {
            return Err(PyValueError::new_err("the numbers are not aligned: copy them before"));
        }
        buffer.is_signed = kind.is_ascii_lowercase();
        Ok(buffer)
    }

    /// How many.
    pub fn len(&self) -> usize {
        (self.view.len / self.view.itemsize).unsigned_abs()
    }

    /// The number at a place; a negative one is larger than any page.
    ///
    /// # Panics
    /// There is no such place.
    #[inline]
    pub fn at(&self, place: usize) -> u64 {
        assert!(place < self.len());
        // Safety: the place is in the buffer, which is aligned, and is there while the view is. Who writes to it
        // meanwhile is not seen in the middle of a number.
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
        // Safety: it was filled in, and the interpreter is attached.
        Python::attach(|_| unsafe { PyBuffer_Release(&raw mut *self.view) });
    }
}
