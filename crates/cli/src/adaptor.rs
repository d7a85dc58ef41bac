// SPDX-License-Identifier: Apache-2.0
//! `isthmus adaptor`: adaptors to a machine's own MPI.

use clap::{Args, Subcommand};
use isthmus_job::JobError;
use isthmus_vendor::{Built, Vendor, build};
use std::path::PathBuf;
use std::process::ExitCode;

/// Build adaptors to a machine's own MPI
#[derive(Args, Debug)]
pub(crate) struct Adaptor {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Compile an adaptor, if there is none yet, and print its path and its MPI
    Build {
        /// Compiler wrapper of the machine's MPI
        #[arg(long, value_name = "PATH", default_value = "mpicc")]
        mpicc: String,
        /// Directory of adaptors [default: isthmus/adaptors in the user's cache]
        #[arg(long, value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// `isthmus adaptor`.
pub(crate) fn adaptor(arguments: &Adaptor) -> ExitCode {
    let Verb::Build { mpicc, directory, json } = &arguments.verb;
    match built(mpicc, directory.clone(), *json) {
        Ok(text) => {
            crate::print(&text);
            ExitCode::SUCCESS
        }
        Err(error) => crate::diagnostic::refuse(&error),
    }
}

fn built(mpicc: &str, directory: Option<PathBuf>, as_json: bool) -> Result<String, JobError> {
    let directory = directory.or_else(cache).ok_or_else(|| {
        JobError::new("there is no directory for adaptors").hint("set HOME or XDG_CACHE_HOME, or give --directory")
    })?;
    std::fs::create_dir_all(&directory)
        .map_err(|e| JobError::new(format!("cannot make directory '{}': {e}", directory.display())))?;
    let failed = |error: isthmus_vendor::VendorError| JobError::new(error.to_string());
    let adaptor = build(mpicc, &directory).map_err(failed)?;
    let vendor = Vendor::open(&adaptor.path).and_then(|v| v.version()).map_err(failed)?;
    if as_json {
        let now = matches!(adaptor.built, Built::Now);
        let value = serde_json::json!({ "adaptor": adaptor.path.display().to_string(), "compiled": now, "mpi": vendor.to_string() });
        return Ok(crate::json::text("adaptor build", value));
    }
    let how = match adaptor.built {
        Built::Now => "compiled",
        Built::Before => "there already",
    };
    Ok(format!("{} ({how}): {vendor}", adaptor.path.display()))
}

pub(crate) fn cache() -> Option<PathBuf> {
    Some(isthmus_stage::cache::directory().ok()?.join("adaptors"))
}
