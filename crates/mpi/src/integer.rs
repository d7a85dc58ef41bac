// SPDX-License-Identifier: Apache-2.0
//! Handles as integers and back (MPI 5.0 section 20.4): a handle's value always fits a C int, so the conversion is the
//! identity, and works before MPI_Init.

use std::ffi::c_int;

use isthmus_abi::handles as h;

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_toint(handle: h::Comm) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_fromint(number: c_int) -> h::Comm {
    h::Comm(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_toint(handle: h::Datatype) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_fromint(number: c_int) -> h::Datatype {
    h::Datatype(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Errhandler_toint(handle: h::Errhandler) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Errhandler_fromint(number: c_int) -> h::Errhandler {
    h::Errhandler(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_toint(handle: h::File) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_fromint(number: c_int) -> h::File {
    h::File(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_toint(handle: h::Group) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_fromint(number: c_int) -> h::Group {
    h::Group(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_toint(handle: h::Info) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Info_fromint(number: c_int) -> h::Info {
    h::Info(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Message_toint(handle: h::Message) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Message_fromint(number: c_int) -> h::Message {
    h::Message(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Op_toint(handle: h::Op) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Op_fromint(number: c_int) -> h::Op {
    h::Op(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_toint(handle: h::Request) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_fromint(number: c_int) -> h::Request {
    h::Request(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_toint(handle: h::Session) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_fromint(number: c_int) -> h::Session {
    h::Session(number as usize)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_toint(handle: h::Win) -> c_int {
    handle.0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_fromint(number: c_int) -> h::Win {
    h::Win(number as usize)
}
