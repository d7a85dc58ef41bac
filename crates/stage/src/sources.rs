// SPDX-License-Identifier: Apache-2.0
//! Sources that are taken for programs.

use std::io::Read;
use std::path::{Path, PathBuf};

/// Compilers by the endings of the sources that they take. `C` and `F` differ from `c` and `f`.
const COMPILERS: [(&str, &[&str]); 3] = [
    ("mpicc", &["c"]),
    ("mpicxx", &["cpp", "cc", "cxx", "c++", "C"]),
    (
        "mpifort",
        &[
            "f", "for", "ftn", "f77", "f90", "f95", "f03", "f08", "F", "F77", "F90", "F95", "F03", "F08",
        ],
    ),
];
/// Interpreters by the endings of the scripts that they run.
const INTERPRETERS: [(&str, &[&str]); 4] = [
    ("python3", &["py"]),
    ("Rscript", &["R", "r"]),
    ("julia", &["jl"]),
    ("perl", &["pl"]),
];

/// What to do about a file that is not executable.
pub fn instead(file: &Path) -> String {
    compile(file)
        .or_else(|| interpret(file))
        .unwrap_or_else(|| format!("chmod +x {}", shown(file).display()))
}

/// How to compile a file whose name is that of a source, and which is none of a script or program.
pub fn compile(file: &Path) -> Option<String> {
    let compiler = among(&COMPILERS, file)?;
    let mut begin = [0; 4];
    let read = std::fs::File::open(file)
        .and_then(|mut f| f.read(&mut begin))
        .unwrap_or(0);
    if begin[..read].starts_with(b"#!") || begin[..read].starts_with(b"\x7fELF") {
        return None;
    }
    let (source, program) = (shown(file), shown(file).with_extension(""));
    Some(format!(
        "it is a source: compile it, {compiler} {} -o {}, and run that",
        source.display(),
        program.display()
    ))
}

/// How to run a script that no system runs by itself.
fn interpret(file: &Path) -> Option<String> {
    let interpreter = among(&INTERPRETERS, file)?;
    Some(format!(
        "give it to its interpreter: {interpreter} {}",
        shown(file).display()
    ))
}

/// As one would type it here.
fn shown(file: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let below = file.strip_prefix(here).ok().filter(|name| !name.as_os_str().is_empty());
    below.unwrap_or(file).to_owned()
}

fn among(all: &[(&'static str, &[&str])], file: &Path) -> Option<&'static str> {
    let ending = file.extension()?.to_str()?;
    all.iter()
        .find(|(_, endings)| endings.contains(&ending))
        .map(|(what, _)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_compiled_and_scripts_interpreted() {
        let hint = |name: &str| instead(Path::new(name));
        for (name, wanted) in [
            ("ring.c", "mpicc ring.c -o ring"),
            ("a/ring.F90", "mpifort a/ring.F90 -o a/ring"),
            ("ring.f", "mpifort ring.f -o ring"),
            ("ring.cpp", "mpicxx ring.cpp -o ring"),
            ("ring.C", "mpicxx ring.C -o ring"),
            ("ring.v2.c", "mpicc ring.v2.c -o ring.v2"),
            ("ring.py", "python3 ring.py"),
            ("run.sh", "chmod +x run.sh"),
            ("ring", "chmod +x ring"),
        ] {
            assert!(hint(name).contains(wanted), "{name}: {}", hint(name));
        }
    }
}
