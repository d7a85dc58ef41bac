// SPDX-License-Identifier: Apache-2.0
//! Random cases that can be had again: every run says its seed, and is the same with the same seed.
//!
//! `PROPTEST_RNG_SEED=N` repeats a run; `PROPTEST_CASES=N` asks for so many cases of each test.

use proptest::test_runner::{Config, RngSeed};
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// So many cases, from the seed of this run.
pub(crate) fn cases(usual: u32) -> Config {
    let given = Config::default();
    let cases = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => given.cases,
        None => usual,
    };
    Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed(given.rng_seed)),
        ..given
    }
}

/// The seed of this run: the one asked for, or another each time.
#[expect(clippy::print_stderr, reason = "a failing test shows it")]
fn seed(asked: RngSeed) -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let seed = match asked {
            RngSeed::Fixed(seed) => seed,
            RngSeed::Random => std::hash::RandomState::new().build_hasher().finish(),
        };
        eprintln!("random cases: PROPTEST_RNG_SEED={seed} repeats them");
        seed
    })
}
