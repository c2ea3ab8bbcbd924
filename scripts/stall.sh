#!/usr/bin/env bash
# Measures what agents wait for their commands while a person has stopped the console with ^S.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/stall.sh  [--seconds S] [--callers N] [--bin DIR]

Runs scripts/build.sh, unless DIR has the programs, then a host in a terminal (tmux). N callers (4) run short commands that print 20 lines, for S
seconds (60) each before, during and after ^S. Prints how long the commands took in each part, and whether the 99th
percentile during ^S is at most 5 ms above that of the time before and after. Exit code 1 if it is not.
USAGE
}

die() { printf 'stall.sh: %s\n' "$*" >&2; exit 2; }

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
seconds=60 callers=4 bin=
while (($#)); do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --seconds) (($# >= 2)) || die "$1 needs a value"; seconds=$2; shift 2 ;;
        --callers) (($# >= 2)) || die "$1 needs a value"; callers=$2; shift 2 ;;
        --bin) (($# >= 2)) || die "$1 needs a value"; bin=$(realpath -- "$2"); shift 2 ;;
        *) usage >&2; die "unknown argument $1" ;;
    esac
done
command -v tmux >/dev/null || die "tmux is missing"

if [[ -z $bin ]]; then
    "$root/scripts/build.sh" >&2
    bin=${CARGO_TARGET_DIR:-$root/target}/rexec/bin
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-stall.XXXXXX")
export REXEC_SOCKET=$work/run/host.sock REXEC_HOME=$work/journal
mkdir -m 700 -- "$work/run"
terminal=(tmux -S "$work/tmux" -f /dev/null)
trap '"${terminal[@]}" kill-server 2>/dev/null || true; rm -rf -- "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"${terminal[@]}" new-session -d -x 120 -y 40 -s host env XDG_CONFIG_HOME="$work" "$bin/rexec-host"
for _ in {1..100}; do
    "$bin/rexec" --check-host >/dev/null 2>&1 && break
    sleep 0.1
done
"$bin/rexec" --check-host >/dev/null || die "the host does not start"

# One caller: a line with microseconds for each command, until that moment.
caller() {
    local until=$1 begin end
    while ((${EPOCHREALTIME/[.,]/} < until)); do
        begin=${EPOCHREALTIME/[.,]/}
        "$bin/rexec-sh" -c 'seq 20' >/dev/null || echo "a command failed" >&2
        end=${EPOCHREALTIME/[.,]/}
        echo $((end - begin))
        read -rt 0.02 <>"$work/never" || true
    done
}
mkfifo -- "$work/never"

part() {
    local name=$1 number pids=()
    local until=$((${EPOCHREALTIME/[.,]/} + seconds * 1000000))
    for ((number = 1; number <= callers; number++)); do
        REXEC_WHOAMI=caller$number caller "$until" >"$work/$name.$number" &
        pids+=($!)
    done
    wait "${pids[@]}"
    cat -- "$work/$name".* | sort -n >"$work/$name"
}

# The value below which this many thousandths are, in microseconds.
percentile() { awk -v part="$2" '{ all[NR] = $1 } END { at = int(NR * part / 1000); print all[at < 1 ? 1 : at] }' "$1"; }
screen() { "${terminal[@]}" capture-pane -p -t host; }
ms() { awk -v us="$1" 'BEGIN { printf "%.1f", us / 1000 }'; }

part before
"${terminal[@]}" send-keys -t host C-s
sleep 1
stopped=$(screen)
part during
[[ $(screen) == "$stopped" ]] || die "the console was not stopped"
"${terminal[@]}" send-keys -t host C-q
sleep 2
[[ $(screen) != "$stopped" ]] || die "the console does not go on"
part after

printf '%-8s %9s %9s %9s %9s\n' part commands 'p50 ms' 'p99 ms' 'most ms'
for name in before during after; do
    printf '%-8s %9s %9s %9s %9s\n' "$name" "$(wc -l <"$work/$name")" "$(ms "$(percentile "$work/$name" 500)")" \
        "$(ms "$(percentile "$work/$name" 990)")" "$(ms "$(tail -n 1 "$work/$name")")"
done
sort -n -- "$work/before" "$work/after" >"$work/usual"
usual=$(percentile "$work/usual" 990) during=$(percentile "$work/during" 990)
printf 'p99 during ^S is %s ms above the usual %s ms; load %s\n' "$(ms $((during - usual)))" "$(ms "$usual")" \
    "$(cut -d' ' -f1-3 /proc/loadavg)"
((during <= usual + 5000))
