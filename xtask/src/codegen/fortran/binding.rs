// SPDX-License-Identifier: Apache-2.0
//! Fortran procedures and their arguments, whatever is generated of them.

use std::collections::HashMap;

use crate::interfaces::{self, Parameter, Procedure};
use crate::spec::{Function, Spec};
use crate::tree::Result;

/// A Fortran procedure with the C function that it calls.
pub(super) struct Binding<'a> {
    pub(super) procedure: Procedure,
    /// With int counts, and with large ones.
    pub(super) function: Option<&'a Function>,
    pub(super) large: Option<&'a Function>,
}

impl Binding<'_> {
    /// The name without `MPI_`.
    pub(super) fn name(&self) -> &str {
        self.procedure.name.strip_prefix("MPI_").unwrap_or(&self.procedure.name)
    }
}

/// What is a subroutine in no Fortran interface: handed over in other ways, or written by hand in the modules.
const BY_HAND: [&str; 7] = [
    "MPI_Sizeof",
    "MPI_Wtime",
    "MPI_Wtick",
    "MPI_Aint_add",
    "MPI_Aint_diff",
    "MPI_Status_f082f",
    "MPI_Status_f2f08",
];

/// All of them, in the order of the standard.
pub(super) fn bindings(spec: &Spec) -> Result<Vec<Binding<'_>>> {
    let find = |name: &str| spec.functions.iter().find(|f| f.name == name);
    let procedures = interfaces::load()?.into_iter();
    let fortran = procedures.filter(|p| (p.is_in("f90") || p.is_in("f08")) && !BY_HAND.contains(&p.name.as_str()));
    Ok(fortran
        .map(|procedure| Binding {
            function: find(&procedure.name),
            large: find(&format!("{}_c", procedure.name)).filter(|_| procedure.large),
            procedure,
        })
        .collect())
}

/// Objects of MPI: type in C, prefix of its integer conversions, null handle.
pub(super) const OBJECTS: [(&str, &str, &str); 11] = [
    ("MPI_Comm", "Comm", "MPI_COMM_NULL"),
    ("MPI_Datatype", "Type", "MPI_DATATYPE_NULL"),
    ("MPI_Errhandler", "Errhandler", "MPI_ERRHANDLER_NULL"),
    ("MPI_File", "File", "MPI_FILE_NULL"),
    ("MPI_Group", "Group", "MPI_GROUP_NULL"),
    ("MPI_Info", "Info", "MPI_INFO_NULL"),
    ("MPI_Message", "Message", "MPI_MESSAGE_NULL"),
    ("MPI_Op", "Op", "MPI_OP_NULL"),
    ("MPI_Request", "Request", "MPI_REQUEST_NULL"),
    ("MPI_Session", "Session", "MPI_SESSION_NULL"),
    ("MPI_Win", "Win", "MPI_WIN_NULL"),
];

/// What an argument is, whatever the language.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A buffer of any type.
    Choice,
    /// An address that is given to the program.
    Address,
    /// A handle: index into `OBJECTS`.
    Handle(usize),
    Logical,
    Text,
    Texts,
    Status,
    Weights,
    ErrorCodes,
    Function,
    Number,
}

pub(super) fn role(parameter: &Parameter, c_type: &str) -> Role {
    let base = c_type.trim_start_matches("const ").trim_end_matches(['*', ' ']);
    match parameter.kind.as_str() {
        "BUFFER" => Role::Choice,
        "C_BUFFER" | "C_BUFFER2" => Role::Address,
        "LOGICAL" | "LOGICAL_VOID" => Role::Logical,
        "STRING" => Role::Text,
        "STRING_ARRAY" | "STRING_2DARRAY" => Role::Texts,
        "STATUS" | "F08_STATUS" | "F90_STATUS" => Role::Status,
        "WEIGHT" => Role::Weights,
        "FUNCTION" | "POLYFUNCTION" => Role::Function,
        "ERROR_CODE" if parameter.length.is_some() => Role::ErrorCodes,
        _ => OBJECTS
            .iter()
            .position(|(name, _, _)| *name == base)
            .map_or(Role::Number, Role::Handle),
    }
}

/// The arguments of a Fortran procedure but `ierror`, each with its type in C.
pub(super) fn arguments<'a>(binding: &'a Binding<'_>, language: &'a str, large: bool) -> Vec<(&'a Parameter, String)> {
    let function = if large { binding.large } else { binding.function };
    let mut types = HashMap::new();
    if let Some(function) = function {
        for (in_c, row) in function
            .parameters
            .iter()
            .zip(binding.procedure.parameters_in("c", large))
        {
            types.insert(row.name.clone(), in_c.type_name.clone());
        }
    }
    let all = binding.procedure.parameters_in(language, large);
    all.filter(|p| !(p.kind == "ERROR_CODE" && p.name == "ierror") && p.kind != "VARARGS")
        .map(|p| (p, types.get(&p.name).cloned().unwrap_or_default()))
        .collect()
}
