// SPDX-License-Identifier: Apache-2.0
//! Finding the program and saying before the start what is wrong with it.

use isthmus_stage::{content, sources, words};
use isthmus_wire::grid::{FromAgent, Start};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why a subjob cannot be started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) hint: String,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: hint.into(),
        }
    }
}

/// As it is told.
impl From<Refusal> for FromAgent {
    fn from(Refusal { reason, hint }: Refusal) -> Self {
        Self::Refused { reason, hint }
    }
}

/// What to do when a [`Length`] is too much.
pub(crate) const SHORTEN: &str = "put what is long into a file that the program reads, or leave it out; \
    Linux takes 128 KiB for each and a quarter of `ulimit -s` for all";

/// How long what a program is started with is, in bytes as the system counts them.
pub(crate) struct Length {
    arguments: usize,
    variables: usize,
    longest: String,
    /// Bytes of that.
    most: usize,
}

impl Length {
    /// Variables: name and bytes of the value.
    pub(crate) fn of<'a>(arguments: &[String], variables: impl Iterator<Item = (&'a str, usize)>) -> Self {
        let mut length = Self {
            arguments: 0,
            variables: 0,
            longest: "nothing".to_owned(),
            most: 0,
        };
        // All end with a zero.
        for (number, argument) in (1..).zip(arguments) {
            let bytes = words::os(argument).len() + 1;
            length.arguments += bytes;
            length.compare(bytes, || format!("argument {number}"));
        }
        for (name, value) in variables {
            let bytes = name.len() + value + 2;
            length.variables += bytes;
            length.compare(bytes, || format!("variable {name}"));
        }
        length
    }

    fn compare(&mut self, bytes: usize, name: impl FnOnce() -> String) {
        if bytes > self.most {
            (self.longest, self.most) = (name(), bytes);
        }
    }

    /// Whether one of them is longer than Linux takes, whatever the others are.
    pub(crate) fn one_is_too_long(&self) -> bool {
        self.most > 32 * rustix::param::page_size()
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            arguments,
            variables,
            longest,
            most,
        } = self;
        write!(
            f,
            "its arguments have {arguments} bytes, the variables that are set for it {variables}, and the longest of all is {longest} with {most}"
        )
    }
}

/// Why something cannot be started with these arguments and variables; `hint`: what to do if the system gives another
/// reason than their length.
pub(crate) fn not_started(
    what: &str,
    error: &io::Error,
    arguments: &[String],
    environment: &[(String, OsString)],
    hint: &str,
) -> Refusal {
    if error.kind() != io::ErrorKind::ArgumentListTooLong {
        return Refusal::new(format!("cannot start {what}: {error}"), hint);
    }
    let length = Length::of(
        arguments,
        environment.iter().map(|(name, value)| (&**name, value.len())),
    );
    Refusal::new(
        format!("cannot start {what}: {length}, which is more than the system takes"),
        SHORTEN,
    )
}

/// The working directory of the processes.
pub(crate) fn directory(start: &Start) -> Result<PathBuf, Refusal> {
    let own = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let wanted = match &*start.directory {
        "" => own(),
        "~" => home(),
        named => match named.strip_prefix("~/") {
            Some(below) => home().join(words::path(below)),
            None => own().join(words::path(named)),
        },
    };
    // To work in a directory one must be able to enter it, not to list it. The dot makes it one, and has it mounted.
    match rustix::fs::access(wanted.join("."), rustix::fs::Access::EXEC_OK) {
        Ok(()) => Ok(wanted),
        Err(error) => Err(Refusal::new(
            format!("cannot use the working directory '{}': {error}", wanted.display()),
            "create it there or name another one",
        )),
    }
}

/// The user's home directory here, or the top of all.
pub(crate) fn home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/"))
}

/// The program's file, executable and for this machine.
pub(crate) fn find(name: &str, directory: &Path, path: Option<OsString>) -> Result<PathBuf, Refusal> {
    let program = locate(name, directory, path)?;
    check_executable(&program)?;
    check_architecture(&program)?;
    Ok(program)
}

fn locate(program: &str, directory: &Path, path: Option<OsString>) -> Result<PathBuf, Refusal> {
    if program.contains('/') {
        // `.` in front says no more than the directory does.
        let file: PathBuf = directory.join(words::path(program)).components().collect();
        return match fs::metadata(&file) {
            Ok(_) => Ok(file),
            Err(error) => Err(Refusal::new(
                format!("program '{program}' cannot be found: {error}"),
                format!("it was looked up as {}", file.display()),
            )),
        };
    }
    let path = path.unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain([directory.to_owned()]);
    let found = places.find_map(|place| {
        let file = directory.join(place).join(words::path(program));
        (file.is_file() && is_executable(&file)).then_some(file)
    });
    found.ok_or_else(|| {
        let beside = directory.join(words::path(program));
        match check_executable(&beside) {
            Err(refusal) if beside.exists() => refusal,
            _ => Refusal::new(
                format!("program '{program}' is neither in PATH nor in {}", directory.display()),
                "give its path, for example ./app",
            ),
        }
    })
}

fn check_executable(program: &Path) -> Result<(), Refusal> {
    if program.is_dir() {
        return Err(Refusal::new(
            format!("'{}' is a directory, not a program", program.display()),
            "",
        ));
    }
    if !program.is_file() {
        return Err(Refusal::new(
            format!("'{}' is a pipe, a socket or a device, not a program", program.display()),
            "",
        ));
    }
    if !is_executable(program) {
        return Err(not_executable(program));
    }
    if let Some(hint) = sources::compile(program) {
        return Err(Refusal::new(format!("'{}' is not a program", program.display()), hint));
    }
    Ok(())
}

fn not_executable(program: &Path) -> Refusal {
    use std::os::unix::fs::PermissionsExt;
    let name = program.display();
    let marked = fs::metadata(program).is_ok_and(|m| m.permissions().mode() & 0o111 == 0o111);
    match marked {
        // Marked for everybody, and yet it may not be run.
        true => Refusal::new(
            format!("program '{name}' may not be run there: its file system is mounted noexec"),
            "put it on another file system; the directory for staged programs is set by cache = \"DIRECTORY\" in the sites file",
        ),
        false => Refusal::new(format!("program '{name}' is not executable"), sources::instead(program)),
    }
}

fn is_executable(program: &Path) -> bool {
    rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok()
}

fn check_architecture(program: &Path) -> Result<(), Refusal> {
    // A program that may be executed but not read says nothing about itself.
    let Ok(Some(architecture)) = content::architecture_of(program) else {
        return Ok(());
    };
    let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
    if content::runs(&machine, architecture) || is_emulated(architecture) {
        return Ok(());
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Err(Refusal::new(
        format!("program '{name}' is built for {architecture}, this machine is {machine}"),
        format!("build it for {machine} and name it in the job file as program.{machine}"),
    ))
}

/// Whether the kernel has been told how to run programs of another architecture.
fn is_emulated(architecture: &str) -> bool {
    Path::new("/proc/sys/fs/binfmt_misc")
        .join(format!("qemu-{architecture}"))
        .exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("isthmus-program-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(path: &Path, content: &[u8], mode: u32) {
        fs::write(path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_too_long_is_named() {
        let arguments = ["-v".to_owned(), "x".repeat(300)];
        let environment = |bytes| {
            [
                ("SHORT".to_owned(), "1".into()),
                ("LONG".to_owned(), "y".repeat(bytes).into()),
            ]
        };
        let refusal = |number, bytes| {
            let error = io::Error::from_raw_os_error(number);
            not_started("process 1 of 2", &error, &arguments, &environment(bytes), "wait")
        };
        let long = refusal(rustix::io::Errno::TOOBIG.raw_os_error(), 400);
        assert!(
            long.reason
                .contains("cannot start process 1 of 2: its arguments have 304 bytes")
        );
        assert!(
            long.reason
                .contains("set for it 414, and the longest of all is variable LONG with 406")
        );
        assert_eq!(long.hint, SHORTEN);
        let long = refusal(rustix::io::Errno::TOOBIG.raw_os_error(), 200);
        assert!(long.reason.contains("argument 2 with 301"), "{}", long.reason);
        assert_eq!(refusal(rustix::io::Errno::AGAIN.raw_os_error(), 400).hint, "wait");
    }

    #[test]
    fn each_fault_has_its_message() {
        let directory = scratch("faults");
        let find = |program: &str| {
            locate(program, &directory, None)
                .and_then(|p| check_executable(&p).map(|()| p))
                .and_then(|p| check_architecture(&p).map(|()| p))
        };
        write(&directory.join("plain"), b"#!/bin/sh\n", 0o644);
        let mut foreign = b"\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x16".to_vec();
        foreign.resize(64, 0);
        write(&directory.join("foreign"), &foreign, 0o755);
        write(&directory.join("fine"), b"#!/bin/sh\n", 0o755);
        for fine in ["./fine", ".//fine", "././fine"] {
            let found = find(fine).unwrap();
            assert_eq!(found.as_os_str(), directory.join("fine").as_os_str(), "{fine}");
        }
        assert_eq!(find("fine").unwrap(), directory.join("fine"));
        assert!(find("./none").unwrap_err().reason.contains("'./none' cannot be found"));
        assert!(find("none").unwrap_err().reason.contains("neither in PATH"));
        assert!(find("./plain").unwrap_err().hint.starts_with("chmod +x"));
        assert!(find("/").unwrap_err().reason.contains("is a directory"));
        let mut make = std::process::Command::new("mkfifo");
        make.args(["-m", "755"]).arg(directory.join("pipe")).status().unwrap();
        assert!(find("./pipe").unwrap_err().reason.contains("is a pipe"));
        if !is_emulated("s390x") {
            assert!(
                find("./foreign")
                    .unwrap_err()
                    .reason
                    .contains("is built for s390x, this machine is")
            );
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
