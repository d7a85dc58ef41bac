// SPDX-License-Identifier: Apache-2.0
//! Finding at home what a site needs.

use crate::failure::Failure;
use crate::service::{Service, out_of_turn};
use crate::sharing::Access;
use isthmus_job::Contact;
use isthmus_stage::{cache, content, elf, hashes, sources, words};
use isthmus_wire::grid::Hash;
use isthmus_wire::service::{Answer, Ask, Manifest};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file to be staged.
#[derive(Debug)]
pub struct Staged {
    /// Where it is at home.
    pub path: PathBuf,
    /// Of its content.
    pub hash: Hash,
    /// In bytes.
    pub size: u64,
    /// What it is called at the site.
    pub name: String,
    /// Its pieces.
    pub manifest: Manifest,
}

/// The program at home, checked before anything of it is sent to a machine of this architecture.
pub fn find_program(program: &str, directory: &Path, architecture: &str) -> Result<PathBuf, Failure> {
    let path = find_file(program, directory)?;
    check_architecture(program, &path, architecture)?;
    Ok(path)
}

/// Whether there is something under the name of a program at home, whatever it is; also where nobody can tell.
pub fn is_at_home(program: &str, directory: &Path) -> bool {
    program.contains("://") || !matches!(locate(program, directory), Err(Missing { is_certain: true, .. }))
}

/// The file of a program without a slash in these directories at home, separated by colons.
pub fn find_in(path: &OsStr, program: &str, directory: &Path) -> Option<PathBuf> {
    std::env::split_paths(path).find_map(|place| {
        let file = directory.join(place).join(words::path(program));
        (file.is_file() && rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_ok()).then_some(file)
    })
}

/// There is no such program at home, or it cannot be looked at.
struct Missing {
    is_certain: bool,
    failure: Failure,
}

/// The file of a program at home.
pub fn find_file(program: &str, directory: &Path) -> Result<PathBuf, Failure> {
    let path = locate(program, directory).map_err(|missing| missing.failure)?;
    if !path.is_file() {
        let kind = if path.is_dir() {
            "a directory"
        } else {
            "a pipe, a socket or a device"
        };
        return Err(Failure::new(format!("'{program}' is {kind}, not a program"), ""));
    }
    if rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_err() {
        let hint = sources::instead(&path);
        return Err(Failure::new(
            format!("program '{program}' is not executable at home"),
            hint,
        ));
    }
    if let Some(hint) = sources::compile(&path) {
        return Err(Failure::new(format!("'{program}' is not a program"), hint));
    }
    Ok(path)
}

/// Shared libraries that a program wants and not every system has, and where they are at home. `first`: where the job
/// itself says that they are.
pub async fn wanted(program: &Path, first: Vec<PathBuf>) -> Vec<(String, Option<PathBuf>)> {
    let file = program.to_owned();
    let wanted = tokio::task::spawn_blocking(move || elf::closure(&file, &first)).await;
    // Whatever cannot be read as a program is for the site to judge.
    wanted.ok().and_then(Result::ok).unwrap_or_default()
}

/// Those of these libraries that a site lacks, as files at home.
///
/// # Errors
/// The site cannot be asked, or neither it nor this machine has one.
pub async fn lacking(
    access: &Access,
    contact: &Contact,
    setup: &[String],
    wanted: Vec<(String, Option<PathBuf>)>,
) -> Result<Vec<PathBuf>, Failure> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut service = Service::open(access, contact, setup).await?;
    let names = wanted.iter().map(|(name, _)| name.clone()).collect();
    let answer = service.ask(&Ask::Libraries(names)).await?;
    service.leave().await;
    let Answer::Names(lacking) = answer else {
        return Err(out_of_turn());
    };
    let mut files = Vec::new();
    for (name, path) in wanted.into_iter().filter(|(name, _)| lacking.contains(name)) {
        files.push(path.ok_or_else(|| {
            Failure::new(
                format!("the program needs '{name}', which neither the site nor this machine has"),
                "set LD_LIBRARY_PATH here to its directory, or install it at the site",
            )
        })?);
    }
    Ok(files)
}

fn locate(program: &str, directory: &Path) -> Result<PathBuf, Missing> {
    let place = directory.join(words::path(program));
    let found = match program.contains('/') {
        true => None,
        false => find_in(&std::env::var_os("PATH").unwrap_or_default(), program, directory),
    };
    // What is here under that name, and cannot be run, is told for what it is.
    let error = match found.map_or_else(|| place.metadata().map(|_| place), Ok) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let is_certain = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    let failure = match program.contains('/') || !is_certain {
        true => Failure::new(
            format!("program '{program}' cannot be found at home: {error}"),
            "programs are staged from here; --no-stage runs what the site itself has under that name",
        ),
        false => Failure::new(
            format!("program '{program}' is neither in PATH nor in {}", directory.display()),
            "give its path, or use --no-stage for a program that only the site has",
        ),
    };
    Err(Missing { is_certain, failure })
}

fn check_architecture(program: &str, path: &Path, machine: &str) -> Result<(), Failure> {
    match content::architecture_of(path) {
        Ok(Some(built)) if !content::runs(machine, built) => Err(Failure::new(
            format!("program '{program}' is built for {built}, but the site is {machine}"),
            format!("build it for {machine} too and give the job file program.{machine} = \"...\""),
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!("cannot read program '{program}': {error}"), "")),
    }
}

/// Hashes a file in a thread where that disturbs nobody.
pub async fn prepare(path: PathBuf) -> Result<Staged, Failure> {
    let name = path.file_name().map(words::text);
    let name = name.ok_or_else(|| Failure::new(format!("'{}' has no file name", path.display()), ""))?;
    let file = path.clone();
    let cache = cache::directory().ok();
    let hashed = tokio::task::spawn_blocking(move || hashes::manifest(&file, cache.as_deref())).await;
    match hashed {
        Ok(Ok(manifest)) => Ok(Staged {
            path,
            hash: manifest.hash,
            size: manifest.size,
            name,
            manifest,
        }),
        Ok(Err(error)) => Err(Failure::new(format!("cannot read '{}': {error}", path.display()), "")),
        Err(error) => Err(Failure::new(format!("cannot hash '{}': {error}", path.display()), "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_the_sites_own_only_where_it_is_certainly_not_at_home() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path();
        std::fs::write(at.join("file"), "").expect("a file");
        // As of a file server that is gone: nobody can tell what is there.
        std::os::unix::fs::symlink("circle", at.join("circle")).expect("a link");
        for (program, is_there) in [
            ("./file", true),
            ("./none", false),
            ("file/none", false),
            ("none", false),
            ("./circle/x", true),
            ("circle", true),
        ] {
            assert_eq!(is_at_home(program, at), is_there, "{program}");
        }
        for program in ["./circle/x", "circle"] {
            let why = find_file(program, at).expect_err("it cannot be looked at").problem;
            assert!(why.contains("cannot be found at home: Too many levels"), "{why}");
        }
    }
}
