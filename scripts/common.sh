# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts: where things are, and installing what is missing.
# POSIX sh. Sets: top (the repository), build (its build tree).

# Without symbolic links: what commands print of where they are is compared with it.
top=$(cd "$(dirname "$0")/.." && pwd -P)
build=$top/build
cd "$top" || exit 1
[ -d "$HOME/.cargo/bin" ] && PATH=$HOME/.cargo/bin:$PATH
export PATH

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The cargo here is at least 1.85.
rust_is_new_enough() {
    have cargo && have rustc || return 1
    version=$(rustc --version 2>/dev/null | cut -d' ' -f2)
    major=${version%%.*}
    minor=${version#*.}
    minor=${minor%%.*}
    [ "${major:-0}" -gt 1 ] || { [ "${major:-0}" -eq 1 ] && [ "${minor:-0}" -ge 85 ]; }
}

# wanted COMMAND PACKAGE...: packages of a command that is not here.
wanted() {
    command=$1
    shift
    have "$command" || missing="$missing $*"
}

# Debian 12's own cargo is too old; the compilers it keeps for browsers (-web) are not.
want_rust() {
    rust_is_new_enough || missing="$missing cargo-web rustc-web"
}

# cargo fmt, cargo clippy and the target of ci/bare.sh: from where the compiler came. If they cannot be had, their checks say that
# they are skipped.
want_rust_checks() {
    if ! rust_is_new_enough || dpkg -s rustc-web >/dev/null 2>&1; then
        wanted rustfmt rustfmt-web
        wanted clippy-driver rust-web-clippy
    elif have rustup && ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; then
        rustup component add rustfmt clippy || true
    fi
    # A target without an operating system, for ci/bare.sh.
    if rust_is_new_enough && have rustup && ! rustup target list --installed | grep -q '^wasm32-unknown-unknown$'; then
        timeout 120 rustup target add wasm32-unknown-unknown || true
    fi
}

want_for_build() {
    wanted cc gcc libc6-dev
    wanted nm binutils
    [ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
    want_rust
}

# Emulated networks: interfaces, firewalls, and a shell at each site.
want_for_testbed() {
    wanted ip iproute2
    wanted nft nftables
    wanted ssh openssh-client
    [ -x /usr/sbin/sshd ] || missing="$missing openssh-server"
}

want_for_tests() {
    wanted c++ g++
    wanted gfortran gfortran
    wanted cmake cmake
    wanted make make
    wanted pkg-config pkg-config
    # Build systems that look for an MPI.
    wanted meson meson ninja-build
    wanted scons scons
    wanted automake autoconf automake
    [ -e /usr/share/aclocal/ax_mpi.m4 ] || missing="$missing autoconf-archive"
    wanted openssl openssl
    wanted curl curl
    # A minimal system has a perl without the modules that the tests use.
    perl -MTime::HiRes -e 1 2>/dev/null || missing="$missing perl"
    # Machines' own MPIs, to be underneath.
    wanted mpicc.mpich mpich libmpich-dev
    wanted mpicc.openmpi openmpi-bin libopenmpi-dev
    # What operations cost is counted.
    wanted valgrind valgrind
    wanted strace strace
    # The book as HTML.
    wanted mkdocs mkdocs
    wanted python3 python3
    want_rust_checks
    want_for_testbed
}

# Installs $missing, or says how.
install_missing() {
    [ -n "$missing" ] || return 0
    # shellcheck disable=SC2086 # a list of words
    set -- $missing
    have apt-get || die "please install what these Debian packages contain: $*"
    say "installing: $*"
    command="apt-get update && apt-get install -y --no-install-recommends $*"
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        as_root=sudo
    else
        die "not root and no sudo; please have this run as root:
  $command"
    fi
    $as_root env DEBIAN_FRONTEND=noninteractive sh -c "$command" >"$log" 2>&1 || {
        tail -20 "$log" >&2
        die "installing failed; the command was
  $command"
    }
    missing=
    rust_is_new_enough || die "there is still no Rust compiler of at least 1.85; see https://rustup.rs"
}

missing=
log=${TMPDIR:-/tmp}/isthmus-install-$$.log
trap 'rm -f "$log"' EXIT
