# SPDX-License-Identifier: Apache-2.0
# Sourced after common.sh: the oldest Rust compiler that the project is for, 1.85, with the standard libraries of x86-64 and s390x. They are Debian's
# packages, all of one version, unpacked because foreign packages cannot be installed beside each other.

# apt with lists of its own below a directory, so that the system's architectures stay as they are.
apt_below() {
    place=$1 command=$2
    shift 2
    "$command" -o APT::Architectures::=amd64 -o APT::Architectures::=s390x -o "Dir::State=$place/apt" -o "Dir::State::status=/dev/null" \
        -o "Dir::Cache=$place/apt" -o APT::Sandbox::User="$(id -un)" -q "$@"
}

# oldest_rust DIRECTORY: the compiler is DIRECTORY/tools/rustc, and stays there for the next time. Fails with a reason as the last line.
oldest_rust() {
    place=$1 tools=$1/tools std=libstd-rust-web-dev
    case $("$tools/rustc" --version 2>/dev/null) in *" 1.85."*) return 0 ;; esac
    have apt-get && have dpkg-deb || { echo "no apt-get or dpkg-deb"; return 1; }
    apt() { apt_below "$place" "$@"; }
    mkdir -p "$place/apt/lists/partial" "$place/apt/archives/partial" "$place/packages"
    apt apt-get update || return 1
    version=$(apt apt-cache madison "$std:s390x" | cut -d'|' -f2 | tr -d ' ' | grep '^1\.85\.' | sort -Vr | while read -r v; do
        apt apt-cache madison "rustc-web:amd64" | cut -d'|' -f2 | tr -d ' ' | grep -Fx "$v" && break
    done)
    version=$(echo "$version" | head -1)
    [ -n "$version" ] || { echo "no Rust 1.85 among the packages"; return 1; }
    depends() { apt apt-cache show "$1" | sed -n 's/^Depends: //p' | head -1 | tr ',' '\n' | sed 's/^ *//; s/ .*//'; }
    shared=$(depends "$std:amd64=$version" | grep '^libstd-rust-web' | head -1)
    llvm=$(depends "$shared:amd64=$version" | grep '^libllvm' | head -1)
    (cd "$place/packages" && rm -f ./*.deb && apt apt-get download "rustc-web:amd64=$version" "$std:amd64=$version" "$std:s390x=$version" \
        "$shared:amd64=$version" "$llvm:amd64") || return 1
    rm -rf "$tools"
    mkdir -p "$tools"
    for package in "$place"/packages/*.deb; do dpkg-deb -x "$package" "$tools" || return 1; done
    rm -rf "$place/packages" "$place/apt"
    cat >"$tools/rustc" <<'WRAPPER'
#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH=$here/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$here/usr/bin/rustc" "$@"
WRAPPER
    chmod +x "$tools/rustc"
}
