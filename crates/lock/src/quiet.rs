// SPDX-License-Identifier: Apache-2.0
//! What the program's threads have and work of the library must not meet: signals, which a thread inherits the mask of
//! from its maker, and floating-point exceptions that trap, which it inherits likewise.

use std::ffi::c_int;
use std::hint::black_box;
use std::marker::PhantomData;
use std::thread::JoinHandle;

/// At least as large as `fenv_t` of any C library on Linux (32 bytes on x86-64, less on all others).
#[repr(C, align(16))]
struct Environment([u8; 64]);

// Of every C library since C99.
#[link(name = "m")]
unsafe extern "C" {
    fn feholdexcept(environment: *mut Environment) -> c_int;
    fn fesetenv(environment: *const Environment) -> c_int;
}

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

/// Starts a thread of the library, which no signal of the program reaches: they are for the program's own threads. Nor
/// does a floating-point exception trap in it, whatever the thread that starts it has asked for.
pub fn spawn_quiet(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let _masked = block_all();
    std::thread::Builder::new()
        .name(name.into())
        .stack_size(1 << 20)
        .spawn(move || {
            std::mem::forget(hold());
            work();
        })
}

/// Does work of the library in a thread of the program: no floating-point exception traps in it, and none that it
/// raises is seen afterwards. What the program's own functions do must stand outside.
#[inline]
pub fn untrapped<R>(work: impl FnOnce() -> R) -> R {
    if traps() { held(work) } else { work() }
}

#[inline(never)]
fn held<R>(work: impl FnOnce() -> R) -> R {
    let _held = hold();
    // The compiler knows nothing of traps: what goes in, and what comes out, keeps the work where it stands.
    black_box(black_box(work)())
}

/// Whether an exception could trap. Where that takes as long to find out as to see to it: always.
#[inline]
#[cfg(target_arch = "x86_64")]
fn traps() -> bool {
    /// The masks of all six exceptions.
    const MASKED: u32 = 0x1f80;
    let mut state = 0u32;
    // SAFETY: writes four bytes that are ours.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut state, options(nostack, preserves_flags)) };
    state & MASKED != MASKED
}

#[inline]
#[cfg(not(target_arch = "x86_64"))]
fn traps() -> bool {
    true
}

/// No exception of this thread traps until this is dropped.
struct Held(Environment, PhantomData<*const ()>);

/// Nothing where the system cannot.
fn hold() -> Option<Held> {
    let mut environment = Environment([0; 64]);
    // SAFETY: the room is large enough, aligned and ours.
    let held = unsafe { feholdexcept(&raw mut environment) } == 0;
    held.then(|| Held(environment, PhantomData))
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the environment was filled by `feholdexcept` in this thread, which a guard does not leave.
        unsafe { fesetenv(&raw const self.0) };
    }
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

    /// Exceptions of both units trap on x86-64; other processors may not be able to.
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    #[test]
    fn no_exception_traps_in_work_of_the_library() {
        use std::hint::black_box;
        unsafe extern "C" {
            fn feenableexcept(which: std::ffi::c_int) -> std::ffi::c_int;
            fn fegetexcept() -> std::ffi::c_int;
        }
        /// All that C knows: inexact results, too.
        const ALL: std::ffi::c_int = 0x3d;
        let raise = || {
            let denormal = black_box(f64::MIN_POSITIVE) / black_box(3.0);
            (
                black_box(denormal) * black_box(1e-300),
                black_box(1.0) / black_box(0.0),
                black_box(f64::MAX) * black_box(2.0),
            )
        };
        std::thread::spawn(move || {
            // SAFETY: the traps of this thread, in which nothing else is done.
            unsafe { feenableexcept(ALL) };
            let value = super::untrapped(raise);
            let ours = super::spawn_quiet("quiet", move || {
                black_box(raise());
            });
            let ended = ours.unwrap().join();
            // SAFETY: only asks.
            let after = unsafe { fegetexcept() };
            // SAFETY: as above.
            let none = unsafe { super::feholdexcept(&mut super::Environment([0; 64])) };
            assert_eq!((value.0, value.1, none), (0.0, f64::INFINITY, 0));
            assert_eq!(after, ALL, "the program's traps come back");
            ended.unwrap();
        })
        .join()
        .unwrap();
    }
}
