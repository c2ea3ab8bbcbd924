#!/usr/bin/env bash
# Drives real agents through rexec and checks that nothing is lost on the way.
#
# The model is a stand-in on loopback (agents/model.mjs) that asks for the commands of agents/agents.mjs. Each agent
# runs them by itself, with `rexec run`, and by itself after `rexec init`, where that can change its settings. Codex runs
# them also through a server, its own one and `rexec exec-server`. The model must get the same results except for colours,
# and the host's journal must have every command under the agent's name, and its console the bare command, without what
# the agent puts around it. Agents are installed outside of the tree.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/agents.sh [--bash-only] [--all-variables | --preload] [--keep] [--prefix DIR] [AGENT …]

  AGENT          claude, claude-terminal, claude-sandboxed, codex, codex-sandboxed, codex-served, codex-zsh, gemini,
                 gemini-terminal, opencode, qwen, qwen-terminal, pi, copilot, cline, cn, mini, aider-terminal, together,
                 goose, kilo, kimi, letta, vibe (default: all but the last five, which are large). At a terminal a command of theirs is
                 cancelled by a key, too. Without one the agent is also killed while a command runs, which must end.
                 Of the four that run together each also meets rules that refuse and ask.
                 together is four agents at once at one host
  --bash-only    only the reference: no build, no host
  --all-variables
                 start the agents as rexec run starts a program that it does not know and that takes no preload: with all
                 variables of all agents
  --preload      start them as rexec run starts any other program that it does not know: with the preload
  --keep         keep the folder with all that was recorded, and print its name
  --prefix DIR   build nothing; take the rexec that scripts/install.sh has installed there

Environment:
  REXEC_CLAUDE           the agent's program, in place of an installed one
  REXEC_CLAUDE_VERSION   the version to install, or latest (default: the one this was last tried with)
                         … and so for each of the others
  REXEC_TOGETHER         the number of commands that each agent has in together (default: 12)
  REXEC_AGENTS_AT_ONCE   how many of the others are driven at the same time (default: 2)
  REXEC_AGENTS_LIMIT     seconds for everything; no agent starts in the last 70 (default: 450)
  XDG_CACHE_HOME         where they are installed: rexec-agents below it (default: ~/.cache)
USAGE
}

# Those that are also driven after `rexec init`.
permanent=(claude claude-sandboxed codex codex-sandboxed codex-zsh opencode pi aider-terminal kilo)
all=(claude claude-terminal claude-sandboxed codex codex-sandboxed codex-served codex-zsh gemini gemini-terminal opencode qwen qwen-terminal pi
    copilot cline cn mini aider-terminal together)
# Those that run only when they are named.
# shellcheck disable=SC2034 # The reading of options takes it.
on_request=(goose kilo kimi letta vibe)
# Those that run together, and how many commands each of them has then.
crowd=(claude codex gemini opencode)
each=${REXEC_TOGETHER:-12}
at_once=${REXEC_AGENTS_AT_ONCE:-2}
# All in seconds: the time for everything, the latest start of an agent, and the longest time of one agent, alone and
# together with others.
limit=${REXEC_AGENTS_LIMIT:-450}
last_start=$((limit - 70))
patience=120
together_patience=$((60 + 4 * each))

scripts_agents=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/agents" && pwd)
bash_only=no
keep=no
# The run through a host that comes first.
main_run=ours
declare -A flags=([--bash-only]=bash_only [--keep]=keep [--all-variables]=all_variables [--preload]=preload)
all_variables=no
preload=no
# shellcheck source=scripts/agents/common.sh
. "$scripts_agents/common.sh"
# shellcheck source=scripts/agents/prepare.sh
. "$scripts_agents/prepare.sh"
# shellcheck source=scripts/agents/installed.sh
. "$scripts_agents/installed.sh"
# shellcheck source=scripts/agents/endings.sh
. "$scripts_agents/endings.sh"
# shellcheck source=scripts/agents/rules.sh
. "$scripts_agents/rules.sh"
read_options "$@"
[[ $all_variables == no ]] || main_run=all
[[ $preload == no ]] || main_run=preload

# Ends what agents leave running on purpose, as Cline does its hub, and the hosts if this script was stopped: all that has
# its home or its socket in our folder.
end_daemons() {
    local environment process
    for environment in /proc/[0-9]*/environ; do
        process=${environment#/proc/} process=${process%/environ}
        if grep -qz -e "^HOME=$work/" -e "^REXEC_SOCKET=$work/" -- "$environment" 2>/dev/null; then kill -KILL "$process" 2>/dev/null || true; fi
    done
}
clean_up() {
    local process
    # Before the rest, what would start more: the drivers in the background.
    for process in $(descendants $$); do
        [[ $process == "$$" ]] || kill "$process" 2>/dev/null || true
    done
    end_daemons
    if [[ $keep == yes ]]; then
        printf 'agents.sh: all that was recorded is in %s\n' "$work"
    else
        rm -rf -- "$work"
    fi
}
make_work

# Changes `line` so that rexec starts the agent, as its run is named.
through_rexec() { # AGENT RUN
    case $2 in
        ours | killed | ruled | together) [[ $1 == codex-served ]] || line=("$prefix/bin/rexec" run -- "${line[@]}") ;;
        all)
            # A program that rexec does not know gets every variable that may help. The option is one that only a known
            # agent gets.
            printf '#!/bin/sh\nexec "$@"\n' >"$home/starter"
            chmod +x -- "$home/starter"
            [[ $1 != copilot ]] || line+=(--bash-env=on)
            line=("$prefix/bin/rexec" run --as "$1" -- "$home/starter" "${line[@]}")
            ;;
        preload)
            # Under a name that rexec does not know.
            ln -s -- "$(realpath -- "${line[0]}")" "$home/starter"
            [[ $1 != copilot ]] || line+=(--bash-env=on)
            line=("$prefix/bin/rexec" run --as "$1" -- "$home/starter" "${line[@]:1}")
            ;;
        init)
            env -i PATH="$PATH" HOME="$home" SHELL="$(command -v bash)" \
                "$prefix/bin/rexec" init --yes "${1%-*}" >"$home/init" 2>&1 || die "rexec init: $(<"$home/init")"
            ;;
    esac
}

# Runs an agent once, and records in AGENT/NAME.json what reached the model.
drive() { # AGENT NAME [VARIABLE=VALUE …]
    local agent=$1 name=$2 record=$work/$1/$2 model code=0 took=$SECONDS settings line keys cancels running
    local home=$record/home
    shift 2
    exec {keys}</dev/null
    mkdir -p -- "$home" "$record/tmp" "$record/project/inner"
    timeout "$patience" node "$scripts_agents/model.mjs" "$agent" "$record.json" "$name" "$commands" >"$record.port" &
    model=$!
    wait_for "$record.port" . "the stand-in of the model"
    prepare "$agent" "$home" "$(<"$record.port")"
    through_rexec "$agent" "$name"
    [[ $agent != *-terminal ]] || at_terminal
    # A clean environment, without the settings of an agent that runs this script.
    (cd -- "$record/project" && exec timeout --kill-after=5 "$patience" env -i \
        PATH="$PATH" HOME="$home" USER="${USER:-root}" SHELL="$(command -v bash)" LANG=C.UTF-8 \
        TERM=xterm-256color TMPDIR="$record/tmp" \
        "${settings[@]}" "$@" "${line[@]}" <&"$keys" >"$record.out" 2>"$record.err") &
    running=$!
    if [[ $name == killed ]]; then
        kill_agent "$record" "$running"
        end "$running"
    elif [[ $name == ruled ]]; then
        decide "$record" "$running"
        end "$running"
    elif [[ $agent == *-terminal ]]; then
        [[ $agent != aider-* ]] || answer "$record" "$running"
        # The agent does not end by itself, because it waits for a person to say more.
        until grep -qs 'done' "$record.port" || ! kill -0 "$running" 2>/dev/null; do sleep 0.1; done
        cancel "$record" "$running"
        end "$running"
        # A hang-up does not always end the processes that the agent has started.
        [[ ! -s $record.session ]] || kill -KILL -- "-$(<"$record.session")" 2>/dev/null || true
    else
        wait "$running" || code=$?
    fi
    exec {keys}<&-
    end "$model"
    has_ended "$record/project/open" || printf 'it lives\n' >"$record.left-open"
    ((code == 0)) || printf '%s ended with %d: %s\n' "$agent" "$code" "$(tail -n 5 "$record.out" "$record.err")"
    printf '%s, %s: %d s\n' "$agent" "$name" "$((SECONDS - took))"
}

# The same through a host of its own.
drive_through_host() { # AGENT NAME [SETTINGS]
    local host socket
    start_host "$work/$1" "$2" "${3-}"
    drive "$1" "$2" "REXEC_SOCKET=$socket"
    end "$host"
}

# What can be tried beside the rest: the agent by itself, one that is killed, and one whose person has rules.
drive_beside() { # AGENT
    drive "$1" reference
    if is_killed "$1"; then drive_through_host "$1" killed; fi
    if is_ruled "$1"; then
        write_rules "$work/$1/settings"
        drive_through_host "$1" ruled "$work/$1/settings"
    fi
}

# An agent at a terminal is killed as it is without one, and one in a sandbox takes its commands along.
is_killed() { [[ $bash_only == no && $main_run == ours && $1 != *-* ]]; }

# What an agent makes of a refusal is tried with those that most people have.
is_ruled() { is_killed "$1" && [[ " ${crowd[*]} " == *" $1 "* ]]; }

# Runs an agent with both shells at the same time, and judges.
try() { # AGENT
    local agent=$1 beside left=$((limit - SECONDS)) commands=0
    local patience=$((left < patience ? left : patience))
    rm -rf -- "${work:?}/$agent"
    mkdir -- "$work/$agent"
    drive_beside "$agent" &
    beside=$!
    if [[ $bash_only == yes ]]; then
        wait "$beside"
        judge "$agent" --bash-only
        return
    fi
    drive_through_host "$agent" "$main_run"
    if is_permanent "$agent"; then drive_through_host "$agent" init; fi
    wait "$beside"
    judge "$agent" "$main_run" || return
    if is_permanent "$agent"; then judge "$agent" init || return; fi
    if is_killed "$agent"; then judge "$agent" killed || return; fi
    if is_ruled "$agent"; then judge "$agent" ruled; fi
}

is_permanent() { [[ $main_run == ours && " ${permanent[*]} " == *" $1 "* ]]; }
judge() { node "$scripts_agents/check.mjs" "$1" "$work/$1" "$2"; } # AGENT RUN

# Four agents at the same time at one host, each with many commands: all are in the journal under the right name.
try_together() {
    local agent left=$((limit - SECONDS)) host socket drivers=() commands=$each
    local patience=$((left < together_patience ? left : together_patience))
    rm -rf -- "${work:?}/together"
    mkdir -- "$work/together"
    start_host "$work/together" together
    for agent in "${crowd[@]}"; do
        find_agent "$agent" || { skip "together" "$agent cannot be installed"; end "$host"; return 0; }
        mkdir -p -- "$work/$agent"
        rm -rf -- "${work:?}/$agent/together"*
        drive "$agent" together "REXEC_SOCKET=$socket" &
        drivers+=($!)
    done
    wait "${drivers[@]}"
    end "$host"
    node "$scripts_agents/check_together.mjs" "$work" "$each" "${crowd[@]}"
}

# The login shell of the account. Codex takes it.
account() { getent passwd "$(id -u)" | sed 's/.*://'; }
shell_for() { if [[ $1 == *-zsh ]]; then printf zsh; else printf bash; fi; } # AGENT

# Runs this script for an agent where the account has zsh: with a file of its own in the place of /etc/passwd, which the
# host must see, too. Returns 2 where that is not possible.
try_in_account_with_zsh() { # AGENT
    local zsh
    zsh=$(command -v zsh) && [[ $1 == *-zsh && $(id -u) == 0 ]] && unshare --mount true 2>/dev/null || return 2
    sed -E "s#^(([^:]*:){2}$(id -u):.*:)[^:]*\$#\\1$zsh#" /etc/passwd >"$work/passwd"
    # shellcheck disable=SC2016 # What is in single quotes is for the shell that is called.
    REXEC_AGENTS_LIMIT=$((limit - SECONDS)) unshare --mount bash -c 'mount --bind -- "$1" /etc/passwd && shift && exec "$@"' - \
        "$work/passwd" "$scripts/agents.sh" --prefix "$prefix" "$1" || return 1
}

# Runs an agent beside others. What it says comes in one piece, and how it ended is in a file.
run_beside() { # AGENT
    passed=() failed=() skipped=()
    run "$1" >"$work/$1.said" 2>&1
    declare -p passed failed skipped >"$work/$1.ended"
    # One line at a time may be longer than a pipe takes in one piece.
    flock "$work" cat -- "$work/$1.said"
}

# Takes over how an agent has ended.
take_over() { # AGENT
    local -a results=("${passed[@]}") wrong=("${failed[@]}") left_out=("${skipped[@]}")
    if [[ -s $work/$1.ended ]]; then
        # shellcheck source=/dev/null # It holds three lists.
        . <(sed 's/^declare -a /declare -ga /' "$work/$1.ended")
    else
        cat -- "$work/$1.said"
        passed=() failed=("$1") skipped=()
    fi
    passed=("${results[@]}" "${passed[@]}") failed=("${wrong[@]}" "${failed[@]}") skipped=("${left_out[@]}" "${skipped[@]}")
    rm -f -- "$work/$1.ended"
}

# Takes over what has ended, where this script runs out of time.
take_over_ended() {
    local agent
    for agent in "${chosen[@]}"; do
        [[ ! -s $work/$agent.ended ]] || take_over "$agent"
    done
}

run() { # AGENT
    local agent=$1 said code=0
    ((SECONDS < last_start)) || { skip "$agent" "no time is left for it"; return; }
    if [[ $all_variables == yes && " mini codex-served together " == *" $agent "* ]]; then
        skip "$agent" "it does not find its shell by a variable"
        return
    fi
    if [[ $preload == yes && $agent == kimi ]]; then
        skip "$agent" "what it puts before each command comes off by its name only"
        return
    fi
    if [[ $agent == together ]]; then
        [[ $bash_only == no ]] || return 0
        try_together || failed+=(together)
        [[ " ${failed[*]} ${skipped[*]} " == *" together "* ]] || passed+=("together ($each commands of each)")
        return
    fi
    # Several of these are one program: it is installed once and says its version once.
    local lock version=$work/${agent%-*}.version
    exec {lock}>"$version.lock"
    flock "$lock"
    find_agent "$agent" || { skip "$agent" "it cannot be installed"; return; }
    [[ -s $version ]] || said=$(ask_version "$agent" "$version") || { skip "$agent" "it does not start here: $said"; return; }
    exec {lock}>&-
    if [[ $agent == *-terminal ]] && ! command -v script >/dev/null; then
        skip "$agent" "script(1) is missing, which makes its terminal"
        return
    fi
    if [[ $agent == claude-sandboxed ]] && ! { command -v bwrap && command -v socat; } >/dev/null; then
        skip "$agent" "bubblewrap or socat is missing, which its sandbox needs"
        return
    fi
    if [[ $agent == codex* && $(account) != */$(shell_for "$agent") ]]; then
        try_in_account_with_zsh "$agent" || code=$?
        case $code in
            0) passed+=("$agent") ;;
            2) skip "$agent" "it takes the login shell of the account, which is $(account) here" ;;
            *) failed+=("$agent") ;;
        esac
        return
    fi
    try "$agent" || code=$?
    # On busy machines agents lose output by themselves. If this happens with plain bash, try again.
    ((code != 3 || SECONDS >= last_start)) || { code=0; try "$agent" || code=$?; }
    if ((code == 3)) && [[ $bash_only == no ]]; then
        # There is nothing to compare with.
        skip "$agent" "it fails with plain bash here"
    elif ((code)); then
        [[ $bash_only == yes ]] || printf '%s: the host said:\n%s\n' "$agent" "$(tail -n 20 "$work/$agent"/*.host)"
        failed+=("$agent")
    else
        passed+=("$agent $(<"$version")")
    fi
}

command -v node >/dev/null || { printf '%s: SKIPPED, no real agent was run: node is missing\n' "$me"; exit 0; }
if [[ $bash_only == no ]]; then
    provide_rexec
    # The time for the build does not count.
    SECONDS=0
fi
# Agents wait more than they work. These four share the machine by themselves, so they come last.
beside=0
trap 'take_over_ended; give_up; exit 143' TERM
for agent in "${chosen[@]}"; do
    [[ $agent != together ]] || continue
    if ((beside >= at_once)); then
        wait -n || true
        ((beside -= 1))
    fi
    run_beside "$agent" &
    ((beside += 1))
done
wait
for agent in "${chosen[@]}"; do
    if [[ $agent == together ]]; then run "$agent"; else take_over "$agent"; fi
done
sum_up
