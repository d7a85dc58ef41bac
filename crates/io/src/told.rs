// SPDX-License-Identifier: Apache-2.0
//! What the opener of a file tells all others of it.

use std::fs::File as SystemFile;

use isthmus_wire::stripe::Layout;

use crate::same::{First, Identity};
use crate::stripe;

/// What a process says of the file that it has opened for all; others say nothing, as long.
pub(crate) fn said(first: Option<&First>, is_allowed: bool) -> Vec<u8> {
    let file = first.map(First::file);
    let size = file
        .and_then(|file| file.metadata().ok())
        .map_or(0, |known| known.len());
    let layout = file.map(stripe::layout).unwrap_or_default();
    let mut said = first.map_or(0, First::nonce).to_le_bytes().to_vec();
    said.extend(Identity::of(file).encode());
    said.extend(layout.encode());
    said.extend(size.to_le_bytes());
    said.extend(u64::from(is_allowed).to_le_bytes());
    said
}

/// What [`said`] has said.
pub(crate) struct Description<'a> {
    nonce: u64,
    identity: &'a [u8],
    pub(crate) layout: Layout,
    pub(crate) size: u64,
    /// Whether processes of other sites may use it.
    pub(crate) is_allowed: bool,
}

impl<'a> Description<'a> {
    pub(crate) fn of(said: &'a [u8]) -> Self {
        let from = |at: usize| said.get(at..).unwrap_or_default();
        let rest = 8 + Identity::BYTES;
        Self {
            nonce: crate::group::word(said),
            identity: from(8),
            layout: Layout::decode(crate::group::word(from(rest))),
            size: crate::group::word(from(rest + 8)),
            is_allowed: crate::group::word(from(rest + 16)) == 1,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        crate::group::word(self.identity) != 0
    }

    pub(crate) fn is_same(&self, file: Option<&SystemFile>) -> bool {
        Identity::is_same(self.identity, &Identity::of(file).encode(), self.nonce)
    }
}
