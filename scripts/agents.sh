#!/usr/bin/env bash
# Drives real agents through rexec and checks that nothing is lost on the way.
#
# The model is a stand-in on loopback (agents/model.mjs) that asks for the commands of agents/agents.mjs. Each agent
# runs them by itself, with `rexec run`, and by itself after `rexec init`, where that can change its settings. Codex runs
# them also through a server, its own one and `rexec exec-server`. The model must get the same results except for colours,
# and the host's journal must have every command under the agent's name. Agents are installed outside of the tree.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/agents.sh [--bash-only] [--keep] [--prefix DIR] [AGENT …]

  AGENT          claude, claude-terminal, claude-sandboxed, codex, codex-sandboxed, codex-served, gemini,
                 gemini-terminal, opencode, qwen, qwen-terminal, pi, copilot, cline, cn, mini, aider-terminal (default: all); at a terminal a command of
                 theirs is cancelled by a key, too
  --bash-only    only the reference: no build, no host
  --keep         keep the folder with all that was recorded, and print its name
  --prefix DIR   build nothing; take the rexec that scripts/install.sh has installed there

Environment:
  REXEC_CLAUDE           the agent's program, in place of an installed one
  REXEC_CLAUDE_VERSION   the version to install, or latest (default: the one this was last tried with)
                         … and so for each of the others
  XDG_CACHE_HOME         where they are installed: rexec-agents below it (default: ~/.cache)
USAGE
}

# The next version of an agent may call its shell in another way, so each version is tried before it is named here.
declare -A package=(
    [claude]=@anthropic-ai/claude-code@2.1.329
    [codex]=@openai/codex@0.169.0
    [gemini]=@google/gemini-cli@0.61.0
    [opencode]=opencode-ai@1.18.33
    [qwen]=@qwen-code/qwen-code@0.24.4
    [pi]=@earendil-works/pi-coding-agent@0.74.2
    [copilot]=@github/copilot@1.0.102
    [cline]=cline@3.0.65
    [cn]=@continuedev/cli@1.5.47
    [aider]=aider-chat@0.86.2
    [mini]=mini-swe-agent@2.4.6
)
# Those that are also driven after `rexec init`.
permanent=(claude claude-sandboxed codex codex-sandboxed opencode pi aider-terminal)
# Those that come from PyPI, not from npm.
python=(aider mini)
all=(claude claude-terminal claude-sandboxed codex codex-sandboxed codex-served gemini gemini-terminal opencode qwen qwen-terminal pi
    copilot cline cn mini aider-terminal)
# All in seconds: the time for everything, the latest start of an agent, and the longest time of one agent.
limit=450
last_start=380
patience=90

die() { printf 'agents.sh: %s\n' "$*" >&2; exit 1; }
# An agent that cannot be tried is not a failure, but it is always named.
skip() { printf '%s: SKIPPED, not run: %s\n' "$1" "$2"; skipped+=("$1"); }

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
bash_only=no
keep=no
prefix=
agents=()
while (($#)); do
    case $1 in
        --bash-only) bash_only=yes; shift ;;
        --keep) keep=yes; shift ;;
        --prefix) (($# >= 2)) || die "--prefix needs a folder"; prefix=$2; shift 2 ;;
        -h | --help) usage; exit 0 ;;
        *)
            [[ " ${all[*]} " == *" $1 "* ]] || { usage >&2; die "unknown argument $1"; }
            agents+=("$1")
            shift
            ;;
    esac
done
((${#agents[@]})) || agents=("${all[@]}")

end() { # PID …
    local pid
    for pid in "$@"; do kill "$pid" 2>/dev/null || true; done
    for pid in "$@"; do wait "$pid" 2>/dev/null || true; done
}
# Ends what agents leave running on purpose, as Cline does its hub: all that has its home in our folder.
end_daemons() {
    local environment process
    for environment in /proc/[0-9]*/environ; do
        process=${environment#/proc/} process=${process%/environ}
        if grep -qz -- "^HOME=$work/" "$environment" 2>/dev/null; then kill -KILL "$process" 2>/dev/null || true; fi
    done
}
clean_up() {
    end_daemons
    if [[ $keep == yes ]]; then
        printf 'agents.sh: all that was recorded is in %s\n' "$work"
    else
        rm -rf -- "$work"
    fi
}
work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-agents.XXXXXX")
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits until a file contains a pattern, for 10 s at the longest.
wait_for() { # FILE PATTERN WHAT
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        if grep -q -- "$2" "$1" 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    die "$3: it did not get ready: $(tail -n 5 -- "$1" 2>/dev/null)"
}

# Finds or installs an agent, and sets `program` to its path.
find_agent() { # AGENT
    local name=${1%-*} wanted cache install
    local -n given=REXEC_${name^^} version=REXEC_${name^^}_VERSION
    program=${given:-}
    [[ -z $program ]] || return 0
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/rexec-agents/$name
    program=$cache/node_modules/.bin/$name
    install=(npm install --prefix "$cache" --no-audit --no-fund --loglevel error)
    mkdir -p -- "$cache"
    if [[ " ${python[*]} " == *" $name "* ]]; then
        # Aider has about 700 MB.
        program=$cache/bin/$name
        [[ -x $cache/bin/pip ]] || python3 -m venv "$cache" || return 1
        install=("$cache/bin/pip" install --quiet)
        # A dependency of mini-swe-agent imports it without saying so.
        [[ $name != mini ]] || install+=(mcp)
    fi
    for wanted in "${version:-${package[$name]##*@}}" latest; do
        # An installed version needs no network.
        [[ $wanted == latest ]] || ! grep -qsx -- "$wanted" "$cache/version" || return 0
        local named=${package[$name]%@*}@$wanted
        [[ " ${python[*]} " != *" $name "* ]] || named=${named/@latest/} named=${named/@/==}
        if timeout "$((limit - SECONDS))" "${install[@]}" "$named" >"$work/install-agent" 2>&1; then
            printf '%s\n' "$wanted" >"$cache/version"
            return 0
        fi
        printf '%s: version %s cannot be installed: %s\n' "$name" "$wanted" "$(tail -n 1 "$work/install-agent")" >&2
    done
    return 1
}

# Sets `settings`, a list of variables, and `line`, the command line, so that an agent talks to the stand-in and asks
# nobody. Sets `cancels` to the key that cancels a command.
prepare() { # AGENT HOME PORT
    local agent=$1 home=$2 url=http://127.0.0.1:$3 say="Run the commands."
    cancels='\e'
    case $agent in
        claude | claude-terminal | claude-sandboxed)
            settings=(ANTHROPIC_BASE_URL="$url" ANTHROPIC_API_KEY=none DISABLE_AUTOUPDATER=1
                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1)
            line=("$program" --print "$say" --allowedTools Bash)
            case $agent in
                claude-terminal) greet_claude ;;
                claude-sandboxed)
                    mkdir -p -- "$home/.claude"
                    printf '{ "sandbox": { "enabled": true, "autoAllowBashIfSandboxed": true } }\n' >"$home/.claude/settings.json"
                    ;;
            esac
            ;;
        codex | codex-sandboxed | codex-served)
            local freedom=(--dangerously-bypass-approvals-and-sandbox)
            # Two sandboxes that share /tmp disturb each other.
            [[ $agent != codex-sandboxed ]] || freedom=(--sandbox workspace-write -c sandbox_workspace_write.exclude_slash_tmp=true
                -c sandbox_workspace_write.exclude_tmpdir_env_var=true)
            # rexec run switches its snapshot of the shell off, which brings TERM and more into its commands.
            freedom+=(-c features.shell_snapshot=false)
            mkdir -p -- "$home/.codex"
            cat >"$home/.codex/hooks.json" <<'JSON'
{ "hooks": { "SessionStart": [{ "hooks": [{ "type": "command", "command": "cat >hooked", "timeout": 20 }] }] } }
JSON
            [[ $agent != codex-served ]] || serve_codex
            settings=(OPENAI_API_KEY=none)
            line=("$program" exec --skip-git-repo-check "${freedom[@]}" --dangerously-bypass-hook-trust --model mock
                -c model_provider=mock -c model_providers.mock.name=mock -c model_providers.mock.wire_api=responses
                -c model_providers.mock.base_url="$url/v1" -c model_providers.mock.env_key=OPENAI_API_KEY "$say")
            ;;
        gemini | gemini-terminal)
            local ask=--prompt
            [[ $agent == gemini ]] || ask=--prompt-interactive
            mkdir -p -- "$home/.gemini"
            cat >"$home/.gemini/settings.json" <<'JSON'
{ "security": { "auth": { "selectedType": "gemini-api-key" } }, "privacy": { "usageStatisticsEnabled": false },
  "general": { "enableAutoUpdate": false }, "tools": { "shell": { "inactivityTimeout": 2 } } }
JSON
            settings=(GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL="$url" GEMINI_CLI_TRUST_WORKSPACE=true)
            line=("$program" --approval-mode yolo --model gemini-2.5-pro "$ask" "$say")
            ;;
        opencode)
            mkdir -p -- "$home/.config/opencode"
            cat >"$home/.config/opencode/opencode.json" <<JSON
{ "autoupdate": false, "share": "disabled", "permission": "allow",
  "model": "mock/mock", "small_model": "mock/mock",
  "provider": { "mock": { "npm": "@ai-sdk/openai-compatible", "name": "mock",
    "options": { "baseURL": "$url/v1", "apiKey": "none" },
    "models": { "mock": { "name": "mock", "tool_call": true, "limit": { "context": 200000, "output": 8000 } } } } } }
JSON
            settings=(OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1)
            line=("$program" run "$say")
            ;;
        qwen | qwen-terminal)
            local ask=--prompt
            if [[ $agent == qwen-terminal ]]; then
                ask=--prompt-interactive
                mkdir -p -- "$home/.qwen"
                printf '{ "tools": { "shell": { "enableInteractiveShell": true } } }\n' >"$home/.qwen/settings.json"
            fi
            settings=(OPENAI_API_KEY=none OPENAI_BASE_URL="$url/v1" OPENAI_MODEL=mock)
            line=("$program" --auth-type openai --approval-mode yolo "$ask" "$say")
            ;;
        aider-terminal)
            cancels='\003'
            settings=(OPENAI_API_KEY=none OPENAI_API_BASE="$url/v1")
            line=("$program" --model openai/mock --edit-format diff --no-git --no-pretty
                --no-check-update --analytics-disable --no-show-model-warnings --no-show-release-notes --no-auto-lint
                --no-detect-urls --no-fancy-input)
            ;;
        copilot)
            settings=(COPILOT_OFFLINE=true COPILOT_PROVIDER_BASE_URL="$url/v1" COPILOT_PROVIDER_API_KEY=none
                COPILOT_MODEL=mock COPILOT_AUTO_UPDATE=false)
            line=("$program" --prompt "$say" --allow-all)
            ;;
        cline)
            settings=(CLINE_TELEMETRY_DISABLED=1)
            "$program" auth --provider openai-compatible --apikey none --modelid mock --baseurl "$url/v1" \
                --config "$home/.cline" >"$home/auth" 2>&1 </dev/null || true
            line=("$program" --provider openai-compatible --model mock --config "$home/.cline" "$say")
            ;;
        cn)
            cat >"$home/config.yaml" <<YAML
name: mock
version: 1.0.0
schema: v1
models:
  - { name: mock, provider: openai, model: gpt-4o, apiBase: "$url/v1", apiKey: none, roles: [chat],
      capabilities: [tool_use] }
YAML
            settings=(CONTINUE_TELEMETRY_ENABLED=0 CONTINUE_CLI_ENABLE_TELEMETRY=0)
            line=("$program" --print --auto --config "$home/config.yaml" "$say")
            ;;
        mini)
            settings=(OPENAI_API_KEY=none OPENAI_API_BASE="$url/v1" MSWEA_CONFIGURED=true
                MSWEA_COST_TRACKING=ignore_errors LITELLM_LOCAL_MODEL_COST_MAP=True)
            line=("$program" --config mini.yaml --config environment.timeout=3 --yolo --exit-immediately
                --model openai/mock --cost-limit 0 --task "$say")
            ;;
        pi)
            mkdir -p -- "$home/.pi/agent"
            cat >"$home/.pi/agent/models.json" <<JSON
{ "providers": { "mock": { "baseUrl": "$url/v1", "api": "openai-completions", "apiKey": "none",
  "models": [{ "id": "mock" }] } } }
JSON
            settings=()
            line=("$program" --provider mock --model mock --print "$say")
            ;;
    esac
}

# Has Codex run its commands through a server: its own one for the reference, and rexec's.
serve_codex() {
    local server=("$program" '"exec-server", "--listen", "stdio"')
    [[ $name != ours ]] || server=("$prefix/bin/rexec" '"exec-server"')
    cat >"$home/.codex/environments.toml" <<TOML
default = "served"
include_local = false
[[environments]]
id = "served"
program = "${server[0]}"
args = [${server[1]}]
TOML
    printf 'marker-instructions\n' >"${home%/home}/project/AGENTS.md"
}

# Answers what Claude Code asks at its first start at a terminal: changes `line`.
greet_claude() {
    cat >"$home/.claude.json" <<JSON
{ "hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": { "approved": ["none"], "rejected": [] },
  "projects": { "${home%/home}/project": { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true } } }
JSON
    line=("$program" "$say" --permission-mode default --allowedTools Bash)
}

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

# Runs an agent once, and records in AGENT/NAME.json what reached the model.
drive() { # AGENT NAME [VARIABLE=VALUE …]
    local agent=$1 name=$2 record=$work/$1/$2 model code=0 took=$SECONDS settings line keys cancels running
    shift 2
    exec {keys}</dev/null
    mkdir -p -- "$record/home" "$record/tmp" "$record/project/inner"
    timeout "$patience" node "$scripts/agents/model.mjs" "$agent" "$record.json" >"$record.port" &
    model=$!
    wait_for "$record.port" . "the stand-in of the model"
    prepare "$agent" "$record/home" "$(<"$record.port")"
    case $name in
        ours) [[ $agent == codex-served ]] || line=("$prefix/bin/rexec" run -- "${line[@]}") ;;
        init)
            env -i PATH="$PATH" HOME="$record/home" SHELL="$(command -v bash)" \
                "$prefix/bin/rexec" init --yes "${agent%-*}" >"$record.init" 2>&1 || die "rexec init: $(<"$record.init")"
            ;;
    esac
    [[ $agent != *-terminal ]] || at_terminal
    # A clean environment, without the settings of an agent that runs this script.
    (cd -- "$record/project" && exec timeout --kill-after=5 "$patience" env -i \
        PATH="$PATH" HOME="$record/home" USER="${USER:-root}" SHELL="$(command -v bash)" LANG=C.UTF-8 \
        TERM=xterm-256color TMPDIR="$record/tmp" \
        "${settings[@]}" "$@" "${line[@]}" <&"$keys" >"$record.out" 2>"$record.err") &
    running=$!
    if [[ $agent == *-terminal ]]; then
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
drive_through_host() { # AGENT NAME
    local agent=$1 name=$2 place=$work/$1 host
    mkdir -m 700 -- "$place/$name-run"
    env -u REXEC_INSIDE REXEC_SOCKET="$place/$name-run/host.sock" REXEC_HOME="$place/$name-journal" \
        "$prefix/bin/rexec-host" </dev/null >"$place/$name.console" 2>"$place/$name.host" &
    host=$!
    wait_for "$place/$name.console" '^rexec journal:' "the host"
    drive "$agent" "$name" "REXEC_SOCKET=$place/$name-run/host.sock"
    end "$host"
}

# Runs an agent with both shells at the same time, and judges.
try() { # AGENT
    local agent=$1 reference left=$((limit - SECONDS))
    local patience=$((left < patience ? left : patience))
    rm -rf -- "${work:?}/$agent"
    mkdir -- "$work/$agent"
    drive "$agent" reference &
    reference=$!
    if [[ $bash_only == yes ]]; then
        wait "$reference"
        node "$scripts/agents/check.mjs" "$agent" "$work/$agent" --bash-only
        return
    fi
    drive_through_host "$agent" ours
    wait "$reference"
    node "$scripts/agents/check.mjs" "$agent" "$work/$agent" ours || return
    [[ " ${permanent[*]} " == *" $agent "* ]] || return 0
    drive_through_host "$agent" init
    node "$scripts/agents/check.mjs" "$agent" "$work/$agent" init
}

run() { # AGENT
    local agent=$1 said code=0
    ((SECONDS < last_start)) || { skip "$agent" "no time is left for it"; return; }
    find_agent "$agent" || { skip "$agent" "it cannot be installed"; return; }
    local version=--version
    # It says its version with its help only.
    [[ $agent != mini ]] || version=--help
    said=$(timeout 60 "$program" "$version" 2>&1 </dev/null) || { skip "$agent" "it does not start here: $said"; return; }
    if [[ $agent == *-terminal ]] && ! command -v script >/dev/null; then
        skip "$agent" "script(1) is missing, which makes its terminal"
        return
    fi
    if [[ $agent == claude-sandboxed ]] && ! { command -v bwrap && command -v socat; } >/dev/null; then
        skip "$agent" "bubblewrap or socat is missing, which its sandbox needs"
        return
    fi
    if [[ $agent == codex* && $(getent passwd "$(id -u)") != */bash ]]; then
        skip "$agent" "it takes the login shell of the account, which is not bash here"
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
        passed+=("$agent $(grep -oE '[0-9]+(\.[0-9]+)+' <<<"$said" | head -n 1)")
    fi
}

command -v node >/dev/null || { printf 'agents.sh: SKIPPED, no real agent was run: node is missing\n'; exit 0; }
passed=() failed=() skipped=()
if [[ $bash_only == no && -z $prefix ]]; then
    prefix=$work/prefix
    "$scripts/install.sh" --quiet --prefix "$prefix" >"$work/install" 2>&1 ||
        die "the build failed: $(tail -n 20 "$work/install")"
    # The time for the build does not count.
    SECONDS=0
fi
for agent in "${agents[@]}"; do
    run "$agent"
done
((${#passed[@]} == 0)) || printf 'agents.sh: passed: %s\n' "$(IFS=, && printf '%s' "${passed[*]}")"
((${#skipped[@]} == 0)) || printf 'agents.sh: SKIPPED, not run: %s\n' "${skipped[*]}"
((${#failed[@]} == 0)) || die "a check failed of: ${failed[*]}; with --keep all that was recorded stays"
