// SPDX-License-Identifier: Apache-2.0
//! The end of a machine's own launcher.

use super::Exit;
use crate::codec::{DecodeError, Reader, Writer};

/// How the `mpiexec` of a vendor MPI has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LauncherEnd {
    /// How.
    pub exit: Exit,
    /// What it said, cut.
    pub said: String,
}

impl LauncherEnd {
    pub(super) fn write(&self, w: &mut Writer) {
        self.exit.write(w);
        w.text(&self.said);
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            exit: Exit::read(r)?,
            said: r.text("what it said")?,
        })
    }
}
