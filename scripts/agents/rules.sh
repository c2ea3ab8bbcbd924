# A person's rules: one refuses a command, one asks, and the person answers, or does not.
# shellcheck shell=bash
# shellcheck disable=SC2154 # What drives the agents sets `prefix` and `socket`.

# Writes the rules, below a folder for settings. The cases for them are in cases.mjs.
write_rules() { # FOLDER
    mkdir -p -- "$1/rexec"
    cat >"$1/rexec/config.toml" <<'RULES'
[gate]
mode = "enforce"
away = "wait"
ask_wait = "6s"

[[rule]]
name = "no-denied"
do = "deny"
run = "touch denied"
why = "Write to another file."

[[rule]]
name = "asks"
do = "ask"
run = "touch asked-*"
RULES
}

# Answers as a person does at another terminal: not below an agent, as this script may be.
answer_ask() { # NUMBER FILE ANSWER …
    setsid --fork env -i PATH="$PATH" HOME="$HOME" REXEC_SOCKET="$socket" \
        "$prefix/bin/rexec" answer "$1" "${@:3}" >"$2" 2>&1
}

# What waits for an answer: lines with the number of the run and the file that it would make.
asks() {
    env -i PATH="$PATH" HOME="$HOME" REXEC_SOCKET="$socket" "$prefix/bin/rexec" ps --json 2>/dev/null |
        sed -nE 's/.*"seq":([0-9]+),"state":"asks","held":"touch ([a-z-]+)".*/\1 \2/p'
}

# Answers what an agent's commands ask, until its last one does: then the agent is killed, and what a yes does that comes
# too late is recorded.
decide() { # RECORD PID
    local number file answered=
    while kill -0 "$2" 2>/dev/null; do
        while read -r number file; do
            [[ " $answered " != *" $number "* ]] || continue
            answered+=" $number"
            case $file in
                asked-yes) answer_ask "$number" "$1.yes" yes ;;
                asked-no) answer_ask "$number" "$1.no" no --why "Take another name." ;;
                asked-orphaned)
                    kill_processes "$2"
                    wait "$2" 2>/dev/null || true
                    until [[ -z $(asks) ]]; do sleep 0.1; done
                    answer_ask "$number" "$1.late" yes
                    wait_for "$1.late" . "the answer to a late yes"
                    return
                    ;;
            esac
        done < <(asks)
        sleep 0.2
    done
}
