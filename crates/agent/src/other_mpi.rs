// SPDX-License-Identifier: Apache-2.0
//! Programs that are linked with another MPI: each of their processes would be a world of one, without a word.
//!
//! The program itself is looked at before the start. What it runs in turn (a shell's command, a script's, Python's
//! mpi4py) is looked at when all processes have ended well and none has called us.

use crate::program::Refusal;
use isthmus_stage::elf;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes of a script, and most words of it, that are looked at.
const MAX_SCRIPT: u64 = 64 << 10;
const MAX_WORDS: usize = 4096;

/// What to do about it.
const HINT: &str = "compile it with Isthmus's mpicc, or start it with the other MPI's own mpiexec; \
    with -x ISTHMUS_ALONE=1 each process runs alone";

/// The MPI whose library has this name, unless it is ours or none.
fn owner(library: &str) -> Option<&'static str> {
    let (name, version) = library.split_once(".so").unwrap_or((library, ""));
    Some(match (name, version) {
        // MPICH, Intel MPI, MVAPICH and Cray MPICH agreed on this number.
        ("libmpi" | "libmpifort" | "libmpicxx", ".12") | ("libmpich" | "libmpichfort" | "libmpichcxx", _) => "MPICH",
        ("libmpi_cray" | "libmpi_gnu" | "libmpifort_cray" | "libmpifort_gnu", _) => "Cray MPICH",
        ("libmpi_ibm", _) => "Spectrum MPI",
        ("libmpi", ".20" | ".40" | ".80") | ("libmpi_mpifh" | "libmpi_usempif08" | "libmpi_cxx" | "libopen-pal", _) => {
            "Open MPI"
        }
        ("libmpi", _) => "another MPI",
        _ => return None,
    })
}

/// The other MPI that an ELF file is linked with, itself or through its libraries, as `Open MPI (libmpi.so.40)`.
pub(crate) fn linked(file: &Path) -> Option<String> {
    // What cannot be read says nothing about itself.
    let libraries = elf::closure(file).ok()?;
    libraries
        .iter()
        .find_map(|(name, _)| owner(name).map(|mpi| format!("{mpi} ({name})")))
}

/// Refuses a program that is linked with another MPI.
pub(crate) fn check(program: &Path) -> Result<(), Refusal> {
    match linked(program) {
        None => Ok(()),
        Some(mpi) => {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            let reason =
                format!("program '{name}' is linked with {mpi}, not with Isthmus: each process would run alone");
            Err(Refusal::new(reason, HINT))
        }
    }
}

/// A program that has ended without calling us.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) directory: PathBuf,
    /// Variables that were set for it.
    pub(crate) environment: Vec<(String, OsString)>,
}

impl Ended {
    /// A variable as the processes saw it.
    fn variable(&self, name: &str) -> Option<OsString> {
        let given = self.environment.iter().rev().find(|(n, _)| n == name);
        given.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    }

    /// What of all that it may have run is linked with another MPI, in words.
    pub(crate) fn culprit(&self) -> Option<String> {
        let script = script(&self.program).unwrap_or_default();
        let interpreter = words(&script).take(4).map(PathBuf::from);
        let python = std::iter::once(self.program.clone())
            .chain(interpreter)
            .find(|p| p.file_name().is_some_and(|n| n.as_bytes().starts_with(b"python")));
        if let Some(found) = python.and_then(|python| self.mpi4py(&python)) {
            return Some(found);
        }
        let all = self.arguments.iter().flat_map(|a| words(a)).chain(words(&script));
        all.take(MAX_WORDS).find_map(|word| {
            let file = self.directory.join(word);
            let mpi = file.is_file().then(|| linked(&file)).flatten()?;
            Some(format!("'{word}' is linked with {mpi}"))
        })
    }

    /// What the mpi4py that this Python imports is linked with, if all its variants are linked with other MPIs.
    fn mpi4py(&self, python: &Path) -> Option<String> {
        let package = self
            .packages(python)
            .into_iter()
            .map(|d| d.join("mpi4py"))
            .find(|d| d.is_dir())?;
        let modules = fs::read_dir(&package).ok()?.flatten().map(|e| e.path());
        let is_module = |p: &PathBuf| {
            let name = p.file_name().unwrap_or_default().as_bytes();
            name.starts_with(b"MPI.") && name.ends_with(b".so")
        };
        let linked: Vec<Option<String>> = modules.filter(is_module).map(|m| linked(&m)).collect();
        let mpi = linked.into_iter().collect::<Option<Vec<_>>>()?.into_iter().next()?;
        Some(format!("mpi4py in {} is linked with {mpi}", package.display()))
    }

    /// Where Python looks for packages, in its order: PYTHONPATH, a virtual environment or its own prefix, the user's,
    /// the system's.
    fn packages(&self, python: &Path) -> Vec<PathBuf> {
        let given = self.variable("PYTHONPATH").unwrap_or_default();
        let mut all: Vec<PathBuf> = std::env::split_paths(&given)
            .filter(|p| !p.as_os_str().is_empty())
            .collect();
        let prefixes = python.parent().and_then(Path::parent).map(Path::to_owned);
        let user = self.variable("HOME").map(|home| Path::new(&home).join(".local"));
        let system = ["/usr/local", "/usr"].map(PathBuf::from);
        for prefix in prefixes.into_iter().chain(user).chain(system) {
            let library = prefix.join("lib");
            let versions = fs::read_dir(&library).into_iter().flatten().flatten().map(|e| e.path());
            let is_python = |p: &PathBuf| p.file_name().is_some_and(|n| n.as_bytes().starts_with(b"python3"));
            for version in versions.filter(is_python) {
                all.extend(["site-packages", "dist-packages"].map(|name| version.join(name)));
            }
        }
        all
    }
}

/// The text of a script; `None`: it is something else.
fn script(program: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(program)
        .ok()?
        .take(MAX_SCRIPT)
        .read_to_end(&mut bytes)
        .ok()?;
    bytes
        .starts_with(b"#!")
        .then(|| String::from_utf8_lossy(&bytes[2..]).into_owned())
}

/// Words that may be names of files.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"`;&|()<>=".contains(c))
        .filter(|word| {
            !word.is_empty() && !word.starts_with('-') && Path::new(word).file_name() != Some(OsStr::new(""))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_have_owners() {
        for (library, mpi) in [
            ("libmpi.so.40", Some("Open MPI")),
            ("libmpi_mpifh.so.40", Some("Open MPI")),
            ("libmpi.so.12", Some("MPICH")),
            ("libmpich.so.12", Some("MPICH")),
            ("libmpi.so.0", Some("another MPI")),
            ("libmpi_abi.so.1", None),
            ("libmpifort_abi.so.1", None),
            ("libmpiP.so", None),
            ("libc.so.6", None),
        ] {
            assert_eq!(owner(library), mpi, "{library}");
        }
    }

    #[test]
    fn words_of_commands_are_taken_apart() {
        let found: Vec<&str> = words("cd /tmp && ./a -n 4; X=1 '/opt/b c'").collect();
        assert_eq!(found, ["cd", "/tmp", "./a", "4", "X", "1", "/opt/b", "c"]);
    }

    #[test]
    fn a_program_without_mpi_is_fine() {
        assert!(check(&std::env::current_exe().unwrap()).is_ok());
        assert!(check(Path::new("/etc/passwd")).is_ok());
    }
}
