// SPDX-License-Identifier: Apache-2.0
//! `bindings/fortran/generated`: the Fortran interfaces and the C functions behind them.
//!
//! | file | what |
//! | --- | --- |
//! | `entry.c` | one C function per Fortran procedure that only converts its arguments |
//! | `constants.c` | the handles of mpi_f08 under the names that compilers give to constants of modules |
//! | `mpif.h` | constants for programs in fixed and free form |
//! | `mpi.F90`, `mpi_f08.F90` | the modules: constants and interfaces, no code |

mod binding;
mod constants;
mod entry;
mod module;
mod sizeof;

use std::collections::HashMap;

use self::binding::{Binding, bindings};
use crate::spec::Spec;
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
