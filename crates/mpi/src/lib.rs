// SPDX-License-Identifier: Apache-2.0
//! The C entry points of MPI.
//!
//! The generated shells (`generated/entry.c`) export every function of MPI 5.0 under its two names and jump to a body
//! here, `isthmus_MPI_X`, if there is one. A body checks, converts once, calls the rooms below, and reports: no policy.
//!
//! * [`c`]: arguments as C passes them, the only file that turns pointers into values;
//! * [`check`]: checks that can be switched off;
//! * [`settings`]: what the environment and tools may change;
//! * [`handle`]: handles of objects made at run time; [`call`]: what surrounds every body;
//! * one file per chapter's noun for the rest.

mod abi;
mod apart;
mod attached;
mod attribute;
mod buffer;
mod c;
mod call;
mod called;
mod check;
mod collective;
mod comm;
mod comm_later;
mod datatype;
mod dynamic;
mod entry;
mod environment;
mod errhandler;
mod error;
mod error_classes;
mod faults;
mod file;
mod fortran;
mod group;
mod handle;
mod info;
mod integer;
mod life;
mod memory;
mod names;
mod op;
mod p2p;
mod pack;
mod probe;
mod process;
mod request;
mod requests;
mod session;
mod settings;
mod spawn;
mod status;
mod tool;
mod topology;
mod turns;
mod win;
