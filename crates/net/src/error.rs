// SPDX-License-Identifier: Apache-2.0
//! Why networking cannot start.

/// Why networking could not start. Always a matter of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetError {
    /// No port to listen on; the text names the range and the reason.
    Listen(String),
    /// A system call failed; the text names it.
    System(String),
    /// Peers on other nodes, but no certificate.
    NoIdentity,
}

impl std::fmt::Display for NetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(why) => write!(f, "failed to listen for connections of other ranks: {why}"),
            Self::System(why) => write!(f, "failed to set up connections to other ranks: {why}"),
            Self::NoIdentity => f.write_str("this process got no certificate although ranks of its job are on other nodes; the agent that started it is at fault"),
        }
    }
}

impl std::error::Error for NetError {}
