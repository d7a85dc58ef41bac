// SPDX-License-Identifier: Apache-2.0
//! Loops compiled a second time for the longer vectors that most processors have, and those that the library is
//! compiled for need not have.

/// Does `work`, which must be a loop that is put in place: with vectors of 32 bytes where the processor has them.
#[inline(always)]
pub(crate) fn with_long_vectors(work: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { avx2(work) };
    }
    work();
}

/// # Safety
/// The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(work: impl FnOnce()) {
    work();
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_done_is_the_same() {
        let mut sums = [0_u32; 1000];
        super::with_long_vectors(|| sums.iter_mut().zip(0..).for_each(|(sum, n)| *sum = 3 * n));
        assert!(sums.iter().zip(0..).all(|(sum, n)| *sum == 3 * n));
    }
}
