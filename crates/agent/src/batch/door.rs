// SPDX-License-Identifier: Apache-2.0
//! What all connections of nodes need to know.

use crate::event::Event;
use isthmus_wire::grid::Hash;
use rustls::ServerConfig;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A file that was staged to the submitting machine.
#[derive(Clone, Debug)]
pub(crate) struct StagedFile {
    pub(crate) hash: Hash,
    pub(crate) size: u64,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// All of them.
pub(super) type Files = Arc<Vec<StagedFile>>;

/// What every connection needs to know.
pub(super) struct Door {
    pub(super) secret: [u8; 32],
    pub(super) binary: PathBuf,
    pub(super) files: Files,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) config: Arc<ServerConfig>,
}
