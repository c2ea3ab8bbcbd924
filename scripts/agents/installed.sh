# The programs of the agents: which version is tried, where it is installed, and which one is there.
# shellcheck shell=bash
# shellcheck disable=SC2154 # What drives the agents sets `cache`, `work` and `limit`.

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
    # It needs Python 3.12.
    [vibe]=mistral-vibe@3.0.2
    [mini]=mini-swe-agent@2.4.6
    [kilo]=@kilocode/cli@7.7.7
    [kimi]=@moonshot-ai/kimi-code@2.1.0
    [letta]=@letta-ai/letta-code@0.25.9
    # Its program for this kind of machine, without the terminal interface around it.
    [goose]=@aaif/goose-binary-linux-x64@0.20.1
)
# Those that come from PyPI, not from npm.
python=(aider mini vibe)

# Finds or installs an agent, and sets `program` to its path.
find_agent() { # AGENT
    local name=${1%-*} wanted place install
    local -n given=REXEC_${name^^} version=REXEC_${name^^}_VERSION
    program=${given:-}
    [[ -z $program ]] || return 0
    place=$cache/$name
    program=$place/node_modules/.bin/$name
    install=(npm install --prefix "$place" --no-audit --no-fund --loglevel error)
    mkdir -p -- "$place"
    if [[ $name == kimi ]]; then
        # It needs a newer node than may be there.
        install+=(node@24)
        PATH=$place/node_modules/.bin:$PATH
    fi
    if [[ " ${python[*]} " == *" $name "* ]]; then
        # Aider has about 700 MB.
        program=$place/bin/$name
        [[ -x $place/bin/pip ]] || python3 -m venv "$place" || return 1
        install=("$place/bin/pip" install --quiet)
        # A dependency of mini-swe-agent imports it without saying so.
        [[ $name != mini ]] || install+=(mcp)
    fi
    for wanted in "${version:-${package[$name]##*@}}" latest; do
        # An installed version needs no network.
        [[ $wanted == latest ]] || ! grep -qsx -- "$wanted" "$place/version" || return 0
        local named=${package[$name]%@*}@$wanted
        [[ " ${python[*]} " != *" $name "* ]] || named=${named/@latest/} named=${named/@/==}
        if timeout "$((limit - SECONDS))" "${install[@]}" "$named" >"$work/install-agent" 2>&1; then
            printf '%s\n' "$wanted" >"$place/version"
            return 0
        fi
        printf '%s: version %s cannot be installed: %s\n' "$name" "$wanted" "$(tail -n 1 "$work/install-agent")" >&2
    done
    return 1
}

# Writes the version of an agent to a file. Prints what the agent says if it does not start.
ask_version() { # AGENT FILE
    local option=--version said
    # It says its version with its help only.
    [[ $1 != mini ]] || option=--help
    said=$(timeout 60 "$program" "$option" 2>&1 </dev/null) || { printf '%s' "$said"; return 1; }
    grep -oE '[0-9]+(\.[0-9]+)+' <<<"$said" | head -n 1 >"$2"
}
