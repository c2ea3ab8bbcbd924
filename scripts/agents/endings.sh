# How a command is cut short: a person at the agent's terminal cancels it by a key, or the agent is killed.
# shellcheck shell=bash
# shellcheck disable=SC2154 # What drives the agents sets `line`, `record`, `name` and `cancels`.

# Whether the process whose number is in a file ends within 10 s. A process that has ended has no command line.
has_ended() { # FILE
    local tries pid name
    [[ -s $1 ]] || return 0
    read -r pid <"$1"
    for ((tries = 0; tries < 100; tries++)); do
        { read -rd '' name <"/proc/$pid/cmdline" && [[ -n $name ]]; } 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

# Gives an agent a terminal at which nobody types: changes `line` and `keys`.
at_terminal() {
    line=(script --quiet --flush --command
        "echo \$\$ >../../$name.session; stty rows 40 cols 120; exec$(printf ' %q' "${line[@]}")" "$record.screen")
    mkfifo -- "$record.keys"
    # Open for writing as well, so that a reader never finds its end.
    exec {keys}<>"$record.keys"
}

# Answers yes to Aider's questions and prompts until its last command runs.
answer() { # RECORD PID
    local asked
    until [[ -s $1/project/cancelled ]] || ! kill -0 "$2" 2>/dev/null; do
        sleep 0.3
        asked=$(tail -c 40 -- "$1.screen" 2>/dev/null | tr -d '\0' || true)
        [[ ! $asked =~ (\]:|'> ')[[:space:]]*$ ]] || printf 'y\r' >&"$keys"
    done
}

# Cancels the agent's last command by a key, and records which of its processes live three seconds later.
cancel() { # RECORD PID
    local tries name pid
    for ((tries = 0; tries < 200; tries++)); do
        [[ ! -s $1/project/cancelled ]] || break
        kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    [[ -s $1/project/cancelled ]] || { printf 'it never began\n' >"$1.left"; return; }
    # An agent accepts the key once it shows that the command runs.
    sleep 1
    printf '%b' "$cancels" >&"$keys"
    sleep 3
    for name in cancelled child withstands; do
        read -r pid <"$1/project/$name"
        ! { read -rd '' _ <"/proc/$pid/cmdline"; } 2>/dev/null || printf '%s\n' "$name" >>"$1.left"
        kill -KILL "$pid" 2>/dev/null || true
    done
}

# Kills an agent, with all the processes that it is, while its command runs. Records which processes of the command live
# ten seconds later.
kill_agent() { # RECORD PID
    local tries name
    for ((tries = 0; tries < 600; tries++)); do
        [[ ! -s $1/project/cancelled ]] || break
        kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    [[ -s $1/project/cancelled ]] || { printf 'it never began\n' >"$1.left"; return; }
    kill_processes "$2"
    # timeout(1) ends as its program did, and bash would tell of that.
    wait "$2" 2>/dev/null || true
    : >"$1.left"
    for name in cancelled child withstands apart; do
        has_ended "$1/project/$name" || printf '%s\n' "$name" >>"$1.left"
    done
}

# Kills the processes that an agent is.
kill_processes() { # PID
    local process agents=()
    # Its shell, which is the shim, has to see for itself that the agent is dead. So have the command's own processes.
    for process in $(descendants "$1"); do
        # The first one is timeout(1).
        [[ $process == "$1" || $(readlink "/proc/$process/exe") == */rexec-sh ]] || agents+=("$process")
    done
    kill -KILL "${agents[@]}" 2>/dev/null || true
}

# A process and all below it, without those of a command.
descendants() { # PID
    local child children
    if grep -qz '^REXEC_INSIDE=' "/proc/$1/environ" 2>/dev/null; then return; fi
    printf '%s\n' "$1"
    read -rd '' -a children < <(cat "/proc/$1/task/"*/children 2>/dev/null) || true
    for child in "${children[@]}"; do descendants "$child"; done
}
