// SPDX-License-Identifier: Apache-2.0
//! What the command line says of a call and its grid.

use clap::Args;

/// Which operation, on which grid.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("grid").required(true).args(["topology", "job", "site"])))]
pub(super) struct What {
    /// allgather(v), allreduce, alltoall(v), barrier, bcast, exscan, gather(v), neighbor_allgather, neighbor_alltoall,
    /// reduce, reduce_scatter, reduce_scatter_block, scan or scatter(v)
    #[arg(value_name = "OPERATION")]
    pub(super) operation: String,
    /// Size of the data, or of one block where there are blocks: 512, 64KiB, 8MiB; a barrier has none. With unequal
    /// blocks also 0..64KiB (drawn for each rank) or @FILE (one size on a line for each rank)
    #[arg(value_name = "SIZE")]
    pub(super) size: Option<String>,
    /// File that describes sites, machines, nodes, processes and links; examples/grid.toml shows how
    #[arg(short, long, value_name = "FILE")]
    pub(super) topology: Option<String>,
    /// The sites and processes of a job over several sites, with the links that it has measured
    #[arg(long, value_name = "JOB")]
    pub(super) job: Option<String>,
    /// NAME:PROCESSES or NAME:NODESxPROCESSES: so many processes at a site, with the links that earlier jobs have
    /// measured (repeat for more sites)
    #[arg(long, value_name = "SITE")]
    pub(super) site: Vec<String>,
    /// Root of bcast, reduce, gather(v), scatter(v)
    #[arg(short, long, value_name = "RANK", default_value_t = 0)]
    pub(super) root: u32,
    /// Neighbourhoods: the processes as a closed grid, row-major: 6x4
    #[arg(long, value_name = "LENGTHS")]
    pub(super) dims: Option<String>,
    /// Between two groups: the ranks below this one, and the others
    #[arg(long, value_name = "RANK")]
    pub(super) groups: Option<u32>,
    /// Simulate every piece of a long message, however long it takes
    #[arg(long)]
    pub(super) exact: bool,
    /// Draw when each process is busy, and the messages, into a file; for many processes, when each site is done
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<String>,
    /// Draw which process sends to which into a file; for many processes, which site to which
    #[arg(long, value_name = "FILE")]
    pub(super) tree: Option<String>,
}
