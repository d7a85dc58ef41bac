// SPDX-License-Identifier: Apache-2.0
//! Views (MPI 5.0 section 14.3) and pointers (sections 14.4.3 and 14.4.4).

use std::ffi::{c_char, c_int};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count, Offset};
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_io::{View, Whence};

use super::representation::Form;
use super::{Object, Shown, find, locked};
use crate::c::{Out, Text};
use crate::call::call_on;
use crate::{datatype, info};

/// The view that these arguments make.
fn view(object: &Object, displacement: Offset, shown: &Shown) -> Result<View> {
    let file = &object.file;
    let displacement = match displacement {
        abi::MPI_DISPLACEMENT_CURRENT if file.here().mode().is_sequential() => file.shared_byte()?,
        abi::MPI_DISPLACEMENT_CURRENT => fail!(
            abi::MPI_ERR_DISP,
            argument("disp"),
            "is MPI_DISPLACEMENT_CURRENT, which needs MPI_MODE_SEQUENTIAL"
        ),
        _ if file.here().mode().is_sequential() => fail!(
            abi::MPI_ERR_DISP,
            argument("disp"),
            "is {displacement}; with MPI_MODE_SEQUENTIAL it must be MPI_DISPLACEMENT_CURRENT"
        ),
        _ => match u64::try_from(displacement) {
            Ok(displacement) => displacement,
            Err(_) => fail!(
                abi::MPI_ERR_DISP,
                argument("disp"),
                "is {displacement}, a displacement must not be negative"
            ),
        },
    };
    let (etype, filetype) = (
        shown.form.in_file(&shown.etype.1)?,
        shown.form.in_file(&shown.filetype.1)?,
    );
    View::new(displacement, etype, filetype, file.here().mode().writes())
}

fn set_view(
    object: &Object,
    displacement: Offset,
    (etype, filetype): (h::Datatype, h::Datatype),
    name: Text,
    hints: h::Info,
) -> Result<()> {
    // What is wrong here all others have to hear.
    let made = (|| {
        let form = Form::find(&name.get("datarep", abi::MPI_ERR_ARG)?, &object.file)?;
        let shown = Shown {
            etype: (etype, datatype::find(etype).about("etype")?.clone()),
            filetype: (filetype, datatype::find(filetype).about("filetype")?.clone()),
            form,
        };
        Ok((view(object, displacement, &shown)?, shown, info::find(hints)?))
    })();
    let (made, shown) = match made {
        Ok((view, shown, hints)) => (Ok((view, hints)), Some(shown)),
        Err(error) => (Err(error), None),
    };
    let name = shown.as_ref().map_or("", |shown| shown.form.name());
    object.file.set_view(made.map(|(view, hints)| (view, name, hints)))?;
    if let Some(shown) = shown {
        *locked(&object.shown) = shown;
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_set_view(
    file: h::File,
    displacement: Offset,
    etype: h::Datatype,
    filetype: h::Datatype,
    datarep: Text,
    info: h::Info,
) -> c_int {
    call_on("MPI_File_set_view", file, || {
        set_view(find(file)?, displacement, (etype, filetype), datarep, info)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_view(
    file: h::File,
    displacement: Out<Offset>,
    etype: Out<h::Datatype>,
    filetype: Out<h::Datatype>,
    datarep: Out<c_char>,
) -> c_int {
    call_on("MPI_File_get_view", file, || {
        let object = find(file)?;
        let shown = locked(&object.shown).clone();
        displacement.set("disp", object.file.view().displacement() as Offset)?;
        etype.set("etype", datatype::hand_out(shown.etype.0, &shown.etype.1))?;
        filetype.set("filetype", datatype::hand_out(shown.filetype.0, &shown.filetype.1))?;
        let room = abi::MPI_MAX_DATAREP_STRING as usize;
        datarep.text("datarep", shown.form.name(), room).map(drop)
    })
}

/// Extent of a datatype in the file.
fn extent(file: h::File, ty: h::Datatype) -> Result<i64> {
    let object = find(file)?;
    let form = locked(&object.shown).form.clone();
    Ok(form.in_file(datatype::find_any(ty)?)?.extent())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_type_extent(file: h::File, ty: h::Datatype, out: Out<Aint>) -> c_int {
    call_on("MPI_File_get_type_extent", file, || {
        out.set("extent", extent(file, ty)? as Aint)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_type_extent_c(file: h::File, ty: h::Datatype, out: Out<Count>) -> c_int {
    call_on("MPI_File_get_type_extent_c", file, || {
        out.set("extent", extent(file, ty)?)
    })
}

fn whence(whence: c_int) -> Result<Whence> {
    Ok(match whence {
        abi::MPI_SEEK_SET => Whence::Start,
        abi::MPI_SEEK_CUR => Whence::Current,
        abi::MPI_SEEK_END => Whence::End,
        other => fail!(
            abi::MPI_ERR_ARG,
            argument("whence"),
            "is {other}, expected MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"
        ),
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_seek(file: h::File, offset: Offset, from: c_int) -> c_int {
    call_on("MPI_File_seek", file, || find(file)?.file.seek(offset, whence(from)?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_position(file: h::File, offset: Out<Offset>) -> c_int {
    call_on("MPI_File_get_position", file, || {
        offset.set("offset", find(file)?.file.position()? as Offset)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_byte_offset(file: h::File, offset: Offset, out: Out<Offset>) -> c_int {
    call_on("MPI_File_get_byte_offset", file, || {
        out.set("disp", find(file)?.file.byte_offset(offset)? as Offset)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_seek_shared(file: h::File, offset: Offset, from: c_int) -> c_int {
    call_on("MPI_File_seek_shared", file, || {
        find(file)?.file.seek_shared(offset, whence(from))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_position_shared(file: h::File, offset: Out<Offset>) -> c_int {
    call_on("MPI_File_get_position_shared", file, || {
        offset.set("offset", find(file)?.file.position_shared()? as Offset)
    })
}
