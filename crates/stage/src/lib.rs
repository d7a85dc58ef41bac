// SPDX-License-Identifier: Apache-2.0
//! Content-addressed staging and stdio by whole lines.
//!
//! * [`cache`]: where the cache of this user is.
//! * [`content`]: hashes of files, and what machine a program is for.
//! * [`elf`]: which shared libraries a program needs, and where they are.
//! * [`guarded`]: private directories that vanish with their owner.
//! * [`hashes`]: hashes of large files at home, remembered.
//! * [`keyring`]: keys by which jobs of one user know each other.
//! * [`lines`]: cutting output into whole lines.
//! * [`local`]: files at home: reading pieces, receiving pieces, walking directories.
//! * [`names`]: names that jobs of the user have published for each other.
//! * [`own`]: our own binary, also after another was installed in its place.
//! * [`store`]: the cache of staged files at a site.
//! * [`words`]: words of the system that need not be UTF-8.
//! * [`workspace`]: the directory of a job at a site.
#![forbid(unsafe_code)]

pub mod cache;
pub mod content;
pub mod elf;
mod error;
pub mod guarded;
pub mod hashes;
pub mod keyring;
pub mod lines;
pub mod local;
pub mod names;
pub mod own;
pub mod sources;
pub mod store;
pub mod words;
pub mod workspace;

/// Fuzz entry: no bytes may make the readers of files panic.
pub fn fuzz(bytes: &[u8]) {
    let _ = elf::read(&mut std::io::Cursor::new(bytes));
    let _ = hashes::decode(bytes);
    if let Ok(published) = isthmus_wire::published::Published::decode(bytes) {
        assert_eq!(published.encode(), bytes);
    }
}
