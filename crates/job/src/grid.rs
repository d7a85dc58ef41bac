// SPDX-License-Identifier: Apache-2.0
//! A grid that need not exist: sites, machines, nodes, processes and links, for the simulator.
//!
//! ```toml
//! [level.wide]                      # what links cost: see the module `links`
//! latency = "20 ms"
//! rate = "100 Mbit/s"
//!
//! [[site]]
//! name = "paris"
//! machines = 2                      # each with
//! nodes = 1                         # nodes, each with
//! processes = 4                     # processes
//! processors = 2                    # that share so many processors; without it each has one of its own
//! mpi = true                        # the processes of each machine are one job of its own MPI
//!
//! [[site]]
//! name = "lab"
//! machines = [{ nodes = 1, processes = 10 }, { nodes = 2, processes = 5 }]
//!
//! [[site]]
//! name = "city"
//! count = 20                        # city-1 to city-20, all alike
//!
//! [[link]]                          # replaces what [level.wide] says
//! between = ["paris", "lab"]
//! latency = "37.5 ms"
//! ```
//!
//! Ranks go by site, machine and node in the order of the file. Algorithms are chosen for the node with the fewest
//! processors, as in a job.

use crate::error::JobError;
use crate::links;
use crate::naming::check_name;
use crate::source::{Source, Table};
use isthmus_topology::{LinkEstimates, Links, Topology};
use std::collections::{HashMap, HashSet};
use toml_edit::Item;

/// Most processes of a grid.
pub const MAX_PROCESSES: u64 = 1 << 20;

const TOP_KEYS: [&str; 4] = ["level", "link", "process", "site"];
const SITE_KEYS: [&str; 7] = ["count", "machines", "mpi", "name", "nodes", "processes", "processors"];
const MACHINE_KEYS: [&str; 4] = ["mpi", "nodes", "processes", "processors"];

/// A grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Where its processes are. Local areas are sites, numbered as in `sites`.
    pub topology: Topology,
    /// What its messages cost.
    pub links: Links,
    /// Names of the sites.
    pub sites: Vec<String>,
}

/// Reads a topology file; `file` is its name for messages.
pub fn parse(text: &str, file: &str) -> Result<Grid, JobError> {
    let source = Source::new(text, file);
    let document = source.read("topology file")?;
    let top = Table::top(source, &document);
    top.check_keys(&TOP_KEYS, "a topology file")?;
    let mut builder = Builder::default();
    for site in top.tables("site")? {
        builder.read(&site)?;
    }
    if builder.places.is_empty() {
        let error = top.of_file("there is no [[site]]");
        return Err(error.hint("add at least: [[site]], name = \"home\", processes = 4"));
    }
    let numbers = &builder.numbers;
    let pins = links::pins(&top, |name| numbers.contains_key(name).then(|| name.to_owned()))?;
    let estimates = pins.pinned(LinkEstimates::new(pins.levels(), []), |name| numbers.get(name).copied());
    let estimates = estimates.with_processors(builder.processors.unwrap_or(u32::MAX));
    Ok(Grid {
        topology: Topology::from_clusters(builder.places).with_vendor_jobs(|machine| builder.jobs.contains(&machine)),
        links: Links::clone(estimates.links()),
        sites: builder.names,
    })
}

/// What has been read of the sites.
#[derive(Default)]
struct Builder {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    machines: u32,
    /// Machines whose own MPI is underneath.
    jobs: HashSet<u32>,
    nodes: u32,
    places: Vec<[u32; 3]>,
    /// The fewest that are said of a node.
    processors: Option<u32>,
}

/// Machines that are alike.
#[derive(Clone)]
struct Machine {
    nodes: u32,
    /// Per node.
    processes: u32,
    /// Per node, if that is said.
    processors: Option<u32>,
    /// Whether its own MPI is underneath.
    mpi: bool,
}

impl Builder {
    /// Appends what a table says of a site, or of several that are alike.
    fn read(&mut self, table: &Table<'_>) -> Result<(), JobError> {
        table.check_keys(&SITE_KEYS, "a site")?;
        let Some(name) = table.text("name")? else {
            let error = JobError::new("this site lacks 'name'").hint("add name = \"home\"");
            return Err(table.at(error));
        };
        table.point("name", check_name("site", &name))?;
        let count = number(table, "count")?;
        let machines = machines(table)?;
        let each: u64 = machines
            .iter()
            .map(|m| u64::from(m.nodes) * u64::from(m.processes))
            .sum();
        let all = each.saturating_mul(u64::from(count.unwrap_or(1)));
        if all.saturating_add(self.places.len() as u64) > MAX_PROCESSES {
            let problem = format!("with site '{name}' there are more than {MAX_PROCESSES} processes");
            return Err(table.at(JobError::new(problem)));
        }
        for i in 1..=count.unwrap_or(1) {
            let name = if count.is_some() {
                format!("{name}-{i}")
            } else {
                name.clone()
            };
            if self.numbers.contains_key(&name) {
                let error = JobError::new(format!("site '{name}' is named twice"));
                return Err(table.at_key("name", error));
            }
            self.add(name, &machines);
        }
        Ok(())
    }

    /// Appends a site.
    fn add(&mut self, name: String, machines: &[Machine]) {
        let site = self.names.len() as u32;
        self.numbers.insert(name.clone(), site);
        self.names.push(name);
        for machine in machines {
            let said = [self.processors, machine.processors];
            self.processors = said.into_iter().flatten().min();
            if machine.mpi {
                self.jobs.insert(self.machines);
            }
            for _ in 0..machine.nodes {
                let place = [site, self.machines, self.nodes];
                self.places.extend((0..machine.processes).map(|_| place));
                self.nodes += 1;
            }
            self.machines += 1;
        }
    }
}

impl Machine {
    /// The machine, or each of several that are alike, of which a table speaks.
    fn read(table: &Table<'_>) -> Result<Self, JobError> {
        Ok(Self {
            nodes: number(table, "nodes")?.unwrap_or(1),
            processes: number(table, "processes")?.unwrap_or(1),
            processors: number(table, "processors")?,
            mpi: table.flag("mpi")?.unwrap_or(false),
        })
    }
}

/// Each machine of a site.
fn machines(table: &Table<'_>) -> Result<Vec<Machine>, JobError> {
    if table.get("machines").is_none_or(Item::is_integer) {
        let machine = Machine::read(table)?;
        return Ok(vec![machine; number(table, "machines")?.unwrap_or(1) as usize]);
    }
    if let Some(key) = MACHINE_KEYS.into_iter().find(|key| table.has(key)) {
        let error = JobError::new(format!("'{key}' belongs to each machine in the list 'machines'"));
        return Err(table.at_key(key, error));
    }
    let machines = table.tables("machines")?.into_iter().map(|machine| {
        machine.check_keys(&MACHINE_KEYS, "a machine")?;
        Machine::read(&machine)
    });
    let machines = machines.collect::<Result<Vec<_>, _>>()?;
    if machines.is_empty() {
        let error = JobError::new("'machines' is an empty list");
        return Err(table.at_key("machines", error));
    }
    Ok(machines)
}

/// A number from 1 to [`MAX_PROCESSES`].
fn number(table: &Table<'_>, key: &str) -> Result<Option<u32>, JobError> {
    let Some(number) = table.integer(key)? else {
        return Ok(None);
    };
    match u32::try_from(number) {
        Ok(n) if n > 0 && u64::from(n) <= MAX_PROCESSES => Ok(Some(n)),
        _ => {
            let error = JobError::new(format!("'{key}' must be from 1 to {MAX_PROCESSES}"));
            Err(table.at_key(key, error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_topology::Level;

    const GOOD: &str = r#"
[level.wide]
latency = "20 ms"
rate = "100 Mbit/s"
[level.node]
send = [["1 B", "100 ns"], ["1 KiB", "300 ns"]]
[process]
reduce = "1 GB/s"
[[site]]
name = "paris"
machines = 2
processes = 3
[[site]]
name = "lab"
machines = [{ processes = 2 }, { nodes = 2 }]
[[site]]
name = "city"
count = 2
[[link]]
between = ["paris", "city-2"]
latency = "37.5 ms"
"#;

    #[test]
    fn a_grid() {
        let grid = parse(GOOD, "g.toml").unwrap();
        assert_eq!(grid.sites, ["paris", "lab", "city-1", "city-2"]);
        let places: Vec<_> = (0..grid.topology.size())
            .map(|r| grid.topology.clusters_of(r))
            .collect();
        assert_eq!(places[0..4], [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 1]]);
        assert_eq!(
            places[6..],
            [[1, 2, 2], [1, 2, 2], [1, 3, 3], [1, 3, 4], [2, 4, 5], [3, 5, 6]]
        );
        let (_, link) = grid.links.between(&grid.topology, 11, 0);
        assert_eq!((link.latency, link.gap.at(12_500_000)), (37_500_000, 1_000_000_000));
        assert_eq!(grid.links.between(&grid.topology, 0, 10).1.latency, 20_000_000);
        assert_eq!(grid.links.level(Level::Node).send.at(2047), 500);
        assert_eq!(grid.links.reduce.at(1000), 1000);
        assert_eq!(grid.links.processors, u32::MAX);
    }

    #[test]
    fn the_fewest_processors_of_a_node_count() {
        let text = "[[site]]\nname = \"a\"\nprocesses = 8\nprocessors = 4\n\
                    [[site]]\nname = \"b\"\nmachines = [{ processes = 8, processors = 2 }, { processes = 8 }]\n";
        assert_eq!(parse(text, "g.toml").unwrap().links.processors, 2);
        let text = text.replace("machines =", "processors = 3\nmachines =");
        let error = parse(&text, "g.toml").unwrap_err().to_string();
        assert!(
            error.starts_with("g.toml:7:14: 'processors' belongs to each machine"),
            "{error}"
        );
    }

    #[test]
    fn jobs_of_a_machines_own_mpi() {
        let text = "[level.vendor]\nlatency = \"3 us\"\n\
                    [[site]]\nname = \"a\"\nmpi = true\nmachines = 2\nnodes = 2\n\
                    [[site]]\nname = \"b\"\nmachines = [{ processes = 2, mpi = true }, { nodes = 2 }]\n";
        let grid = parse(text, "g.toml").unwrap();
        let levels = |a, others: [u32; 3]| others.map(|b| grid.topology.level_between(a, b));
        assert_eq!(levels(0, [1, 2, 4]), [Level::Vendor, Level::LocalArea, Level::WideArea]);
        assert_eq!(levels(5, [4, 6, 0]), [Level::Vendor, Level::LocalArea, Level::WideArea]);
        assert_eq!(
            levels(6, [7, 4, 0]),
            [Level::Machine, Level::LocalArea, Level::WideArea]
        );
        assert_eq!(grid.links.level(Level::Vendor).latency, 3000);
        let text = text.replace("machines = [", "mpi = true\nmachines = [");
        let error = parse(&text, "g.toml").unwrap_err().to_string();
        assert!(
            error.starts_with("g.toml:10:7: 'mpi' belongs to each machine"),
            "{error}"
        );
    }

    #[test]
    fn errors_point_at_the_place() {
        let head = "[[site]]\nname = \"a\"\n";
        for (body, start) in [
            ("cuont = 3\n", "g.toml:3:1: unknown key 'cuont' in a site"),
            ("processes = 0\n", "g.toml:3:13: 'processes' must be from 1"),
            ("machines = \"x\"\n", "g.toml:3:12: 'machines' must be a list"),
            ("machines = []\n", "g.toml:3:12: 'machines' is an empty list"),
            (
                "machines = 1000000\nnodes = 1000000\n",
                "g.toml:1:1: with site 'a' there are more",
            ),
            ("[[site]]\nname = \"a\"\n", "g.toml:4:8: site 'a' is named twice"),
            ("[[site]]\n", "g.toml:3:1: this site lacks 'name'"),
            (
                "[[link]]\nbetween = [\"a\", \"b\"]\n",
                "g.toml:4:11: 'between' must name two",
            ),
            ("[level.wide]\nlatency = \"5\"\n", "g.toml:4:11: '5' is not a time"),
            (
                "[level.wide]\nrate = \"5 B/s\"\ngap = \"1 s\"\n",
                "g.toml:5:7: 'rate' and 'gap'",
            ),
            (
                "[level.wide]\nsend = [[\"1 B\", 5]]\n",
                "g.toml:4:17: this must be a text",
            ),
            (
                "[level.wide]\nsend = [[\"1 B\"]]\n",
                "g.toml:4:8: 'send' must be a time",
            ),
            ("[level.rack]\n", "g.toml:3:8: unknown key 'rack' in 'level'"),
            ("mpi = \"mpiexec\"\n", "g.toml:3:7: 'mpi' must be true or false"),
            ("[level\n", "g.toml:3:"),
        ] {
            let text = parse(&format!("{head}{body}"), "g.toml").unwrap_err().to_string();
            assert!(text.starts_with(start), "{body}: {text}");
        }
        assert!(
            parse("", "g.toml")
                .unwrap_err()
                .to_string()
                .contains("there is no [[site]]")
        );
    }
}
