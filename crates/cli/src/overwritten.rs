// SPDX-License-Identifier: Apache-2.0
//! Files that we write for the user: never over something else, as where `--trace ./app ./app` is typed for
//! `--trace FILE ./app`.

use isthmus_job::JobError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What a file of ours begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Objects of JSON.
    Json,
    /// A page of HTML.
    Page,
    /// What processes print: anything but a program.
    Output,
}

/// Whether a file may be written: there is none, an earlier one of this kind, or something that is no regular file.
/// Whoever takes `-` for standard output does so before.
pub(crate) fn check(option: &str, file: &Path, kind: Kind) -> Result<(), JobError> {
    if file == Path::new("-") {
        let error = JobError::new(format!(
            "{option}: this cannot go to standard output, which has other output"
        ));
        return Err(error.hint("name a file; one with this name is ./-"));
    }
    let Ok(metadata) = fs::metadata(file) else {
        return Ok(());
    };
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(());
    }
    // File systems of Windows give all files the right to be executed, ours too.
    let read = beginning(file);
    let is_read = read.is_ok();
    let begins = read.unwrap_or_default();
    let may_run = metadata.permissions().mode() & 0o111 != 0;
    let is_program = begins.starts_with(b"\x7fELF") || may_run && begins.starts_with(b"#!");
    let mut text = begins.iter().filter(|byte| !byte.is_ascii_whitespace());
    let is_ours = match kind {
        Kind::Json => text.next() == Some(&b'{') && matches!(text.next(), None | Some(b'"' | b'}')),
        Kind::Page => text.next() == Some(&b'<'),
        Kind::Output => true,
    };
    if is_read && is_ours && !is_program {
        return Ok(());
    }
    let is = if is_program { "a program" } else { "something else" };
    let error = JobError::new(format!(
        "{option}: '{}' is {is}, and would be overwritten",
        file.display()
    ));
    Err(error.hint("name a file that does not exist, or remove this one first"))
}

/// The same for one that will be written whole: its place is tried before anything is done.
pub(crate) fn prepare(option: &str, file: &Path, kind: Kind) -> Result<(), JobError> {
    check(option, file, kind)?;
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.map(drop).map_err(|error| {
        JobError::new(format!("{option}: cannot write '{}': {error}", file.display()))
            .hint("name a file in a directory in which you may write")
    })
}

/// Enough to know what it is.
fn beginning(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_ours_are_overwritten() {
        let place = std::env::temp_dir().join(format!("isthmus-overwritten-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        let put = |name: &str, text: &str, mode: u32| {
            fs::write(place.join(name), text).unwrap();
            fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        put("trace.json", "{}", 0o644);
        put("windows.json", "{\n  \"a\": 1}", 0o777);
        put("words", "hello", 0o777);
        put("script", "#!/bin/sh", 0o755);
        put("app.c", "int main", 0o644);
        put("app", "\x7fELF", 0o755);
        put("odd", "{ echo; }", 0o755);
        put("empty", "", 0o644);
        for (name, kind, may) in [
            ("trace.json", Kind::Json, true),
            ("trace.json", Kind::Page, false),
            ("windows.json", Kind::Json, true),
            ("words", Kind::Output, true),
            ("script", Kind::Output, false),
            ("new", Kind::Json, true),
            ("empty", Kind::Json, true),
            ("app.c", Kind::Json, false),
            ("app", Kind::Json, false),
            ("odd", Kind::Json, false),
            ("app.c", Kind::Output, true),
            ("app", Kind::Output, false),
        ] {
            let result = prepare("--trace", &place.join(name), kind);
            assert_eq!(result.is_ok(), may, "{name} {kind:?}: {result:?}");
        }
        assert!(prepare("--trace", Path::new("/dev/null"), Kind::Json).is_ok());
        assert!(prepare("--trace", Path::new("-"), Kind::Json).is_err());
        assert!(prepare("--trace", &place, Kind::Json).is_err());
        fs::remove_dir_all(place).unwrap();
    }
}
