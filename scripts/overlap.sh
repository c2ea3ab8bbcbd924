#!/usr/bin/env bash
# Tries the programs of the previous release together with those of this tree: an old shim with a new host, and a new shim
# with an old host. An agent keeps the shim that it has found at its start while a person replaces the host.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/overlap.sh [COMMIT]

  COMMIT   the previous release (default: the newest tag v*, else the commit that this script names)
USAGE
}

case ${1-} in -h | --help) usage; exit ;; esac
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
target=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")
previous=${1:-$(git -c safe.directory='*' describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || printf 7e62603)}
if ! git -c safe.directory='*' cat-file -e "$previous^{commit}" 2>/dev/null; then
    printf 'SKIPPED: the commit %s of the previous release is not in this clone\n' "$previous"
    exit
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-overlap.XXXXXX")
host=
clean_up() {
    [[ -z $host ]] || kill "$host" 2>/dev/null || true
    rm -rf -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -- "$work/source"
git -c safe.directory='*' archive "$previous" | tar -x -C "$work/source"
cargo build --quiet --workspace --bins --locked
# The place of what is built stays, so that the next time takes a second.
(cd -- "$work/source" && CARGO_PROFILE_DEV_DEBUG=0 cargo build --quiet --workspace --bins --locked --target-dir "$target/previous")
declare -A bin=([new]=$target/debug [old]=$target/previous/debug)

failed=0
# Compares what two commands say and how they end.
same() { # NAME REAL OURS
    if [[ $2 == "$3" ]]; then return; fi
    printf 'FAILED: %s, %s\n  bash:  %q\n  rexec: %q\n' "$pair" "$1" "$2" "$3"
    failed=$((failed + 1))
}

# What a command says on both streams, and its exit code, with this shell.
told() { # SHELL COMMAND
    local code=0 out
    out=$(printf 'a line\n' | timeout 60 "$1" -c "$2" 2>"$work/err") || code=$?
    printf '%s|%s|%s' "$out" "$(<"$work/err")" "$code"
}

# The same on a terminal, on which a line is typed.
told_on_terminal() { # SHELL COMMAND
    (sleep 0.5; printf 'typed\n') | SHELL=/bin/sh timeout 60 script -qec "$1 -c '$2'" /dev/null 2>&1 | tr -d '\r'
}

# shellcheck disable=SC2016 # They are for the shells that are called.
commands=(
    'echo out; echo err >&2; exit 7'
    'read -r x; echo "got $x"'
    'pwd; echo "$VALUE $0 $#"; umask; ulimit -n'
    'kill -TERM $$'
    'seq 200000 | cksum; head -c 300000 /dev/zero | tr "\0" x'
    'exec 2>&1; echo one; echo two >&2'
    'no-such-program-here'
)

# shellcheck disable=SC2016 # The words in single quotes are for the shells that are called.
try() { # SHIM HOST
    pair="a shim of the $1 release with a host of the $2"
    local home=$work/$1-$2 shell command code=0
    mkdir -m 700 -- "$home"
    shell=$home/bash
    ln -s -- "${bin[$1]}/rexec-sh" "$shell"
    export REXEC_SOCKET=$home/host.sock REXEC_HOME=$home/journal VALUE=kept
    XDG_CONFIG_HOME=$home "${bin[$2]}/rexec-host" >"$home/console" 2>&1 </dev/null &
    host=$!
    for _ in {1..200}; do [[ -S $REXEC_SOCKET ]] && break; sleep 0.05; done
    for command in "${commands[@]}"; do
        same "$command" "$(told /bin/bash "$command" | sed 's/^/ /')" "$(told "$shell" "$command" | sed "s|$shell|/bin/bash|g; s/^/ /")"
    done
    same 'on a terminal' "$(told_on_terminal /bin/bash 'read -r x; echo "<$x>"; tty -s')" \
        "$(told_on_terminal "$shell" 'read -r x; echo "<$x>"; tty -s')"
    # A command that a person ends, by a rexec of the shim's release.
    "$shell" -c 'echo begun >"$0"; exec sleep 600' "$home/begun" & command=$!
    for _ in {1..200}; do [[ -s $home/begun ]] && break; sleep 0.05; done
    local running
    running=$("${bin[$1]}/rexec" ps --json | sed -n 's/.*"seq":\([0-9]*\).*/\1/p' | tail -n 1)
    timeout 60 "${bin[$1]}/rexec" kill "$running" >"$home/kill" 2>&1 || same 'rexec kill' 0 "$(<"$home/kill")"
    wait "$command" || code=$?
    same 'a command that a person ends' 143 "$code"
    # A command whose shim is killed.
    "$shell" -c 'echo $$ >"$0"; exec sleep 600' "$home/pid" & command=$!
    for _ in {1..200}; do [[ -s $home/pid ]] && break; sleep 0.05; done
    kill -KILL "$command"
    wait "$command" 2>/dev/null || true
    for _ in {1..200}; do kill -0 "$(<"$home/pid")" 2>/dev/null || break; sleep 0.05; done
    ! kill -0 "$(<"$home/pid")" 2>/dev/null || same 'a command whose shim is killed' ended 'still there'
    same 'rexec exec' 'through exec' "$(timeout 60 "${bin[$1]}/rexec" exec -- echo through exec 2>&1)"
    # A command that its shim runs in a sandbox and reports.
    if command -v bwrap >/dev/null && bwrap --unshare-all --dev-bind / / true 2>/dev/null; then
        same 'in a sandbox' 'in a sandbox' "$(bwrap --unshare-all --dev-bind / / "$shell" -c 'echo in a sandbox' 2>&1)"
        for _ in {1..200}; do grep -q 'echo in a sandbox' "$home/console" && break; sleep 0.05; done
        grep -q 'echo in a sandbox' "$home/console" || same 'the report of a sandbox' 'on the console' 'missing'
    else
        printf 'SKIPPED: no sandbox can be made here\n'
    fi
    local logged
    logged=$(timeout 60 "${bin[$1]}/rexec" log --json | grep -c '"exit":7' || true)
    same 'the journal' 1 "$logged"
    kill "$host"
    wait "$host" || true
    host=
    printf '%s: tried\n' "$pair"
}

try old new
try new old
((failed == 0)) || { printf 'FAILED: %d\n' "$failed"; exit 1; }
printf 'both ways work\n'
