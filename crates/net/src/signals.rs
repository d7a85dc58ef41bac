// SPDX-License-Identifier: Apache-2.0
//! Keeps the program's signals away from our thread: a thread inherits the mask of its maker.

use std::ffi::c_int;
use std::thread::JoinHandle;

/// At least as large as `sigset_t` of any C library on Linux (128 bytes).
#[repr(C, align(8))]
struct SignalSet([u8; 128]);

unsafe extern "C" {
    fn sigfillset(set: *mut SignalSet) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
}

/// `SIG_SETMASK` of Linux (MIPS has another value, and is not supported).
const SET_MASK: c_int = 2;

/// All signals of this thread are blocked until this is dropped.
struct Blocked(Option<SignalSet>);

/// Starts a thread of the library, which no signal of the program reaches: they are for the program's own threads.
pub fn spawn_quiet(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let _masked = block_all();
    std::thread::Builder::new()
        .name(name.into())
        .stack_size(1 << 20)
        .spawn(work)
}

/// Blocks all signals of the calling thread.
fn block_all() -> Blocked {
    let (mut all, mut old) = (SignalSet([0; 128]), SignalSet([0; 128]));
    // SAFETY: the set is large enough and ours.
    let filled = unsafe { sigfillset(&raw mut all) };
    // SAFETY: both sets are initialised, large enough and ours; the C library keeps its own signals unblocked.
    let changed = filled == 0 && unsafe { pthread_sigmask(SET_MASK, &raw const all, &raw mut old) } == 0;
    Blocked(changed.then_some(old))
}

impl Drop for Blocked {
    fn drop(&mut self) {
        if let Some(old) = &self.0 {
            // SAFETY: `old` was filled by the same call; the third argument may be null.
            unsafe { pthread_sigmask(SET_MASK, &raw const *old, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    fn blocked_mask() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find(|l| l.starts_with("SigBlk:")).unwrap().to_owned()
    }

    #[test]
    fn the_mask_comes_back() {
        let before = blocked_mask();
        let inside = {
            let _blocked = super::block_all();
            std::thread::spawn(blocked_mask).join().unwrap()
        };
        assert_ne!(inside, before);
        assert_eq!(blocked_mask(), before);
    }
}
