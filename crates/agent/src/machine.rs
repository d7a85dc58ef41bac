// SPDX-License-Identifier: Apache-2.0
//! What an agent says of its machine.

use isthmus_wire::grid::{AgentHello, NodeProcesses, VERSION};

/// Looks at the machine.
pub(crate) fn hello() -> AgentHello {
    let name = rustix::system::uname();
    AgentHello {
        version: VERSION,
        host: name.nodename().to_string_lossy().into_owned(),
        architecture: name.machine().to_string_lossy().into_owned(),
        addresses: isthmus_net::local_addresses(),
        processors: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
    }
}

/// Nanoseconds since 1970.
pub(crate) fn clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX))
}

/// This machine as the only node of a subjob whose processes have these variables.
pub(crate) fn part(processes: u32, environment: &[(String, String)]) -> NodeProcesses {
    let AgentHello { host, processors, .. } = hello();
    let pinned = isthmus_settings::ADDRESS.read(isthmus_settings::among(environment));
    NodeProcesses {
        host,
        addresses: isthmus_net::own_addresses(&pinned.join(",")),
        processors,
        processes,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_has_a_name_and_an_address() {
        let hello = super::hello();
        assert!(!hello.host.is_empty() && !hello.architecture.is_empty() && hello.processors > 0);
        assert!(
            hello.addresses.iter().all(|a| a.parse::<std::net::IpAddr>().is_ok()),
            "{:?}",
            hello.addresses
        );
    }

    #[test]
    fn a_pinned_address_is_the_only_one_that_others_are_told() {
        let last = isthmus_net::local_addresses().pop().unwrap();
        let environment = [(isthmus_settings::ADDRESS.name.to_owned(), last.clone())];
        assert_eq!(super::part(2, &environment).addresses, [last]);
        assert_eq!(super::part(2, &[]).addresses, isthmus_net::local_addresses());
    }
}
