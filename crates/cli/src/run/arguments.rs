// SPDX-License-Identifier: Apache-2.0
//! What the command line of `isthmus run` says.

use super::how::Launch;
use crate::discover::Distribution;
use crate::job::Source;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// Run a program on one or several sites as one MPI job
#[derive(Args, Debug)]
#[command(
    override_usage = "isthmus run [OPTIONS] PROGRAM [ARGUMENT]...\n       isthmus run [OPTIONS] JOB.toml|JOB.rsl\n       \
    isthmus run [OPTIONS] --job MACHINES PROGRAM [ARGUMENT]...",
    after_help = "Options of mpiexec are accepted too, such as -np 4, -x NAME or -initial-errhandler mpi_errors_return.\n\n\
    Examples:\n  \
    isthmus run -n 8 ./app                           on this machine\n  \
    isthmus run --site home:4 --site lab:16 ./app    and on a machine that ssh reaches\n  \
    isthmus run --site lab:64,scheduler=slurm,queue=debug,limit=1h ./app\n  \
    isthmus run job.toml"
)]
pub(crate) struct Run {
    /// Total number of processes [default: 1 per site; in a scheduler's allocation, its slots]
    #[arg(short = 'n', long = "processes", value_name = "N", allow_hyphen_values = true)]
    pub(super) processes: Option<String>,
    /// Site to run on: NAME[:N] or ALIAS=NAME[:N]; NAME is `home` or an ssh destination; repeatable. With its
    /// scheduler (slurm, grid-engine, pbs, lsf): NAME:N,scheduler=slurm,queue=Q,limit=1h; also account=A, nodes=2,
    /// exclusive, directive=--option. On top of its own MPI: NAME:N,mpi or NAME:N,mpi=MPIEXEC
    #[arg(short, long = "site", value_name = "SITE")]
    pub(super) sites: Vec<String>,
    /// Select sites by their resources, from those that --site names or from all known ones: 'cores>=64 &&
    /// rtt(home)<30ms'
    #[arg(long, value_name = "CONDITION")]
    pub(super) select: Option<String>,
    /// How to distribute processes over the selected sites
    #[arg(long, value_enum, default_value_t, requires = "select")]
    pub(super) place: Distribution,
    /// Hosts, as mpiexec takes them: A:2,B; each becomes a site
    #[arg(short = 'H', long = "host", value_name = "LIST", conflicts_with_all = ["sites", "select", "file", "from"])]
    pub(super) hosts: Option<String>,
    /// Number of processes for each site or host that does not give one
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) ppn: Option<String>,
    /// Bind each process to a part of its machine: none, hwthread, core, l3cache, numa or socket [default: core, if
    /// the job has processors of its own and enough of them, otherwise none]
    #[arg(long, value_name = "PART")]
    pub(super) bind_to: Option<String>,
    /// Number of cores to which each process is bound; with --bind-to hwthread, of hardware threads
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) bind_each: Option<String>,
    /// Place processes on the parts of their machine in turn: hwthread, core, l3cache, numa or socket; ppr:N:PART: N
    /// on each part; PART:pe=N: N cores for each process; node: evenly over the hosts [default: core]
    #[arg(long, value_name = "PART")]
    pub(super) map_by: Option<String>,
    /// Number of processes that --map-by places on one part before it goes to the next
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) map_each: Option<String>,
    /// Order of the ranks, as other launchers have it; only the order of --map-by is there
    #[arg(long, value_name = "PART", hide = true)]
    pub(super) rank_by: Option<String>,
    /// Print to standard error which processors each process may use
    #[arg(long)]
    pub(super) report_bindings: bool,
    /// What happens when a process, a machine or a site is lost while the job runs. end: the job ends; go-on: the
    /// other processes get an error and go on (ULFM) [default: end]
    #[arg(long, value_name = "WHAT", value_parser = ["end", "go-on"])]
    pub(super) on_loss: Option<String>,
    /// Name of the job for isthmus ps, attach and other commands; no other running job here may have it
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Environment variable for all processes; NAME alone passes on the variable of your shell; repeatable
    #[arg(short, long = "env", value_name = "NAME=VALUE")]
    pub(super) environment: Vec<String>,
    /// Working directory of the processes [default: at home the current directory; at a site the directory with the
    /// same path or, if there is none or there are inputs, one that Isthmus makes for the job]
    #[arg(short = 'C', long, value_name = "DIRECTORY", value_parser = NonEmptyStringValueParser::new())]
    pub(super) directory: Option<String>,
    /// File or directory to copy to each site, into the directory that ISTHMUS_FILES names: path, https://, sftp://
    /// or isthmus://SITE/PATH; 'mesh.nc => NAME' renames it; repeatable
    #[arg(long = "input", value_name = "SOURCE")]
    pub(super) inputs: Vec<String>,
    /// Files to fetch from the working directories at the end, such as '*.out' or 'frames/**'; repeatable
    #[arg(long = "output", value_name = "PATTERN")]
    pub(super) outputs: Vec<String>,
    /// Directory here for the files that --output fetches, with a subdirectory for each site [default:
    /// isthmus-results/JOB]
    #[arg(long, value_name = "DIRECTORY", value_parser = NonEmptyStringValueParser::new())]
    pub(super) results: Option<String>,
    /// Directory at each site in which processes of other sites may open and delete files (MPI_File_open,
    /// MPI_File_delete), in addition to the job's own directories; for one site: --site NAME:N,share=DIR; repeatable
    #[arg(long = "share", value_name = "DIRECTORY")]
    pub(super) shared: Vec<String>,
    #[command(flatten)]
    pub(super) source: Source,
    #[command(flatten)]
    pub(crate) launch: Launch,
    /// Program and arguments, or a description of the job ending in .toml or .rsl
    #[arg(
        trailing_var_arg = true,
        required_unless_present_any = ["file", "from"],
        value_name = "PROGRAM"
    )]
    pub(super) words: Vec<String>,
}
