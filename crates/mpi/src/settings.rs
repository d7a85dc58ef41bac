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
    ("ISTHMUS_EAGER", Knob::Eager),
    ("ISTHMUS_POLLS", Knob::Polls),
    ("ISTHMUS_SPIN", Knob::Spin),
    ("ISTHMUS_YIELDS", Knob::Yields),
];

static CHECK: &str = "ISTHMUS_CHECK";
const COLL: &str = "ISTHMUS_COLL";

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
    if name == CHECK {
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
    /// What was wrong with the environment.
    error: Option<String>,
}

fn values() -> &'static Values {
    static VALUES: OnceLock<Values> = OnceLock::new();
    VALUES.get_or_init(|| {
        let tuning = Tuning::default();
        let mut error = None;
        for (name, knob) in KNOBS {
            match from_environment(name) {
                Ok(Some(value)) => tuning.set(knob, value),
                Ok(None) => {}
                Err(text) => error = Some(text),
            }
        }
        let check = AtomicU64::new(from_environment(CHECK).ok().flatten().unwrap_or(1));
        Values { tuning, check, error }
    })
}

fn from_environment(name: &str) -> std::result::Result<Option<u64>, String> {
    let Some(text) = std::env::var_os(name) else {
        return Ok(None);
    };
    let number = text.to_str().and_then(|t| t.trim().parse().ok());
    number.map(Some).ok_or_else(|| {
        format!(
            "the environment variable {name} is \"{}\", expected a number; isthmus info --settings says which",
            text.to_string_lossy()
        )
    })
}

/// MPI_Init: the settings begin to act.
pub(crate) fn begin() -> Result<()> {
    let values = values();
    crate::check::switch(values.check.load(Ordering::Relaxed) != 0);
    match &values.error {
        Some(text) => fail!(abi::MPI_ERR_ARG, "{text}"),
        None => Ok(()),
    }
}

/// MPI_Init: the engine is there.
pub(crate) fn tune(engine: &Shared) {
    for (_, knob) in KNOBS {
        engine.tuning().set(knob, values().tuning.get(knob));
    }
}

/// The user's word about the choice of collective algorithms.
pub(crate) fn overrides() -> Result<Overrides> {
    let text = std::env::var(COLL).unwrap_or_default();
    match Overrides::parse(&text) {
        Ok(overrides) => Ok(overrides),
        Err(error) => fail!(
            abi::MPI_ERR_ARG,
            "the environment variable {COLL} is \"{text}\": {error}"
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
                world.engine().tuning().set(knob, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_that_is_tunable_acts_on_something() {
        let tunable = isthmus_abi::SETTINGS.iter().filter(|s| s.scope == "tunable");
        for setting in tunable.clone() {
            assert!(number(setting.name).is_some(), "{}", setting.name);
        }
        assert_eq!(tunable.count(), KNOBS.len() + 1);
    }
}
