// SPDX-License-Identifier: Apache-2.0
//! What the user says about the ways between sites, for all of them or one.

use isthmus_job::Subjob;
use isthmus_settings::among;
use std::ffi::OsString;

use crate::Options;

/// What the user allows at a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Whatever works, best first; through gateways where direct connections would be too many.
    #[default]
    Any,
    /// Processes connect directly or not at all.
    Direct,
    /// Everything goes through gateways.
    Gateway,
    /// Everything goes through the coordinator's connections.
    Ssh,
}

impl Policy {
    /// From the value of `ISTHMUS_PATH`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "auto" | "" => Self::Any,
            "direct" => Self::Direct,
            "gateway" => Self::Gateway,
            "ssh" => Self::Ssh,
            _ => return None,
        })
    }
}

/// What is set for the processes of a site.
pub(super) fn setting(subjob: &Subjob, options: &Options, name: &'static str) -> Option<OsString> {
    among(&subjob.environment)(name).or_else(|| among(&options.environment)(name))
}

pub(super) fn policy(subjob: &Subjob, options: &Options) -> Policy {
    isthmus_settings::PATH
        .read(|name| setting(subjob, options, name))
        .and_then(Policy::parse)
        .unwrap_or_default()
}

/// Addresses that the user gave in place of those of the machine.
pub(super) fn addresses(subjob: &Subjob, options: &Options) -> Vec<String> {
    isthmus_settings::ADDRESS.read(|name| setting(subjob, options, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_code_know_the_same_words_and_bounds() {
        assert!(
            isthmus_settings::PATH
                .words
                .iter()
                .all(|word| Policy::parse(word).is_some())
        );
        let most = u64::from(isthmus_wire::gateway::MAX_THREADS);
        assert_eq!(isthmus_settings::GATEWAY_THREADS.most, most);
        assert!(isthmus_settings::TRUNK_STREAMS.most <= u64::from(u8::MAX));
    }
}
