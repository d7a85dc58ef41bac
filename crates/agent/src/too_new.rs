// SPDX-License-Identifier: Apache-2.0
//! Programs that are newer than the machine: the dynamic linker would end each process with several lines about one
//! thing.

use crate::program::Refusal;
use isthmus_stage::elf;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Refuses a program that needs a newer library than this machine has; so do the libraries that came with it.
/// `library_path`: LD_LIBRARY_PATH of the processes.
pub(crate) fn check(program: &Path, library_path: &OsStr) -> Result<(), Refusal> {
    let search: Vec<PathBuf> = std::env::split_paths(library_path)
        .filter(|p| p.is_absolute())
        .collect();
    let Ok(wants) = elf::needs(program) else {
        // What cannot be read says nothing about itself.
        return Ok(());
    };
    let brought = wants.into_iter().flat_map(|wants| wants.needed);
    let brought = brought.filter_map(|name| search.iter().map(|d| d.join(&name)).find(|file| file.is_file()));
    for file in std::iter::once(program.to_owned()).chain(brought) {
        if let Ok(Some(newer)) = elf::newer(&file, &search) {
            return Err(refusal(program, &file, &newer));
        }
    }
    Ok(())
}

fn refusal(program: &Path, file: &Path, newer: &elf::Newer) -> Refusal {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let whose = match file == program {
        true => format!("program '{}'", name(program)),
        false => format!("library '{}' of program '{}'", name(file), name(program)),
    };
    let elf::Newer {
        version,
        library,
        newest,
    } = newer;
    let has = match newest.as_str() {
        "" => "does not have that".to_owned(),
        newest => format!("goes up to {newest}"),
    };
    Refusal::new(
        format!("{whose} needs {version} of {library}, and this system's {library} {has}"),
        "build the program there, or on the oldest of the systems that it is for, or run it in a container there (--no-stage)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_and_the_cure_are_named() {
        let newer = elf::Newer {
            version: "GLIBC_2.34".to_owned(),
            library: "libc.so.6".to_owned(),
            newest: "GLIBC_2.31".to_owned(),
        };
        let program = Path::new("/home/u/solver");
        let refusal = refusal(program, program, &newer);
        assert_eq!(
            refusal.reason,
            "program 'solver' needs GLIBC_2.34 of libc.so.6, and this system's libc.so.6 goes up to GLIBC_2.31"
        );
        assert!(refusal.hint.contains("build the program there"));
    }

    #[test]
    fn what_was_built_here_runs_here() {
        assert_eq!(check(&std::env::current_exe().unwrap(), OsStr::new("")), Ok(()));
        assert_eq!(check(Path::new("/etc/passwd"), OsStr::new("")), Ok(()));
    }
}
