// SPDX-License-Identifier: Apache-2.0
use super::*;

struct Site;

impl View for Site {
    fn number(&self, field: &str) -> Option<f64> {
        match field {
            "cores" => Some(64.0),
            "memory" => Some(16.0 * 1_073_741_824.0),
            "wait" => Some(90.0),
            _ => None,
        }
    }
    fn texts(&self, field: &str) -> Vec<String> {
        match field {
            "scheduler" => vec!["slurm".into()],
            "mpi" => vec!["MPICH 4.0.2".into(), "Open MPI 4.1".into()],
            _ => vec![],
        }
    }
    fn round_trip(&self, site: &str) -> Option<f64> {
        (site == "home").then_some(0.020)
    }
    fn rate(&self, site: &str) -> Option<f64> {
        (site == "home").then_some(1e8)
    }
}

fn matches(text: &str) -> bool {
    let selection = Selection::parse(text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        Selection::parse(&selection.to_string()),
        Ok(selection.clone()),
        "{selection}"
    );
    selection.matches(&Site)
}

#[test]
fn conditions() {
    for (text, want) in [
        ("cores>=64 && rtt(home)<30ms", true),
        ("cores > 64", false),
        ("cores == 64 && !(memory < 8GiB)", true),
        ("rtt(home) < 10 ms || rate(home) >= 100Mbit/s", true),
        ("scheduler == slurm && mpi ~ 'open mpi'", true),
        ("scheduler != slurm", false),
        ("wait <= 2min", true),
        ("load < 1", false),
        ("!(load < 1)", false),
        ("load < 1 || cores >= 1", true),
        ("load < 1 && cores < 1", false),
        ("!(load < 1 && cores < 1)", true),
        ("rtt('far') < 1s", false),
        ("compiler ~ gcc", false),
    ] {
        assert_eq!(matches(text), want, "{text}");
    }
}

#[test]
fn errors_point_at_the_word() {
    for (text, place, part) in [
        ("cors >= 64", ":1:1", "did you mean 'cores'"),
        ("cores >= 64 &&", ":1:15", "a value is missing"),
        ("cores >= 64 rtt(home) < 1ms", ":1:13", "&& or ||"),
        ("cores = 64", ":1:7", "write =="),
        ("rtt(home) < 30", ":1:1", "write a unit"),
        ("rtt(home < 30ms", ":1:10", "not closed"),
        ("cores >= 3parsecs", ":1:10", "'parsecs' is not a unit"),
        ("cores < slurm", ":1:1", "a number is compared with a text"),
        ("scheduler < slurm", ":1:1", "have no order"),
        ("cores ~ 3", ":1:1", "'~' is for texts"),
        ("(cores > 3", ":1:11", "not closed"),
        ("cores & 3", ":1:7", "write && or ||"),
        ("mpi ~ 'x", ":1:7", "has no end"),
        ("", ":1:1", "a value is missing"),
        ("cores", ":1:6", "comparison is missing"),
    ] {
        let error = Selection::parse(text).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(part), "{text}: {error}");
    }
    assert!(Selection::parse(&"(".repeat(1000)).is_err());
    assert!(Selection::parse(&"!".repeat(4000)).is_err());
    assert!(Selection::parse(&"x".repeat(5000)).is_err());
}

#[test]
fn processes_are_dealt_out() {
    let site = |site: &str, room, most, distance| Candidate {
        site: site.into(),
        room,
        most,
        distance,
    };
    let sites = [
        site("home", 2, 2, 0.0),
        site("big", 8, 16, 0.04),
        site("near", 4, 8, 0.01),
        site("far", 8, 8, 0.2),
    ];
    let dealt = |total, how| -> Vec<(String, u32)> { place(&sites, total, how).unwrap() };
    let pairs =
        |list: &[(&str, u32)]| -> Vec<(String, u32)> { list.iter().map(|(s, n)| ((*s).to_owned(), *n)).collect() };
    assert_eq!(dealt(2, Placement::Compact), pairs(&[("home", 2)]));
    assert_eq!(dealt(4, Placement::Compact), pairs(&[("near", 4)]));
    assert_eq!(
        dealt(8, Placement::Compact),
        pairs(&[("big", 8)]),
        "the nearer of those that take all"
    );
    assert_eq!(dealt(12, Placement::Compact), pairs(&[("big", 8), ("far", 4)]));
    assert_eq!(
        dealt(12, Placement::Spread),
        pairs(&[("home", 2), ("big", 3), ("near", 4), ("far", 3)])
    );
    assert_eq!(
        dealt(24, Placement::Compact),
        pairs(&[("big", 16), ("near", 8)]),
        "who must wait waits at few sites"
    );
    assert!(place(&sites, 100, Placement::Spread).is_err());
    for total in 1..=34 {
        for how in [Placement::Compact, Placement::Spread] {
            assert_eq!(dealt(total, how).iter().map(|(_, n)| n).sum::<u32>(), total);
        }
    }
}
