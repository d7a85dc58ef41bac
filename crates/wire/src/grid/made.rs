// SPDX-License-Identifier: Apache-2.0
//! What processes have made in the working directory that nobody named.

use crate::codec::{DecodeError, Reader, Writer};

/// Files that the processes of a subjob have made, told when they have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Where they are.
    pub directory: String,
    /// Whose the directory is.
    pub place: Where,
    /// The node where it is, if that may be another machine than the one that ssh reaches. Empty: it is not.
    pub node: String,
    /// How long a directory of its own stays, minutes.
    pub minutes: u32,
    /// How many they are.
    pub files: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// Some of them.
    pub some: Vec<MadeFile>,
}

/// Where processes work that nobody told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In the launcher's directory, which the machine has too.
    Launchers = 0,
    /// In a directory that was made for the subjob.
    Own = 1,
    /// In the home directory, because nothing else was there and none could be made.
    Home = 2,
}

impl Where {
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8("place")? {
            0 => Ok(Self::Launchers),
            1 => Ok(Self::Own),
            2 => Ok(Self::Home),
            other => Err(DecodeError::Invalid {
                field: "place",
                value: u64::from(other),
            }),
        }
    }
}

/// One of these files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeFile {
    /// Path below the directory.
    pub path: String,
    /// Size, bytes.
    pub size: u64,
    /// Number of the file in its file system.
    pub number: u64,
}

impl Made {
    /// Most files that are told one by one.
    pub const SOME: usize = 64;

    pub(super) fn write(&self, w: &mut Writer) {
        w.text(&self.directory)
            .u8(self.place as u8)
            .text(&self.node)
            .u32(self.minutes);
        w.u64(self.files).u64(self.bytes).list(&self.some, |w, file| {
            w.text(&file.path).u64(file.size).u64(file.number);
        });
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            directory: r.text("directory")?,
            place: Where::read(r)?,
            node: r.text("node")?,
            minutes: r.u32("minutes")?,
            files: r.u64("files")?,
            bytes: r.u64("bytes")?,
            some: r.list("some", |r| {
                Ok(MadeFile {
                    path: r.text("path")?,
                    size: r.u64("size")?,
                    number: r.u64("number")?,
                })
            })?,
        })
    }
}
