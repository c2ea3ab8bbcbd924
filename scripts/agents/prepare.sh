# How each agent is made to talk to the stand-in of its model: its settings, its variables, its command line.
# shellcheck shell=bash
# shellcheck disable=SC2154 # What drives the agents sets `name`, `program` and `prefix`.

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
        codex | codex-sandboxed | codex-served | codex-zsh)
            local freedom=(--dangerously-bypass-approvals-and-sandbox)
            # Two sandboxes that share /tmp disturb each other.
            [[ $agent != codex-sandboxed ]] || freedom=(--sandbox workspace-write -c sandbox_workspace_write.exclude_slash_tmp=true
                -c sandbox_workspace_write.exclude_tmpdir_env_var=true)
            mkdir -p -- "$home/.codex"
            cat >"$home/.codex/hooks.json" <<'JSON'
{ "hooks": { "SessionStart": [{ "hooks": [{ "type": "command", "command": "cat >hooked", "timeout": 20 }] }] } }
JSON
            [[ $agent != codex-served ]] || serve_codex
            [[ $agent != codex-zsh ]] || printf 'export MARKER=mine\n' >"$home/.zshenv"
            settings=(OPENAI_API_KEY=none)
            line=("$program" exec --skip-git-repo-check "${freedom[@]}" --dangerously-bypass-hook-trust --model mock
                -c model_provider=mock -c model_providers.mock.name=mock -c model_providers.mock.wire_api=responses
                -c model_providers.mock.base_url="$url/v1" -c model_providers.mock.env_key=OPENAI_API_KEY "$say")
            ;;
        gemini | gemini-terminal)
            local ask=--prompt
            [[ $agent == gemini ]] || ask=--prompt-interactive
            # A person who is asked takes longer than a command may be silent.
            local silence=2
            [[ $name != ruled ]] || silence=60
            mkdir -p -- "$home/.gemini"
            cat >"$home/.gemini/settings.json" <<JSON
{ "security": { "auth": { "selectedType": "gemini-api-key" } }, "privacy": { "usageStatisticsEnabled": false },
  "general": { "enableAutoUpdate": false }, "tools": { "shell": { "inactivityTimeout": $silence } } }
JSON
            settings=(GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL="$url" GEMINI_CLI_TRUST_WORKSPACE=true)
            line=("$program" --approval-mode yolo --model gemini-2.5-pro "$ask" "$say")
            ;;
        opencode | kilo)
            mkdir -p -- "$home/.config/$agent"
            cat >"$home/.config/$agent/$agent.json" <<JSON
{ "autoupdate": false, "share": "disabled", "permission": "allow",
  "model": "mock/mock", "small_model": "mock/mock",
  "provider": { "mock": { "npm": "@ai-sdk/openai-compatible", "name": "mock",
    "options": { "baseURL": "$url/v1", "apiKey": "none" },
    "models": { "mock": { "name": "mock", "tool_call": true, "limit": { "context": 200000, "output": 8000 } } } } } }
JSON
            settings=("${agent^^}_DISABLE_MODELS_FETCH=1" "${agent^^}_DISABLE_LSP_DOWNLOAD=1")
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
            local seconds=3
            [[ $name != killed ]] || seconds=60
            settings=(OPENAI_API_KEY=none OPENAI_API_BASE="$url/v1" MSWEA_CONFIGURED=true
                MSWEA_COST_TRACKING=ignore_errors LITELLM_LOCAL_MODEL_COST_MAP=True)
            line=("$program" --config mini.yaml --config "environment.timeout=$seconds" --yolo --exit-immediately
                --model openai/mock --cost-limit 0 --task "$say")
            ;;
        goose)
            settings=(GOOSE_PROVIDER=openai GOOSE_MODEL=gpt-4o OPENAI_API_KEY=none OPENAI_HOST="$url" GOOSE_DISABLE_KEYRING=1
                GOOSE_MODE=auto GOOSE_TELEMETRY_ENABLED=false)
            line=("$program" run --no-session --with-builtin developer --text "$say")
            ;;
        kimi)
            settings=(KIMI_MODEL_NAME=mock KIMI_MODEL_API_KEY=none KIMI_MODEL_PROVIDER_TYPE=openai KIMI_MODEL_BASE_URL="$url/v1"
                KIMI_CODE_NO_AUTO_UPDATE=1 PWD="${home%/home}/project")
            line=("$program" --prompt "$say")
            ;;
        vibe)
            mkdir -p -- "$home/.vibe"
            cat >"$home/.vibe/config.toml" <<TOML
active_model = "mock"
enable_update_checks = false
enable_telemetry = false
[[providers]]
name = "mock"
api_base = "$url/v1"
api_key_env_var = "MOCK_KEY"
[[models]]
name = "mock"
provider = "mock"
alias = "mock"
TOML
            settings=(MOCK_KEY=none)
            line=("$program" --trust --auto-approve --prompt "$say")
            ;;
        letta)
            # Its own backend on this machine, with a model that is as LM Studio's.
            settings=(LMSTUDIO_BASE_URL="$url/v1" LETTA_CODE_TELEM=0 DISABLE_AUTOUPDATER=1)
            line=("$program" --backend local --new-agent --model lmstudio/mock --toolset default --no-memfs --yolo -p "$say")
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
