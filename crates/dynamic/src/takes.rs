// SPDX-License-Identifier: Apache-2.0
//! Whom a port takes of those who know its name (`isthmus_accept`): that may have leaked through a log or a folder.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::joining::reacher;
use isthmus_core::world::World;
use isthmus_wire::port::{MAX_PROOFS, Proof};

/// The name of the key that every user has.
const OWN: &str = "own";

/// What a program, or who has started it, says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Whoever has a key of the user's, one of these.
    Keys(Vec<String>),
    /// Whoever knows the name of the port.
    AnyWithPort,
}

impl Accept {
    /// `user`, `user=NAME,NAME`, with names of keys, or `any-with-port`.
    pub fn parse(text: &str) -> Option<Self> {
        let own = || vec![OWN.to_owned()];
        match text.trim() {
            "user" => Some(Self::Keys(own())),
            "any-with-port" => Some(Self::AnyWithPort),
            other => {
                let names = other
                    .strip_prefix("user=")?
                    .split(',')
                    .map(|name| name.trim().to_owned());
                let mut keys = own();
                keys.extend(names.filter(|name| name != OWN));
                let sound = keys.len() < MAX_PROOFS && keys.iter().all(|name| !name.is_empty());
                sound.then_some(Self::Keys(keys))
            }
        }
    }

    /// What that means at a port.
    pub(crate) fn at(&self, world: &World, secret: &[u8; 16], fingerprint: &[u8; 32]) -> Result<Takes> {
        let Self::Keys(keys) = self else {
            return Ok(Takes::Anybody);
        };
        let cannot = |why: String| {
            Error::new(
                abi::MPI_ERR_OTHER,
                format!(
                    "the port would take nobody: {why}. Without keys of the user a port takes whoever knows its name \
                     (info key isthmus_accept or ISTHMUS_ACCEPT = any-with-port)"
                ),
            )
        };
        let reacher = reacher(world).ok_or_else(|| cannot("this process has no keys".to_owned()))?;
        reacher
            .prove(secret, fingerprint, keys)
            .map(Takes::Proven)
            .map_err(cannot)
    }
}

/// Whom a port takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Anybody,
    /// Who shows one of these.
    Proven(Vec<Proof>),
}

impl Takes {
    pub(crate) fn takes(&self, shown: &[Proof]) -> bool {
        match self {
            Self::Anybody => true,
            Self::Proven(all) => all.iter().any(|proof| shown.iter().any(|one| equal(proof, one))),
        }
    }
}

/// Takes as long for any two.
fn equal(a: &Proof, b: &Proof) -> bool {
    a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_or_refused() {
        let keys = |names: &[&str]| Some(Accept::Keys(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(Accept::parse("user"), keys(&["own"]));
        assert_eq!(Accept::parse(" any-with-port "), Some(Accept::AnyWithPort));
        assert_eq!(Accept::parse("user=lab, bob"), keys(&["own", "lab", "bob"]));
        assert_eq!(Accept::parse("user=own"), keys(&["own"]));
        let many = format!("user={}", ["x"; MAX_PROOFS].join(","));
        for other in ["", "anybody", "user=", "user=a,,b", "users", many.as_str()] {
            assert_eq!(Accept::parse(other), None, "{other}");
        }
    }
}
