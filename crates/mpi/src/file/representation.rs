// SPDX-License-Identifier: Apache-2.0
//! How data are represented in files (MPI 5.0 section 14.5): native, internal, external32, and representations of the
//! program.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count, Offset};
use isthmus_core::error::{Error, Result};
use isthmus_core::{fail, words};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype, Foreign, Representation};
use isthmus_io::{File, Source, Target, room};

use crate::c;
use crate::c::{Extra, Text, count};
use crate::call::call_on;
use crate::{check, datatype, process};

type Conversion = extern "C" fn(*mut c_void, h::Datatype, c_int, *mut c_void, Offset, Extra) -> c_int;
type LargeConversion = extern "C" fn(*mut c_void, h::Datatype, Count, *mut c_void, Offset, Extra) -> c_int;
type ExtentFunction = extern "C" fn(h::Datatype, *mut Aint, Extra) -> c_int;

/// A conversion function in one of its two forms.
#[derive(Clone, Copy)]
enum Convert {
    Small(Conversion),
    Large(LargeConversion),
}

/// A representation of the program.
pub(super) struct Registered {
    name: String,
    /// `None`: the data are as in memory.
    read: Option<Convert>,
    write: Option<Convert>,
    extent: ExtentFunction,
    extra: Extra,
}

static REGISTERED: Mutex<Vec<Arc<Registered>>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const NATIVE: &str = "native";
const INTERNAL: &str = "internal";
const EXTERNAL: &str = "external32";

/// The representation of a view.
#[derive(Clone)]
pub(super) enum Form {
    Native,
    /// "internal" where processes represent data differently: their common form. `None`: they do not.
    Internal(Option<Representation>),
    External,
    Registered(Arc<Registered>),
}

impl Form {
    /// The form with this name.
    pub(super) fn find(name: &str, file: &File) -> Result<Self> {
        Ok(match name {
            NATIVE => Self::Native,
            INTERNAL => Self::Internal(file.common_form()),
            EXTERNAL => Self::External,
            _ => match locked(&REGISTERED).iter().find(|registered| registered.name == name) {
                Some(registered) => Self::Registered(registered.clone()),
                None => fail!(
                    abi::MPI_ERR_UNSUPPORTED_DATAREP,
                    argument("datarep"),
                    "is {name:?}, which is none of \"native\", \"internal\" and \"external32\", and \
                     MPI_Register_datarep has not made it known"
                ),
            },
        })
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Native => NATIVE,
            Self::Internal(_) => INTERNAL,
            Self::External => EXTERNAL,
            Self::Registered(registered) => &registered.name,
        }
    }

    fn representation(&self) -> Option<Representation> {
        match self {
            Self::Internal(form) => *form,
            Self::External => Some(Representation::EXTERNAL32),
            Self::Native | Self::Registered(_) => None,
        }
    }

    /// A datatype as it lies in the file.
    pub(super) fn in_file(&self, ty: &Datatype) -> Result<Datatype> {
        if let Self::Registered(registered) = self {
            return registered.in_file(ty);
        }
        Ok(match self.representation() {
            // Also where it is the own representation: others, for whom it is not, see the same file without gaps.
            Some(form) => ty.with_sizes(&|basic| form.size(basic) as u64)?,
            None => ty.clone(),
        })
    }

    /// Data that are to be written.
    pub(super) fn source(&self, buffer: c::Source, n: i64, handle: h::Datatype) -> Result<(Source, u64)> {
        let (n, ty) = (count("count", n)?, datatype::find(handle)?);
        let (low, high) = ty.window(n)?;
        check::buffer("buf", buffer.address(), low as i64, (high - low) as u64)?;
        let bytes = ty.bytes(n)?;
        if let Self::Registered(registered) = self {
            if let Some(convert) = registered.write {
                let data = registered.write(convert, buffer, n, (handle, ty))?;
                return Ok((Source::Bytes(data), bytes));
            }
        }
        let foreign = self.foreign(ty)?;
        let memory = buffer.memory(low as i64, high as i64);
        Ok((Source::new(memory, ty, n, foreign.as_ref())?, bytes))
    }

    /// Room for data that are read.
    pub(super) fn target(&self, buffer: c::Target, n: i64, handle: h::Datatype) -> Result<Target> {
        let (n, ty) = (count("count", n)?, datatype::find(handle)?);
        let (low, high) = ty.window(n)?;
        check::buffer("buf", buffer.address(), low as i64, (high - low) as u64)?;
        if let Self::Registered(registered) = self {
            if let Some(convert) = registered.read {
                return registered.clone().read(convert, buffer, n, (handle, ty));
            }
        }
        Target::new(buffer.memory(low as i64, high as i64), ty, n, self.foreign(ty)?)
    }

    fn foreign(&self, ty: &Datatype) -> Result<Option<Foreign>> {
        match self.representation() {
            Some(form) => Ok(Foreign::new(ty, form)?),
            None => Ok(None),
        }
    }
}

impl Registered {
    /// Bytes of a predefined datatype in the file.
    fn size(&self, basic: Basic) -> Result<u64> {
        let mut extent: Aint = 0;
        let code = (self.extent)(h::Datatype(basic.handle() as usize), &raw mut extent, self.extra);
        self.check(code, "dtype_file_extent_fn")?;
        match u64::try_from(extent) {
            Ok(extent) if extent > 0 => Ok(extent),
            _ => fail!(
                abi::MPI_ERR_CONVERSION,
                "dtype_file_extent_fn of the representation {:?} gave the extent {extent} for {}",
                self.name,
                basic.name()
            ),
        }
    }

    fn check(&self, code: c_int, which: &str) -> Result<()> {
        match code {
            abi::MPI_SUCCESS => Ok(()),
            code => Err(Error::new(
                abi::MPI_ERR_CONVERSION,
                format!("{which} of the representation {:?} returned {code}", self.name),
            )),
        }
    }

    fn in_file(&self, ty: &Datatype) -> Result<Datatype> {
        let failed = Mutex::new(None);
        let made = ty.with_sizes(&|basic| {
            self.size(basic).unwrap_or_else(|error| {
                *locked(&failed) = Some(error);
                1
            })
        })?;
        match locked(&failed).take() {
            Some(error) => Err(error),
            None => Ok(made),
        }
    }

    /// Converts `n` elements; `number`: which one the first is.
    fn convert(
        &self,
        convert: Convert,
        user: *mut c_void,
        (n, handle): (u64, h::Datatype),
        file: *mut c_void,
    ) -> Result<()> {
        let code = match convert {
            Convert::Large(function) => function(user, handle, n as Count, file, 0, self.extra),
            Convert::Small(function) => match c_int::try_from(n) {
                Ok(small) => function(user, handle, small, file, 0, self.extra),
                Err(_) => fail!(
                    abi::MPI_ERR_COUNT,
                    "{n} elements are more than the conversion function of {:?} can take; register it with \
                     MPI_Register_datarep_c",
                    self.name
                ),
            },
        };
        self.check(code, "a conversion function")
    }

    fn write(
        &self,
        convert: Convert,
        buffer: c::Source,
        n: u64,
        (handle, ty): (h::Datatype, &Datatype),
    ) -> Result<Vec<u8>> {
        let bytes = self.in_file(ty)?.bytes(n)?;
        let memory = OwnMemory::new(0, bytes as isize);
        if n > 0 {
            let file = memory.memory().address() as *mut c_void;
            self.convert(convert, buffer.address() as *mut c_void, (n, handle), file)?;
        }
        Ok(memory.content())
    }

    fn read(
        self: Arc<Self>,
        convert: Convert,
        buffer: c::Target,
        n: u64,
        (handle, ty): (h::Datatype, &Datatype),
    ) -> Result<Target> {
        let in_file = self.in_file(ty)?;
        let bytes = room(in_file.bytes(n)?)?;
        let (one, size, held) = (in_file.size(), ty.size(), datatype::hold(handle));
        let act = move |data: &[u8]| {
            // Only whole elements can be converted.
            let whole = (data.len() as u64).checked_div(one).unwrap_or(0).min(n);
            if whole > 0 {
                let memory = OwnMemory::with(data);
                let file = memory.memory().address() as *mut c_void;
                self.convert(convert, buffer.address() as *mut c_void, (whole, held.handle()), file)?;
            }
            Ok(whole * size)
        };
        Ok(Target::Converted(bytes, Box::new(act)))
    }
}

fn register(
    name: Text,
    read: Option<Convert>,
    write: Option<Convert>,
    extent: Option<ExtentFunction>,
    extra: Extra,
) -> Result<()> {
    process::running()?;
    let name = name.get("datarep", abi::MPI_ERR_ARG)?.into_owned();
    let length = words::length(&name);
    let most = abi::MPI_MAX_DATAREP_STRING as usize - 1;
    if !(1..=most).contains(&length) {
        fail!(
            abi::MPI_ERR_ARG,
            argument("datarep"),
            "is a name of {length} bytes, allowed are 1 to {most}"
        );
    }
    let Some(extent) = extent else {
        fail!(abi::MPI_ERR_ARG, argument("dtype_file_extent_fn"), "is a null pointer")
    };
    let mut all = locked(&REGISTERED);
    if [NATIVE, INTERNAL, EXTERNAL].contains(&&*name) || all.iter().any(|registered| registered.name == name) {
        fail!(
            abi::MPI_ERR_DUP_DATAREP,
            argument("datarep"),
            "is {name:?}, which is known already"
        );
    }
    all.push(Arc::new(Registered {
        name,
        read,
        write,
        extent,
        extra,
    }));
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Register_datarep(
    name: Text,
    read: Option<Conversion>,
    write: Option<Conversion>,
    extent: Option<ExtentFunction>,
    extra: Extra,
) -> c_int {
    call_on("MPI_Register_datarep", h::MPI_FILE_NULL, || {
        register(name, read.map(Convert::Small), write.map(Convert::Small), extent, extra)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Register_datarep_c(
    name: Text,
    read: Option<LargeConversion>,
    write: Option<LargeConversion>,
    extent: Option<ExtentFunction>,
    extra: Extra,
) -> c_int {
    call_on("MPI_Register_datarep_c", h::MPI_FILE_NULL, || {
        register(name, read.map(Convert::Large), write.map(Convert::Large), extent, extra)
    })
}
