// SPDX-License-Identifier: Apache-2.0
//! IPv6 addresses as people write hosts: with brackets and without, and with the interface of a link-local one.

use crate::error::JobError;

/// Whether a word is an IPv6 address, also one with an interface: `fe80::1%eth0`.
pub fn is_ipv6(text: &str) -> bool {
    let (address, interface) = text.split_once('%').map_or((text, None), |(a, i)| (a, Some(i)));
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() && !b"[]@/%:".contains(&b));
    address.parse::<core::net::Ipv6Addr>().is_ok() && interface.is_none_or(is_name)
}

/// The ssh client wants `fd00::2` where people write `[fd00::2]`; in a URL the brackets stay.
///
/// # Errors
/// Brackets around something else, or one alone: the ssh client would take them for a part of a name.
pub(crate) fn without_brackets(text: &str) -> Result<String, JobError> {
    let (user, host) = text.rsplit_once('@').map_or(("", text), |(user, host)| (user, host));
    if text.contains("://") || !host.contains(['[', ']']) {
        return Ok(text.to_owned());
    }
    match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(address) if is_ipv6(address) && user.is_empty() => Ok(address.to_owned()),
        Some(address) if is_ipv6(address) => Ok(format!("{user}@{address}")),
        _ => Err(JobError::new(format!("'{text}' is not a host"))
            .hint("only an IPv6 address stands in brackets: [fd00::2]:N for N processes on it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_interfaces() {
        for text in ["::1", "fd00::2", "fe80::1%eth0", "fe80::1%br-0.7"] {
            assert!(is_ipv6(text), "{text}");
        }
        for text in [
            "",
            "a",
            "[::1]",
            "fe80::1%",
            "fe80::1%a%b",
            "fe80::1%a b",
            "eth0%fe80::1",
            "1.2.3.4",
        ] {
            assert!(!is_ipv6(text), "{text}");
        }
    }

    #[test]
    fn brackets_hold_addresses() {
        let right = [
            ("[fd00::2]", "fd00::2"),
            ("me@[fe80::1%eth0]", "me@fe80::1%eth0"),
            ("ssh://[fd00::2]:22", "ssh://[fd00::2]:22"),
            ("lab", "lab"),
        ];
        for (text, host) in right {
            assert_eq!(without_brackets(text).as_deref(), Ok(host));
        }
        for text in ["[::1", "::1]", "[]", "[lab]", "me@[", "[[::1]]", "a[1-2]"] {
            assert!(without_brackets(text).is_err(), "{text}");
        }
    }
}
