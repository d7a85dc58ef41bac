// SPDX-License-Identifier: Apache-2.0
//! `isthmus trace`: traces of the parts of a world as one.

use crate::overwritten::{self, Kind};
use clap::Args;
use isthmus_job::JobError;
use isthmus_launch::traces::{Clock, Fault, Part, merge};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Put the traces of the parts of a world that were started by hand together as one, on one time line; each part
/// records its own with isthmus run --world NAME=2of3 --trace FILE
#[derive(Args, Debug)]
pub(crate) struct Trace {
    /// The traces of the parts
    #[arg(required = true, value_name = "FILE")]
    parts: Vec<PathBuf>,
    /// Write the trace of all of them to FILE; without it, or with -, to standard output
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

/// `isthmus trace`.
pub(crate) fn trace(arguments: &Trace) -> ExitCode {
    match all(arguments) {
        Ok(clocks) => {
            let first = clocks.first().map_or("", |clock| &clock.name).to_owned();
            for clock in clocks.iter().skip(1) {
                crate::complain(&format!("isthmus: {}", said(clock, &first)));
            }
            ExitCode::SUCCESS
        }
        Err(error) => crate::diagnostic::refuse(&error),
    }
}

fn said(clock: &Clock, first: &str) -> String {
    let (name, ahead) = (&clock.name, clock.ahead as f64 / 1e6);
    let way = if ahead < 0.0 { "behind" } else { "ahead of" };
    match clock.right_to {
        Some(error) => format!(
            "the clock of '{name}' was {:.3} ms {way} that of '{first}', right to {:.3} ms",
            ahead.abs(),
            error as f64 / 1e6
        ),
        None if ahead == 0.0 => {
            format!("no messages went both ways between '{name}' and the other parts: its clock is taken as it was")
        }
        None => format!(
            "messages between '{name}' and the other parts went one way only: its clock is taken as {:.3} ms {way} that of \
             '{first}', since nothing comes before it is sent",
            ahead.abs()
        ),
    }
}

fn all(arguments: &Trace) -> Result<Vec<Clock>, JobError> {
    let open = |path: &PathBuf| -> Result<Part<BufReader<File>>, JobError> {
        let name = path.display().to_string();
        let cannot = |error: io::Error| JobError::new(format!("cannot read the trace '{name}': {error}"));
        let file = File::open(path).map_err(cannot)?;
        Ok(Part {
            file: BufReader::new(file),
            name: name.clone(),
        })
    };
    let mut parts = arguments.parts.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let hint =
        "record each part with isthmus run --world NAME=PARTofPARTS --trace FILE, and name the files of all parts here";
    let failed = |fault| match fault {
        Fault::Part(why) => JobError::new(why).hint(hint),
        Fault::Output(error) => JobError::new(format!("cannot write '{}': {error}", arguments.output.display())),
    };
    if arguments.output == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        return merge(&mut parts, &mut out).map_err(failed);
    }
    for (path, part) in arguments.parts.iter().zip(&parts) {
        if is_same(part.file.get_ref(), &arguments.output) {
            let why = format!(
                "--output: '{}' is one of the traces, and would be overwritten",
                path.display()
            );
            return Err(JobError::new(why).hint("name another file"));
        }
    }
    overwritten::check("--output", &arguments.output, Kind::Json)?;
    let mut out = Later {
        path: &arguments.output,
        file: None,
    };
    merge(&mut parts, &mut out).map_err(failed)
}

/// Whether a file has this name.
fn is_same(file: &File, name: &Path) -> bool {
    let known = file.metadata().ok().zip(std::fs::metadata(name).ok());
    known.is_some_and(|(one, other)| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// A file that is made when there is something to write: what is wrong with a part is found before.
struct Later<'a> {
    path: &'a Path,
    file: Option<BufWriter<File>>,
}

impl Write for Later<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(File::create(self.path)?),
        };
        self.file.insert(file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}
