#!/usr/bin/env bash
# Has real clients of the Model Context Protocol use the tools of `rexec mcp`: the official Python SDK, the official
# inspector, and four agents against a stand-in for their model. What cannot be had is skipped, and named.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/mcp.sh [--prefix DIR] [CLIENT …]

  CLIENT         python, inspector, claude, codex, gemini, opencode (default: all)
  --prefix DIR   build nothing; take the rexec that scripts/install.sh has installed there

The agents are those that scripts/agents.sh has installed. REXEC_CLAUDE and so on name others, as for that script.
The SDK and the inspector are installed beside them: in rexec-agents below XDG_CACHE_HOME (default: ~/.cache).
USAGE
}

sdk=mcp==2.3.0
inspector=@modelcontextprotocol/inspector@2.12.0
# The inspector needs a newer Node.js than many systems have.
inspectors_node=node@22
all=(python inspector claude codex gemini opencode)
declare -A flags=()

# shellcheck source=scripts/agents/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/agents/common.sh"
read_options "$@"

host=
clean_up() {
    [[ -z $host ]] || end "$host"
    rm -rf -- "$work"
}
make_work

# Installs with this command unless it was done before. What is installed is named in a file beside it.
install() { # FOLDER WHAT COMMAND …
    local folder=$1 what=$2
    shift 2
    if grep -qsx -- "$what" "$folder/version"; then return; fi
    mkdir -p -- "$folder"
    timeout 200 "$@" >"$work/install" 2>&1 || return 1
    printf '%s\n' "$what" >"$folder/version"
}

try_python() {
    local folder=$cache/mcp-sdk
    # shellcheck disable=SC2016 # The words are for the shell that is called.
    install "$folder" "$sdk" bash -c 'python3 -m venv "$1" && "$1/bin/pip" install --quiet "$2"' - "$folder" "$sdk" ||
        { skip python "$(tail -n 1 "$work/install")"; return; }
    "$folder/bin/python" "$scripts/agents/mcp_sdk.py" "$prefix/bin/rexec" "$work/python"
}

try_inspector() {
    local folder=$cache/mcp-inspector era said count=0
    install "$folder" "$inspector" npm install --prefix "$folder" --no-audit --no-fund --loglevel error \
        "$inspector" "$inspectors_node" || { skip inspector "$(tail -n 1 "$work/install")"; return; }
    local inspect=("$folder/node_modules/.bin/node" "$folder/node_modules/.bin/mcp-inspector" --cli -e
        "REXEC_SOCKET=$REXEC_SOCKET" "$prefix/bin/rexec" mcp)
    "${inspect[0]}" --version >/dev/null 2>&1 || { skip inspector "its Node.js does not run here"; return; }
    for era in legacy auto modern; do
        said=$(HOME=$work/inspector timeout 60 "${inspect[@]}" --protocol-era "$era" --method tools/list)
        for tool in exec output write kill list check_host; do
            [[ $said == *"\"name\": \"$tool\""* ]] || { printf '  FAILED  inspector, %s: no %s\n' "$era" "$tool"; return 1; }
        done
        said=$(HOME=$work/inspector timeout 60 "${inspect[@]}" --protocol-era "$era" --method tools/call \
            --tool-name exec --tool-arg command='echo inspected')
        [[ $said == *'inspected\n[exit 0]\n'* ]] || { printf '  FAILED  inspector, %s: %s\n' "$era" "$said"; return 1; }
        ((count += 7))
    done
    printf 'inspector: %d of %d checks are right\n' "$count" "$count"
}

try_agent() { # AGENT
    local -n given=REXEC_${1^^}
    local program=${given:-$cache/$1/node_modules/.bin/$1} said
    [[ -x $program ]] || { skip "$1" "scripts/agents.sh has not installed it"; return; }
    said=$(timeout 60 "$program" --version 2>&1 </dev/null) || { skip "$1" "it does not start here: $said"; return; }
    timeout 120 node "$scripts/agents/mcp.mjs" "$1" "$program" "$prefix/bin/rexec" "$work/$1"
}

command -v node >/dev/null || { printf '%s: SKIPPED, no client was run: node is missing\n' "$me"; exit 0; }
provide_rexec
start_host "$work" mcp
export REXEC_SOCKET=$socket
for client in "${chosen[@]}"; do
    mkdir -- "$work/$client"
    code=0
    case $client in
        python) try_python || code=$? ;;
        inspector) try_inspector || code=$? ;;
        *) try_agent "$client" || code=$? ;;
    esac
    if ((code)); then
        failed+=("$client")
    elif [[ " ${skipped[*]} " != *" $client "* ]]; then
        passed+=("$client")
    fi
done
sum_up
