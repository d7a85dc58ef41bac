// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use super::*;
use crate::addresses::{place_of, place_of6, tunnel_address};

#[test]
fn grid_names_hosts_after_their_site() {
    let names = |text| {
        Topology::grid(text)
            .unwrap()
            .hosts()
            .into_iter()
            .map(|h| h.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names("2x1"), ["a1", "b1"]);
    assert_eq!(names("2x2x2"), ["a1", "a1n2", "a2", "a2n2", "b1", "b1n2", "b2", "b2n2"]);
}

#[test]
fn addresses_tell_their_site() {
    for (index, host) in Topology::grid("3x2x2").unwrap().hosts().into_iter().enumerate() {
        assert_eq!(place_of(host.address.octets()), Some((host.site, index % 4)));
    }
    assert_eq!(place_of([192, 0, 2, 1]), None);
    assert_eq!(place_of6(address6(2, 9).octets()), Some((2, 8)));
    assert_eq!(place_of(tunnel_address(2, 9).octets()), Some((2, 8)));
}

#[test]
fn toml_links_inherit_from_the_common_one() {
    let text = r#"
        sites = [{ name = "home" }, { name = "lab", machines = 2 }, { name = "far" }]
        [link]
        round_trip = "10ms"
        rate = "1gbit"
        [[links]]
        between = ["far", "home"]
        round_trip = "75ms"
        loss = "0.1%"
    "#;
    let topology = Topology::from_toml(text).unwrap();
    assert_eq!(topology.link_between(0, 1).round_trip, Duration::from_millis(10));
    let far = topology.link_between(0, 2);
    assert_eq!(
        (far.round_trip, far.rate, far.loss),
        (Duration::from_millis(75), Some(1_000_000_000), 0.001)
    );
}

#[test]
fn sites_inherit_the_common_local_link() {
    let text = r#"
        sites = [{ name = "a", machines = 2 }, { name = "b", machines = 2, local = { rate = "1gbit" } }]
        [local]
        round_trip = "1ms"
    "#;
    let topology = Topology::from_toml(text).unwrap();
    let local = |site: usize| {
        let link = topology.sites[site].local.as_ref()?;
        Some((link.round_trip, link.rate))
    };
    assert_eq!(local(0), Some((Duration::from_millis(1), None)));
    assert_eq!(local(1), Some((Duration::from_millis(1), Some(1_000_000_000))));
    assert_eq!(Topology::grid("2x2").unwrap().sites[0].local, None);
    let set = Topology::grid("2x2").and_then(|t| t.local_round_trip("2ms")).unwrap();
    assert_eq!(
        set.sites[1].local.as_ref().unwrap().round_trip,
        Duration::from_millis(2)
    );
}

#[test]
fn mistakes_are_named() {
    let cases = [
        ("sites = []", "0 sites"),
        ("sites = [{ name = \"A\" }]", "not a site name"),
        ("sites = [{ name = \"a\" }, { name = \"a\" }]", "twice"),
        (
            "sites = [{ name = \"a\" }]\n[[links]]\nbetween = [\"a\", \"b\"]",
            "no site named \"b\"",
        ),
        ("sites = [{ name = \"a\", machines = 0 }]", "0 machines"),
        ("sites = [{ name = \"a\" }]\nspeed = 3", "line 2"),
    ];
    for (text, part) in cases {
        let error = Topology::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(Topology::grid("2y1").is_err());
    assert!(Topology::grid("99x1").is_err());
}
