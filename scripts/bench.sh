#!/usr/bin/env bash
# Runs scripts/build.sh, then the benchmarks on its binaries, and prints their tables. It asserts nothing.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/bench.sh [path|text|load …] [OPTION …]

  path   time and CPU of one command, and the rate of many callers
  text   speed of the filters and of the masking
  load   large outputs, and the host's memory

Without a part, all three run, which takes less than five minutes on two cores that have nothing else to do.

  --base DIR   measure the binaries of another build in DIR, too, in the same run
  --quick      fewer rounds: a look rather than numbers
  --only GROUP,…
               of the parts path and load: one, many, shim, volume, memory, crowd; of the part text: the name of an input
  --record     put the tables into tests/bench/README.md as well

Examples:
  scripts/bench.sh path --quick
  scripts/bench.sh --base ../base/target/rexec/bin --record
USAGE
}

die() { printf 'bench.sh: %s\n' "$*" >&2; exit 1; }

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
target_dir=${CARGO_TARGET_DIR:-$root/target}
parts=()
commands_args=()
text_args=()
record=
while (($#)); do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --base) (($# >= 2)) || die "$1 needs a value"; commands_args+=("$1" "$(realpath -- "$2")"); shift 2 ;;
        --only) (($# >= 2)) || die "$1 needs a value"; commands_args+=("$1" "$2"); text_args+=("${2//,/ }"); shift 2 ;;
        --quick) commands_args+=("$1"); shift ;;
        --record) record=yes; shift ;;
        path | text | load) parts+=("$1"); shift ;;
        *) usage >&2; die "unknown argument $1" ;;
    esac
done
((${#parts[@]})) || parts=(path text load)
cd -- "$root"

# However a bench ends, its sockets, journals and input files go with this script.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/rexec-bench.XXXXXX")
export TMPDIR
trap 'rm -rf -- "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

scripts/build.sh >&2
mkdir -- "$TMPDIR/floor"
cc -O2 -o "$TMPDIR/floor/host" tests/bench/floor/host.c -lutil
cc -O2 -static -o "$TMPDIR/floor/shell" tests/bench/floor/shell.c

run_part() {
    if [[ $1 == text ]]; then
        cargo bench --quiet --locked --target-dir "$target_dir" --package rexec-host --bench text -- "${text_args[@]}"
    else
        # This one starts programs and waits, which needs no optimizer.
        cargo bench --quiet --locked --target-dir "$target_dir" --package rexec-host --bench commands --profile dev -- \
            --part "$1" --bin "$target_dir/rexec/bin" --floor "$TMPDIR/floor" "${commands_args[@]}"
    fi
}

# What a number has to be read with: when, on how many cores, and what else the machine did.
circumstances() {
    printf '%s, %s cores, kernel %s, load before the run %s\n' \
        "$(date -u +%Y-%m-%d)" "$(nproc)" "$(uname -r | cut -d. -f1,2)" "$(cut -d' ' -f1 /proc/loadavg)"
}

# Replaces what stands between the two marks of a part.
put_into_readme() {
    local readme=tests/bench/README.md
    awk -v part="$1" -v table="$2" '
        $0 == "<!-- end of " part " -->" { skips = 0 }
        !skips { print }
        $0 == "<!-- " part " -->" { skips = 1; while ((getline line < table) > 0) print line }
    ' "$readme" >"$TMPDIR/readme"
    cp -- "$TMPDIR/readme" "$readme"
}

for part in "${parts[@]}"; do
    { circumstances; printf '\n'; } >"$TMPDIR/$part"
    printf '\n%s: ' "$part"
    cat -- "$TMPDIR/$part"
    # The table of the part text is for a terminal.
    [[ $part != text ]] || printf '```text\n' >>"$TMPDIR/$part"
    run_part "$part" | tee -a "$TMPDIR/$part"
    [[ $part != text ]] || printf '```\n' >>"$TMPDIR/$part"
    [[ -z $record ]] || put_into_readme "$part" "$TMPDIR/$part"
done
