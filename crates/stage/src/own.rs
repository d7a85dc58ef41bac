// SPDX-License-Identifier: Apache-2.0
//! Our own binary. Another version may be installed in its place while we run: what we start and send to sites then is
//! still the one that runs, and not its successor, which may say other things.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the kernel writes behind the name of a binary that is no longer under it.
const GONE: &[u8] = b" (deleted)";

/// Where the binary that was at `path` when we looked (`std::env::current_exe`) is found now: there, or, if it is ours
/// and its name is gone or another file's, where it is found as long as this process lives.
pub fn found(path: &Path) -> PathBuf {
    match std::env::current_exe() {
        Ok(now) => found_by(path, &now, std::process::id()),
        Err(_) => path.to_owned(),
    }
}

/// `now`: what the kernel calls the binary of this process.
fn found_by(path: &Path, now: &Path, process: u32) -> PathBuf {
    let is_gone = installed(now) != now && !now.exists();
    match is_gone && installed(path) == installed(now) {
        true => PathBuf::from(format!("/proc/{process}/exe")),
        false => path.to_owned(),
    }
}

/// The name under which a binary was installed, where the kernel says that it is gone.
pub fn installed(binary: &Path) -> &Path {
    let name = binary.as_os_str().as_bytes();
    match name.strip_suffix(GONE) {
        Some(name) if !binary.exists() => Path::new(OsStr::from_bytes(name)),
        _ => binary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_was_replaced_is_still_found() {
        let own = PathBuf::from("/proc/7/exe");
        let (there, gone) = (Path::new("/no/bin/isthmus"), Path::new("/no/bin/isthmus (deleted)"));
        assert_eq!(found_by(there, there, 7), there, "it is there");
        assert_eq!(found_by(there, gone, 7), own, "it was there when we began");
        assert_eq!(found_by(gone, gone, 7), own, "it was gone when we began");
        assert_eq!(
            found_by(Path::new("/no/other"), gone, 7),
            Path::new("/no/other"),
            "not ours"
        );
        assert_eq!(installed(gone), there);
    }

    #[test]
    fn a_name_may_end_like_that() {
        let directory = crate::guarded::Guarded::create(&std::env::temp_dir(), "isthmus-own-").unwrap();
        let odd = directory.path().join("isthmus (deleted)");
        std::fs::write(&odd, "").unwrap();
        assert_eq!((installed(&odd), found_by(&odd, &odd, 7)), (&*odd, odd.clone()));
    }

    #[test]
    fn our_own_is_where_it_is() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(found(&own), own);
    }
}
