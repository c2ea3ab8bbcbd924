#!/usr/bin/env bash
# Builds rexec-host, rexec, the static shim rexec-sh and the preload, and puts the four into one folder.
#
# The shim starts once for every command of every agent, so it is linked statically: with musl if that target is
# installed or can be added, else with static glibc. The host is linked with static glibc where it is installed, which
# saves about a megabyte of memory and a quarter of the start; musl's allocator is slow at large outputs. rexec looks up
# accounts, which static glibc does badly, so it stays dynamic. The preload is a library for programs that glibc's loader
# loads; where rustc's own target has none, there is no preload. The last lines of the output say what was linked how.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/build.sh [--out DIR] [--musl MACHINE]

  --out DIR         put the binaries there (default: target/rexec/bin)
  --static MACHINE  link all three programs statically, for x86_64 or aarch64: with musl, the host of this machine with
                    glibc where that can be. The preload is then built for this machine only
USAGE
}

die() { printf 'build.sh: %s\n' "$*" >&2; exit 1; }

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
target_dir=${CARGO_TARGET_DIR:-$root/target}
out=
machine=
while (($#)); do
    case $1 in
        --out) (($# >= 2)) || die "--out needs a folder"; out=$2; shift 2 ;;
        --out=*) out=${1#--out=}; shift ;;
        --static) (($# >= 2)) || die "--static needs a machine"; machine=$2; shift 2 ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; die "unknown argument $1" ;;
    esac
done
out=${out:-$target_dir/rexec/bin}

command -v cargo >/dev/null || die "cargo is not on the PATH; install Rust first"
[[ $(uname -s) == Linux ]] || die "Linux only, for now"
[[ $out == /* ]] || out=$PWD/$out
[[ $target_dir == /* ]] || target_dir=$PWD/$target_dir
cd -- "$root"

host_triple=$(rustc -vV | sed -n 's/^host: //p')
musl_triple=${machine:-${host_triple%%-*}}-unknown-linux-musl

# Whether the standard library for a target is installed. rustc knows this with and without rustup.
has_target() { [[ -d $(rustc --print target-libdir --target "$1" 2>/dev/null) ]]; }

if ! has_target "$musl_triple" && command -v rustup >/dev/null; then
    printf 'build.sh: adding the target %s\n' "$musl_triple" >&2
    timeout 300 rustup target add "$musl_triple" >&2 || printf 'build.sh: it cannot be added\n' >&2
fi

# Whether a program can be linked statically with the C library that rustc's own target uses.
has_static_libc() {
    local probe code=0
    probe=$(mktemp -d)
    printf 'fn main() {}\n' >"$probe/main.rs"
    rustc -C target-feature=+crt-static --out-dir "$probe" "$probe/main.rs" 2>/dev/null || code=$?
    rm -rf -- "$probe"
    return "$code"
}

build_bin() { # NAME [RUSTC_ARGUMENT …]
    local name=$1
    shift
    cargo rustc --release --locked --package rexec-host --bin "$name" --target-dir "$target_dir" -- "$@"
}

files=("$target_dir/release/rexec" "$target_dir/release/rexec-host")
if [[ -n $machine ]]; then
    # It comes with Rust, and links for any machine.
    linker=CARGO_TARGET_${machine^^}_UNKNOWN_LINUX_MUSL_LINKER
    [[ $machine == "${host_triple%%-*}" ]] || export "$linker=${!linker:-rust-lld}"
    has_target "$musl_triple" || die "the target $musl_triple cannot be had"
    cargo build --release --locked --package rexec-host --bin rexec --target "$musl_triple" --target-dir "$target_dir"
    files=("$target_dir/$musl_triple/release/rexec")
    if [[ $host_triple == "$machine"-*-gnu ]] && has_static_libc; then
        build_bin rexec-host -C target-feature=+crt-static
        files+=("$target_dir/release/rexec-host")
        host_linked='static'
    else
        cargo build --release --locked --package rexec-host --bin rexec-host --target "$musl_triple" --target-dir "$target_dir"
        files+=("$target_dir/$musl_triple/release/rexec-host")
        host_linked='static, with musl'
    fi
elif has_static_libc; then
    build_bin rexec
    build_bin rexec-host -C target-feature=+crt-static
    host_linked='static'
else
    build_bin rexec
    build_bin rexec-host
    host_linked='dynamic: no static C library is installed'
fi

if has_target "$musl_triple"; then
    shim_triple=$musl_triple
    picked="musl ($shim_triple)"
else
    shim_triple=$host_triple
    picked="static glibc ($shim_triple)"
fi
# At a fixed address and in two segments, so that it starts with fewer page faults; tests/bench/README.md has the times and
# says what it gives up. With an explicit --target these flags
# do not reach build scripts and procedural macros, which cannot be static.
linking="-C target-feature=+crt-static -C relocation-model=static"
# For another machine lld links, which takes no arguments of a compiler and does this by itself.
[[ $shim_triple != "${host_triple%%-*}"-* ]] || linking+=" -C link-arg=-Wl,-z,noseparate-code"
RUSTFLAGS="${RUSTFLAGS:-} $linking" \
    cargo build --release --locked --package rexec-sh --bin shim --target "$shim_triple" --target-dir "$target_dir"

shim=$target_dir/$shim_triple/release/shim
# A program that names an interpreter or a library is not static. Where readelf is missing, ldd says it in words.
if command -v readelf >/dev/null; then
    if readelf --program-headers --dynamic --wide "$shim" 2>/dev/null | grep -E 'INTERP|\(NEEDED\)' >&2; then
        die "the shim is not static"
    fi
elif command -v ldd >/dev/null && ! { ldd "$shim" 2>&1 || true; } | grep -Eq 'statically linked|not a dynamic'; then
    die "the shim is not static"
fi

if [[ $host_triple == "${machine:-${host_triple%%-*}}"-*-gnu ]]; then
    cargo build --release --locked --package rexec-preload --lib --target-dir "$target_dir"
    files+=("$target_dir/release/librexec_preload.so")
fi

# Not earlier, so that cargo makes its target folder and marks it as a cache.
mkdir -p -- "$out"
install -m 755 -- "${files[@]}" "$out/"
install -m 755 -- "$shim" "$out/rexec-sh"

for name in "${files[@]##*/}" rexec-sh; do
    printf '%8d bytes  %s\n' "$(stat -c %s -- "$out/$name")" "$out/$name"
done
printf 'the host is %s\n' "$host_linked"
printf 'the shim is static, built with %s\n' "$picked"
