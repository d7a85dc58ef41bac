// SPDX-License-Identifier: Apache-2.0
//! What shows at ports that this job is its user's. The keys stay here: a process is given what is good for one port.

use isthmus_identity::shown_at;
use isthmus_stage::keyring::{self, Key, OWN};
use isthmus_wire::question::{Refusal, Said};

/// By keys of these names, or of no names by all. `host`: the user's key at the host at which the job meets others,
/// which counts as an own one.
pub(crate) fn prove(
    secret: &[u8; 16],
    fingerprint: &[u8; 32],
    names: &[String],
    host: Option<&Key>,
) -> Result<Said, Refusal> {
    let host = host.filter(|_| names.is_empty() || names.iter().any(|name| name == OWN));
    let mut keys = match (keyring::keys(names), host) {
        (Ok(keys), _) => keys,
        // That one is enough.
        (Err(_), Some(_)) if names.len() <= 1 => Vec::new(),
        (Err(why), _) => return Err(why),
    };
    keys.extend(
        host.filter(|host| !keys.contains(host))
            .copied()
            .into_iter()
            .collect::<Vec<_>>(),
    );
    Ok(Said::Proofs(
        keys.iter().map(|key| shown_at(key, secret, fingerprint)).collect(),
    ))
}
