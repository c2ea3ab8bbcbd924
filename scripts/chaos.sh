#!/usr/bin/env bash
# Runs the chaos of tests/black_box/chaos.rs for long: callers of mixed commands, kills at random, and then nothing may be left.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/chaos.sh [OPTION …]

  --seconds N    how long (default: 600)
  --seed N       the same choices as in the run that said so
  --no-recorder  the journal's recorder is left alone
  --soak         no kills: 10,000 commands that do nothing and 1,000 that do, and then nothing may be left
  --release      with optimized binaries

Examples:
  scripts/chaos.sh
  scripts/chaos.sh --seconds 60 --seed 1234
USAGE
}

die() { printf 'chaos.sh: %s\n' "$*" >&2; exit 1; }

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
test=who_is_not_killed_gets_what_the_real_shell_gives
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
exec cargo test --quiet --locked "${cargo_args[@]}" --package rexec-host --test black_box -- --nocapture --exact "chaos::$test"
