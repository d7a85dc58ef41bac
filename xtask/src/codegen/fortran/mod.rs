// SPDX-License-Identifier: Apache-2.0
//! `bindings/fortran/generated`: the Fortran interfaces and the C functions behind them.
//!
//! | file | what |
//! | --- | --- |
//! | `entry.c` | one C function per Fortran procedure that only converts its arguments |
//! | `constants.c` | the handles of mpi_f08 under the names that compilers give to constants of modules |
//! | `mpif.h` | constants for programs in fixed and free form |
//! | `mpi.F90`, `mpi_f08.F90` | the modules: constants and interfaces, no code |

mod constants;
mod entry;
mod module;
mod sizeof;

use std::collections::HashMap;

use crate::interfaces::{self, Parameter, Procedure};
use crate::spec::{Function, Spec};
use crate::tree::Result;

/// All generated files.
pub(crate) fn generate(spec: &Spec) -> Result<Vec<(&'static str, String)>> {
    let bindings = bindings(spec)?;
    Ok(vec![
        ("bindings/fortran/generated/entry.c", entry::generate(&bindings)),
        ("bindings/fortran/generated/mpif.h", constants::mpif(spec)),
        ("bindings/fortran/generated/mpi.F90", module::mpi(spec, &bindings)),
        (
            "bindings/fortran/generated/mpi_f08.F90",
            module::mpi_f08(spec, &bindings),
        ),
        ("bindings/fortran/generated/constants.c", constants::symbols(spec)),
        ("include/mpi_f2c.h", constants::converters(spec)),
    ])
}

/// A Fortran procedure with the C function that it calls.
pub(crate) struct Binding<'a> {
    procedure: Procedure,
    /// With int counts, and with large ones.
    function: Option<&'a Function>,
    large: Option<&'a Function>,
}

impl Binding<'_> {
    /// The name without `MPI_`.
    fn name(&self) -> &str {
        self.procedure.name.strip_prefix("MPI_").unwrap_or(&self.procedure.name)
    }
}

/// How a manual page shows a procedure in Fortran: with `mpi_f08`, then with `mpi` and `mpif.h`; nothing where the
/// interface lacks it.
pub(super) fn shown(spec: &Spec) -> Result<HashMap<String, [Vec<String>; 2]>> {
    let of = |binding: &Binding<'_>, language| match binding.procedure.is_in(language) {
        true => module::shown(binding, language == "f90"),
        false => Vec::new(),
    };
    let all = bindings(spec)?.into_iter();
    Ok(all
        .map(|b| (b.procedure.name.clone(), [of(&b, "f08"), of(&b, "f90")]))
        .collect())
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

fn bindings(spec: &Spec) -> Result<Vec<Binding<'_>>> {
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
const OBJECTS: [(&str, &str, &str); 11] = [
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
pub(crate) enum Role {
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

pub(crate) fn role(parameter: &Parameter, c_type: &str) -> Role {
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
pub(crate) fn arguments<'a>(binding: &'a Binding<'_>, language: &'a str, large: bool) -> Vec<(&'a Parameter, String)> {
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
