// SPDX-License-Identifier: Apache-2.0
//! Atomics: the real ones, or those of the model checker (`--cfg loom`), so that what is checked is what runs.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Stores `value` so that everything before it is visible with it, and so that a later
/// sequentially consistent load of this thread is not done before it: the sender's half of the sleeping protocol.
///
/// One exchange instruction on x86, `stlr` on Arm, instead of a store and a full fence.
#[inline]
pub(crate) fn publish(word: &AtomicU64, value: u64) {
    #[cfg(not(loom))]
    word.store(value, Ordering::SeqCst);
    #[cfg(loom)]
    {
        // The model checker knows sequentially consistent fences, but not such stores.
        word.store(value, Ordering::Release);
        fence(Ordering::SeqCst);
    }
}

/// A fence after a read-modify-write operation: what this thread loads later is not older than that operation. On x86
/// such an operation is a fence already, so only the compiler has to be told.
#[inline]
pub(crate) fn after_update() {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(any(not(target_arch = "x86_64"), loom))]
    fence(Ordering::SeqCst);
}

/// Asks for the cache line at an address that this core is about to write. Changes nothing, and any address will do.
#[inline]
pub(crate) fn fetch_to_write(at: *const u8) {
    // The compiler's own hint becomes one for reading unless all processors of the target know the other: the line then
    // comes shared, and the write has to wait for the others after all. Processors that lack it decode it as nothing
    // (AMD64 manual, volume 3, PREFETCHW).
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: a hint, which changes nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags));
    }
    #[cfg(any(not(target_arch = "x86_64"), loom, miri))]
    let _ = at;
}
