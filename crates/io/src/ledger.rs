// SPDX-License-Identifier: Apache-2.0
//! What this process has done with files, told when the job ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use isthmus_wire::usage::{Sum, Usage};

use crate::file::File;

/// Of files that are closed.
static CLOSED: Mutex<Vec<Usage>> = Mutex::new(Vec::new());

/// What was done with the files that are closed: calls, messages and bytes; of many files, together.
pub fn used() -> Vec<Usage> {
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Drop for File {
    fn drop(&mut self) {
        usage(self).note(&mut CLOSED.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn usage(file: &File) -> Usage {
    let [read, bytes_read, written, bytes_written] = file.disk.as_ref().map_or([0; 4], |disk| disk.moved());
    let sum = |calls, bytes| Sum { calls, bytes };
    let sent = |[messages, bytes]: &[AtomicU64; 2]| Sum {
        calls: messages.load(Ordering::Relaxed),
        bytes: bytes.load(Ordering::Relaxed),
    };
    Usage {
        name: format!("{:?}", file.path),
        site: file.site.clone(),
        // A guest has it open for others, who count.
        opens: u32::from(!file.is_guest()),
        direct: u32::from(file.disk.is_some() && !file.is_guest()),
        aggregators: u32::from(file.aggregates.load(Ordering::Relaxed)),
        read: sum(read, bytes_read),
        written: sum(written, bytes_written),
        near: sent(&file.told[0]),
        far: sent(&file.told[1]),
    }
}
