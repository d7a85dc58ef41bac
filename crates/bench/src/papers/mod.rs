// SPDX-License-Identifier: Apache-2.0
//! Experiments over emulated grids: completion against what no algorithm can beat, and the set-ups of the papers.

mod bandwidth;
mod bound;
mod figures;
mod grid;
mod lab;
mod latency;
mod predict;
mod section;
mod tables;
mod times;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use self::lab::Lab;
use self::section::Section;
use crate::error::Error;
use crate::peers::{self, Places};
use crate::plot::Page;
use crate::program::Program;

/// What to measure and where to put it.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Only these experiments; by default all of this command.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Undisturbed repetitions of each test.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Ranks on each of the six machines that the bounds are measured on; peers that spin need processors: 1 is fairer
    /// to them.
    #[arg(long, default_value_t = 4)]
    ranks: usize,
    /// Longest time of a job, seconds; what it printed until then counts.
    #[arg(long, default_value_t = 600)]
    patience: u64,
    /// What earlier runs wrote with --json: their experiments are shown, not measured again unless --only names them.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    with: Vec<PathBuf>,
    /// Measure nothing: show what --with has.
    #[arg(long, requires = "with")]
    show: bool,
    /// Write everything measured to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with plots and tables to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Fail when a promise is not kept.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    places: Places,
}

/// One experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Experiment {
    Latency,
    Bandwidth,
    /// The same with one rank on each machine.
    LatencyOne,
    BandwidthOne,
    Figure1,
    Figure8,
    Table2,
    Table3,
    Table4,
    Table5,
    /// Simulated and measured, a few bytes.
    PredictShort,
    /// The same, 16 MiB.
    PredictLong,
    /// The same, the papers'.
    PredictTable2,
    PredictTable3,
    PredictTable4,
    PredictFigure8,
}

impl Experiment {
    /// Against the bounds.
    pub(crate) const BOUNDS: [Self; 2] = [Self::Latency, Self::Bandwidth];
    /// Everything on the page.
    pub(crate) const ALL: [Self; 16] = [
        Self::Latency,
        Self::Bandwidth,
        Self::LatencyOne,
        Self::BandwidthOne,
        Self::Figure1,
        Self::Figure8,
        Self::Table2,
        Self::Table3,
        Self::Table4,
        Self::Table5,
        Self::PredictShort,
        Self::PredictLong,
        Self::PredictTable2,
        Self::PredictTable3,
        Self::PredictTable4,
        Self::PredictFigure8,
    ];

    /// Simulated and measured: the last of them.
    pub(crate) const fn predict() -> &'static [Self] {
        const { Self::ALL.split_at(Self::PredictShort as usize).1 }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::LatencyOne => "latency-one",
            Self::BandwidthOne => "bandwidth-one",
            Self::Figure1 => "figure1",
            Self::Figure8 => "figure8",
            Self::Table2 => "table2",
            Self::Table3 => "table3",
            Self::Table4 => "table4",
            Self::Table5 => "table5",
            Self::PredictShort => "simulated-short",
            Self::PredictLong => "simulated-long",
            Self::PredictTable2 => "simulated-table2",
            Self::PredictTable3 => "simulated-table3",
            Self::PredictTable4 => "simulated-table4",
            Self::PredictFigure8 => "simulated-figure8",
        }
    }

    fn run(self, lab: &Lab) -> Result<Section, Error> {
        match self {
            Self::Latency => latency::run(lab),
            Self::Bandwidth => bandwidth::run(lab),
            Self::LatencyOne => one_on_each(lab, latency::run),
            Self::BandwidthOne => one_on_each(lab, bandwidth::run),
            Self::Figure1 => figures::figure1(lab),
            Self::Figure8 => figures::figure8(lab),
            Self::Table2 => tables::table2(lab),
            Self::Table3 => tables::table3(lab),
            Self::Table4 => tables::table4(lab),
            Self::Table5 => tables::table5(lab),
            Self::PredictShort => predict::short(lab),
            Self::PredictLong => predict::long(lab),
            Self::PredictTable2 => predict::table(lab, 2),
            Self::PredictTable3 => predict::table(lab, 3),
            Self::PredictTable4 => predict::table(lab, 4),
            Self::PredictFigure8 => predict::figure8(lab),
        }
    }
}

/// An experiment with one rank on each machine: libraries whose ranks spin while they wait need processors.
fn one_on_each(lab: &Lab, run: fn(&Lab) -> Result<Section, Error>) -> Result<Section, Error> {
    let lab = Lab {
        ranks_per_machine: 1,
        ..lab.clone()
    };
    let mut section = run(&lab)?;
    section.title.push_str(", one rank on each machine");
    Ok(section)
}

/// Runs those of `all` that were asked for and tells about them.
pub(crate) fn run(all: &[Experiment], options: &Options) -> Result<ExitCode, Error> {
    let mut sections = earlier(all, &options.with)?;
    let mut chosen = choose(all, &options.only)?;
    if options.only.is_empty() {
        chosen.retain(|experiment| !sections.contains_key(experiment));
    }
    if options.show {
        chosen.clear();
        sections.values().for_each(|section| print!("{}", section.text()));
    }
    let found = peers::find(
        &options.places,
        &[Program::Collectives, Program::Roots, Program::Messages],
    );
    let lab = Lab {
        // What is only shown needs no library.
        peers: if options.show {
            found.unwrap_or_default()
        } else {
            found?
        },
        repetitions: options.repetitions.clamp(1, 1000),
        ranks_per_machine: options.ranks.clamp(1, 100),
        patience: Duration::from_secs(options.patience),
    };
    for experiment in chosen {
        let start = Instant::now();
        eprintln!("{}", experiment.name());
        let section = experiment.run(&lab)?;
        eprintln!("{} done in {:.0} s", experiment.name(), start.elapsed().as_secs_f64());
        print!("{}", section.text());
        sections.insert(experiment, section);
        // After each, so that a long run that is interrupted has told what it could.
        write(options, &lab, &sections)?;
    }
    write(options, &lab, &sections)?;
    let missed = sections.values().any(|s| s.verdicts.iter().any(|v| !v.met));
    Ok(if options.strict && missed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The reports in the files of earlier runs, in the order of the experiments.
fn earlier(all: &[Experiment], files: &[PathBuf]) -> Result<BTreeMap<Experiment, Section>, Error> {
    let mut sections = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(Error::system(format!("read {}", file.display())))?;
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        let found = all.iter().filter_map(|&experiment| {
            let section = Section::of_json(&report["experiments"][experiment.name()])?;
            Some((experiment, section))
        });
        let before = sections.len();
        sections.extend(found);
        if sections.len() == before {
            return Err(Error::Unknown {
                kind: "report of experiments",
                name: file.display().to_string(),
                known: "what --json writes".to_owned(),
            });
        }
    }
    Ok(sections)
}

fn choose(all: &[Experiment], only: &[String]) -> Result<Vec<Experiment>, Error> {
    let known = || all.iter().map(|e| e.name()).collect::<Vec<_>>().join(", ");
    for name in only {
        if !all.iter().any(|e| e.name() == name) {
            return Err(Error::Unknown {
                kind: "experiment",
                name: name.clone(),
                known: known(),
            });
        }
    }
    let wanted = |e: &&Experiment| only.is_empty() || only.iter().any(|name| name == e.name());
    Ok(all.iter().filter(wanted).copied().collect())
}

fn write(options: &Options, lab: &Lab, sections: &BTreeMap<Experiment, Section>) -> Result<(), Error> {
    let save = |path: &PathBuf, text: String| {
        std::fs::write(path, text).map_err(Error::system(format!("write {}", path.display())))
    };
    if let Some(path) = &options.json {
        let experiments: serde_json::Map<_, _> =
            sections.iter().map(|(e, s)| (e.name().to_owned(), s.json())).collect();
        let versions: serde_json::Map<_, _> = lab
            .peers
            .iter()
            .map(|peer| (peer.name.clone(), json!(peer.version)))
            .collect();
        let all = json!({ "versions": versions, "experiments": experiments });
        save(path, format!("{all:#}\n"))?;
    }
    if let Some(path) = &options.html {
        let versions: Vec<String> = lab.peers.iter().map(|p| format!("{}: {}", p.name, p.version)).collect();
        let page = Page::new("Collective operations over emulated grids")
            .text(PREFACE)
            .text(&format!(
                "Libraries: {}. Load of the machine at the end: {}.",
                versions.join("; "),
                load()
            ));
        let page = sections.values().fold(page, |page, section| section.onto(page));
        save(path, page.html())?;
    }
    Ok(())
}

const PREFACE: &str = "Hosts are namespaces of one machine, links are emulated with the stated round trips and rates (isthmus-testbed). All \
ranks share the processors of that machine and its clock. A time lasts from a moment agreed beforehand until the last \
rank is done; the median of the repetitions is given with the least and the greatest. The papers' machines are gone: \
their numbers stand beside ours for their ratios, not for their milliseconds. Peers see a flat network over the same links.";

/// The load averages as the kernel tells them.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_chosen_in_their_order() {
        let choose = |names: &[&str]| {
            choose(
                &Experiment::ALL,
                &names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            choose(&["table2", "latency"]).unwrap(),
            [Experiment::Latency, Experiment::Table2]
        );
        assert_eq!(choose(&[]).unwrap().len(), 16);
        assert_eq!(Experiment::predict().len(), 6);
        assert!(Experiment::predict().iter().all(|e| e.name().starts_with("simulated-")));
        assert!(choose(&["table9"]).unwrap_err().to_string().contains("figure8"));
    }
}
