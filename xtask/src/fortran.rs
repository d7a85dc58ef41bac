// SPDX-License-Identifier: Apache-2.0
//! The Fortran part of the distribution: `libmpifort_abi`, made with the C compiler alone, `mpif.h`, and the sources of
//! the modules, which the wrappers compile for each Fortran compiler.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::interfaces;
use crate::tools::{c_compiler, check_defined, copy, directory_option, execute, point, replace};
use crate::tree::{self, Result};

const SONAME: &str = "libmpifort_abi.so.1";
const LIBRARY: &str = "libmpifort_abi.so.1.0.0";
/// What a Fortran program, or a C program with `mpi_f2c.h`, may refer to.
const VERSION_SCRIPT: &str = "\
{ global: MPI_*; PMPI_*; mpi_*; pmpi_*; MPIX_*; PMPIX_*; mpix_*; pmpix_*; isthmus_mpi_*; isthmus_equal_*; isthmus_differ_*; ISTHMUS_EQUAL_*; ISTHMUS_DIFFER_*;
  __mpi_f08_MOD_*; _QMmpi_f08EC*; local: *; };
";
/// Compiled once as MPI_X and once as PMPI_X.
const TWICE: [&str; 4] = [
    "generated/entry.c",
    "src/by_hand.c",
    "src/extensions.c",
    "src/objects.c",
];
const ONCE: [&str; 5] = [
    "generated/constants.c",
    "src/callbacks.c",
    "src/common.c",
    "src/converters.c",
    "src/section.c",
];

/// What the Fortran libraries of MPICH, of Debian's MPICH and of Open MPI are or were called: `-lmpifort` and the like
/// link ours.
const LIBRARY_NAMES: [&str; 10] = [
    "mpifort",
    "mpichfort",
    "mpichf90",
    "fmpich",
    "mpi_usempif08",
    "mpi_usempi_ignore_tkr",
    "mpi_usempi",
    "mpi_mpifh",
    "mpi_f90",
    "mpi_f77",
];

/// Compiles and links the library into `out/lib`, against the libraries in `old`; objects go into `objects`. Returns
/// its file.
pub(crate) fn library(out: &Path, objects: &Path, strip: bool, old: Option<&Path>) -> Result<PathBuf> {
    let mut made = Vec::new();
    let twice = TWICE.iter().flat_map(|source| [(*source, false), (*source, true)]);
    for (source, profiled) in twice.chain(ONCE.iter().map(|source| (*source, false))) {
        let name = source.replace(['/', '.'], "-") + if profiled { "-p.o" } else { ".o" };
        let object = objects.join(format!("fortran-{name}"));
        compile(source, profiled, &object)?;
        made.push(object);
    }
    let script = objects.join("fortran.map");
    fs::write(&script, VERSION_SCRIPT).map_err(|e| format!("{}: cannot write: {e}", script.display()))?;
    let library = out.join("lib").join(LIBRARY);
    let mut link = c_compiler();
    // No -z now: of some thousand names a program uses a few.
    link.args([
        "-shared",
        "-Wl,-z,defs",
        "-Wl,-z,relro",
        "-Wl,--build-id",
        "-Wl,-rpath,$ORIGIN",
        "-Wl,--enable-new-dtags",
    ]);
    link.arg(format!("-Wl,-soname,{SONAME}"))
        .arg(format!("-Wl,--version-script,{}", script.display()));
    if strip {
        link.arg("-Wl,--strip-debug");
    }
    link.args(old.map(directory_option));
    replace(&library, |beside| {
        link.arg("-o")
            .arg(beside)
            .args(&made)
            .arg("-L")
            .arg(out.join("lib"))
            .arg("-lmpi_abi");
        execute(&mut link, "linking the Fortran library")?;
        check_defined(beside, &names()?)
    })?;
    point(&out.join("lib").join(SONAME), LIBRARY)?;
    point(&out.join("lib/libmpifort_abi.so"), SONAME)?;
    for name in LIBRARY_NAMES {
        point(&out.join(format!("lib/lib{name}.so")), SONAME)?;
    }
    archive(out, objects)?;
    Ok(library)
}

fn compile(source: &str, profiled: bool, object: &Path) -> Result<()> {
    let here = tree::root().join("bindings/fortran");
    let mut compile = c_compiler();
    compile.args([
        "-std=gnu11",
        "-O2",
        "-g1",
        "-fPIC",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        "-Wno-deprecated-declarations",
    ]);
    if profiled {
        compile.arg("-DISTHMUS_PROFILED");
    }
    compile
        .arg("-I")
        .arg(tree::root().join("include"))
        .arg("-I")
        .arg(here.join("src"));
    compile.arg("-c").arg(here.join(source)).arg("-o").arg(object);
    execute(&mut compile, "compiling the Fortran interface")
}

/// What mpifort links into programs and shared libraries themselves.
fn archive(out: &Path, objects: &Path) -> Result<()> {
    let object = objects.join("fortran-here.o");
    compile("src/here.c", false, &object)?;
    let archive = out.join("lib/libmpifort_here.a");
    let mut make = Command::new(std::env::var("AR").unwrap_or_else(|_| "ar".to_owned()));
    replace(&archive, |beside| {
        make.arg("rcsD").arg(beside).arg(object);
        execute(&mut make, "making the archive that mpifort links")
    })
}

/// Every procedure of mpif.h under its eight names.
fn names() -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for procedure in interfaces::load()?
        .iter()
        .filter(|p| p.is_in("f90") && p.name != "MPI_Sizeof")
    {
        for name in [procedure.name.clone(), format!("P{}", procedure.name)] {
            let lower = name.to_lowercase();
            all.extend([
                format!("T {lower}_"),
                format!("T {lower}__"),
                format!("T {}", name.to_uppercase()),
                format!("T {lower}"),
            ]);
        }
    }
    Ok(all)
}

/// Headers and module sources.
pub(crate) fn texts(out: &Path) -> Result<()> {
    let top = tree::root();
    let generated = top.join("bindings/fortran/generated");
    copy(&generated.join("mpif.h"), &out.join("include/mpif.h"))?;
    let source = top.join("bindings/fortran/src");
    copy(&source.join("mpif-ext.h"), &out.join("include/mpif-ext.h"))?;
    copy(&top.join("include/mpi_f2c.h"), &out.join("include/mpi_f2c.h"))?;
    let sources = out.join("share/isthmus/fortran");
    fs::create_dir_all(&sources).map_err(|e| format!("{}: cannot make it: {e}", sources.display()))?;
    for name in ["mpi.F90", "mpi_f08.F90"] {
        copy(&generated.join(name), &sources.join(name))?;
    }
    for name in ["mpi_ext.F90", "mpi_f08_ext.F90", "probe.f90", "probed.f90"] {
        copy(&source.join(name), &sources.join(name))?;
    }
    Ok(())
}
