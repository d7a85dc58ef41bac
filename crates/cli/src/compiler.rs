// SPDX-License-Identifier: Apache-2.0
//! `mpicc` and `mpicxx`: the system's compiler with the options that find `mpi.h` and the library.
//!
//! Where they are follows from where the command itself is (`PREFIX/bin`), so a build tree and an installed tree
//! both work and can be moved. The library's directory goes into RUNPATH, which `LD_LIBRARY_PATH` overrides.
//!
//! | asked | printed |
//! |---|---|
//! | `-show`, `-showme` | the whole command |
//! | `-compile-info`, `-compile_info`, `-showme:compile` | the part for compiling |
//! | `-link-info`, `-link_info`, `-showme:link` | the part for linking |
//! | `-showme:incdirs`, `-showme:libdirs`, `-showme:libs` | names only |
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for people and build systems"
)]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Options with which a compiler does not link.
const WITHOUT_LINKING: [&str; 6] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];
/// Options whose value is the next word, which is then no input.
const WITH_VALUE: [&str; 17] = [
    "-o",
    "-I",
    "-L",
    "-D",
    "-U",
    "-x",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-u",
    "-T",
];

/// Runs the compiler in place of this process, or prints what was asked for.
pub(crate) fn main(cxx: bool, arguments: Vec<String>) -> ExitCode {
    let tree = match Tree::find() {
        Ok(tree) => tree,
        Err(message) => return fail(cxx, &message),
    };
    let (variable, usual) = if cxx {
        ("ISTHMUS_CXX", "c++")
    } else {
        ("ISTHMUS_CC", "cc")
    };
    let compiler = std::env::var(variable).ok().filter(|c| !c.trim().is_empty());
    match Request::parse(&tree, compiler.as_deref().unwrap_or(usual), arguments) {
        Request::Print(words) => {
            println!("{}", words.join(" "));
            ExitCode::SUCCESS
        }
        Request::Run(words) => run(cxx, variable, &words),
    }
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Print(Vec<String>),
    Run(Vec<String>),
}

impl Request {
    fn parse(tree: &Tree, compiler: &str, arguments: Vec<String>) -> Self {
        let mut compiler = compiler.to_owned();
        let (mut show, mut rest) = (false, Vec::new());
        for argument in arguments {
            let Some(option) = argument.strip_prefix('-').map(|o| o.trim_start_matches('-')) else {
                rest.push(argument);
                continue;
            };
            match option {
                "show" | "showme" => show = true,
                "compile-info" | "compile_info" => return Self::Print(whole(&compiler, tree.compile_options())),
                "link-info" | "link_info" => return Self::Print(whole(&compiler, tree.link_options())),
                "showme:compile" => return Self::Print(tree.compile_options()),
                "showme:link" => return Self::Print(tree.link_options()),
                "showme:incdirs" => return Self::Print(vec![tree.include()]),
                "showme:libdirs" => return Self::Print(vec![tree.library_directory()]),
                "showme:libs" => return Self::Print(vec!["mpi_abi".to_owned()]),
                other => match other.strip_prefix("cc=").or_else(|| other.strip_prefix("cxx=")) {
                    Some(name) => compiler = name.to_owned(),
                    None => rest.push(argument),
                },
            }
        }
        let options = if links(&rest) || (show && rest.is_empty()) {
            [tree.compile_options(), tree.link_options()].concat()
        } else {
            tree.compile_options()
        };
        let words = [whole(&compiler, rest), options].concat();
        if show { Self::Print(words) } else { Self::Run(words) }
    }
}

/// The compiler may be several words, such as `ccache gcc`.
fn whole(compiler: &str, options: Vec<String>) -> Vec<String> {
    compiler.split_whitespace().map(str::to_owned).chain(options).collect()
}

/// Whether the compiler would link: there is an input and nothing says to stop before.
fn links(arguments: &[String]) -> bool {
    if arguments.iter().any(|a| WITHOUT_LINKING.contains(&a.as_str())) {
        return false;
    }
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') || word == "-" || word.starts_with("-l") {
            return true;
        }
    }
    false
}

/// An installed tree or the build tree.
struct Tree {
    prefix: PathBuf,
}

impl Tree {
    fn find() -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|e| format!("cannot find its own place: {e}"))?;
        let prefix = own
            .parent()
            .and_then(Path::parent)
            .unwrap_or_else(|| Path::new("/"))
            .to_path_buf();
        let tree = Self { prefix };
        for (directory, file) in [(tree.include(), "mpi.h"), (tree.library_directory(), "libmpi_abi.so")] {
            if !Path::new(&directory).join(file).exists() {
                return Err(format!(
                    "no {file} in {directory}: this command belongs in the bin directory of an Isthmus tree \
                     (scripts/build.sh and scripts/install.sh make one)"
                ));
            }
        }
        Ok(tree)
    }

    fn include(&self) -> String {
        self.prefix.join("include").display().to_string()
    }

    fn library_directory(&self) -> String {
        self.prefix.join("lib").display().to_string()
    }

    fn compile_options(&self) -> Vec<String> {
        vec![format!("-I{}", self.include())]
    }

    fn link_options(&self) -> Vec<String> {
        let lib = self.library_directory();
        vec![
            format!("-L{lib}"),
            format!("-Wl,-rpath,{lib}"),
            "-Wl,--enable-new-dtags".to_owned(),
            "-lmpi_abi".to_owned(),
        ]
    }
}

fn run(cxx: bool, variable: &str, words: &[String]) -> ExitCode {
    let Some((compiler, options)) = words.split_first() else {
        return fail(cxx, "no compiler is named");
    };
    let error = Command::new(compiler).args(options).exec();
    fail(
        cxx,
        &format!("cannot run the compiler {compiler}: {error}; install it or name another one in {variable}"),
    )
}

fn fail(cxx: bool, message: &str) -> ExitCode {
    eprintln!("{}: {message}", if cxx { "mpicxx" } else { "mpicc" });
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Request {
        let tree = Tree { prefix: "/p".into() };
        Request::parse(&tree, "cc", arguments.split_whitespace().map(str::to_owned).collect())
    }

    const LINK: &str = "-I/p/include -L/p/lib -Wl,-rpath,/p/lib -Wl,--enable-new-dtags -lmpi_abi";

    fn run_of(command: &str) -> Request {
        Request::Run(command.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn linking_adds_the_library_after_the_inputs() {
        assert_eq!(parse("-O2 a.c -o a"), run_of(&format!("cc -O2 a.c -o a {LINK}")));
    }

    #[test]
    fn compiling_only_adds_no_library() {
        assert_eq!(parse("-c a.c"), run_of("cc -c a.c -I/p/include"));
        assert_eq!(parse("-E a.c"), run_of("cc -E a.c -I/p/include"));
    }

    #[test]
    fn a_question_to_the_compiler_is_passed_on() {
        assert_eq!(parse("--version"), run_of("cc --version -I/p/include"));
        assert_eq!(parse("-o x -v"), run_of("cc -o x -v -I/p/include"));
    }

    #[test]
    fn show_prints_and_keeps_the_arguments() {
        let Request::Print(words) = parse("-show") else {
            panic!("not printed")
        };
        assert_eq!(words.join(" "), format!("cc {LINK}"));
        let Request::Print(words) = parse("-show -cc=clang a.c") else {
            panic!("not printed")
        };
        assert_eq!(words.join(" "), format!("clang a.c {LINK}"));
        let Request::Print(words) = parse("-showme:libs") else {
            panic!("not printed")
        };
        assert_eq!(words, ["mpi_abi"]);
    }

    #[test]
    fn an_input_may_be_called_show() {
        assert_eq!(parse("show -c"), run_of("cc show -c -I/p/include"));
    }
}
