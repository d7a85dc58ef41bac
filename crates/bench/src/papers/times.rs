// SPDX-License-Identifier: Apache-2.0
//! What the programs print, read.

use std::collections::BTreeMap;

use super::bound::{Depends, latency};
use super::grid::Grid;

/// A test of `bench/collectives.c`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Test {
    pub(super) name: String,
    pub(super) root: usize,
    pub(super) bytes: usize,
}

impl Test {
    pub(super) fn new(name: &str, root: usize, bytes: usize) -> Self {
        Self {
            name: name.to_owned(),
            root,
            bytes,
        }
    }

    /// As the program takes it.
    pub(super) fn argument(&self) -> String {
        format!("{}@{}:{}", self.name, self.root, self.bytes)
    }

    /// For people.
    pub(super) fn label(&self) -> String {
        match Depends::of(&self.name, self.root) {
            Depends::From(root) | Depends::To(root) => format!("{}, root {root}", self.name),
            Depends::All | Depends::Lower => self.name.clone(),
        }
    }
}

/// One repetition: when each rank began and was done, seconds after the agreed time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Repetition {
    pub(super) begins: Vec<f64>,
    pub(super) ends: Vec<f64>,
}

impl Repetition {
    /// Until the last rank was done.
    pub(super) fn time(&self) -> f64 {
        self.ends.iter().copied().fold(0.0, f64::max)
    }

    /// Until the last rank was done, without what the ranks that began late have moved the least possible time by.
    pub(super) fn fair(&self, grid: &Grid, depends: Depends) -> f64 {
        self.time() - (latency(grid, depends, true, &self.begins) - latency(grid, depends, true, &[]))
    }

    /// When the last rank began.
    pub(super) fn lateness(&self) -> f64 {
        self.begins.iter().copied().fold(0.0, f64::max)
    }
}

/// All repetitions by test.
pub(super) type Times = BTreeMap<Test, Vec<Repetition>>;

/// The `TIME` lines of an output; others are passed over.
pub(super) fn times(output: &str) -> Times {
    let mut times = Times::new();
    for line in output.lines() {
        if let Some((test, repetition)) = time(line) {
            times.entry(test).or_default().push(repetition);
        }
    }
    times
}

fn time(line: &str) -> Option<(Test, Repetition)> {
    let fields: Vec<&str> = line.split_once("TIME ")?.1.split_whitespace().collect();
    let [name, root, bytes, begins, ends] = fields[..] else {
        return None;
    };
    let repetition = Repetition {
        begins: numbers(begins)?.into_iter().map(|us| us / 1e6).collect(),
        ends: numbers(ends)?.into_iter().map(|us| us / 1e6).collect(),
    };
    let whole = !repetition.ends.is_empty() && repetition.begins.len() == repetition.ends.len();
    whole.then_some((Test::new(name, root.parse().ok()?, bytes.parse().ok()?), repetition))
}

fn numbers(text: &str) -> Option<Vec<f64>> {
    let read = |number: &str| number.parse().ok().filter(|n: &f64| n.is_finite());
    text.split(',').map(read).collect()
}

/// What `bench/roots.c` says of one shape and size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Roots {
    /// Mean time for a root with its acknowledgement, seconds.
    pub(super) per_root: f64,
    /// Of the broadcast alone, for each root, seconds.
    pub(super) broadcasts: Vec<f64>,
    /// Messages between sites for each root; -1: not counted.
    pub(super) wide: Vec<f64>,
    /// Messages between machines of a site for each root.
    pub(super) local: Vec<f64>,
}

/// By shape and size; what is not whole is left out.
pub(super) fn roots(output: &str) -> BTreeMap<(String, usize), Roots> {
    let mut all: BTreeMap<(String, usize), Roots> = BTreeMap::new();
    for line in output.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [what, shape, bytes, values] = fields[..] else {
            continue;
        };
        let (Ok(bytes), Some(values)) = (bytes.parse(), numbers(values)) else {
            continue;
        };
        let seconds = || values.iter().map(|us| us / 1e6).collect::<Vec<f64>>();
        let one = all.entry((shape.to_owned(), bytes)).or_default();
        match what {
            "LOOP" => one.per_root = seconds()[0],
            "BCAST" => one.broadcasts = seconds(),
            "WIDE" => one.wide = values,
            "LOCAL" => one.local = values,
            _ => {}
        }
    }
    all.retain(|_, one| !one.broadcasts.is_empty() && one.local.len() == one.broadcasts.len());
    all
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_are_read_and_rubbish_is_not() {
        let text = "hello\n[0] TIME ibcast 3 8 100,200 1000,2500\nTIME ibcast 3 8 0,0 1000,x\nTIME ibcast 3 8 0 1,2\n";
        let times = times(text);
        assert_eq!(times.len(), 1);
        let repetitions = &times[&Test::new("ibcast", 3, 8)];
        assert_eq!(repetitions.len(), 1);
        assert!((repetitions[0].time() - 0.0025).abs() < 1e-12);
        assert!((repetitions[0].lateness() - 0.0002).abs() < 1e-12);
    }

    #[test]
    fn a_late_root_is_not_the_librarys_fault() {
        let grid = Grid::new(&[("a", &[1]), ("b", &[1])], Duration::from_millis(20), 1);
        let repetition = Repetition {
            begins: vec![0.003, 0.0],
            ends: vec![0.003, 0.0134],
        };
        let fair = |root| repetition.fair(&grid, Depends::From(root));
        assert!((fair(0) - 0.0104).abs() < 1e-9 && (fair(1) - 0.0134).abs() < 1e-9);
    }

    #[test]
    fn roots_are_read_when_they_are_whole() {
        let text = "LOOP library 8 40.5\nBCAST library 8 1,2\nWIDE library 8 1,1\nLOCAL library 8 0,1\nLOOP site 8 1\n";
        let roots = roots(text);
        assert_eq!(roots.len(), 1);
        let one = &roots[&("library".to_owned(), 8)];
        assert_eq!(
            (one.wide.as_slice(), one.local.as_slice()),
            (&[1.0, 1.0][..], &[0.0, 1.0][..])
        );
    }
}
