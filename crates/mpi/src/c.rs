// SPDX-License-Identifier: Apache-2.0
//! Arguments as C passes them, as values whose methods check and then convert once.
//!
//! The entry bodies are called by C only, through the generated shells, so a value of these types is what
//! a C program passed. Soundness rests on what MPI asks of that program: a pointer argument that is not
//! null points to what its type says, of the length that the other arguments say, for as long as the call
//! (or, for buffers, the operation) lasts. That promise is used in this file and nowhere else.

use std::ffi::{CStr, c_char, c_int, c_void};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::{fail, words};
use isthmus_datatype::raw::{Promised, ReadMemory, UserMemory, WriteMemory};
use isthmus_wire::word;

/// A pointer to something that the call writes (or reads and writes).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Null?
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The address, for sentinels.
    pub(crate) fn address(&self) -> usize {
        self.0 as usize
    }

    /// Writes the value; null is an error that names the argument.
    pub(crate) fn set(self, argument: &str, value: T) -> Result<()> {
        if self.0.is_null() {
            fail!(abi::MPI_ERR_ARG, argument(argument), "is a null pointer");
        }
        // SAFETY: not null, so by the module's promise a valid place for a T.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes the value if the pointer is not null.
    pub(crate) fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `set`.
            unsafe { self.0.write(value) };
        }
    }

    /// Reads the value.
    pub(crate) fn get(self, argument: &str) -> Result<T>
    where
        T: Copy,
    {
        if self.0.is_null() {
            fail!(abi::MPI_ERR_ARG, argument(argument), "is a null pointer");
        }
        // SAFETY: as in `set`.
        Ok(unsafe { self.0.read() })
    }

    /// An array of `count` items that the call may write.
    #[inline(always)]
    pub(crate) fn slice<'a>(self, argument: &str, count: usize) -> Result<&'a mut [T]> {
        if count == 0 {
            return Ok(&mut []);
        }
        is_array(self.0, argument, count)?;
        // SAFETY: by the module's promise an array of `count` items that nobody else uses during the call.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0, count) })
    }

    /// The item at `index` of an array.
    pub(crate) fn at(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }
}

/// Whether there may be an array of so many items.
#[inline(always)]
fn is_array<T>(first: *const T, argument: &str, count: usize) -> Result<()> {
    match !first.is_null() && count <= isize::MAX as usize / size_of::<T>().max(1) {
        true => Ok(()),
        false => Err(no_array(argument, count, first.is_null())),
    }
}

#[cold]
fn no_array(argument: &str, count: usize, is_null: bool) -> Error {
    if is_null {
        let text = format!("is a null pointer, expected an array of {count}");
        return Error::of_argument(abi::MPI_ERR_ARG, argument, text);
    }
    // More than any memory has is a wrong count.
    let text = format!("would be an array of {count}, which no memory holds");
    Error::of_argument(abi::MPI_ERR_COUNT, argument, text)
}

/// A pointer to an array that the call reads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> In<T> {
    /// The address, for sentinels.
    pub(crate) fn address(&self) -> usize {
        self.0 as usize
    }

    /// The `count` items.
    #[inline(always)]
    pub(crate) fn slice<'a>(self, argument: &str, count: usize) -> Result<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        is_array(self.0, argument, count)?;
        // SAFETY: by the module's promise an array of `count` items.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}

/// A text argument.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text; null is an error of this class.
    pub(crate) fn get<'a>(self, argument: &str, class: i32) -> Result<std::borrow::Cow<'a, str>> {
        if self.0.is_null() {
            fail!(class, argument(argument), "is a null pointer, expected a text");
        }
        // SAFETY: by the module's promise a terminated string.
        let given = unsafe { CStr::from_ptr(self.0) };
        Ok(match given.to_str() {
            Ok(text) if !text.chars().any(word::stands_for_a_byte) => text.into(),
            _ => word::from_bytes(given.to_bytes()).into(),
        })
    }
}

impl Text {
    /// The bytes, for names that need not be text: of files.
    pub(crate) fn bytes<'a>(self, argument: &str, class: i32) -> Result<&'a [u8]> {
        if self.0.is_null() {
            fail!(class, argument(argument), "is a null pointer, expected a text");
        }
        // SAFETY: by the module's promise a terminated string.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

/// An array of texts that ends with a null pointer, or no array.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Words(*const *const c_char);

impl Words {
    /// None.
    pub(crate) fn none() -> Self {
        Self(std::ptr::null())
    }

    /// All of them.
    pub(crate) fn all<'a>(self) -> Vec<&'a [u8]> {
        let mut all = Vec::new();
        while !self.0.is_null() {
            // SAFETY: by the module's promise an array that ends with a null pointer, which has not come yet.
            let place = unsafe { self.0.add(all.len()) };
            // SAFETY: the same.
            let word = unsafe { *place };
            if word.is_null() {
                break;
            }
            // SAFETY: by the module's promise a terminated string.
            all.push(unsafe { CStr::from_ptr(word) }.to_bytes());
        }
        all
    }
}

/// A value that is written when an operation ends: until then the place is the library's.
pub(crate) struct Later<T>(Out<T>);

// SAFETY: an address; the module promises a valid place until the operation has ended, for every thread.
unsafe impl<T: Send> Send for Later<T> {}

impl<T> Later<T> {
    pub(crate) fn put(self, value: T) {
        self.0.put(value);
    }
}

impl<T> From<Out<T>> for Later<T> {
    fn from(place: Out<T>) -> Self {
        Self(place)
    }
}

impl Out<c_char> {
    /// Writes a text and its terminator into an array of `capacity` bytes, cut if it must be; gives its length.
    pub(crate) fn text(self, argument: &str, text: &str, capacity: usize) -> Result<usize> {
        let text = words::cut(text, capacity.saturating_sub(1));
        self.bytes(argument, &word::to_bytes(text), capacity)
    }

    /// The same for bytes that need not be text.
    pub(crate) fn bytes(self, argument: &str, bytes: &[u8], capacity: usize) -> Result<usize> {
        let length = bytes.len().min(capacity.saturating_sub(1));
        let target = self.slice(argument, (length + 1).min(capacity))?;
        for (to, from) in target.iter_mut().zip(bytes[..length].iter().chain(&[0])) {
            *to = *from as c_char;
        }
        Ok(length)
    }
}

/// A buffer that an operation reads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Source(*const c_void);

/// A buffer that an operation writes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Target(*mut c_void);

// SAFETY: an address; what may be done with it the promise of the module says, for every thread.
unsafe impl Send for Source {}
// SAFETY: as for `Source`.
unsafe impl Send for Target {}
// SAFETY: as for `Source`.
unsafe impl Sync for Source {}
// SAFETY: as for `Source`.
unsafe impl Sync for Target {}

impl Source {
    /// The address, for sentinels.
    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }

    /// The memory from `low` to `high` relative to the buffer.
    pub(crate) fn memory(self, low: i64, high: i64) -> ReadMemory {
        // SAFETY: the promise of the module, for the range that count and datatype describe.
        unsafe { ReadMemory::new(self.0.cast(), low as isize, high as isize) }
    }

    /// The buffer `bytes` further on.
    pub(crate) fn offset(self, bytes: i64) -> Self {
        Self(self.0.wrapping_byte_offset(bytes as isize))
    }
}

impl Target {
    /// The address, for sentinels.
    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }

    /// The memory from `low` to `high` relative to the buffer.
    pub(crate) fn memory(self, low: i64, high: i64) -> WriteMemory {
        // SAFETY: the promise of the module, for the range that count and datatype describe.
        unsafe { WriteMemory::new(self.0.cast(), low as isize, high as isize) }
    }

    /// So many bytes of the buffer, to which others may write by their address.
    pub(crate) fn user_memory(self, bytes: i64) -> UserMemory {
        // SAFETY: the promise of the module; for windows, it holds until they are freed or the memory is detached.
        unsafe { UserMemory::new(self.0.cast(), 0, bytes as isize) }
    }

    /// The buffer `bytes` further on.
    pub(crate) fn offset(self, bytes: i64) -> Self {
        Self(self.0.wrapping_byte_offset(bytes as isize))
    }

    /// Memory that MPI_Alloc_mem would give, for the program.
    pub(crate) fn allocated(base: *mut c_void) -> Self {
        Self(base)
    }

    /// The same buffer for reading.
    pub(crate) fn source(self) -> Source {
        Source(self.0)
    }
}

/// The same for memory that is mapped for the program.
pub(crate) fn promise() -> Promised {
    // SAFETY: the promise of the module. Windows keep what they have mapped, and are freed when no operation uses it.
    unsafe { Promised::by_program() }
}

/// A count argument, as `int` or as `MPI_Count`: never negative.
#[inline]
pub(crate) fn count(argument: &str, value: impl Into<i64>) -> Result<u64> {
    let value = value.into();
    match u64::try_from(value) {
        Ok(count) => Ok(count),
        Err(_) => negative(argument, value),
    }
}

#[cold]
fn negative(argument: &str, value: i64) -> Result<u64> {
    fail!(
        abi::MPI_ERR_COUNT,
        argument(argument),
        "is {value}, a count must not be negative"
    )
}

/// A count or displacement argument: `int`, `MPI_Count` or `MPI_Aint`.
pub(crate) trait Number: Copy {
    fn wide(self) -> i64;
}

impl Number for c_int {
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Number for i64 {
    fn wide(self) -> i64 {
        self
    }
}

impl Number for isthmus_abi::Aint {
    fn wide(self) -> i64 {
        self as i64
    }
}

/// A C truth value.
pub(crate) fn flag(value: bool) -> c_int {
    c_int::from(value)
}

impl Source {
    /// Bytes of our own, which the caller keeps until the operation is complete.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(bytes.as_ptr().cast())
    }
}

impl Target {
    /// Bytes of our own, which the caller keeps until the operation is complete.
    pub(crate) fn of(bytes: &mut [u8]) -> Self {
        Self(bytes.as_mut_ptr().cast())
    }
}

/// `extra_state`, which only the program understands.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Extra(pub(crate) usize);
