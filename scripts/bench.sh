#!/usr/bin/env bash
# Runs scripts/build.sh, then the benchmarks on its binaries, and prints their tables. It asserts nothing.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/bench.sh [BENCH …] [-- ARGUMENT …]

Without BENCH, all benches of Cargo.toml run. Options of the bench `path`, the cost of the way from an agent to its command:

  --quick                    fewer rounds: half a minute, coarse numbers
  --only GROUP,…             footprint, latency, instructions, volume, rate, soak, modes
  --base DIR                 for `modes`: compare with the binaries of another build in DIR, too
  --console null|terminal    send the host's console there (default: null)

Examples:
  scripts/bench.sh path
  scripts/bench.sh path --quick --only latency,rate
  scripts/bench.sh path --only modes --base ../base/target/rexec/bin
USAGE
}

die() { printf 'bench.sh: %s\n' "$*" >&2; exit 1; }

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
target_dir=${CARGO_TARGET_DIR:-$root/target}
benches=()
args=()
while (($#)); do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --base) (($# >= 2)) || die "$1 needs a value"; args+=("$1" "$(realpath -- "$2")"); shift 2 ;;
        --only | --console) (($# >= 2)) || die "$1 needs a value"; args+=("$1" "$2"); shift 2 ;;
        --) shift; args+=("$@"); break ;;
        -*) args+=("$1"); shift ;;
        *) benches+=("$1"); shift ;;
    esac
done
cd -- "$root"
known=$(sed -n '/^\[\[bench\]\]/,/^$/s/^name = "\(.*\)"$/\1/p' Cargo.toml)
((${#benches[@]})) || mapfile -t benches <<<"$known"

# However a bench ends, its sockets, journals and input files go with this script.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/rexec-bench.XXXXXX")
export TMPDIR
trap 'rm -rf -- "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

scripts/build.sh >&2
for bench in "${benches[@]}"; do
    grep -qx -- "$bench" <<<"$known" || die "no bench $bench; there are: ${known//$'\n'/, }"
    bench_args=("${args[@]}")
    [[ $bench != path ]] || bench_args+=(--bin "$target_dir/rexec/bin")
    cargo bench --quiet --locked --target-dir "$target_dir" --package rexec-host --bench "$bench" -- "${bench_args[@]}"
done
