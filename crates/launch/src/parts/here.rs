// SPDX-License-Identifier: Apache-2.0
//! This machine, as other parts hear of it.

/// Its name, for people.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Equal at launchers whose processes reach each other over the loopback interface.
pub(crate) fn machine() -> [u8; 32] {
    let unknown = || isthmus_stage::guarded::random().unwrap_or_default();
    isthmus_net::machine().unwrap_or_else(unknown)
}
