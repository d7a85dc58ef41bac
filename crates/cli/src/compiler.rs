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
//! | `-showme:command` | the compiler |
//! | `-showme:version` | the version of Isthmus |
//! | `-help`, `-showme:help` | these options |
//!
//! Every option may begin with one hyphen or two. What is printed can be pasted into a shell: a path with spaces is
//! quoted as CMake's FindMPI reads it (`-I"/a b/include"`).
#![expect(clippy::print_stderr, reason = "a command for people and build systems")]

mod unlinkable;

use crate::fortran;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A language of programs, and what its wrapper is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cxx,
    Fortran,
}

impl Language {
    /// The language of the wrapper with this name.
    pub(crate) fn of_wrapper(name: &str) -> Option<Self> {
        match name {
            "mpicc" | "mpicc_abi" => Some(Self::C),
            "mpicxx" | "mpicxx_abi" | "mpic++" | "mpiCC" => Some(Self::Cxx),
            "mpifort" | "mpifort_abi" | "mpif77" | "mpif90" => Some(Self::Fortran),
            _ => None,
        }
    }

    /// Its usual wrapper.
    fn wrapper(self) -> &'static str {
        match self {
            Self::C => "mpicc",
            Self::Cxx => "mpicxx",
            Self::Fortran => "mpifort",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::Cxx => "C++",
            Self::Fortran => "Fortran",
        }
    }

    /// Who names the compiler, the first that is set: we, then MPICH, Open MPI and Intel MPI.
    fn variables(self) -> &'static [&'static str] {
        match self {
            Self::C => &[isthmus_settings::CC.name, "MPICH_CC", "OMPI_CC", "I_MPI_CC"],
            Self::Cxx => &[isthmus_settings::CXX.name, "MPICH_CXX", "OMPI_CXX", "I_MPI_CXX"],
            // The last ones are older names.
            Self::Fortran => &[
                isthmus_settings::FC.name,
                "MPICH_FC",
                "OMPI_FC",
                "I_MPI_FC",
                "MPICH_F90",
                "I_MPI_F90",
                "MPICH_F77",
                "I_MPI_F77",
            ],
        }
    }

    /// The compiler that nobody has named.
    fn usual(self) -> &'static str {
        match self {
            Self::C => isthmus_settings::CC.default,
            Self::Cxx => isthmus_settings::CXX.default,
            Self::Fortran => isthmus_settings::FC.default,
        }
    }

    /// Options that name the compiler: MPICH's `-cc=NAME`.
    fn choosing(self) -> &'static [&'static str] {
        match self {
            Self::C => &["cc="],
            Self::Cxx => &["cxx=", "CC=", "c++="],
            Self::Fortran => &["fc=", "f90=", "f77="],
        }
    }

    /// What is linked beside the C library, before it.
    fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::C | Self::Cxx => &["mpi_abi"],
            Self::Fortran => &["mpifort_here", "mpifort_abi", "mpi_abi"],
        }
    }

    /// What makes the linker take the object of `mpifort_here`, which nothing refers to.
    fn wanted(self) -> &'static [&'static str] {
        match self {
            Self::C | Self::Cxx => &[],
            Self::Fortran => &["-Wl,-u,isthmus_mpi_here"],
        }
    }

    fn compiler(self) -> String {
        let mut named = self.variables().iter().filter_map(|v| std::env::var(v).ok());
        let named = named.find(|compiler| !compiler.trim().is_empty());
        named.unwrap_or_else(|| self.usual().to_owned())
    }
}

/// Options with which a compiler does not link.
const WITHOUT_LINKING: [&str; 6] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];
/// Options whose value is the next word, which is then no input.
const WITH_VALUE: [&str; 19] = [
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
    "-J",
    "-module",
];

/// What is said to `-help`, and by the manual page.
pub(crate) const HELP: &str = "\
Compile and link programs that use MPI: the compiler's own options, and

  -show, -showme           print the command and run nothing
  -compile-info, -link-info, -showme:compile, -showme:link
                           print the part for compiling, for linking
  -showme:incdirs, :libdirs, :libs, :command, :version
                           print only that
  -cc=NAME, -cxx=NAME, -fc=NAME
                           use this compiler (also -f90=, -f77=; ISTHMUS_CC, _CXX, _FC; then those of MPICH_, OMPI_ and I_MPI_)
  -profile=NAME            link the library NAME before MPI's own
  -echo                    print the command, then run it
  -help";

/// Runs the compiler in place of this process, or prints what was asked for.
pub(crate) fn main(language: Language, arguments: Vec<OsString>) -> ExitCode {
    let found = Tree::find().and_then(|tree| match language {
        Language::Fortran => tree.with_modules(&arguments),
        Language::C | Language::Cxx => Ok(tree),
    });
    let tree = match found {
        Ok(tree) => tree,
        Err(message) => return fail(language, &message),
    };
    match Request::parse(&tree, language, &language.compiler(), arguments) {
        Request::Say(text) => {
            crate::print(&text);
            ExitCode::SUCCESS
        }
        Request::Print(words) => {
            let mut line = pasted(&words);
            line.push(b'\n');
            crate::put(&line);
            ExitCode::SUCCESS
        }
        Request::Refuse(why) => fail(language, &why),
        Request::Run { words, echo } => {
            if echo {
                let line = [b"+ ", &*pasted(&words), b"\n"].concat();
                let _ = std::io::stderr().write_all(&line);
            }
            run(language, &words)
        }
    }
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    /// A text.
    Say(String),
    /// Words of a command line.
    Print(Vec<OsString>),
    /// Nothing: it cannot come to an end.
    Refuse(String),
    /// To run it.
    Run { words: Vec<OsString>, echo: bool },
}

impl Request {
    fn parse(tree: &Tree, language: Language, compiler: &str, arguments: Vec<OsString>) -> Self {
        let mut compiler = compiler.to_owned();
        let (mut show, mut echo, mut rest) = (false, false, Vec::new());
        let mut profiling = Vec::new();
        for argument in arguments {
            let Some(option) = argument.to_str().and_then(own_option) else {
                rest.push(argument);
                continue;
            };
            match option {
                "show" | "showme" => show = true,
                "compile-info" | "compile_info" => return Self::Print(whole(&compiler, tree.compile_options())),
                "link-info" | "link_info" => return Self::Print(whole(&compiler, tree.link_options(language))),
                "showme:compile" => return Self::Print(tree.compile_options()),
                "showme:link" => return Self::Print(tree.link_options(language)),
                "showme:incdirs" => return Self::Print(tree.include_directories()),
                "showme:libdirs" => return Self::Print(vec![tree.library_directory().into()]),
                "showme:libs" => return Self::Print(language.libraries().iter().map(OsString::from).collect()),
                "showme:command" => return Self::Print(whole(&compiler, vec![])),
                "showme:version" => return Self::Say(version(language)),
                "help" | "showme:help" => return Self::Say(format!("{}\n\n{HELP}", version(language))),
                "echo" => echo = true,
                // MPICH's: another file of settings, and options of a kind of linking that we have not.
                "nativelinking" => {}
                other => match other.split_once('=') {
                    Some(("config", _)) => {}
                    Some(("profile", name)) => profiling.extend(profiling_options(language, name)),
                    _ => match language.choosing().iter().find_map(|o| other.strip_prefix(o)) {
                        Some(name) => name.clone_into(&mut compiler),
                        None => rest.push(argument),
                    },
                },
            }
        }
        let options = if links(&rest) || (show && rest.is_empty()) {
            [tree.compile_options(), profiling, tree.link_options(language)].concat()
        } else {
            tree.compile_options()
        };
        let refused = unlinkable::why(&rest).filter(|_| !show && links(&rest));
        let words = [whole(&compiler, rest), options].concat();
        match refused {
            Some(why) => Self::Refuse(why),
            None if show => Self::Print(words),
            None => Self::Run { words, echo },
        }
    }
}

/// A profiling library. A program in Fortran refers to none of its names, so linkers that leave out what is not needed
/// would leave it out.
fn profiling_options(language: Language, name: &str) -> Vec<OsString> {
    let library = OsString::from(format!("-l{name}"));
    match language {
        Language::C | Language::Cxx => vec![library],
        Language::Fortran => vec![
            "-Wl,--push-state,--no-as-needed".into(),
            library,
            "-Wl,--pop-state".into(),
        ],
    }
}

/// An option without its hyphens, as far as it may be ours: with two hyphens `--help`, `--version` and the like are the
/// compiler's own.
fn own_option(word: &str) -> Option<&str> {
    match word.strip_prefix("--") {
        Some("help") => None,
        Some(option) => Some(option),
        None => word.strip_prefix('-'),
    }
}

/// As Open MPI's wrappers say it, for which build systems look (meson takes the three numbers).
fn version(language: Language) -> String {
    format!(
        "{}: Isthmus {} (Language: {})",
        language.wrapper(),
        env!("CARGO_PKG_VERSION"),
        language.name()
    )
}

/// The words as one line of a shell, whatever is in them.
fn pasted(words: &[OsString]) -> Vec<u8> {
    let quoted: Vec<Vec<u8>> = words.iter().map(|word| quoted(word)).collect();
    quoted.join(&b' ')
}

/// A word for a shell. Of options with a path the path is quoted, which is the one way that CMake's FindMPI reads.
fn quoted(word: &OsStr) -> Vec<u8> {
    let bytes = word.as_bytes();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_@%+=:,./-~^".contains(b) || !b.is_ascii();
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return bytes.to_vec();
    }
    let prefix = ["-I", "-L", "-Wl,"]
        .into_iter()
        .find(|p| bytes.starts_with(p.as_bytes()));
    let prefix = prefix.unwrap_or_default().as_bytes();
    let mut text = prefix.to_vec();
    text.push(b'"');
    for byte in &bytes[prefix.len()..] {
        if b"\"\\$`".contains(byte) {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
    text
}

/// The compiler may be several words, such as `ccache gcc`.
fn whole(compiler: &str, options: Vec<OsString>) -> Vec<OsString> {
    compiler.split_whitespace().map(OsString::from).chain(options).collect()
}

/// Whether the compiler would link: there is an input and nothing says to stop before.
fn links(arguments: &[OsString]) -> bool {
    if arguments
        .iter()
        .any(|a| WITHOUT_LINKING.iter().any(|option| a == option))
    {
        return false;
    }
    let mut words = arguments.iter().map(|a| a.as_bytes());
    while let Some(word) = words.next() {
        if WITH_VALUE.iter().any(|option| word == option.as_bytes()) {
            words.next();
        } else if !word.starts_with(b"-") || word == b"-" || word.starts_with(b"-l") {
            return true;
        }
    }
    false
}

/// An installed tree or the build tree.
struct Tree {
    prefix: PathBuf,
    /// Fortran modules for the compiler at hand.
    modules: Option<fortran::Modules>,
}

impl Tree {
    fn find() -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|e| format!("cannot find its own place: {e}"))?;
        let prefix = own
            .parent()
            .and_then(Path::parent)
            .unwrap_or_else(|| Path::new("/"))
            .to_path_buf();
        let tree = Self { prefix, modules: None };
        for (directory, file) in [(tree.include(), "mpi.h"), (tree.library_directory(), "libmpi_abi.so")] {
            if !directory.join(file).exists() {
                return Err(format!(
                    "no {file} in {}: this command belongs in the bin directory of an Isthmus tree \
                     (scripts/build.sh and scripts/install.sh make one)",
                    directory.display()
                ));
            }
        }
        Ok(tree)
    }

    /// With the Fortran modules of the compiler that the arguments or the environment name. Without them mpif.h is
    /// left, so that is no error.
    fn with_modules(mut self, arguments: &[OsString]) -> Result<Self, String> {
        let words = || arguments.iter().filter_map(|a| a.to_str());
        let named = |word: &str| {
            let option = own_option(word)?;
            let choosing = Language::Fortran.choosing().iter();
            choosing
                .filter_map(|o| option.strip_prefix(o))
                .next()
                .map(str::to_owned)
        };
        let compiler = words()
            .filter_map(named)
            .next_back()
            .unwrap_or_else(|| Language::Fortran.compiler());
        let all = fortran::words(&compiler, arguments);
        if let Some(message) = fortran::refused(&all) {
            return Err(message);
        }
        let asked = words()
            .filter_map(own_option)
            .any(|o| o.starts_with("show") || o.starts_with("compile"));
        // Questions to the compiler need no modules.
        if !asked && arguments.iter().all(|a| a.as_bytes().starts_with(b"-")) {
            return Ok(self);
        }
        fortran::tell_traps(if asked { &[] } else { arguments }, &all);
        match fortran::modules(&self.prefix, &compiler, &all) {
            Ok(modules) => self.modules = Some(modules),
            Err(message) => eprintln!("mpifort: no Fortran modules, mpif.h only: {message}"),
        }
        Ok(self)
    }

    fn include(&self) -> PathBuf {
        self.prefix.join("include")
    }

    fn include_directories(&self) -> Vec<OsString> {
        let all = [
            Some(self.include()),
            self.modules.as_ref().map(|modules| modules.directory.clone()),
        ];
        all.into_iter().flatten().map(PathBuf::into_os_string).collect()
    }

    fn library_directory(&self) -> PathBuf {
        self.prefix.join("lib")
    }

    fn compile_options(&self) -> Vec<OsString> {
        let mut options = vec![joined("-I", &self.include())];
        if let Some(modules) = &self.modules {
            options.push(joined("-I", &modules.directory));
            options.extend(modules.options.iter().map(OsString::from));
        }
        options
    }

    fn link_options(&self, language: Language) -> Vec<OsString> {
        let lib = self.library_directory();
        let mut options = vec![
            joined("-L", &lib),
            joined("-Wl,-rpath,", &lib),
            "-Wl,--enable-new-dtags".into(),
        ];
        options.extend(
            self.modules
                .iter()
                .flat_map(|modules| fortran::objects(&modules.directory)),
        );
        options.extend(language.wanted().iter().map(OsString::from));
        options.extend(
            language
                .libraries()
                .iter()
                .map(|name| OsString::from(format!("-l{name}"))),
        );
        options
    }
}

/// An option and its path, which may have any bytes.
fn joined(option: &str, path: &Path) -> OsString {
    OsString::from_vec([option.as_bytes(), path.as_os_str().as_bytes()].concat())
}

fn run(language: Language, words: &[OsString]) -> ExitCode {
    let Some((compiler, options)) = words.split_first() else {
        return fail(language, "no compiler is named");
    };
    let error = Command::new(compiler).args(options).exec();
    fail(
        language,
        &format!(
            "cannot run the compiler {}: {}; install it or name another one in {}",
            compiler.to_string_lossy(),
            isthmus_wire::word::without_numbers(&error.to_string()),
            language.variables()[0]
        ),
    )
}

fn fail(language: Language, message: &str) -> ExitCode {
    eprintln!("{}: {message}", language.wrapper());
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_at(prefix: &str, arguments: &str) -> Request {
        let tree = Tree {
            prefix: prefix.into(),
            modules: None,
        };
        let words = arguments.split_whitespace().map(OsString::from).collect();
        Request::parse(&tree, Language::C, "cc", words)
    }

    fn parse(arguments: &str) -> Request {
        parse_at("/p", arguments)
    }

    fn printed(prefix: &str, arguments: &str) -> String {
        let Request::Print(words) = parse_at(prefix, arguments) else {
            panic!("{arguments}: not printed")
        };
        String::from_utf8(pasted(&words)).unwrap()
    }

    const LINK: &str = "-I/p/include -L/p/lib -Wl,-rpath,/p/lib -Wl,--enable-new-dtags -lmpi_abi";

    fn run_of(command: &str) -> Request {
        Request::Run {
            words: command.split_whitespace().map(OsString::from).collect(),
            echo: false,
        }
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
    fn what_cannot_be_linked_is_refused() {
        for (words, part) in [("-static a.c", "shared library"), ("a.c -m32 -o a", "64 bits")] {
            let Request::Refuse(why) = parse(words) else {
                panic!("{words}: not refused")
            };
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(parse("-static -c a.c"), run_of("cc -static -c a.c -I/p/include"));
        assert!(printed("/p", "-show -static a.c").contains("-static"));
    }

    #[test]
    fn a_question_to_the_compiler_is_passed_on() {
        assert_eq!(parse("--version"), run_of("cc --version -I/p/include"));
        assert_eq!(parse("-o x -v"), run_of("cc -o x -v -I/p/include"));
    }

    #[test]
    fn show_prints_and_keeps_the_arguments() {
        assert_eq!(printed("/p", "-show"), format!("cc {LINK}"));
        assert_eq!(printed("/p", "-show -cc=clang a.c"), format!("clang a.c {LINK}"));
        assert_eq!(printed("/p", "-showme:libs"), "mpi_abi");
        assert_eq!(printed("/p", "--showme:command"), "cc");
        assert_eq!(
            printed("/p", "-show -profile=mpiP a.c"),
            format!("cc a.c {}", LINK.replace("-L/p", "-lmpiP -L/p"))
        );
    }

    #[test]
    fn what_is_printed_can_be_pasted() {
        assert_eq!(
            printed("/my $p", "-showme:link"),
            r#"-L"/my \$p/lib" -Wl,"-rpath,/my \$p/lib" -Wl,--enable-new-dtags -lmpi_abi"#
        );
        assert_eq!(printed("/my p", "-showme:incdirs"), r#""/my p/include""#);
    }

    #[test]
    fn versions_have_three_numbers() {
        let Request::Say(text) = parse("--showme:version") else {
            panic!("nothing said")
        };
        assert!(
            text.starts_with("mpicc: Isthmus ") && text.ends_with(" (Language: C)"),
            "{text}"
        );
    }

    #[test]
    fn the_compilers_own_words_reach_it() {
        assert_eq!(parse("--help"), run_of("cc --help -I/p/include"));
        assert_eq!(parse("-dumpversion"), run_of("cc -dumpversion -I/p/include"));
        let tree = Tree {
            prefix: "/p".into(),
            modules: None,
        };
        let name = OsString::from_vec(b"\xff.c".to_vec());
        let Request::Run { words, .. } = Request::parse(&tree, Language::C, "cc", vec![name.clone()]) else {
            panic!("not run")
        };
        assert_eq!(words[1], name);
    }

    #[test]
    fn an_input_may_be_called_show() {
        assert_eq!(parse("show -c"), run_of("cc show -c -I/p/include"));
    }
}
