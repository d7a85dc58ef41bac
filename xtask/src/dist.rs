// SPDX-License-Identifier: Apache-2.0
//! Builds everything and lays it out as it is installed.
//!
//! ```text
//! DIR/bin       isthmus; mpiexec, mpirun, mpicc, mpicxx, … (other names of it: NAMES)
//! DIR/lib       libmpi_abi.so -> libmpi_abi.so.1 -> libmpi_abi.so.1.0.0; libmpi.so, libmpich.so, … (LIBRARY_NAMES);
//!               pkgconfig; libmpifort_abi.so and its versions, libmpifort_here.a
//! DIR/include   mpi.h, mpi-ext.h, isthmus_mpi1.h, isthmus.h, mpi_f2c.h, mpif.h
//! DIR/share     doc/isthmus (README.md, docs: the book), isthmus/fortran (sources of the modules), isthmus/*.supp (for
//!               valgrind and ThreadSanitizer), modulefiles, man/man1, man/man3, man/man5, man/man7, completions for
//!               bash, zsh, fish
//! ```
//! The library is linked by the system's linker from the generated entry points and the static Rust library, because
//! only so can `MPI_X` be a weak alias of `PMPI_X` and everything else be hidden.
//!
//! `--target TRIPLE`: only the library, for another kind of machine; `CC` and `NM` name the tools for it, and cargo's
//! own variables its Rust compiler and linker.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::codegen;
use crate::fortran;
use crate::glibc;
use crate::spec::Spec;
use crate::tools::{c_compiler, copy, copy_tree, defined, directory_option, execute, point, put, replace, write};
use crate::tree::{self, Result};

const SONAME: &str = "libmpi_abi.so.1";
/// The library as Rust makes it.
const ARCHIVE: &str = "libisthmus_mpi.a";
const LIBRARY: &str = "libmpi_abi.so.1.0.0";
/// Other names of the command `isthmus`.
const NAMES: [&str; 14] = [
    "mpiexec",
    "mpirun",
    "mpiexec.isthmus",
    "mpirun.isthmus",
    "mpicc",
    "mpicc_abi",
    "mpicxx",
    "mpicxx_abi",
    "mpic++",
    "mpiCC",
    "mpifort",
    "mpifort_abi",
    "mpif90",
    "mpif77",
];
/// What the libraries of other MPIs are called, and those of bindings to C++ that they once had: `-lmpi` and the like
/// link ours.
const LIBRARY_NAMES: [&str; 6] = ["mpi", "mpich", "pmpich", "mpi_cxx", "mpicxx", "mpichcxx"];
/// Names for pkg-config, and versions: of Isthmus, or of the MPI standard where the name is that of any MPI or of
/// another one, whose users compare it with a version of theirs. Debian's alternatives are `mpi-c` and `mpi-cxx`; meson
/// asks for `ompi-c` and `ompi-cxx`. Those that end in `-fort` serve mpif.h.
const PACKAGES: [(&str, &str); 11] = [
    ("isthmus", env!("CARGO_PKG_VERSION")),
    ("mpi", "5.0.0"),
    ("mpi-c", "5.0.0"),
    ("mpi-cxx", "5.0.0"),
    ("mpi_abi", "5.0.0"),
    ("mpich", "5.0.0"),
    ("ompi", "5.0.0"),
    ("ompi-c", "5.0.0"),
    ("ompi-cxx", "5.0.0"),
    ("mpi-fort", "5.0.0"),
    ("ompi-fort", "5.0.0"),
];
/// Only what the standard names leaves the library, and what the Fortran library asks of it.
const VERSION_SCRIPT: &str = "{ global: MPI_*; PMPI_*; MPIX_*; PMPIX_*; isthmus_fortran_function; isthmus_request_copies; \
     isthmus_handler_*; isthmus_handlers_*; isthmus_request_*; isthmus_call_*; isthmus_memory_*; isthmus_pointer_*; \
     local: *; };\n";
/// Texts beside the book: what it and they link to is there.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "LICENSE",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
];
/// Commands of the workshop: package, binary.
const WORKSHOP: [(&str, &str); 2] = [
    ("isthmus-testbed", "isthmus-testbed"),
    ("isthmus-bench", "isthmus-bench"),
];

/// What to build and where to put it.
pub(crate) struct Options {
    out: PathBuf,
    release: bool,
    workshop: bool,
    /// Only the library, for another kind of machine.
    target: Option<String>,
}

impl Options {
    /// From the words after `dist`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let (mut out, mut release, mut workshop, mut target) = (None, false, false, None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--out" => out = words.next().map(PathBuf::from),
                "--release" => release = true,
                "--workshop" => workshop = true,
                "--target" => target = Some((*words.next().ok_or("dist: --target needs a name")?).to_owned()),
                other => return Err(format!("dist: unknown option {other}")),
            }
        }
        let out = out.ok_or("dist: --out DIR is missing")?;
        let out = std::path::absolute(&out).map_err(|e| format!("{}: {e}", out.display()))?;
        Ok(Self {
            out,
            release,
            workshop,
            target,
        })
    }

    /// Where cargo puts what it has built.
    fn built(&self) -> Result<PathBuf> {
        let mut built = target_directory()?;
        if let Some(name) = &self.target {
            built.push(name);
        }
        Ok(built.join(self.profile()))
    }

    fn profile(&self) -> &'static str {
        if self.release { "release" } else { "debug" }
    }
}

/// Builds and lays out.
pub(crate) fn run(options: &Options) -> Result<()> {
    codegen::from_tables()?;
    let built = options.built()?;
    let old = glibc::libraries(&built.join("isthmus-dist"), options.target.as_deref())?;
    let old = old.as_deref();
    build(options, old)?;
    let built = keep(options, &built)?;
    for directory in ["bin", "lib/pkgconfig", "include", "share/doc/isthmus"] {
        let path = options.out.join(directory);
        fs::create_dir_all(&path).map_err(|e| format!("{}: cannot make it: {e}", path.display()))?;
    }
    link_library(options, &built, old)?;
    let fortran = fortran::library(&options.out, &built.join("isthmus-dist"), options.release, old)?;
    if options.target.is_none() {
        commands(options, &built)?;
    }
    if old.is_some() {
        let staged = [
            options.out.join("lib").join(LIBRARY),
            fortran,
            options.out.join("bin/isthmus"),
        ];
        staged
            .iter()
            .filter(|file| file.exists())
            .try_for_each(|file| glibc::check(file))?;
    }
    texts(options)?;
    println!("built {}", options.out.display());
    Ok(())
}

fn build(options: &Options, old: Option<&Path>) -> Result<()> {
    let mut cargo = Command::new(cargo_command());
    cargo.current_dir(tree::root()).args(["build", "-p", "isthmus-mpi"]);
    match &options.target {
        Some(target) => cargo.args(["--target", target]),
        None => cargo.args(["-p", "isthmus-cli"]),
    };
    if options.release {
        cargo.arg("--release");
    }
    if options.workshop {
        cargo.args(WORKSHOP.iter().flat_map(|(package, _)| ["-p", package]));
    }
    if let Some(place) = old {
        cargo.env(glibc::VARIABLE, place);
    }
    execute(&mut cargo, "building the workspace")
}

/// Takes what was built aside at once, by links: cargo puts another file in place of one that a test builds anew
/// meanwhile.
fn keep(options: &Options, built: &Path) -> Result<PathBuf> {
    let kept = built.join("isthmus-dist/built");
    let cannot = |what: &Path, e: std::io::Error| format!("{}: cannot be kept: {e}", what.display());
    fs::create_dir_all(&kept).map_err(|e| cannot(&kept, e))?;
    let programs = WORKSHOP.iter().filter(|_| options.workshop).map(|(_, name)| *name);
    let programs = programs.chain(["isthmus"]).filter(|_| options.target.is_none());
    for name in programs.chain([ARCHIVE]) {
        let (from, to) = (built.join(name), kept.join(name));
        let _ = fs::remove_file(&to);
        fs::hard_link(&from, &to)
            .or_else(|_| fs::copy(&from, &to).map(|_| ()))
            .map_err(|e| cannot(&from, e))?;
    }
    Ok(kept)
}

fn link_library(options: &Options, built: &Path, old: Option<&Path>) -> Result<()> {
    let objects = built.join("isthmus-dist");
    fs::create_dir_all(&objects).map_err(|e| format!("{}: cannot make it: {e}", objects.display()))?;
    let (object, script) = (objects.join("entry.o"), objects.join("exports.map"));
    fs::write(&script, VERSION_SCRIPT).map_err(|e| format!("{}: cannot write: {e}", script.display()))?;
    let top = tree::root();
    let mut compile = c_compiler();
    compile.args([
        "-std=c99",
        "-O2",
        "-g1",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-fno-semantic-interposition",
        "-c",
    ]);
    compile
        .arg("-I")
        .arg(top.join("include"))
        .arg(top.join("crates/mpi/generated/entry.c"))
        .arg("-o")
        .arg(&object);
    execute(&mut compile, "compiling the entry points")?;
    let mut link = c_compiler();
    link.args([
        "-shared",
        "-Wl,-z,defs",
        "-Wl,-z,now",
        "-Wl,-z,relro",
        // Threads, and functions that the C library calls at an exit or a fork, stay when it is closed.
        "-Wl,-z,nodelete",
        "-Wl,--gc-sections",
        "-Wl,--build-id",
    ]);
    link.arg(format!("-Wl,-soname,{SONAME}"))
        .arg(format!("-Wl,--version-script,{}", script.display()));
    if options.release {
        link.arg("-Wl,--strip-debug");
    }
    link.args(old.map(directory_option));
    replace(&options.out.join("lib").join(LIBRARY), |beside| {
        link.arg("-o").arg(beside).arg(&object).arg(built.join(ARCHIVE));
        link.args(["-lpthread", "-ldl", "-lrt", "-lm"]);
        execute(&mut link, "linking the library")?;
        check_exports(beside)
    })?;
    point(&options.out.join("lib").join(SONAME), LIBRARY)?;
    point(&options.out.join("lib/libmpi_abi.so"), SONAME)?;
    for name in LIBRARY_NAMES {
        // No linker script: these names are also opened by programs (dlopen), and the library's own name enters what is
        // linked.
        point(&options.out.join(format!("lib/lib{name}.so")), SONAME)?;
    }
    Ok(())
}

/// Every function under both names, `MPI_X` weak and `PMPI_X` strong, and nothing else.
fn check_exports(library: &Path) -> Result<()> {
    let found = defined(library)?;
    let spec = Spec::load()?;
    let wanted: BTreeSet<String> = spec
        .functions
        .iter()
        .chain(&spec.extensions)
        .flat_map(|f| [format!("W {}", f.name), format!("T P{}", f.name)])
        .chain(["T isthmus_fortran_function", "T isthmus_request_copies"].map(str::to_owned))
        .chain(beyond_mpi()?)
        .collect();
    let missing: Vec<&String> = wanted.difference(&found).take(5).collect();
    let surplus: Vec<&String> = found.difference(&wanted).take(5).collect();
    if missing.is_empty() && surplus.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}: wrong exports: missing {missing:?} …, surplus {surplus:?} …",
        library.display()
    ))
}

/// What `include/isthmus.h` declares.
fn beyond_mpi() -> Result<Vec<String>> {
    let header = tree::read("include/isthmus.h")?;
    let names = header
        .lines()
        .filter_map(|line| line.strip_prefix("int isthmus_")?.split('(').next());
    Ok(names.map(|name| format!("T isthmus_{name}")).collect())
}

fn commands(options: &Options, built: &Path) -> Result<()> {
    let bin = options.out.join("bin");
    install_program(options, &built.join("isthmus"), &bin.join("isthmus"))?;
    for name in NAMES {
        point(&bin.join(name), "isthmus")?;
    }
    documents(&options.out)?;
    if options.workshop {
        for (_, name) in WORKSHOP {
            install_program(options, &built.join(name), &bin.join(name))?;
        }
    }
    Ok(())
}

/// Completions and manual pages, which the command itself makes from its tables.
fn documents(out: &Path) -> Result<()> {
    let isthmus = out.join("bin/isthmus");
    let places = [
        ("bash", "share/bash-completion/completions/isthmus"),
        ("zsh", "share/zsh/site-functions/_isthmus"),
        ("fish", "share/fish/vendor_completions.d/isthmus.fish"),
    ];
    for (shell, place) in places {
        let made = Command::new(&isthmus).args(["completions", shell]).output();
        let made = made.map_err(|e| format!("{}: {e}", isthmus.display()))?;
        if !made.status.success() || made.stdout.is_empty() {
            return Err(format!(
                "no completions for {shell}: {}",
                String::from_utf8_lossy(&made.stderr)
            ));
        }
        write(&out.join(place), made.stdout)?;
    }
    let manual = out.join("share/.man.new");
    if manual.exists() {
        fs::remove_dir_all(&manual).map_err(|e| format!("{}: cannot remove: {e}", manual.display()))?;
    }
    execute(
        Command::new(&isthmus).arg("manual").arg(&manual),
        "writing the manual pages",
    )?;
    codegen::manual(&manual.join("man3"))?;
    put(&manual, &out.join("share/man"))
}

/// Copies a program, without its debugging sections if it is for release.
fn install_program(options: &Options, from: &Path, to: &Path) -> Result<()> {
    let cannot = |e: std::io::Error| format!("cannot copy {} to {}: {e}", from.display(), to.display());
    replace(to, |beside| {
        fs::copy(from, beside).map_err(cannot)?;
        match options.release {
            true => execute(
                Command::new("strip").arg("--strip-debug").arg(beside),
                "stripping a program",
            ),
            false => Ok(()),
        }
    })
}

fn texts(options: &Options) -> Result<()> {
    let top = tree::root();
    for name in ["mpi.h", "mpi-ext.h", "isthmus_mpi1.h", "isthmus.h"] {
        copy(&top.join("include").join(name), &options.out.join("include").join(name))?;
    }
    fortran::texts(&options.out)?;
    let doc = options.out.join("share/doc/isthmus");
    for name in DOCUMENTS {
        copy(&top.join(name), &doc.join(name))?;
    }
    copy_tree(&top.join("docs"), &doc.join("docs"))?;
    for name in ["valgrind.supp", "tsan.supp"] {
        copy(
            &top.join("share/isthmus").join(name),
            &options.out.join("share/isthmus").join(name),
        )?;
    }
    for (name, version) in PACKAGES {
        write(
            &options.out.join(format!("lib/pkgconfig/{name}.pc")),
            pkg_config(name, version),
        )?;
    }
    write(&options.out.join("share/modulefiles/isthmus"), MODULE)?;
    write(&options.out.join("share/doc/isthmus/packages.yaml"), spack())
}

/// Says where it is by its own place, so that the tree can be moved.
fn pkg_config(name: &str, version: &str) -> String {
    let (fortran, modules) = if name.ends_with("-fort") {
        (
            "-Wl,-u,isthmus_mpi_here -lmpifort_here -lmpifort_abi ",
            " -I${prefix}/share/isthmus/fortran",
        )
    } else {
        ("", "")
    };
    format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\
         isthmus_version={own}\n\n\
         Name: {name}\nDescription: Isthmus: MPI for several machines, clusters and sites as one (MPI 5.0 Standard ABI)\n\
         Version: {version}\nCflags: -I${{includedir}}{modules}\n\
         Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -Wl,--enable-new-dtags {fortran}-lmpi_abi\n",
        own = env!("CARGO_PKG_VERSION")
    )
}

/// For `module load isthmus`, with Tcl modules and Lmod: put `PREFIX/share/modulefiles` into MODULEPATH.
const MODULE: &str = r#"#%Module1.0
# Says where it is by its own place, so that the tree can be moved.
set prefix [file dirname [file dirname [file dirname [file normalize $ModulesCurrentModulefile]]]]
module-whatis "Isthmus: MPI for several machines, clusters and sites as one (MPI 5.0 Standard ABI)"
conflict mpi
setenv ISTHMUS_HOME $prefix
setenv MPI_HOME $prefix
prepend-path PATH $prefix/bin
prepend-path LD_LIBRARY_PATH $prefix/lib
prepend-path LIBRARY_PATH $prefix/lib
prepend-path CPATH $prefix/include
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path MANPATH $prefix/share/man
"#;

/// For Spack: Isthmus as an MPI that is there already. PREFIX is to be replaced.
fn spack() -> String {
    format!(
        "# Into ~/.spack/packages.yaml, with PREFIX replaced by where Isthmus is. Spack then builds with its mpicc.\n\
         packages:\n  mpi:\n    buildable: false\n    require: [isthmus]\n  isthmus:\n    buildable: false\n    \
         externals:\n    - spec: isthmus@{}\n      prefix: PREFIX\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn target_directory() -> Result<PathBuf> {
    let mut cargo = Command::new(cargo_command());
    let output = cargo
        .current_dir(tree::root())
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output();
    let output = output.map_err(|e| format!("cargo metadata: cannot run: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let after = text
        .split("\"target_directory\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    after
        .map(PathBuf::from)
        .ok_or_else(|| "cargo metadata: no target directory in its answer".to_owned())
}

fn cargo_command() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
