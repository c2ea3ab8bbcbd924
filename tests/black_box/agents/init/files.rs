//! Settings files as people have them, and files that no agent reads.

/// The agents with a file of settings, that file, and what people have in it.
pub(super) const AGENTS: [(&str, &str, &[&str]); 6] = [
    ("claude", ".claude/settings.json", JSON),
    ("pi", ".pi/agent/settings.json", JSON),
    ("opencode", ".config/opencode/opencode.json", JSON_WITH_COMMENTS),
    ("kilo", ".config/kilo/kilo.json", JSON_WITH_COMMENTS),
    ("codex", ".codex/config.toml", TOML),
    ("aider", ".aider.conf.yml", YAML),
];

const JSON: &[&str] = &[
    "",
    "{}",
    "{ }\n",
    "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\"Bash(ls:*)\", \"Read\"],\n    \"deny\": []\n  }\n}\n",
    "{\n\t\"env\": {\n\t\t\"ANTHROPIC_MODEL\": \"x\"\n\t},\n\t\"theme\": \"dark\"\n}",
    "{\r\n    \"env\": {},\r\n    \"a\": null\r\n}\r\n",
    "{\n  \"größe\": \"\\u00e9 ✓\",\n  \"hooks\": { \"Stop\": [ { \"hooks\": [ { \"command\": \"echo \\\"}\\\"\" } ] } ] }\n}\n",
    "{\"env\":{\"A\":\"1\",\"B\":\"2\"},\"shellPathX\":\"/bin/sh\"}\n",
    "\n\n{\n\n  \"a\": 1\n\n}\n\n",
    "{\n  \"nested\": {\n    \"env\": { \"CLAUDE_CODE_SHELL\": \"/x\" },\n    \"shellPath\": \"/x\"\n  },\n  \"env\": { \"Z\": \"\" }\n}\n",
    "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(npm run test:*)\"\n    ]\n  },\n  \"env\": {\n    \"CLAUDE_CODE_ENABLE_TELEMETRY\": \"1\",\n    \"OTEL_METRICS_EXPORTER\": \"otlp\"\n  }\n}\n",
    "{\n  \"a\": 1\n  ,\"b\": -0.5e-10}\n",
    "{\n  \"env\": {\"A\": \"b\",\n    \"C\": \"d\"}\n}",
    "  {\"\\u0065nv\": {\"A\": \"\\ud83d\\ude00\"}, \"x\": {\"B\": \"2\"}}  ",
];

const JSON_WITH_COMMENTS: &[&str] = &[
    "",
    "{}",
    "// only a comment\n",
    "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  // which model\n  \"model\": \"x/y\", // best\n}\n",
    "{\n  \"theme\": \"x\", /* one */ // two\n  /* three\n     four */\n}\n",
    "{\r\n\t\"provider\": {\r\n\t\t\"p\": { \"models\": { \"m\": {}, }, },\r\n\t},\r\n}",
    "{ \"a\": [ 1, 2, ], }\n",
    "{\n  // nothing but this\n}",
    "{\"a\":{\"shell\":\"/x\"},\"b\":\"// \\\"no\\\" comment\"}",
    "/* head */\n{\n  \"größe\": 1.5e3 // ✓\n  ,\n  \"z\": false\n}\n// tail\n",
    "/* a */{/* b */\"a\"/* c */:/* d */1/* e */,/* f */}/* g */",
    "// \"shell\": \"x\"\n{\n//  \"shell\": \"zsh\",\n  \"agent\": {\"shell\": \"x\"} // \"\n  // last\n}",
    "{\"a\":[//\n1,],//\n}//",
    "{\n  \"a\": 1, /* two\n  lines */\n}\n",
];

const TOML: &[&str] = &[
    "",
    "model = \"gpt-5\"",
    "# mine\n\nmodel = 'x' # best\napproval_policy = \"never\"\n\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\n  \"-y\", # yes\n  \"docs\",\n]\n",
    "[features]\nunified_exec = true\n\n[shell_environment_policy]\ninherit = \"all\"\nexclude = [\"AWS_*\"]\n",
    "model = \"x\"\r\n\r\n[features]\r\n# none yet\r\n\r\n[tui]\r\ntheme = \"a\"\r\n",
    "\u{feff}shell_environment_policy.inherit = \"core\"\n",
    "features.web_search = true\nshell_environment_policy.set.\"GRÖSSE\" = '✓'\n[profiles.x]\nmodel = \"y\"\n",
    "[projects.\"/srv/me/a b\"]\ntrust_level = \"trusted\"\n\n[shell_environment_policy.set]\n\tB = \"\"\"\n[features]\n\"\"\"",
    "\n\n[[hooks.x]]\nname = \"a\"\n\n\n",
    "[features]",
    "[[a]]\nx = 1\n[a.b]\ny = 1\n[[a]]\n[a.b]\ny = 2\n[features] # mine\n[[c]]\n",
    "a.b.c = 1\na.b.d = 2\n[a.e]\nx = 1979-05-27 07:32:00.5Z\ny = [ # one\n 0xdead_beef, # ]\n -1_000.5e+3, nan,\n 07:32:00]\n",
    "['shell_environment_policy'.\"set\"]\n\"A\" = '''\n[features]\nshell_snapshot = true\n'''\n[profiles.x.features]\nshell_snapshot = true\n",
    "  [shell_environment_policy]\r\n  set.PATH = \"/x\"\r\n\t[ features ]\r\n",
];

const YAML: &[&str] = &[
    "",
    "model: sonnet",
    "# Aider\n---\nmodel: sonnet # best\nread:\n  - CONVENTIONS.md\n  - SHELL=/x\n",
    "# set-env:\n#   - A=1\nauto-commits: false\n",
    "dark-mode: true\r\nread:\r\n- a.md",
    "\u{feff}größe: \"✓\"\n",
    "alias:\n  - \"fast:x\"\n\n\n",
    "read: [\n  a, # ]\n  'b]'\n]\n",
    "note: |+\n  set-env:\n    - SHELL=/x\n\n  more\n\n",
    "a: {b: c}\nb: one\n  more # of it\n",
];

/// Texts that the agents' own parsers refuse or that rexec does not edit, and the line where that is.
pub(super) const INVALID: [(&str, &[(usize, &str)]); 5] = [
    ("claude", STRICT),
    ("pi", STRICT),
    (
        "opencode",
        &[
            (1, "{\"a\": 1"),
            (1, "{a: 1}"),
            (2, "\n{'a': 1}"),
            (1, "{\"a\": 01}"),
            (1, "{\"a\": .5}"),
            (1, "{\"a\": \"\\x\"}"),
            (2, "{\n\"a\": 1,, }"),
            (1, "/* "),
            (1, "{\"a\": 1}}"),
            (1, "<<<<<<< HEAD\n{}\n"),
            (1, "{\"a\": tru}"),
            (1, "{,}"),
            (1, "\u{feff}{}"),
            (1, "{\"shell\": 1, \"shell\": 2}"),
        ],
    ),
    (
        "codex",
        &[
            (2, "\nx =\n"),
            (1, "[x\n"),
            (1, "x = \"a\n"),
            (1, "x = \"\"\"a\n"),
            (1, "a..b = 1"),
            (1, "x = 1]\n"),
            (3, "[features]\n\n[features]\n"),
            (2, "[shell_environment_policy]\nset = { A = \"1\" }\r\n"),
            (1, "shell_environment_policy = { inherit = \"core\", set = {} }\n"),
            (2, "model = \"x\"\nfeatures={a=true}\n"),
            (1, "features = 1"),
            (1, "[[features]]"),
            (1, "[shell_environment_policy.set.BASH_ENV]\n"),
        ],
    ),
    (
        "aider",
        &[
            (1, "a\n"),
            (1, "{a: b}\n"),
            (1, "- a\n"),
            (2, "a: b\n---\nc: d\n"),
            (2, "a: b\n...\n"),
            (1, "  a: b\n"),
            (1, "<<<<<<< HEAD\na: b\n"),
            (2, "a: b\nset-env:\n  - A=1\n"),
            (1, "set-env: [A=1, 'B=2'] # both\n"),
            (1, "'set-env': null\n"),
            (1, "set-env: A=1\n"),
        ],
    ),
];

const STRICT: &[(usize, &str)] = &[
    (1, "{\"a\": 1"),
    (3, "{\n  \"a\": 1\n  \"b\": 2\n}\n"),
    (3, "{\n  \"a\": 1,\n}\n"),
    (2, "{\n// no\n}"),
    (1, "[]"),
    (1, "null"),
    (1, "{a: 1}"),
    (1, "{\"a\": NaN}"),
    (1, "{\"a\": \"\t\"}"),
    (1, "{\"a\": 1} x"),
    (1, "{\"a\" 1}"),
    (1, "{\"a\": 1e}"),
    (1, "{\"a\": 1e999}"),
    (1, "{\"env\": {}, \"a\": \"\\ud83d\"}"),
    (1, "\u{feff}{}"),
];
