// SPDX-License-Identifier: Apache-2.0
//! Settings that this library reads: from the environment once, changed later as control variables of MPI_T.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::{Knob, Shared, Tuning};
use isthmus_schedule::Overrides;

/// Numbers of the engine that have a setting.
const KNOBS: [(&str, Knob); 4] = [
    (isthmus_settings::EAGER.name, Knob::Eager),
    (isthmus_settings::POLLS.name, Knob::Polls),
    (isthmus_settings::SPIN.name, Knob::Spin),
    (isthmus_settings::YIELDS.name, Knob::Yields),
];

/// What a setting acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Checks of arguments: 0 is off.
    Check,
    /// A number of the engine.
    Knob(Knob),
}

/// The number behind a setting that may be changed at any time.
pub(crate) fn number(name: &str) -> Option<Number> {
    if name == isthmus_settings::CHECK.name {
        return Some(Number::Check);
    }
    KNOBS
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, knob)| Number::Knob(*knob))
}

/// Values that hold before MPI_Init, and then for the engine.
struct Values {
    tuning: Tuning,
    /// As the tool wrote it; any number but 0 means on.
    check: AtomicU64,
}

fn values() -> &'static Values {
    static VALUES: OnceLock<Values> = OnceLock::new();
    VALUES.get_or_init(|| {
        let tuning = Tuning::default();
        for (name, knob) in KNOBS {
            let value = isthmus_settings::find(name).and_then(|setting| setting.number(std::env::var_os));
            value.into_iter().for_each(|value| tuning.set(knob, value));
        }
        let check = isthmus_settings::CHECK.read(std::env::var_os);
        Values {
            tuning,
            check: AtomicU64::new(u64::from(check)),
        }
    })
}

/// MPI_Init: the settings begin to act.
pub(crate) fn begin() {
    let set = |name: &str| std::env::var_os(name).is_some();
    // The launcher has complained for the processes of its job and for what they start.
    if !set(isthmus_settings::RENDEZVOUS.name) && !set(isthmus_settings::REACH.name) {
        complain();
    }
    crate::check::switch(values().check.load(Ordering::Relaxed) != 0);
}

/// Tells of variables that mean nothing.
fn complain() {
    for text in isthmus_settings::complaints(std::env::vars_os()) {
        crate::process::say(&format!("isthmus: warning: {text}"));
    }
}

/// MPI_Init: the engine is there.
pub(crate) fn tune(engine: &Shared) {
    for (_, knob) in KNOBS {
        engine.pace().tuning().set(knob, values().tuning.get(knob));
    }
}

/// The user's word about the choice of collective algorithms.
pub(crate) fn overrides() -> Result<Overrides> {
    let setting = isthmus_settings::COLL;
    let text = setting.read(std::env::var_os).unwrap_or_default();
    match Overrides::parse(&text) {
        Ok(overrides) => Ok(overrides),
        Err(error) => fail!(
            abi::MPI_ERR_ARG,
            "the environment variable {} is \"{text}\": {error}",
            setting.name
        ),
    }
}

/// The present value.
pub(crate) fn read(number: Number) -> u64 {
    match number {
        Number::Check => values().check.load(Ordering::Relaxed),
        Number::Knob(knob) => values().tuning.get(knob),
    }
}

/// Changes a value; acts at once.
pub(crate) fn write(number: Number, value: u64) {
    match number {
        Number::Check => {
            values().check.store(value, Ordering::Relaxed);
            crate::check::switch(value != 0);
        }
        Number::Knob(knob) => {
            values().tuning.set(knob, value);
            if let Ok(world) = crate::process::world() {
                world.engine().pace().tuning().set(knob, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_that_is_tunable_acts_on_something() {
        let tunable = isthmus_settings::SETTINGS.iter().filter(|s| s.scope == "tunable");
        for setting in tunable.clone() {
            assert!(number(setting.name).is_some(), "{}", setting.name);
        }
        assert_eq!(tunable.count(), KNOBS.len() + 1);
    }
}
