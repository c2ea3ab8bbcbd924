#!/usr/bin/env bash
# Drives a real agent, Claude Code, through rexec and checks that nothing is lost on the way.
#
# The model is a stand-in on loopback (agents/model.mjs) that asks for the commands of agents/cases.mjs. The agent runs
# them twice, with plain bash and with rexec-bash; what reaches the model must be the same but for colours, and the
# host's journal must have every command under the agent's name. The agent comes from npm and is kept outside the tree.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/agents.sh [--bash-only] [--keep]

  --bash-only   only the reference: no build, no host
  --keep        keep the folder with all that was recorded, and print its name

Environment:
  REXEC_CLAUDE           the agent's program, in place of an installed one
  REXEC_CLAUDE_VERSION   the version to install, or latest (default: the one this was last tried with)
  XDG_CACHE_HOME         where it is installed: rexec-agents below it (default: ~/.cache)
USAGE
}

# An agent's next version may call its shell in another way; a change of this line says that somebody looked.
tried_version=2.1.329

die() { printf 'agents.sh: %s\n' "$*" >&2; exit 1; }
# Not being able to try is not a failure, but it is never silent either.
skip() { printf 'agents.sh: SKIPPED, no real agent was run: %s\n' "$*"; exit 0; }

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
bash_only=no
keep=no
while (($#)); do
    case $1 in
        --bash-only) bash_only=yes; shift ;;
        --keep) keep=yes; shift ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; die "unknown argument $1" ;;
    esac
done

work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-agents.XXXXXX")
pids=()
clean_up() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${pids[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    if [[ $keep == yes ]]; then
        printf 'agents.sh: all that was recorded is in %s\n' "$work"
    else
        rm -rf -- "$work"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits until a file says something, for a bounded time.
wait_for() { # FILE PATTERN WHAT
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        if grep -q -- "$2" "$1" 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    die "$3: it did not get ready: $(tail -n 5 -- "$1" 2>/dev/null)"
}

find_claude() {
    claude=${REXEC_CLAUDE:-}
    [[ -z $claude ]] || return 0
    command -v npm >/dev/null || skip "npm is missing"
    local version cache=${XDG_CACHE_HOME:-$HOME/.cache}/rexec-agents
    claude=$cache/node_modules/.bin/claude
    mkdir -p -- "$cache"
    for version in "${REXEC_CLAUDE_VERSION:-$tried_version}" latest; do
        if timeout 240 npm install --prefix "$cache" --no-audit --no-fund --loglevel error \
            "@anthropic-ai/claude-code@$version" >"$work/npm" 2>&1; then
            return 0
        fi
        printf 'agents.sh: version %s cannot be installed\n' "$version" >&2
    done
    [[ -x $claude ]] || skip "npm cannot install it: $(tail -n 1 "$work/npm")"
}

# Runs the agent once with a shell; what reached the model is then in NAME.json.
drive() { # NAME SHELL [VARIABLE=VALUE …]
    local name=$1 shell=$2 port took=$SECONDS
    shift 2
    mkdir -p -- "$work/$name/home" "$work/$name/tmp" "$work/$name/project/inner"
    node "$scripts/agents/model.mjs" "$work/$name.json" >"$work/$name.port" &
    pids+=($!)
    wait_for "$work/$name.port" . "the stand-in of the model"
    port=$(<"$work/$name.port")
    # A clean environment: neither our caller's agent nor its settings may have a say.
    (cd -- "$work/$name/project" && exec timeout --kill-after=5 180 env -i \
        PATH="$PATH" HOME="$work/$name/home" USER="${USER:-root}" LANG=C.UTF-8 TERM=xterm-256color \
        TMPDIR="$work/$name/tmp" CLAUDE_CODE_TMPDIR="$work/$name/tmp" \
        ANTHROPIC_BASE_URL="http://127.0.0.1:$port" ANTHROPIC_API_KEY=none \
        DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
        CLAUDE_CODE_SHELL="$shell" "$@" \
        "$claude" --print "Run the commands." --allowedTools Bash </dev/null >"$work/$name.out" 2>"$work/$name.err") ||
        die "the agent failed with $shell: $(tail -n 5 "$work/$name.out" "$work/$name.err")"
    printf 'with %s: %d s\n' "$shell" "$((SECONDS - took))"
}

command -v node >/dev/null || skip "node is missing"
find_claude
version=$(timeout 60 "$claude" --version 2>&1) || skip "it does not start here: $version"
printf 'agent: %s\n' "$version"
drive reference "$(command -v bash)"
if [[ $bash_only == yes ]]; then
    node "$scripts/agents/check.mjs" "$work/reference.json" "" "" ""
    exit
fi

"$scripts/install.sh" --quiet --prefix "$work/prefix" >"$work/install" 2>&1 ||
    die "the build failed: $(tail -n 20 "$work/install")"
mkdir -m 700 -- "$work/run"
env -u REXEC_INSIDE REXEC_SOCKET="$work/run/host.sock" REXEC_HOME="$work/journal" "$work/prefix/bin/rexec-host" \
    </dev/null >"$work/console" 2>"$work/host.err" &
pids+=($!)
wait_for "$work/console" '^rexec journal:' "the host"
drive ours "$work/prefix/lib/rexec/rexec-bash" "REXEC_SOCKET=$work/run/host.sock"
if ! node "$scripts/agents/check.mjs" "$work/reference.json" "$work/ours.json" "$work/journal" "Claude Code"; then
    printf 'the host said:\n%s\n' "$(tail -n 20 "$work/host.err")"
    die "a check failed; with --keep all that was recorded stays"
fi
printf 'agents.sh: passed with %s\n' "$version"
