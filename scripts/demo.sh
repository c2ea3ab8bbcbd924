#!/usr/bin/env bash
# Shows what rexec is for: builds it, starts a host, lets three agents run commands through it at once, and prints what
# the human saw, what each agent received, and what the journal keeps. Exits with 0 if everything was as expected.
#
# Everything happens in a temporary folder, which is removed at the end; nothing is installed.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/demo.sh [--installed PREFIX]

  --installed PREFIX   use what scripts/install.sh put there, build nothing
USAGE
}

die() { printf 'demo.sh: %s\n' "$*" >&2; exit 1; }

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
prefix=
while (($#)); do
    case $1 in
        --installed) (($# >= 2)) || die "--installed needs a folder"; prefix=$2; shift 2 ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; die "unknown argument $1" ;;
    esac
done
[[ -z $prefix ]] || prefix=$(cd -- "$prefix" && pwd)

# The program that starts this demo may itself run below rexec; its commands would then bypass the host.
unset REXEC_INSIDE REXEC_FALLBACK REXEC_SHELL REXEC_TTY REXEC_SANITIZE REXEC_ENV_DROP
work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-demo.XXXXXX")
chmod 700 -- "$work"
host_pid=
stop_host() {
    [[ -n $host_pid ]] || return 0
    kill "$host_pid" 2>/dev/null || true
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        kill -0 "$host_pid" 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL "$host_pid" 2>/dev/null || true
    wait "$host_pid" 2>/dev/null || true
    host_pid=
}
clean_up() { stop_host; rm -rf -- "$work"; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Colours are for a person; a file gets plain text.
if [[ -t 1 ]]; then
    bold=$'\e[1m' plain=$'\e[0m'
    as_seen() { cat -- "$1"; }
else
    bold='' plain=''
    as_seen() { sed $'s/\e\\[[0-9;?]*[A-Za-z]//g; s/\r//g' -- "$1"; }
fi
heading() { printf '\n%s── %s%s\n' "$bold" "$1" "$plain"; }
indented() { sed 's/^/    /'; }

failures=0
expect() { # WHAT COMMAND …
    local what=$1
    shift
    if "$@"; then
        printf '  ok      %s\n' "$what"
    else
        printf '  FAILED  %s\n' "$what"
        failures=$((failures + 1))
    fi
}
# Waits up to five seconds for a condition.
eventually() {
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        if "$@"; then return 0; fi
        sleep 0.05
    done
    return 1
}
holds() { as_seen "$1" 2>/dev/null | grep -qF -- "$2"; }
is_exactly() { [[ $(<"$1") == "$2" ]]; }
journal_of() { cat "$work"/journal/*.jsonl 2>/dev/null | grep -F "\"whoami\":\"$1\"" | grep -F '"exit":'; }
has_journal() { journal_of "$1" >/dev/null; }
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# One agent: its shell is the shim, its stdout and stderr are files, as agents have them.
call() { # NAME COMMAND
    local slot=$work/${1// /-} code=0 from=${EPOCHREALTIME/[.,]/}
    (cd -- "$work/project" && exec env REXEC_WHOAMI="$1" timeout 30 "$prefix/lib/rexec/rexec-bash" -c "$2") \
        </dev/null >"$slot.out" 2>"$slot.err" || code=$?
    [[ -e $work/project/served ]] || : >"$slot.before-served"
    printf '%d\n' "$code" >"$slot.code"
    printf '%d\n' "$(((${EPOCHREALTIME/[.,]/} - from) / 1000))" >"$slot.ms"
}
show_call() { # NAME COMMAND
    local slot=$work/${1// /-}
    printf '  %s%s%s ran  %s\n' "$bold" "$1" "$plain" "$2"
    indented <"$slot.out"
    [[ ! -s $slot.err ]] || sed 's/^/    (stderr) /' "$slot.err"
    printf '    exit code %s, after %s ms\n' "$(<"$slot.code")" "$(<"$slot.ms")"
}
show_journal() { # NAME
    local line field
    line=$(journal_of "$1" | tail -n 1) || { printf '    nothing\n'; return 0; }
    printf '    {'
    for field in whoami command exit duration_ms output; do
        grep -oE "\"$field\":(\"([^\"\\\\]|\\\\.)*\"|[^,}]*)" <<<"$line" | head -n 1 | tr '\n' ' ' || true
    done
    printf '… }  (%d bytes in all)\n' "${#line}"
}

if [[ -z $prefix ]]; then
    heading "Building (the first time takes a minute or so)"
    prefix=$work/prefix
    "$scripts/install.sh" --quiet --prefix "$prefix"
fi

heading "A host, and three agents at once"
mkdir -m 700 -- "$work/run" "$work/project"
export REXEC_SOCKET=$work/run/host.sock REXEC_HOME=$work/journal
"$prefix/bin/rexec-host" --no-config </dev/null >"$work/console" 2>"$work/host.err" &
host_pid=$!
if ! eventually holds "$work/console" 'rexec journal:'; then
    as_seen "$work/host.err" >&2
    die "the host did not get ready"
fi
build=$'printf \'\\e[1;32m   Compiling\\e[0m demo v0.1.0\\n\'; sleep 0.4; printf \'\\e[1;32m    Finished\\e[0m in 0.4 s\\n\''
tests=$'echo "running 12 tests"; sleep 0.2; printf \'\\e[31merror\\e[0m: 1 test failed\\n\' >&2; exit 101'
server=$'(sleep 2; echo ready >served) & echo "server started"'
call "Claude Code" "$build" &
callers=($!)
call "Codex" "$tests" &
callers+=($!)
call "Gemini CLI" "$server" &
callers+=($!)
wait "${callers[@]}"
printf '  all three have their answers\n'

heading "What each agent got: no escape sequences, its own exit code"
show_call "Claude Code" "$build"
show_call "Codex" "$tests"
show_call "Gemini CLI" "$server"

eventually has_journal "Claude Code" || true
eventually has_journal "Codex" || true
eventually has_journal "Gemini CLI" || true
job_ended=no
if eventually test -s "$work/project/served"; then job_ended=yes; fi

heading "What the human saw: the host's console"
as_seen "$work/console" | indented

heading "What the journal keeps"
for name in "Claude Code" "Codex" "Gemini CLI"; do show_journal "$name"; done

heading "Checks"
expect "colours were taken out for the agent" \
    is_exactly "$work/Claude-Code.out" $'   Compiling demo v0.1.0\n    Finished in 0.4 s'
expect "the console has the output" holds "$work/console" "Finished in 0.4 s"
expect "a failing command's exit code came back" is_exactly "$work/Codex.code" 101
expect "its stdout and stderr stayed apart" is_exactly "$work/Codex.out" "running 12 tests"
expect "its stderr came back" is_exactly "$work/Codex.err" "error: 1 test failed"
expect "a background job did not hold its agent up" test -e "$work/Gemini-CLI.before-served"
expect "and ran to its end" test "$job_ended" = yes
for name in "Claude Code" "Codex" "Gemini CLI"; do
    expect "the console names $name" holds "$work/console" "$name"
    expect "the journal has $name's command" has_journal "$name"
done
stopping=$host_pid
stop_host
expect "the host stopped when asked" has_ended "$stopping"
expect "and took its socket along" test ! -e "$REXEC_SOCKET"

if ((failures)); then
    heading "$failures checks FAILED"
    as_seen "$work/host.err" >&2
    exit 1
fi
heading "All as expected. Next: scripts/install.sh"
