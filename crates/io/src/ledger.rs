// SPDX-License-Identifier: Apache-2.0
//! What this process has done with files, told when the job ends.

use std::sync::atomic::Ordering;
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
    let (here, is_guest) = (&file.here, file.processes.is_guest());
    let [read, bytes_read, written, bytes_written] = here.moved();
    let sum = |calls, bytes| Sum { calls, bytes };
    let [near, far] = file.processes.sent().map(|[messages, bytes]| sum(messages, bytes));
    Usage {
        name: format!("{:?}", here.path()),
        site: here.site().to_owned(),
        // A guest has it open for others, who count.
        opens: u32::from(!is_guest),
        direct: u32::from(here.is_reached() && !is_guest),
        aggregators: u32::from(file.aggregates.load(Ordering::Relaxed)),
        read: sum(read, bytes_read),
        written: sum(written, bytes_written),
        near,
        far,
    }
}
