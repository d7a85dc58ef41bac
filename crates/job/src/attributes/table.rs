// SPDX-License-Identifier: Apache-2.0
//! All attributes and what becomes of them.

use super::Attribute;
use super::Fate::{self, Kept, Obeyed, Refused, Scheduled, Understood};
use super::Shape::{self, Counted, Number, Pairs, Places, Text, Texts, Word, YesNo};

const fn row(name: &'static str, shape: Shape, fate: Fate) -> Attribute {
    Attribute { name, shape, fate }
}

const NO_LIMIT: &str = "limits are not enforced yet";
const GLOBUS: &str = "it concerns Globus' job manager and changes nothing here";

/// All attributes of RSL 1.0, of its co-allocator and of GRAM, and one of ours (`mpiexec`), and what becomes of them.
pub static ATTRIBUTES: &[Attribute] = &[
    row("resourceManagerContact", Text, Understood("contact and site")),
    row("resourceManagerName", Text, Understood("contact and site")),
    row("rslSubstitution", Pairs, Understood("variables of the text itself")),
    row("executable", Text, Understood("program")),
    row("arguments", Texts, Understood("arguments")),
    row("environment", Pairs, Understood("environment")),
    row("directory", Text, Understood("directory")),
    row("count", Number(1), Understood("count")),
    row("dryRun", YesNo, Understood("show the job and do not run it")),
    row("label", Text, Kept("")),
    row("jobType", Word(&["mpi", "multiple", "single"]), Kept("")),
    row("mpiexec", Text, Kept("")),
    row(
        "subjobStartType",
        Word(&["strict-barrier", "loose-barrier", "no-barrier"]),
        Obeyed("whether the job begins without the subjob when it is late"),
    ),
    row(
        "subjobCommsType",
        Word(&["blocking-join", "independent"]),
        Obeyed("whether its processes are in the MPI_COMM_WORLD of the job"),
    ),
    row(
        "subjobNeed",
        Word(&["required", "interactive", "optional"]),
        Obeyed("whether its failure before the start ends the job, is asked about, or is passed over"),
    ),
    row(
        "subjobStartTimeout",
        Number(1),
        Obeyed("seconds that it may take to be there; later is a failure"),
    ),
    row(
        "subjobSubstitutes",
        Texts,
        Obeyed("contacts that are tried in turn when it fails before the start"),
    ),
    row("hostCount", Counted(1), Scheduled("nodes")),
    row("queue", Text, Scheduled("queue")),
    row("project", Text, Scheduled("account")),
    row(
        "reservationHandle",
        Text,
        Refused("ask the site's scheduler by other means"),
    ),
    row(
        "startTime",
        Text,
        Refused("no job manager ever had it; start the job when it shall run"),
    ),
    row("maxTime", Number(1), Scheduled("limit")),
    row("maxWallTime", Number(1), Scheduled("limit")),
    row("maxCpuTime", Number(1), Kept(NO_LIMIT)),
    row("minMemory", Number(0), Kept(NO_LIMIT)),
    row("maxMemory", Number(0), Kept(NO_LIMIT)),
    row("stdin", Text, Obeyed("a file of the site that its processes read")),
    row(
        "stdout",
        Places,
        Obeyed("a file of the site, or file:///PATH here, that it writes"),
    ),
    row(
        "stderr",
        Places,
        Obeyed("a file of the site, or file:///PATH here, that it writes"),
    ),
    row(
        "fileStageIn",
        Pairs,
        Obeyed("files here, of the web, sftp or other sites that get a place at the site"),
    ),
    row("fileStageInShared", Pairs, Obeyed("the same")),
    row(
        "fileStageOut",
        Pairs,
        Obeyed("files of the site that get a place here, file:///PATH"),
    ),
    row(
        "fileCleanUp",
        Texts,
        Obeyed("files of the site that are removed after the job"),
    ),
    row(
        "scratchDir",
        Text,
        Obeyed(
            "a directory is made below it before the subjob begins, named $(SCRATCH_DIRECTORY), and removed after it",
        ),
    ),
    row("binding", Text, Kept("--bind-to says to what processes are bound")),
    row("libraryPath", Texts, Kept("set LD_LIBRARY_PATH in the environment")),
    row(
        "username",
        Text,
        Kept("the user of a site is part of its contact: USER@HOST"),
    ),
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
    row(
        "restart",
        Text,
        Refused("an old job cannot be taken over; start it again"),
    ),
    row(
        "paradyn",
        Text,
        Refused("start the tool by hand and attach to the processes"),
    ),
];
