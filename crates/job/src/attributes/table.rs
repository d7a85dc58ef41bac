// SPDX-License-Identifier: Apache-2.0
//! All attributes and what becomes of them.

use super::kinds::Attribute;
use super::kinds::Fate::{self, Kept, Obeyed, Refused, Scheduled, Understood};
use super::kinds::Shape::{self, Counted, Number, Pairs, Places, Text, Texts, Word, YesNo};

const fn row(name: &'static str, shape: Shape, fate: Fate) -> Attribute {
    Attribute { name, shape, fate }
}

const NO_LIMIT: &str = "Isthmus does not enforce limits yet";
const GLOBUS: &str = "only Globus' job manager needs it";

/// All attributes of RSL 1.0, of its co-allocator and of GRAM, and two of ours (`mpiexec`, `subjobOnLoss`), and what
/// becomes of them.
pub static ATTRIBUTES: &[Attribute] = &[
    row(
        "resourceManagerContact",
        Text,
        Understood("contact and name of the site"),
    ),
    row("resourceManagerName", Text, Understood("contact and name of the site")),
    row(
        "rslSubstitution",
        Pairs,
        Understood("variables in the rest of the request"),
    ),
    row("executable", Text, Understood("program")),
    row("arguments", Texts, Understood("arguments")),
    row("environment", Pairs, Understood("environment")),
    row("directory", Text, Understood("directory")),
    row("count", Number(1), Understood("count")),
    row("dryRun", YesNo, Understood("shows the job without running it")),
    row("label", Text, Kept("")),
    row("jobType", Word(&["mpi", "multiple", "single"]), Kept("")),
    row("mpiexec", Text, Kept("")),
    row(
        "subjobStartType",
        Word(&["strict-barrier", "loose-barrier", "no-barrier"]),
        Obeyed("whether the job may begin before this subjob is ready"),
    ),
    row(
        "subjobCommsType",
        Word(&["blocking-join", "independent"]),
        Obeyed("whether its processes belong to the MPI_COMM_WORLD of the job"),
    ),
    row(
        "subjobNeed",
        Word(&["required", "interactive", "optional"]),
        Obeyed("what happens if it fails before the start: the job ends, you are asked, or the job goes on without it"),
    ),
    row(
        "subjobStartTimeout",
        Number(1),
        Obeyed("seconds after which the subjob counts as failed if it is not ready"),
    ),
    row(
        "subjobSubstitutes",
        Texts,
        Obeyed("other contacts, tried in turn if it fails before the start"),
    ),
    row(
        "subjobOnLoss",
        Word(&["end", "go-on"]),
        Obeyed("what happens if one of its processes is lost after the start: the job ends, or goes on without it"),
    ),
    row("hostCount", Counted(1), Scheduled("number of nodes")),
    row("queue", Text, Scheduled("queue")),
    row("project", Text, Scheduled("account")),
    row(
        "reservationHandle",
        Text,
        Refused("put the reservation into the directives of a job file, for example --reservation=NAME"),
    ),
    row("startTime", Text, Refused("start the job when you want it to run")),
    row("maxTime", Number(1), Scheduled("longest run time")),
    row("maxWallTime", Number(1), Scheduled("longest run time")),
    row("maxCpuTime", Number(1), Kept(NO_LIMIT)),
    row("minMemory", Number(0), Kept(NO_LIMIT)),
    row("maxMemory", Number(0), Kept(NO_LIMIT)),
    row("stdin", Text, Obeyed("a file of the site that all its processes read")),
    row(
        "stdout",
        Places,
        Obeyed("a file of the site, or file:///PATH for a file on this machine"),
    ),
    row(
        "stderr",
        Places,
        Obeyed("a file of the site, or file:///PATH for a file on this machine"),
    ),
    row(
        "fileStageIn",
        Pairs,
        Obeyed("files to copy to the site, from this machine, the web, sftp or other sites"),
    ),
    row("fileStageInShared", Pairs, Obeyed("the same as fileStageIn")),
    row(
        "fileStageOut",
        Pairs,
        Obeyed("files of the site to copy here, to file:///PATH"),
    ),
    row(
        "fileCleanUp",
        Texts,
        Obeyed("files of the site to remove after the job"),
    ),
    row(
        "scratchDir",
        Text,
        Obeyed(
            "a directory in which Isthmus makes one for the subjob, $(SCRATCH_DIRECTORY), and removes it afterwards",
        ),
    ),
    row("binding", Text, Kept("use --bind-to")),
    row("libraryPath", Texts, Kept("set LD_LIBRARY_PATH in the environment")),
    row("username", Text, Kept("write the user into the contact: USER@HOST")),
    row("gramMyJob", Word(&["collective", "independent"]), Kept(GLOBUS)),
    row("gassCache", Text, Kept(GLOBUS)),
    row("remoteIoUrl", Text, Kept(GLOBUS)),
    row("twoPhase", Number(0), Kept(GLOBUS)),
    row("saveState", YesNo, Kept(GLOBUS)),
    row("stdoutPosition", Number(0), Kept(GLOBUS)),
    row("stderrPosition", Number(0), Kept(GLOBUS)),
    row("proxyTimeout", Number(0), Kept(GLOBUS)),
    row("expiration", Number(0), Kept(GLOBUS)),
    row("logLevel", Text, Kept(GLOBUS)),
    row("logPattern", Text, Kept(GLOBUS)),
    row("saveJobDescription", YesNo, Kept(GLOBUS)),
    row("restart", Text, Refused("start the job again")),
    row(
        "paradyn",
        Text,
        Refused("start the tool yourself and attach it to the processes"),
    ),
];
