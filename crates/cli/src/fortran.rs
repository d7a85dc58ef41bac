// SPDX-License-Identifier: Apache-2.0
//! The Fortran modules of MPI for the compiler at hand: compiled from the shipped sources at first use, kept in the
//! user's cache.
//!
//! A compiler reads only `.mod` files of its own, so no MPI can ship them for all. Ours have no code, so compiling them
//! takes seconds and what is kept is two small files for each compiler, version and kind of code. An administrator
//! makes them for everybody with `isthmus fortran --compiler X` (into `PREFIX/share/isthmus/fortran`, or where `--to`
//! says).

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use isthmus_job::JobError;
use isthmus_stage::cache;

use crate::{diagnostic, print};

pub(crate) use refused::{refused, tell_traps};
pub(crate) use words::all as words;

mod refused;
mod words;

/// A family of compilers: how they are told from others, and what they are given.
struct Family {
    name: &'static str,
    /// What `--version` contains.
    known_by: &'static str,
    /// Options for compiling the modules.
    options: &'static [&'static str],
    /// From this version on, also these.
    newer: (u32, &'static [&'static str]),
    /// Before this version, also these.
    older: (u32, &'static [&'static str]),
}

/// gfortran and flang are tested; the options of the others are from their manuals, not verified.
const FAMILIES: [Family; 4] = [
    Family {
        name: "gfortran",
        known_by: "GNU Fortran",
        options: &["-cpp", "-w", "-ffree-line-length-none", "-c"],
        // It spoils arrays in calls with C descriptors. What it has instead is probed.
        newer: (0, &[]),
        older: (0, &[]),
    },
    Family {
        name: "flang",
        known_by: "flang",
        // Modules are all that is wanted; flang 16 fails in making an object of them.
        options: &["-cpp", "-fsyntax-only"],
        newer: (19, &["-DISTHMUS_DESCRIPTORS"]),
        older: (17, &["-DISTHMUS_NO_CHOICE"]),
    },
    Family {
        name: "ifx",
        known_by: "Intel",
        options: &["-fpp", "-warn", "none", "-c"],
        newer: (0, &[]),
        older: (0, &[]),
    },
    Family {
        name: "nvfortran",
        known_by: "nvfortran",
        options: &["-Mpreprocess", "-c"],
        newer: (0, &[]),
        older: (0, &[]),
    },
];

/// A compiler as it answers.
struct Compiler {
    words: Vec<String>,
    family: &'static Family,
    /// First line of what it says of its version, and the number in it.
    says: String,
    version: u32,
    /// Options of the program that its modules must have too.
    kind: Vec<String>,
    /// What it makes code for, if it says so.
    machine: String,
}

impl Compiler {
    /// `arguments`: all words that it will get.
    fn ask(command: &str, arguments: &[OsString]) -> Result<Self, String> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let words = refused::with_usual_kinds(&words);
        let (program, rest) = words.split_first().ok_or("no compiler is named")?;
        let answer = Command::new(program)
            .args(rest)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        let answer = answer.map_err(|e| format!("cannot run the compiler {program}: {e}"))?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let family = FAMILIES.iter().find(|f| text.contains(f.known_by));
        let family = family.ok_or_else(|| {
            format!("{program} is none of the Fortran compilers known here: gfortran, flang, ifx, nvfortran")
        })?;
        let says = text
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default()
            .to_owned();
        let version = version_in(&says);
        if family.name == "gfortran" && version < 8 {
            return Err(format!(
                "{program} is gfortran {version}; at least 8 is needed, because older ones pass lengths of texts differently"
            ));
        }
        let kind = kind_of_code(arguments);
        let machine = Command::new(program)
            .args(rest)
            .args(&kind)
            .arg("-dumpmachine")
            .stdin(Stdio::null())
            .output();
        let machine = machine.ok().filter(|answer| answer.status.success());
        Ok(Self {
            words,
            family,
            says,
            version,
            kind,
            machine: machine.map_or_else(String::new, |answer| {
                String::from_utf8_lossy(&answer.stdout).into_owned()
            }),
        })
    }

    /// The name of its modules' directory: what is known of it, and a hash of all that they depend on.
    fn directory_name(&self, sources: &Sources) -> String {
        let mut hash = Hash::new();
        for word in [&self.says, &self.machine].into_iter().chain(&self.kind) {
            hash.add(word.as_bytes());
        }
        self.options().iter().for_each(|option| hash.add(option.as_bytes()));
        let texts = sources.modules.iter().chain(&sources.probe);
        texts.for_each(|(_, text)| hash.add(text));
        format!("{}-{}-{}", self.family.name, self.version, hash.text())
    }

    fn options(&self) -> Vec<&'static str> {
        let mut options = self.family.options.to_vec();
        if self.version >= self.family.newer.0 {
            options.extend(self.family.newer.1);
        }
        if self.version < self.family.older.0 {
            options.extend(self.family.older.1);
        }
        options
    }

    /// Whether its own descriptors are as the library takes them and its copies can be told, by a program that tries
    /// it. Where it cannot be run, as that of a compiler for another machine, the answer is no.
    fn has_native_descriptors(&self, sources: &Sources, place: &Path) -> bool {
        let (Some((program, rest)), "gfortran") = (self.words.split_first(), self.family.name) else {
            return false;
        };
        let probe = place.join("probe");
        let mut compile = Command::new(program);
        compile.args(rest).args(&self.kind).arg("-w").arg("-o").arg(&probe);
        compile.args(sources.probe.iter().map(|(path, _)| path));
        let ended = |command: &mut Command| {
            let quiet = command.current_dir(place).stdin(Stdio::null());
            quiet.output().is_ok_and(|answer| answer.status.success())
        };
        let yes = ended(&mut compile) && ended(&mut Command::new(&probe));
        // No module, but no harm either if it stays.
        let _ = fs::remove_file(&probe);
        yes
    }

    /// Compiles one source in a directory, where the modules appear.
    fn compile(&self, source: &Path, native: bool, place: &Path) -> Result<(), String> {
        let Some((program, rest)) = self.words.split_first() else {
            return Err("no compiler is named".to_owned());
        };
        let mut command = Command::new(program);
        command.args(rest).args(&self.kind).args(self.options());
        command.args(native.then_some("-DISTHMUS_NATIVE")).arg(source);
        let made = command.current_dir(place).stdin(Stdio::null()).output();
        let made = made.map_err(|e| format!("cannot run {program}: {e}"))?;
        if made.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&made.stderr);
        let end: Vec<&str> = complaint.lines().rev().take(5).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        Err(format!(
            "{program} cannot compile {}: {}",
            source.display(),
            end.join(" / ")
        ))
    }
}

/// Options that say what code is made for, some with the next word.
fn kind_of_code(words: &[OsString]) -> Vec<String> {
    const WHOLE: [&str; 5] = ["-m32", "-m64", "-mabi=", "--target=", "-target="];
    let mut kind = Vec::new();
    let mut words = words.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if WHOLE.iter().any(|option| word.starts_with(option)) {
            kind.push(word.into_owned());
        } else if ["-target", "--target"].contains(&&*word) {
            kind.push(word.into_owned());
            kind.extend(words.next().map(|word| word.into_owned()));
        }
    }
    kind
}

/// The first number with a dot behind it: `GNU Fortran (Debian 12.2.0-14) 12.2.0`.
fn version_in(line: &str) -> u32 {
    let last = line
        .split_whitespace()
        .rev()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    let digits: String = last
        .unwrap_or_default()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or(0)
}

/// FNV-1a with 64 bits: names of directories, nothing that must resist anybody.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain([&0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// What a compiler needs of this room.
pub(crate) struct Modules {
    /// Where they are.
    pub(crate) directory: PathBuf,
    /// Options for compiling programs: one type of buffer after another in calls of mpif.h is no error.
    pub(crate) options: &'static [&'static str],
}

/// The modules for this compiler; makes them if they are not there.
///
/// # Errors
///
/// A sentence for people: the compiler is not known or fails, or there is no place for them.
pub(crate) fn modules(prefix: &Path, compiler: &str, arguments: &[OsString]) -> Result<Modules, String> {
    let shipped = shipped(prefix);
    let sources = read_sources(&shipped)?;
    let compiler = Compiler::ask(compiler, arguments)?;
    // gfortran 10 made them errors, and has an option that takes that back.
    let strict = compiler.family.name == "gfortran" && compiler.version >= 10;
    let options: &[&str] = if strict { &["-fallow-argument-mismatch"] } else { &[] };
    let name = compiler.directory_name(&sources);
    let common = shipped.join(&name);
    if common.is_dir() {
        return Ok(Modules {
            directory: common,
            options,
        });
    }
    let directory = make_somewhere(&compiler, &sources, &name)?;
    Ok(Modules { directory, options })
}

fn shipped(prefix: &Path) -> PathBuf {
    prefix.join("share/isthmus/fortran")
}

/// What is shipped, each with its text.
struct Sources {
    /// In the order in which they must be compiled.
    modules: Vec<(PathBuf, Vec<u8>)>,
    /// One program.
    probe: Vec<(PathBuf, Vec<u8>)>,
}

fn read_sources(shipped: &Path) -> Result<Sources, String> {
    let read = |name: &str| {
        let path = shipped.join(name);
        let text = fs::read(&path).map_err(|e| format!("{}: cannot read: {e}", path.display()))?;
        Ok((path, text))
    };
    let all = |names: &[&str]| names.iter().copied().map(read).collect::<Result<_, String>>();
    Ok(Sources {
        modules: all(&["mpi.F90", "mpi_f08.F90", "mpi_ext.F90", "mpi_f08_ext.F90"])?,
        probe: all(&["probe.f90", "probed.f90"])?,
    })
}

/// Makes the modules in the user's cache, or where temporary files are if there is no cache that can be written: builds
/// of packages have no home.
fn make_somewhere(compiler: &Compiler, sources: &Sources, name: &str) -> Result<PathBuf, String> {
    let none = |why| format!("{why}: there is no place for Fortran modules; set HOME or XDG_CACHE_HOME");
    let cache = cache::directory().map(|cache| cache.join("fortran")).map_err(none);
    let locked = match cache.and_then(|cache| ModuleDirectory::lock(cache.join(name))) {
        Ok(place) => place,
        Err(message) => {
            let place = own_temporary().and_then(|own| ModuleDirectory::lock(own.join("fortran").join(name)));
            place.map_err(|second| format!("{message}; {second}"))?
        }
    };
    locked.make(compiler, sources)
}

/// A directory among the temporary files that nobody else can write to.
fn own_temporary() -> Result<PathBuf, String> {
    let user = rustix::process::getuid().as_raw();
    let place = std::env::temp_dir().join(format!("isthmus-{user}"));
    let made = fs::DirBuilder::new().mode(0o700).create(&place);
    let found = made
        .or_else(|e| {
            if e.kind() == std::io::ErrorKind::AlreadyExists {
                Ok(())
            } else {
                Err(e)
            }
        })
        .and_then(|()| fs::symlink_metadata(&place))
        .map_err(|e| format!("{}: cannot make it: {e}", place.display()))?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0 {
        return Ok(place);
    }
    Err(format!(
        "{}: not a directory that only you can write to",
        place.display()
    ))
}

/// Where modules are, or are about to be made by whoever has it: others wait.
struct ModuleDirectory {
    path: PathBuf,
    /// `None`: they are there.
    lock: Option<File>,
}

impl ModuleDirectory {
    fn lock(path: PathBuf) -> Result<Self, String> {
        if path.is_dir() {
            return Ok(Self { path, lock: None });
        }
        let wrong = |e: std::io::Error| format!("{}: cannot make Fortran modules there: {e}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(wrong)?;
        let lock = File::create(path.with_extension("lock")).map_err(wrong)?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map_err(|e| wrong(e.into()))?;
        let lock = (!path.is_dir()).then_some(lock);
        Ok(Self { path, lock })
    }

    /// Makes the modules in a directory beside the place and moves it there as a whole.
    fn make(self, compiler: &Compiler, sources: &Sources) -> Result<PathBuf, String> {
        let Self { path, lock } = self;
        if lock.is_none() {
            return Ok(path);
        }
        let wrong = |e: std::io::Error| format!("{}: cannot make Fortran modules there: {e}", path.display());
        let begun = path.with_extension(format!("begun-{}", std::process::id()));
        fs::create_dir_all(&begun).map_err(wrong)?;
        let made = fill(compiler, sources, &begun);
        let moved = made.and_then(|()| fs::rename(&begun, &path).map_err(wrong));
        if moved.is_err() {
            // What is left of an attempt is of no use; that it cannot be removed changes nothing.
            let _ = fs::remove_dir_all(&begun);
        }
        moved.map(|()| path)
    }
}

fn fill(compiler: &Compiler, sources: &Sources, place: &Path) -> Result<(), String> {
    let native = compiler.has_native_descriptors(sources, place);
    for (position, (source, _)) in sources.modules.iter().enumerate() {
        let made = compiler.compile(source, native, place);
        match made {
            // Without mpi_f08 there are still mpi and mpif.h; why it is lacking is kept beside them.
            Err(message) if position > 0 => {
                // Of two that need the same, the first says why.
                let path = place.join("mpi_f08.txt");
                if path.exists() {
                    continue;
                }
                fs::write(&path, message).map_err(|e| format!("{}: cannot write: {e}", path.display()))?;
            }
            other => other?,
        }
    }
    // The two families whose names for constants the library has need no objects.
    let entries = fs::read_dir(place).map_err(|e| format!("{}: cannot list: {e}", place.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let object = path.extension().is_some_and(|e| e.as_bytes() == b"o");
        if object && ["gfortran", "flang"].contains(&compiler.family.name) {
            fs::remove_file(&path).map_err(|e| format!("{}: cannot remove: {e}", path.display()))?;
        }
    }
    Ok(())
}

/// Objects that programs need beside the library.
pub(crate) fn objects(modules: &Path) -> Vec<OsString> {
    let names = ["mpi.o", "mpi_f08.o", "mpi_ext.o", "mpi_f08_ext.o"]
        .iter()
        .map(|name| modules.join(name));
    names
        .filter(|path| path.is_file())
        .map(PathBuf::into_os_string)
        .collect()
}

/// Why a module is lacking for this compiler, if it is.
pub(crate) fn lacking(modules: &Path) -> Option<String> {
    fs::read_to_string(modules.join("mpi_f08.txt")).ok()
}

/// Build the Fortran modules of MPI for a compiler
///
/// mpifort builds them for each user at the first use of a compiler. With this command an administrator builds them for
/// all users. Compilers then find them with pkg-config too, without mpifort.
#[derive(clap::Args, Debug)]
pub(crate) struct Fortran {
    /// The compiler: gfortran, flang, ifx, nvfortran, or a path
    #[arg(long, value_name = "COMPILER", default_value = "gfortran")]
    compiler: String,
    /// Directory for them, instead of the one where mpifort looks in this installation
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

impl Fortran {
    /// Makes them and says where they are.
    pub(crate) fn run(&self) -> ExitCode {
        match self.make() {
            Ok(place) => {
                print(&place.display().to_string());
                if let Some(why) = lacking(&place) {
                    diagnostic::note(&JobError::new(format!("there is no module mpi_f08: {why}")));
                }
                ExitCode::SUCCESS
            }
            Err(message) => diagnostic::refuse(&JobError::new(message)),
        }
    }

    fn make(&self) -> Result<PathBuf, String> {
        if let Some(why) = refused(&words(&self.compiler, &[])) {
            return Err(why);
        }
        let own = std::env::current_exe().map_err(|e| format!("cannot find its own place: {e}"))?;
        let prefix = own.parent().and_then(Path::parent).unwrap_or_else(|| Path::new("/"));
        let shipped = shipped(prefix);
        let sources = read_sources(&shipped)?;
        let compiler = Compiler::ask(&self.compiler, &[])?;
        let Some(to) = &self.to else {
            let name = compiler.directory_name(&sources);
            let place = ModuleDirectory::lock(shipped.join(name))?.make(&compiler, &sources)?;
            link(&shipped, &place)?;
            return Ok(place);
        };
        let to = std::path::absolute(to).map_err(|e| format!("{}: {e}", to.display()))?;
        put(&compiler, &sources, &to)?;
        Ok(to)
    }
}

/// Makes the modules in a directory that may have other files.
fn put(compiler: &Compiler, sources: &Sources, to: &Path) -> Result<(), String> {
    let wrong = |e: std::io::Error| format!("{}: cannot make Fortran modules there: {e}", to.display());
    let begun = to.join(format!(".begun-{}", std::process::id()));
    fs::create_dir_all(&begun).map_err(wrong)?;
    let made = fill(compiler, sources, &begun).and_then(|()| {
        let mut files = fs::read_dir(&begun).map_err(wrong)?.flatten();
        files.try_for_each(|file| fs::rename(file.path(), to.join(file.file_name())).map_err(wrong))
    });
    // Empty, or of no use.
    let _ = fs::remove_dir_all(&begun);
    made
}

/// Names for the modules of the last compiler that do not change: pkg-config tells a compiler without the wrapper of
/// them.
fn link(shipped: &Path, place: &Path) -> Result<(), String> {
    let wrong = |e: std::io::Error| format!("{}: cannot make links there: {e}", shipped.display());
    for file in fs::read_dir(place).map_err(wrong)?.flatten() {
        let path = file.path();
        let relative: PathBuf = place.file_name().into_iter().chain(path.file_name()).collect();
        if path.extension().is_some_and(|e| e.as_bytes() == b"mod") {
            let begun = shipped.join(format!(".begun-{}", std::process::id()));
            std::os::unix::fs::symlink(&relative, &begun).map_err(wrong)?;
            fs::rename(&begun, shipped.join(file.file_name())).map_err(wrong)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found() {
        assert_eq!(version_in("GNU Fortran (Debian 12.2.0-14+deb12u1) 12.2.0"), 12);
        assert_eq!(version_in("Debian flang-new version 16.0.6 (15~deb12u1)"), 16);
        assert_eq!(version_in("Debian flang version 22.1.8 (1~deb12u1)"), 22);
        assert_eq!(version_in("nothing"), 0);
    }

    #[test]
    fn a_hash_keeps_words_apart() {
        let of = |words: &[&str]| {
            let mut hash = Hash::new();
            words.iter().for_each(|w| hash.add(w.as_bytes()));
            hash.text()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
    }
}
