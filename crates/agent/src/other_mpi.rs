// SPDX-License-Identifier: Apache-2.0
//! Programs that are linked with another MPI: each of their processes would be a world of one, without a word.
//!
//! The program itself is looked at before the start. What it runs in turn (a shell's command, a script's, Python's
//! mpi4py) is looked at when all processes have ended and not all of what they ran can have called us.

mod inside;

use crate::program::Refusal;
use isthmus_stage::elf;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes of a script that are looked at, most words of all scripts, and most files that they name.
const MAX_SCRIPT: u64 = 64 << 10;
const MAX_WORDS: usize = 4096;
const MAX_FILES: usize = 64;
/// Scripts that scripts name are looked into as well, so many deep.
const MAX_DEPTH: usize = 3;

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
        ("libmpi", ".20" | ".40" | ".80") | ("libmpi_mpifh" | "libmpi_usempif08" | "libmpi_cxx", _) => "Open MPI",
        ("libmpi", _) => "another MPI",
        _ => return None,
    })
}

/// The other MPI that an ELF file is linked with, itself or through its libraries, as `Open MPI (libmpi.so.40)`. One
/// that is inside of the file is found where it calls ours nowhere.
pub(crate) fn linked(file: &Path) -> Option<String> {
    // What cannot be read says nothing about itself.
    let libraries = elf::closure(file, &[]).ok()?;
    let ours = libraries.iter().any(|(name, _)| name.starts_with("libmpi_abi.so"));
    libraries
        .iter()
        .find_map(|(name, _)| owner(name).map(|mpi| format!("{mpi} ({name})")))
        .or_else(|| match ours {
            true => None,
            false => inside::contained(file).map(|mpi| format!("{mpi} (statically)")),
        })
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

/// What was started, and has ended.
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

    /// What to tell when none of so many processes has called us, if what they ran is linked with another MPI.
    pub(crate) fn none_called(&self, processes: u32) -> Option<String> {
        let culprit = self.mpi4py_of_python().or_else(|| self.named())?;
        // One process at a site may be one of several of the job.
        Some(match processes {
            1 => format!("the process did not call MPI_Init of Isthmus, it ran alone: {culprit}"),
            _ => format!("none of the {processes} processes called MPI_Init of Isthmus, each ran alone: {culprit}"),
        })
    }

    /// What to tell when they have called us: they may have run a program of another MPI as well.
    pub(crate) fn called(&self) -> Option<String> {
        let culprit = self.named()?;
        Some(format!(
            "the processes called MPI_Init of Isthmus, but {culprit}: where they ran it, each ran it alone"
        ))
    }

    fn mpi4py_of_python(&self) -> Option<String> {
        let script = script(&self.program).unwrap_or_default();
        let interpreter = words(&script).take(4).map(PathBuf::from);
        let arguments = self.arguments.iter().map(PathBuf::from);
        std::iter::once(self.program.clone())
            .chain(interpreter)
            .chain(arguments)
            .find(|p| is_python(p))
            .and_then(|python| self.mpi4py(&python))
    }

    /// The first program that arguments and scripts name and that is linked with another MPI, in words.
    fn named(&self) -> Option<String> {
        let mut search = Search {
            path: std::env::split_paths(&self.variable("PATH").unwrap_or_default()).collect(),
            words: MAX_WORDS,
            seen: Vec::new(),
        };
        let arguments = self.arguments.join("\n");
        search.text(&arguments, &self.directory, 0).or_else(|| {
            // What was run and is no program is a script, whatever it begins with.
            let text = script(&self.program).or_else(|| plain(&self.program))?;
            search.text(&text, &self.directory, 1)
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
        let (place, python) = (package.display(), python.display());
        Some(format!(
            "mpi4py in {place} is linked with {mpi}\n  hint: {}",
            rebuilt(&python)
        ))
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

/// The line that builds an mpi4py that calls us. Its wheels are linked with other MPIs.
fn rebuilt(python: &impl std::fmt::Display) -> String {
    format!(
        "with Isthmus's bin first in PATH: \
         MPICC=mpicc {python} -m pip install --force-reinstall --no-cache-dir --no-binary=mpi4py mpi4py"
    )
}

/// `python`, `python3`, `python3.11`.
fn is_python(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().as_bytes();
    let version = name.strip_prefix(b"python");
    version.is_some_and(|v| v.iter().all(|c| c.is_ascii_digit() || *c == b'.'))
}

/// Looks through the words of commands for programs.
struct Search {
    /// Where the shell looks for commands.
    path: Vec<PathBuf>,
    /// How many words may still be looked at.
    words: usize,
    seen: Vec<PathBuf>,
}

impl Search {
    /// The first program that this text names and that is linked with another MPI. `directory`: where it runs.
    fn text(&mut self, text: &str, directory: &Path, depth: usize) -> Option<String> {
        let mut directory = directory.to_owned();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let mut words = lines.flat_map(words);
        while let Some(word) = words.next() {
            self.words = self.words.checked_sub(1)?;
            if word == "cd" {
                let to = words.next().map(|to| directory.join(to)).filter(|to| to.is_dir());
                directory = to.unwrap_or(directory);
                continue;
            }
            let Some(file) = self.file(word, &directory) else {
                continue;
            };
            let found = match script(&file).or_else(|| listed(&file)) {
                Some(text) if depth < MAX_DEPTH => self.text(&text, &directory, depth + 1),
                _ => linked(&file).map(|mpi| format!("'{word}' is linked with {mpi}")),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The file that this word names, if it has not been looked at yet.
    fn file(&mut self, word: &str, directory: &Path) -> Option<PathBuf> {
        let here = Some(directory.join(word)).filter(|f| f.is_file());
        let file = here.or_else(|| {
            let is_command = !word.contains('/');
            let mut places = self.path.iter().filter(|_| is_command);
            places.find_map(|place| Some(place.join(word)).filter(|f| f.is_file()))
        })?;
        let is_new = self.seen.len() < MAX_FILES && !self.seen.contains(&file);
        is_new.then(|| {
            self.seen.push(file.clone());
            file
        })
    }
}

/// The text of a script that says what it is; `None`: it is something else.
fn script(program: &Path) -> Option<String> {
    let bytes = beginning(program)?;
    bytes
        .starts_with(b"#!")
        .then(|| String::from_utf8_lossy(&bytes[2..]).into_owned())
}

/// The text of a file that a shell or Python reads as a script though it does not begin like one.
fn listed(file: &Path) -> Option<String> {
    let is_script = file
        .extension()
        .is_none_or(|e| ["sh", "bash", "py"].iter().any(|known| e == *known));
    is_script.then(|| plain(file)).flatten()
}

/// The text of a file that has nothing but text.
fn plain(file: &Path) -> Option<String> {
    let bytes = beginning(file)?;
    (!bytes.contains(&0)).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn beginning(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(file)
        .ok()?
        .take(MAX_SCRIPT)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// Words that may be names of files.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"`;&|()<>=[]{},".contains(c))
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
        let found: Vec<&str> = words("run(['./a', x])").collect();
        assert_eq!(found, ["run", "./a", "x"]);
    }

    fn ended(program: &str, arguments: &[&str], directory: &Path) -> Ended {
        Ended {
            program: program.into(),
            arguments: arguments.iter().map(|&a| a.to_owned()).collect(),
            directory: directory.to_owned(),
            environment: vec![("PATH".to_owned(), directory.join("bin").into())],
        }
    }

    /// The smallest ELF file that `needs` reads is not small: a real program is made with the C compiler, against a
    /// library that has the name of another MPI's.
    fn program_of_mpich(directory: &Path) -> PathBuf {
        let make = |arguments: &[&str]| {
            let made = std::process::Command::new("cc")
                .args(arguments)
                .current_dir(directory)
                .status();
            assert!(made.unwrap().success());
        };
        fs::write(directory.join("mpi.c"), "int MPI_Init(void) { return 0; }").unwrap();
        fs::write(
            directory.join("main.c"),
            "int MPI_Init(void); int main(void) { return MPI_Init(); }",
        )
        .unwrap();
        make(&[
            "-shared",
            "-fPIC",
            "-Wl,-soname,libmpi.so.12",
            "mpi.c",
            "-o",
            "libmpi.so",
        ]);
        make(&["main.c", "-L.", "-lmpi", "-o", "ring"]);
        directory.join("ring")
    }

    #[test]
    fn programs_of_another_mpi_are_found_in_what_runs_them() {
        let place = std::env::temp_dir().join(format!("isthmus-other-mpi-{}", std::process::id()));
        fs::create_dir_all(place.join("bin")).unwrap();
        let ring = program_of_mpich(&place);
        fs::create_dir_all(place.join("sub")).unwrap();
        fs::copy(&ring, place.join("bin/other-ring")).unwrap();
        fs::copy(&ring, place.join("sub/inside")).unwrap();
        let text = |name: &str, text: &str| fs::write(place.join(name), text).unwrap();
        text("run", "#!/bin/sh\nexec ./ring\n");
        text("run.sh", "exec ./ring\n");
        text("run.py", "import subprocess\nsubprocess.run(['./ring'])\n");
        text("itself", "#!/bin/sh\n# not ./ring\n./itself\n");
        text("data.txt", "./ring\n");
        let found = |program: &str, arguments: &[&str]| ended(program, arguments, &place).none_called(2);
        for (program, arguments) in [
            ("/bin/bash", &["-c", "./ours && ./ring"][..]),
            ("/usr/bin/env", &["A=1", "./ring"]),
            ("/usr/bin/nice", &["-n", "5", "./ring"]),
            ("/usr/bin/time", &["-v", "./ring"]),
            ("/usr/bin/numactl", &["--membind=0", "./ring"]),
            ("/bin/sh", &["-c", "cd sub && ./inside"]),
            ("/bin/sh", &["-c", "other-ring"]),
            ("/bin/sh", &["run.sh"]),
            ("/bin/sh", &["-c", "./run"]),
            ("/usr/bin/python3", &["run.py"]),
        ] {
            let told = found(program, arguments).unwrap_or_default();
            assert!(
                told.contains("is linked with MPICH (libmpi.so.12)"),
                "{program} {arguments:?}: {told}"
            );
        }
        text("job.txt", "exec ./ring\n");
        let script = place.join("job.txt");
        let told = found(&script.to_string_lossy(), &[]).unwrap_or_default();
        assert!(told.contains("'./ring' is linked with MPICH"), "{told}");
        assert_eq!(found("/bin/sh", &["-c", "./itself; cat data.txt"]), None);
        let both = ended("/bin/bash", &["-c", "./ours && ./ring"], &place)
            .called()
            .unwrap();
        assert!(both.contains("'./ring' is linked with MPICH"), "{both}");
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_wheel_of_mpi4py_comes_with_the_line_that_replaces_it() {
        let place = std::env::temp_dir().join(format!("isthmus-mpi4py-{}", std::process::id()));
        let package = place.join("env/lib/python3.11/site-packages/mpi4py");
        fs::create_dir_all(&package).unwrap();
        let ring = program_of_mpich(&place);
        for variant in ["mpich", "openmpi"] {
            fs::copy(
                &ring,
                package.join(format!("MPI.{variant}.cpython-311-x86_64-linux-gnu.so")),
            )
            .unwrap();
        }
        let python = place.join("env/bin/python3").display().to_string();
        let told = |processes| {
            ended(&python, &["-m", "mpi4py.bench"], &place)
                .none_called(processes)
                .unwrap()
        };
        assert!(told(1).starts_with("the process did not call MPI_Init of Isthmus, it ran alone: mpi4py in "));
        assert!(told(4).starts_with("none of the 4 processes called MPI_Init"));
        let line =
            format!("MPICC=mpicc {python} -m pip install --force-reinstall --no-cache-dir --no-binary=mpi4py mpi4py");
        assert!(told(1).ends_with(&line), "{}", told(1));
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_program_without_mpi_is_fine() {
        assert!(check(&std::env::current_exe().unwrap()).is_ok());
        assert!(check(Path::new("/etc/passwd")).is_ok());
    }
}
