// SPDX-License-Identifier: Apache-2.0
//! Processes that a process asks for.

use crate::codec::{DecodeError, Reader, Writer};

/// Most programs that are started by one question.
pub const MAX_PARTS: usize = 256;

/// Processes of one program that are to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnProgram {
    /// The program, as the user wrote it.
    pub program: String,
    /// Arguments after its name.
    pub arguments: Vec<String>,
    /// How many at most.
    pub processes: u32,
    /// Where and how: keys of an info object.
    pub keys: Vec<(String, String)>,
}

impl SpawnProgram {
    pub(super) fn write(&self, w: &mut Writer) {
        w.text(&self.program);
        w.list(&self.arguments, |w, argument| {
            w.text(argument);
        });
        w.u32(self.processes);
        w.list(&self.keys, |w, (key, value)| {
            w.text(key).text(value);
        });
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            program: r.text("program")?,
            arguments: r.list("arguments", |r| r.text("argument"))?,
            processes: r.u32("processes")?,
            keys: r.list("keys", |r| Ok((r.text("key")?, r.text("value")?)))?,
        })
    }
}

pub(super) fn read_parts(r: &mut Reader<'_>) -> Result<Vec<SpawnProgram>, DecodeError> {
    let parts = r.list("parts", SpawnProgram::read)?;
    match parts.len() {
        1..=MAX_PARTS => Ok(parts),
        many => Err(DecodeError::Invalid {
            field: "parts",
            value: many as u64,
        }),
    }
}
