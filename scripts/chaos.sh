#!/usr/bin/env bash
# Runs tests/black_box/chaos.rs for a long time: callers run mixed commands, processes are killed at random, and
# afterwards nothing may be left behind.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/chaos.sh [OPTION …]

  --seconds N    run for N seconds (default: 600)
  --seed N       repeat the choices of the run that printed this seed
  --no-recorder  leave the journal's recorder alone
  --soak         kill nothing: run 10,000 commands that do nothing and 1,000 that do something
  --release      use optimized binaries

Examples:
  scripts/chaos.sh
  scripts/chaos.sh --seconds 60 --seed 1234
USAGE
}

die() { printf 'chaos.sh: %s\n' "$*" >&2; exit 1; }

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
test=callers_that_are_not_killed_get_what_the_real_shell_prints
cargo_args=()
export REXEC_CHAOS_SECONDS=600 REXEC_TEST_LONG=1
while (($#)); do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --seconds) (($# >= 2)) || die "$1 needs a value"; REXEC_CHAOS_SECONDS=$2; shift 2 ;;
        --seed) (($# >= 2)) || die "$1 needs a value"; export REXEC_CHAOS_SEED=$2; shift 2 ;;
        --no-recorder) export REXEC_CHAOS_RECORDER=0; shift ;;
        --soak) test=thousands_of_commands_leave_nothing; shift ;;
        --release) cargo_args+=(--release); shift ;;
        *) die "unknown option $1; see --help" ;;
    esac
done
cd -- "$root"
exec cargo test --quiet --locked "${cargo_args[@]}" --package rexec-host --test black_box -- --include-ignored --nocapture --exact "chaos::$test"
