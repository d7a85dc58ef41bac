// SPDX-License-Identifier: Apache-2.0
//! Adaptors: compiled by a machine's own `mpicc`, kept by what they were compiled from.

use crate::VendorError;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The adaptor's source, carried along: nothing of ours is installed at a site.
const SOURCES: [(&str, &str); 4] = [
    ("vendor.c", include_str!("../../../adaptors/vendor.c")),
    ("vendor.h", include_str!("../../../adaptors/vendor.h")),
    ("objects.h", include_str!("../../../adaptors/objects.h")),
    ("collective.h", include_str!("../../../adaptors/collective.h")),
];
/// Bytes of a compiler's output that are kept.
const OUTPUT: usize = 4096;

/// A compiled adaptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adaptor {
    /// The library.
    pub path: PathBuf,
    /// Whether it was compiled now or found.
    pub built: Built,
}

/// How an adaptor came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Built {
    /// Compiled now.
    Now,
    /// Compiled before for the same compiler wrapper, in the same version.
    Before,
}

/// The adaptor for the MPI of a compiler wrapper, below `directory`: found there, or compiled. It is not opened: a
/// process can open one vendor only, because the libraries of several have the same names.
pub fn build(mpicc: &str, directory: &Path) -> Result<Adaptor, VendorError> {
    let wrapper = Wrapper::ask(mpicc)?;
    let key = key(mpicc, &wrapper)?;
    let path = directory.join(format!("vendor-{key}.so"));
    let built = if path.is_file() {
        Built::Before
    } else {
        compile(mpicc, &wrapper, directory, &path)?;
        // For people ([`known`]) only: without it the adaptor works as well.
        _ = fs::write(path.with_extension("mpicc"), mpicc);
        Built::Now
    };
    Ok(Adaptor { path, built })
}

/// The adaptors in a directory, and the compiler wrappers that they were compiled with.
pub fn known(directory: &Path) -> Vec<(PathBuf, String)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let adaptors = entries.flatten().map(|entry| entry.path());
    let adaptors = adaptors.filter(|path| path.extension().is_some_and(|e| e == "so"));
    let mut all: Vec<_> = adaptors
        .map(|path| {
            let mpicc = fs::read_to_string(path.with_extension("mpicc")).unwrap_or_default();
            (path, mpicc)
        })
        .collect();
    all.sort();
    all
}

/// What a wrapper says that it does.
struct Wrapper {
    /// The whole command.
    shown: String,
    /// The MPI libraries in the directories that it names.
    libraries: Vec<PathBuf>,
}

impl Wrapper {
    fn ask(mpicc: &str) -> Result<Self, VendorError> {
        let output = run(mpicc, Command::new(mpicc).arg("-show"))?;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let directories = shown.split_whitespace().filter_map(|word| word.strip_prefix("-L"));
        let names = ["libmpi.so", "libmpich.so", ABI];
        let files = directories.flat_map(|d| names.map(|n| Path::new(d).join(n)));
        let libraries = files.filter(|f| f.exists()).collect();
        Ok(Self { shown, libraries })
    }

    /// The library of the standard ABI, if it links that. It has the name of ours, so the adaptor opens it by its path.
    fn standard(&self) -> Option<&PathBuf> {
        let links = self.shown.split_whitespace().any(|word| word == "-lmpi_abi");
        self.libraries.iter().find(|l| links && l.ends_with(ABI))
    }
}

/// Name of the library of the standard ABI. (The name for linkers may be a text for them and not the library.)
const ABI: &str = "libmpi_abi.so.1";

/// What an adaptor depends on: the source, and the wrapper's whole command, which names the vendor's directories,
/// libraries and compiler.
fn key(mpicc: &str, wrapper: &Wrapper) -> Result<String, VendorError> {
    let mut hash = Sha256::new();
    for (_, text) in SOURCES {
        hash.update(text);
    }
    hash.update(mpicc);
    hash.update(&wrapper.shown);
    hash.update(run(mpicc, Command::new(mpicc).arg("-dumpfullversion"))?.stdout);
    // A new version of the vendor in the same place has another library.
    for real in wrapper.libraries.iter().filter_map(|l| l.canonicalize().ok()) {
        hash.update(real.as_os_str().as_encoded_bytes());
    }
    let digest = hash.finalize();
    Ok(digest.iter().take(8).map(|b| format!("{b:02x}")).collect())
}

fn compile(mpicc: &str, wrapper: &Wrapper, directory: &Path, path: &Path) -> Result<(), VendorError> {
    let file = |path: &Path, why| VendorError::File {
        path: path.to_owned(),
        why,
    };
    // Others may compile the same at the same time: each in a directory of its own, and the last one wins.
    // The directory may be one of several nodes, which use the same process ids.
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let work = directory.join(format!("vendor-{host}-{}", std::process::id()));
    fs::create_dir_all(&work).map_err(|why| file(&work, why))?;
    let done = (|| {
        for (name, text) in SOURCES {
            let to = work.join(name);
            fs::write(&to, text).map_err(|why| file(&to, why))?;
        }
        let made = work.join("vendor.so");
        let mut command = Command::new(mpicc);
        command.args(["-shared", "-fPIC", "-O2", "-fvisibility=hidden"]);
        if let Some(library) = wrapper.standard().and_then(|l| l.canonicalize().ok()) {
            command.arg(format!("-DISTHMUS_VENDOR_LIBRARY=\"{}\"", library.display()));
            command.arg("-Wl,--as-needed");
        }
        command.arg("-o").arg(&made).arg(work.join("vendor.c")).arg("-ldl");
        let output = run(mpicc, &mut command)?;
        if !output.status.success() {
            return Err(refused(&command, &output.stderr));
        }
        fs::rename(&made, path).map_err(|why| file(path, why))
    })();
    // What is left is a few small files in a cache; the next build does not need them.
    _ = fs::remove_dir_all(&work);
    done
}

fn refused(command: &Command, stderr: &[u8]) -> VendorError {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|w| w.to_string_lossy()).collect();
    VendorError::Compile {
        command: words.join(" "),
        output: String::from_utf8_lossy(&stderr[..stderr.len().min(OUTPUT)]).into_owned(),
    }
}

fn run(mpicc: &str, command: &mut Command) -> Result<std::process::Output, VendorError> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|why| VendorError::NoCompiler {
        mpicc: mpicc.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_that_do_not_work_are_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let missing = build("/no/such/mpicc", directory.path()).expect_err("no compiler");
        assert!(
            missing.to_string().contains("'/no/such/mpicc' cannot be run"),
            "{missing}"
        );
        let failing = build("false", directory.path()).expect_err("a compiler that fails");
        assert!(
            failing.to_string().contains("does not compile the adaptor"),
            "{failing}"
        );
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
    }
}
