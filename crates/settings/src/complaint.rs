// SPDX-License-Identifier: Apache-2.0
//! What is wrong with the variables that a user has set.

use std::ffi::OsString;

use crate::{HINT_PREFIX, HINTS, PREFIX, SETTINGS, Setting, TEST_PREFIX, find, nearest};

/// Longest part of a value that is shown.
const SHOWN: usize = 60;
/// Most complaints: an environment has room for a great many variables.
const MOST: usize = 20;

/// One sentence for each variable `ISTHMUS_…` that is not a setting or has a value that cannot be used.
pub fn complaints(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<String> {
    let wrong = variables.into_iter().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let ours = name.starts_with(PREFIX) && !name.starts_with(TEST_PREFIX);
        ours.then(|| complaint(&name, value)).flatten()
    });
    let mut all: Vec<String> = wrong.take(MOST).collect();
    all.sort_unstable();
    all
}

fn complaint(name: &str, value: OsString) -> Option<String> {
    let Some(setting) = find(name) else {
        return Some(unknown(name));
    };
    let text = value.to_string_lossy().into_owned();
    if text.trim().is_empty() || setting.takes(value) {
        return None;
    }
    let shown: String = text.chars().take(SHOWN).collect();
    Some(format!(
        "{name} is {shown:?}; it takes {}. {}",
        setting.values(),
        used(setting)
    ))
}

fn used(setting: &Setting) -> String {
    match setting.default {
        "none" => "It is ignored.".to_owned(),
        default => format!("The default is used: {default}."),
    }
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = SETTINGS
        .iter()
        .filter(|s| s.scope != "internal")
        .map(|s| s.name)
        .collect();
    let name: String = name.chars().take(SHOWN).collect();
    // All begin alike, which would make each near to each.
    let bare = |name: &'static str| name.trim_start_matches(PREFIX);
    let words: Vec<&str> = known.into_iter().map(bare).collect();
    match nearest(name.trim_start_matches(PREFIX), &words) {
        Some(near) => format!("{name} is not a setting; did you mean {PREFIX}{near}?"),
        None => format!("{name} is not a setting; isthmus info --settings lists all"),
    }
}

/// What is wrong with an info key that begins as ours do; `None`: nothing.
pub fn unknown_hint(key: &str) -> Option<String> {
    if !key.starts_with(HINT_PREFIX) || HINTS.contains(&key) {
        return None;
    }
    let bare: Vec<&str> = HINTS.iter().filter_map(|hint| hint.strip_prefix(HINT_PREFIX)).collect();
    let key: String = key.chars().take(SHOWN).collect();
    Some(match nearest(key.trim_start_matches(HINT_PREFIX), &bare) {
        Some(near) => format!("the info key {key} has no meaning; did you mean {HINT_PREFIX}{near}?"),
        None => format!("the info key {key} has no meaning; docs/reference/hints.md lists all"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str, value: &str) -> Vec<String> {
        complaints([(name.into(), value.into())])
    }

    #[test]
    fn a_misspelt_name_is_told_with_the_nearest_one() {
        assert_eq!(
            about("ISTHMUS_STTATS", "1"),
            ["ISTHMUS_STTATS is not a setting; did you mean ISTHMUS_STATS?"]
        );
        assert_eq!(
            about("ISTHMUS_ZEBRA_CROSSING", "1"),
            ["ISTHMUS_ZEBRA_CROSSING is not a setting; isthmus info --settings lists all"]
        );
        assert_eq!(about("ISTHMUS_TEST_ZEBRA", "1").len() + about("PATH", "1").len(), 0);
    }

    #[test]
    fn a_value_outside_its_bounds_is_told_with_what_is_used() {
        assert_eq!(
            about("ISTHMUS_AWAY", "5x"),
            ["ISTHMUS_AWAY is \"5x\"; it takes seconds from 1 to 1000000. The default is used: 300."]
        );
        assert_eq!(
            about("ISTHMUS_GATEWAY_THREADS", "9"),
            ["ISTHMUS_GATEWAY_THREADS is \"9\"; it takes auto, or a number from 1 to 8. The default is used: auto."]
        );
        assert_eq!(
            about("ISTHMUS_FILE_SCOPE", "both"),
            ["ISTHMUS_FILE_SCOPE is \"both\"; it takes shared or local. The default is used: shared."]
        );
        assert_eq!(about("ISTHMUS_AWAY", "").len() + about("ISTHMUS_AWAY", "5").len(), 0);
    }

    #[test]
    fn complaints_are_bounded_and_show_no_control_characters() {
        let many = (0..1000).map(|n| (format!("ISTHMUS_X{n}").into(), OsString::new()));
        assert_eq!(complaints(many).len(), MOST);
        let long = about("ISTHMUS_AWAY", &"\x1b".repeat(5000)).concat();
        assert!(long.len() < 1000 && !long.contains('\x1b'), "{long}");
    }

    #[test]
    fn info_keys_of_ours_are_known() {
        for known in [
            "isthmus_class",
            "cb_nodes",
            "isthmus_site",
            "isthmus_scheduler",
            "isthmus_on_loss",
        ] {
            assert_eq!(unknown_hint(known), None);
        }
        assert_eq!(
            unknown_hint("isthmus_clas").unwrap(),
            "the info key isthmus_clas has no meaning; did you mean isthmus_class?"
        );
    }
}
