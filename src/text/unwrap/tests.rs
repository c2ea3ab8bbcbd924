//! Wrappers of every agent, and texts that look like them.

mod probes;

use super::*;

const CLAUDE: [&str; 3] = ["CLAUDECODE=1", "AI_AGENT=claude-code_2-1-329_agent", "HOME=/h"];
const CODEX: [&str; 4] = ["CODEX_THREAD_ID=1-a", "CODEX_HOME=/h/.codex", "HOME=/h", "PATH=/c/codex-path:/usr/bin:/bin"];

fn call_by(agent: Option<Agent>, env: &[&str], argv: &[&[u8]]) -> Unwrapped {
    let env: Vec<&[u8]> = env.iter().map(|entry| entry.as_bytes()).collect();
    unwrap(argv.iter().copied(), &env, agent)
}

fn short(agent: Option<Agent>, env: &[&str], text: &str) -> (String, bool) {
    let unwrapped = call_by(agent, env, &[b"/x/bash", b"-c", text.as_bytes()]);
    (String::from_utf8(unwrapped.command).unwrap(), unwrapped.is_unwrapped)
}

fn plain(argv: &[&str]) -> String {
    let argv: Vec<&[u8]> = argv.iter().map(|argument| argument.as_bytes()).collect();
    let unwrapped = call_by(None, &[], &argv);
    assert!(!unwrapped.is_unwrapped && !unwrapped.is_probe);
    String::from_utf8(unwrapped.command).unwrap()
}

/// Whether every byte of the text is shown.
fn assert_whole(agent: Option<Agent>, env: &[&str], text: &[u8]) {
    for options in [&[b"-c".as_slice()][..], &[b"-c", b"-l"], &[b"-lc"]] {
        let argv: Vec<&[u8]> = [b"/x/bash".as_slice()].iter().chain(options).copied().chain([text]).collect();
        let unwrapped = call_by(agent, env, &argv);
        let expected =
            Unwrapped { command: text.to_vec(), is_for_program: unwrapped.is_for_program, ..Unwrapped::default() };
        assert_eq!(unwrapped, expected, "{}", text.escape_ascii());
    }
}

fn claude(body: &str) -> String {
    format!(
        "source /h/.claude/shell-snapshots/snapshot-bash-17-a1.sh 2>/dev/null || true && \\builtin shopt -u extglob \
         2>/dev/null || true && {body} < /dev/null && pwd -P >| /tmp/claude-1a2b-cwd"
    )
}

#[test]
fn claude_codes_wrapper_comes_off() {
    let by = |text: &str| short(Some(Agent::Claude), &CLAUDE, text);
    for (body, command) in [
        ("eval 'cargo test'", "cargo test"),
        ("eval pwd", "pwd"),
        (r#"eval 'echo '"'"'it && eval x'"'"''"#, "echo 'it && eval x'"),
        ("eval 'a\nb'", "a\nb"),
    ] {
        assert_eq!(by(&claude(body)), (command.to_owned(), true));
    }
    assert_eq!(by("eval 'make -j2' && pwd -P >| /tmp/claude-1a2b-cwd"), ("make -j2".to_owned(), true));
    let other = claude("eval ls").replace("/h/.claude", "/tmp/.claude");
    assert_eq!(
        by(&other).0,
        "source /tmp/.claude/shell-snapshots/snapshot-bash-17-a1.sh 2>/dev/null || true; ls",
        "what is sourced is shown, where it is not the caller's own"
    );
}

/// Claude Code's own text in its sandbox, with this in front of the command.
fn claude_in_its_sandbox(folder: &str, port: &str, command: &str) -> String {
    let git = "${GIT_CONFIG_PARAMETERS:+${GIT_CONFIG_PARAMETERS} }";
    claude(&format!("eval {command}"))
        .replace("source /h", "exec 3<&- || exit 126; source /h")
        .replace("true && \\builtin", &format!("true && export TMPDIR={folder} && export GIT_CONFIG_PARAMETERS=\"{git}'credential.http://127.0.0.1:{port}.helper='\" && \\builtin"))
        .replace("claude-1a2b-cwd", "claude-0/cwd-1a2b")
}

#[test]
fn claude_codes_wrapper_in_its_sandbox_comes_off() {
    let text = claude_in_its_sandbox("/tmp/claude-0", "3128", "'echo a; exit 3'");
    assert_eq!(short(Some(Agent::Claude), &CLAUDE, &text), ("echo a; exit 3".to_owned(), true));
    assert!(call_by(Some(Agent::Claude), &CLAUDE, &[b"bash", b"-c", text.as_bytes()]).is_sandboxed);
    for text in [
        claude_in_its_sandbox("$(EVIL)", "3128", "ls"),
        claude_in_its_sandbox("/tmp/x EVIL", "3128", "ls"),
        claude_in_its_sandbox("/tmp/x", "$(EVIL)", "ls"),
        claude_in_its_sandbox("/tmp/x", "1\"; EVIL; \"1", "ls"),
        text.replace("3<&-", "3</EVIL"),
        text.replace("exec 3<&- || exit 126; ", ""),
    ] {
        assert_whole(Some(Agent::Claude), &CLAUDE, text.as_bytes());
    }
}

/// How the shell in Claude Code's sandbox comes to the command.
#[derive(Clone, Copy)]
enum InSandbox {
    /// By a helper that forbids sockets and starts the shell again.
    Helper,
    /// By itself, where all sockets are allowed.
    Eval,
}

/// What Claude Code's sandbox starts: its own shell, which starts a helper, which starts that shell again.
fn claude_around_its_helper(shell: &str, socket: &str, inner: &str) -> String {
    claude_in_shells(shell, socket, inner, InSandbox::Helper)
}

fn claude_in_shells(shell: &str, socket: &str, inner: &str, call: InSandbox) -> String {
    let way = |port: &str, name: &str| {
        format!(
            "{{ socat TCP6-LISTEN:{port},ipv6only=0,fork,reuseaddr,backlog=4096 UNIX-CONNECT:{socket} || exec socat \
             TCP4-LISTEN:{port},fork,reuseaddr,backlog=4096 UNIX-CONNECT:{socket}; }} >/dev/null 2>&1 &\n{name}=$!\n"
        )
    };
    let script = include_str!("claude-sandbox.sh");
    let inner = String::from_utf8(scan::quoted(inner.as_bytes())).unwrap();
    let helper = match call {
        InSandbox::Helper => {
            format!("SRT_ALLOW_NESTED_USERNS=0 ARGV0=apply-seccomp /proc/self/fd/3 {shell} -c {inner}")
        }
        InSandbox::Eval => format!("eval {inner}"),
    };
    let text = [way("3128", "_srt_http"), way("1080", "_srt_socks"), script.to_owned(), helper].concat();
    format!("{shell} -c {}", String::from_utf8(scan::quoted(text.as_bytes())).unwrap())
}

#[test]
fn the_shells_around_the_helper_of_claude_codes_sandbox_come_off() {
    let env = [&CLAUDE[..], &["CLAUDE_CODE_SHELL=/run/x/rexec-bash"]].concat();
    let (inner, socket) =
        (claude_in_its_sandbox("/tmp/claude-0", "3128", "'make; exit 3'"), "/tmp/claude-http-1a.sock");
    for shell in ["/run/x/rexec-bash", "/bin/bash", "bash"] {
        let text = claude_around_its_helper(shell, socket, &inner);
        let unwrapped = call_by(Some(Agent::Claude), &env, &[b"/bin/bash", b"-c", text.as_bytes()]);
        assert_eq!((unwrapped.command.as_slice(), unwrapped.is_sandboxed), (&b"make; exit 3"[..], true), "{shell}");
    }
    let real = claude_around_its_helper("bash", socket, &inner);
    for text in [
        claude_around_its_helper("/tmp/EVIL/rexec-bash", socket, &inner),
        claude_around_its_helper("bash", "/tmp/x,EVIL", &inner),
        claude_around_its_helper("bash", "$(EVIL)", &inner),
        claude_around_its_helper("bash", "/x;EVIL", &inner),
        claude_around_its_helper("bash", socket, "EVIL"),
        claude_around_its_helper("bash", socket, &claude("eval ls")),
        real.replace("TCP6-LISTEN:3128", "TCP6-LISTEN:EVIL"),
        real.replace("/proc/self/fd/3", "/proc/self/fd/4"),
        real.replace("_srt_since=\n", "_srt_since=\nEVIL\n"),
        format!("{real} EVIL"),
        format!("EVIL; {real}"),
    ] {
        assert_whole(Some(Agent::Claude), &env, text.as_bytes());
    }
}

#[test]
fn the_shells_of_a_sandbox_that_allows_all_sockets_come_off() {
    let inner = claude_in_its_sandbox("/tmp/claude-0", "3128", "'make; exit 3'");
    let whole = |inner: &str| claude_in_shells("/bin/bash", "/tmp/claude-http-1a.sock", inner, InSandbox::Eval);
    let real = whole(&inner);
    for text in [real.clone(), real.replace("-lt 30", "-lt 45")] {
        let unwrapped = call_by(Some(Agent::Claude), &CLAUDE, &[b"/bin/bash", b"-c", text.as_bytes()]);
        assert_eq!((unwrapped.command.as_slice(), unwrapped.is_sandboxed), (&b"make; exit 3"[..], true));
    }
    for text in [
        whole("EVIL"),
        whole(&claude("eval ls")),
        whole(&format!("{inner}; EVIL")),
        real.replace("eval '", "eval EVIL '"),
        real.replace("-lt 30", "-lt EVIL"),
        real.replace("_srt_since=\n", "_srt_since=\nEVIL\n"),
        format!("{real} EVIL"),
    ] {
        assert_whole(Some(Agent::Claude), &CLAUDE, text.as_bytes());
    }
}

#[test]
fn claude_codes_wrapper_for_zsh_and_for_a_later_release_comes_off() {
    let by = |text: &str| short(Some(Agent::Claude), &CLAUDE, text);
    let zsh =
        "\\builtin setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL NO_BRACE_CCL NO_MAGIC_EQUAL_SUBST NO_EQUALS 2>/dev/null";
    let names = |names: &[&str]| {
        let one = |name: &&str| {
            format!("{{ \\builtin unalias -- '{name}'; \\builtin unset -f -- '{name}'; }} >/dev/null 2>&1 || true && ")
        };
        names.iter().map(one).collect::<String>()
    };
    let bash = "\\builtin shopt -u extglob 2>/dev/null";
    let real =
        claude(&format!("{}eval 'make && ls'", names(&["which", "unsetenv"]))).replace("snapshot-bash", "snapshot-zsh");
    for options in [
        zsh,
        "\\builtin setopt NO_EXTENDED_GLOB 2>/dev/null",
        "setopt NO_EXTENDED_GLOB NO_ANYTHING_NEW 2>/dev/null",
        "\\builtin unsetopt EXTENDED_GLOB equals 2>/dev/null",
        "\\builtin shopt -u extglob dotglob new_one 2>/dev/null",
        "\\builtin shopt -u extglob 2>/dev/null || true && \\builtin shopt -u dotglob 2>/dev/null",
    ] {
        assert_eq!(by(&real.replace(bash, options)), ("make && ls".to_owned(), true), "{options}");
    }
    let later = real.replace(bash, zsh).replace("eval 'make", &format!("{}eval 'make", names(&["which", "a.b-c"])));
    assert_eq!(by(&later), ("make && ls".to_owned(), true));
    let on = real.replace(bash, "\\builtin setopt NO_EQUALS PROMPT_SUBST XTRACE 2>/dev/null");
    assert_eq!(by(&on).0, "setopt NO_EQUALS PROMPT_SUBST XTRACE; make && ls", "what is switched on is shown");
    let on = real.replace(bash, "unsetopt equals N_O_PROMPT_SUBST 2>/dev/null");
    assert_eq!(by(&on).0, "unsetopt equals N_O_PROMPT_SUBST; make && ls", "what is switched on is shown");
    for options in [
        "\\builtin setopt NO_EQUALS $(EVIL) 2>/dev/null",
        "\\builtin setopt NO_EQUALS; EVIL 2>/dev/null",
        "\\builtin setopt NO_EQUALS 2>/dev/null; EVIL 2>/dev/null",
        "\\builtin setopt NO_EQUALS\nEVIL 2>/dev/null",
        "\\builtin setopt 2>/dev/null",
        "\\builtin shopt -s extglob 2>/dev/null",
        "\\builtin eval EVIL 2>/dev/null",
        "\\builtin source EVIL 2>/dev/null",
        "{ \\builtin unalias -- $(EVIL); } >/dev/null 2>&1",
        "{ \\builtin unalias -- 'a'; EVIL; } >/dev/null 2>&1",
        "{ \\builtin unalias -- 'a'; } >/EVIL 2>&1",
        "{ \\builtin unset -- 'EVIL'; } >/dev/null 2>&1",
    ] {
        assert_whole(Some(Agent::Claude), &CLAUDE, real.replace(bash, options).as_bytes());
    }
}

#[test]
fn a_variable_that_the_sandbox_did_not_set_before_is_shown() {
    let text = claude_in_its_sandbox("/tmp/claude-0", "3128", "'make'");
    let more = text.replace("export TMPDIR", "export LD_PRELOAD=/tmp/x.so && export TMPDIR");
    assert_eq!(short(Some(Agent::Claude), &CLAUDE, &more).0, "export LD_PRELOAD=/tmp/x.so; make");
}

#[test]
fn a_text_that_is_only_like_claude_codes_wrapper_is_shown_whole() {
    let real = claude("eval 'cargo test'");
    let mut texts = vec![
        "true && eval 'cargo test' && pwd -P >| /dev/null; EVIL".to_owned(),
        "eval 'cargo test' && pwd -P >| /dev/null".to_owned(),
        "eval 'ls' && pwd -P >| /tmp/claude-1a2b-cwd/../../h/.bashrc".to_owned(),
        "eval 'ls' && pwd -P >| $(EVIL)/claude-1a2b-cwd".to_owned(),
        "eval 'ls' && pwd -P >| /tmp/x\n/claude-1a2b-cwd".to_owned(),
        "eval '' && pwd -P >| /tmp/claude-1a2b-cwd".to_owned(),
        claude("eval \"$(EVIL)\""),
        claude("eval \"`EVIL`\""),
        claude("eval ls; EVIL"),
        claude("eval ls EVIL"),
        claude("eval 'ls' 'EVIL'"),
        claude("eval ls$IFS"),
        claude("eval 'ls'\\\n'EVIL'"),
        claude("EVIL && eval 'ls'"),
        claude("eval 'ls' <<X\nEVIL\nX\n"),
        real.replace("snapshot-bash-17-a1.sh", "snapshot-bash-17-a1.sh; EVIL"),
        real.replace("snapshot-bash-17-a1.sh", "$(EVIL)"),
        real.replace("extglob", "EXTGLOB"),
        real.replace(" && ", "  && "),
        real.replace("2>/dev/null", "2>/dev/nul"),
        real.to_uppercase(),
    ];
    for (before, behind) in
        [("", ";EVIL"), ("", "\nEVIL"), ("", " "), ("", "\n"), ("", " # x"), ("EVIL;", ""), (" ", ""), ("\n", "")]
    {
        texts.push(format!("{before}{real}{behind}"));
    }
    for text in &texts {
        assert_whole(Some(Agent::Claude), &CLAUDE, text.as_bytes());
    }
    assert_whole(Some(Agent::Claude), &CLAUDE, &[real.as_bytes(), b"\xff"].concat());
    for agent in [None, Some(Agent::Codex), Some(Agent::Gemini), Some(Agent::Opencode)] {
        assert_whole(agent, &CODEX, real.as_bytes());
    }
}

fn codex(snapshot: &str, folder: &str, last: &str) -> String {
    let save = |kind: &str, name: &str| {
        format!(
            "__CODEX_SNAPSHOT_{kind}OVERRIDE_SET_0=\"${{{name}+x}}\"\n__CODEX_SNAPSHOT_{kind}OVERRIDE_0=\"${{{name}-}}\"\n"
        )
    };
    let restore = |kind: &str, name: &str| {
        let (set, old) =
            (format!("__CODEX_SNAPSHOT_{kind}OVERRIDE_SET_0"), format!("__CODEX_SNAPSHOT_{kind}OVERRIDE_0"));
        format!(
            "if [ -n \"${{{set}}}\" ]; then\n  if [ -z \"${{{name}+x}}\" ] || [ \"${{{name}-}}\" != \"${{{old}}}\" ]; \
             then export {name}=\"${{{old}}}\"; else export {name}; fi\nelse builtin unset {name} 2>/dev/null || \
             command unset {name}; fi\nbuiltin unset {set} {old} 2>/dev/null || command unset {set} {old}\n"
        )
    };
    format!(
        "{}{}__CODEX_SNAPSHOT_PROXY_ENV_SET=\"${{CODEX_NETWORK_PROXY_ACTIVE+x}}\"\n\n\
         if . {snapshot} >/dev/null 2>&1; then :; fi\n\n{}\
         if [ -n \"$__CODEX_SNAPSHOT_PROXY_ENV_SET\" ] || [ -n \"${{CODEX_NETWORK_PROXY_ACTIVE+x}}\" ]; then\n{}fi\n\
         if [ -n \"${{PATH:-}}\" ]; then export PATH={folder}:\"$PATH\"; else export PATH={folder}; fi\n\n{last}",
        save("", "CODEX_VERSION"),
        save("PROXY_", "ALL_PROXY"),
        restore("", "CODEX_VERSION"),
        restore("PROXY_", "ALL_PROXY"),
    )
}

const SNAPSHOT: &str = "'/h/.codex/shell_snapshots/1-a.17.sh'";

#[test]
fn codexs_wrapper_is_removed_and_its_foreign_parts_are_shown() {
    let by = |text: &str| short(Some(Agent::Codex), &CODEX, text);
    for (snapshot, folder, last, command) in [
        (SNAPSHOT, "'/c/codex-path'", "exec '/x/bash' -c 'echo '\"'\"'hi'\"'\"''", "echo 'hi'"),
        (SNAPSHOT, "'/c/codex-path'", "exec '/bin/bash' -c 'ls'", "ls"),
        (
            "'/h/.codex/shell_snapshots/2-b.17.sh'",
            "'/c/codex-path'",
            "exec bash -c ls",
            ". /h/.codex/shell_snapshots/2-b.17.sh; ls",
        ),
        (
            "'/h/.codex/shell_snapshots/../1-a.17.sh'",
            "'/c/codex-path'",
            "exec bash -c ls",
            ". /h/.codex/shell_snapshots/../1-a.17.sh; ls",
        ),
        (
            "'/tmp/EVIL it'",
            "'/tmp/EVIL'",
            "exec '/tmp/EVIL/bash' -c 'ls'",
            ". '/tmp/EVIL it'; PATH=/tmp/EVIL:\"$PATH\"; exec '/tmp/EVIL/bash' -c 'ls'",
        ),
    ] {
        assert_eq!(by(&codex(snapshot, folder, last)), (command.to_owned(), true));
    }
}

#[test]
fn a_text_that_is_only_like_codexs_wrapper_is_shown_whole() {
    let real = codex(SNAPSHOT, "'/c/codex-path'", "exec '/x/bash' -c 'git status'");
    let mut texts = vec![
        "__CODEX_X=1\nEVIL; exit 0\nexec '/bin/bash' -c 'git status'".to_owned(),
        codex("$(EVIL)", "/c", "exec bash -c ls"),
        codex("\"$(EVIL)\"", "/c", "exec bash -c ls"),
        codex(SNAPSHOT, "/c;EVIL;", "exec bash -c ls"),
        codex(SNAPSHOT, "`EVIL`", "exec bash -c ls"),
        codex(SNAPSHOT, "/c", "exec bash -c ls EVIL"),
        codex(SNAPSHOT, "/c", "exec bash -c ls;EVIL"),
        codex(SNAPSHOT, "/c", "exec bash -xc ls"),
        codex(SNAPSHOT, "/c", "EVIL\nexec bash -c ls"),
        codex(SNAPSHOT, "/c", "exec -a x bash -c ls"),
        codex(SNAPSHOT, "/c", "exec bash -c ls\n"),
        codex(SNAPSHOT, "/c", "exec bash -c \"$EVIL\""),
        real.replacen("export CODEX_VERSION=", "export PATH=", 1),
        real.replace("CODEX_VERSION", "EVIL;X"),
        real.replace("CODEX_VERSION", "a[$(EVIL)]"),
        real.replace("fi\nif [ -n \"${PATH", "fi\nEVIL\nif [ -n \"${PATH"),
    ];
    for (at, _) in real.match_indices('\n') {
        texts.push(format!("{}\nEVIL{}", &real[..at], &real[at..]));
    }
    for text in &texts {
        assert_whole(Some(Agent::Codex), &CODEX, text.as_bytes());
    }
    for agent in [None, Some(Agent::Claude), Some(Agent::Gemini), Some(Agent::Opencode)] {
        assert_whole(agent, &CLAUDE, real.as_bytes());
    }
}

fn gemini(list: &str, command: &str) -> String {
    format!(
        "shopt -u promptvars nullglob extglob nocaseglob dotglob; _bgpids_file={list}\n(\n  trap 'jobs -p > \
         \"$_bgpids_file\"' EXIT\n{command}\n)\n__code=$?\nexit $__code"
    )
}

#[test]
fn geminis_and_opencodes_wrappers_are_removed_and_nothing_else() {
    let by = |text: &str| short(Some(Agent::Gemini), &["GEMINI_CLI=1"], text);
    let list = "/tmp/gemini-shell-wXpiwP/bgpids.tmp";
    for command in ["npm test", "EVIL; exit\n)\n__code=$?\nexit $__code\n(\nls", "a\nb"] {
        assert_eq!(by(&gemini(list, command)), (command.to_owned(), true));
    }
    for list in [
        "/tmp/x",
        "$(EVIL)/gemini-shell-wXpiwP/bgpids.tmp",
        "/tmp/x;EVIL/gemini-shell-wXpiwP/bgpids.tmp",
        "/tmp/gemini-shell-wXpiwP/bgpids.tmp;EVIL",
        "EVIL=1 /tmp/gemini-shell-wXpiwP/bgpids.tmp",
    ] {
        assert_whole(Some(Agent::Gemini), &["GEMINI_CLI=1"], gemini(list, "npm test").as_bytes());
    }
    let bait = "shopt -u promptvars; EVIL; exit\ntrap '' EXIT\nnpm test\n)\n__code=$?";
    assert_whole(Some(Agent::Gemini), &["GEMINI_CLI=1"], bait.as_bytes());
    assert_whole(None, &[], gemini(list, "ls").as_bytes());

    let opencode = |env: &[&str], eval: &str, last: &[&[u8]]| {
        let text = format!(
            "\n        shopt -s expand_aliases\n        [[ -f ~/.bashrc ]] && source ~/.bashrc >/dev/null 2>&1 || true\n        \
             cd -- \"$1\"\n        eval {eval}\n      "
        );
        let argv = [&[b"bash".as_slice(), b"-l", b"-c", text.as_bytes()], last].concat();
        let unwrapped = call_by(Some(Agent::Opencode), env, &argv);
        (String::from_utf8(unwrapped.command).unwrap(), unwrapped.is_unwrapped)
    };
    let last: [&[u8]; 2] = [b"opencode", b"/p"];
    for (env, eval, command) in [
        ("PWD=/p", r#""X=1; echo $X \"$0\"""#, r#"X=1; echo $X "$0""#),
        ("PWD=/p", r#""a"; EVIL "b""#, r#"a"; EVIL "b"#),
        ("PWD=/p", r#""\\$(EVIL)""#, r#"eval "\\$(EVIL)""#),
        ("PWD=/q", r#""ls""#, "cd -- /p; ls"),
    ] {
        assert_eq!(opencode(&[env], eval, &last), (command.to_owned(), true));
    }
    for last in [&[][..], &[b"opencode".as_slice()], &[b"x", b"/p"], &[b"opencode", b"/p", b"EVIL"]] {
        let (command, is_unwrapped) = opencode(&["PWD=/p"], "\"ls\"", last);
        assert!(!is_unwrapped && command.contains("source ~/.bashrc"), "{command}");
        assert!(last.iter().all(|word| command.contains(std::str::from_utf8(word).unwrap())) || last.len() == 1);
    }
    let bait = "shopt -s expand_aliases\nEVIL; exit\n cd -- \"$1\"\n eval ls";
    assert_whole(Some(Agent::Opencode), &["OPENCODE=1"], bait.as_bytes());
}

#[test]
fn kimi_codes_step_to_the_callers_directory_comes_off_and_any_other_stays() {
    let by = |folder: &str, text: &str| short(Some(Agent::Kimi), &[&format!("PWD={folder}")], text);
    assert_eq!(by("/p", "cd '/p' && npm test || exit 3"), ("npm test || exit 3".to_owned(), true));
    assert_eq!(by("/it's", r"cd '/it'\''s' && ls"), ("ls".to_owned(), true));
    for text in [
        "cd '/q' && ls",
        "cd '/p'; ls",
        "cd '/p' &&ls",
        "cd '/p' || ls",
        "cd \"$(EVIL)\" && ls",
        "cd 'p' && ls",
        "cd '/p' && ",
    ] {
        assert_whole(Some(Agent::Kimi), &["PWD=/p"], text.as_bytes());
    }
    assert_whole(Some(Agent::Kimi), &[], b"cd '/p' && ls");
    assert_whole(None, &["PWD=/p"], b"cd '/p' && ls");
    let looks = |options: &[&[u8]], text: &[u8]| {
        call_by(Some(Agent::Kimi), &[], &[&[b"/usr/bin/bash".as_slice()], options, &[text]].concat()).is_probe
    };
    assert!(looks(&[b"-l", b"-c"], b"/usr/bin/env") && !looks(&[b"-c"], b"/usr/bin/env"));
    assert!(!looks(&[b"-l", b"-c"], b"/usr/bin/env; EVIL"));
}

#[test]
fn mistral_vibes_two_shells_come_off_and_nothing_else() {
    const FIRST: &str = "{ echo 1000 >/proc/self/oom_score_adj; } 2>&-; exec \"$0\" \"$@\"";
    let file = format!("/t/mistralai-vibe-login-shell-6f_y8pq/login-shell-{}.sh", "0f".repeat(16));
    let line = |file: &str| format!("{{ [ -r '{file}' ] && . '{file}'; }} 2>&-\n");
    let by = |first: &str, shell: &str, inner: &str| {
        let argv: [&[u8]; 6] = [b"/bin/sh", b"-c", first.as_bytes(), shell.as_bytes(), b"-c", inner.as_bytes()];
        let unwrapped = call_by(Some(Agent::Vibe), &["TMPDIR=/t"], &argv);
        (String::from_utf8(unwrapped.command).unwrap(), unwrapped.is_unwrapped)
    };
    let read = line(&file);
    let two_files = read.replace("&& . '/t", "&& . '/EVIL") + "ls";
    for (shell, inner, command) in [
        ("/usr/bin/zsh", format!(r"{read}eval 'echo '\''it'\'''"), "echo 'it'"),
        ("/usr/bin/bash", format!("{read}eval 'ls'\nmake"), "eval 'ls'\nmake"),
        ("/usr/bin/bash", "ls; make".to_owned(), "ls; make"),
        ("/bin/sh", line("/tmp/x") + "ls", ". /tmp/x; ls"),
        (
            "/bin/zsh",
            line("/t/mistralai-vibe-session-a/EVIL.sh") + "eval ls",
            ". /t/mistralai-vibe-session-a/EVIL.sh; ls",
        ),
        // A text that is only like that line is a part of the command.
        ("/bin/bash", two_files.clone(), &two_files),
    ] {
        assert_eq!(by(FIRST, shell, &inner), (command.to_owned(), true), "{inner}");
    }
    for (first, shell, inner) in [
        (FIRST.replace("exec", "EVIL; exec"), "/bin/zsh", format!("{read}eval ls")),
        (FIRST.to_owned(), "/t/EVIL", format!("{read}eval ls")),
        (FIRST.to_owned(), "/bin/zsh", format!("{read}eval ls; EVIL")),
        (FIRST.to_owned(), "/bin/zsh", format!("{read}EVIL")),
        (FIRST.to_owned(), "/bin/zsh", format!("{read}eval \"$(EVIL)\"")),
    ] {
        let (command, is_unwrapped) = by(&first, shell, &inner);
        assert!(!is_unwrapped && command.starts_with("/bin/sh -c ") && command.contains("EVIL"), "{command}");
    }
    let looks = |text: &str| call_by(Some(Agent::Vibe), &[], &[b"zsh", b"-lc", text.as_bytes()]).is_probe;
    let (mark, end) = ("mistralai-vibe-login-env-0123456789abcdef", "exec env -0");
    let look = format!(
        "printf '%s' {mark}; {{ functions; alias -L; }} 2>&-; printf '%s' {mark}; [ -x /usr/bin/env ] && exec \
         /usr/bin/env -0; [ -x /bin/env ] && exec /bin/env -0; {end}"
    );
    assert!(looks(&look) && looks(&look.replace("{ functions; alias -L; } 2>&-; ", "")));
    for other in [
        look.replace("functions", "EVIL"),
        look.replace(end, "EVIL"),
        look.clone() + "; EVIL",
        look.replacen(mark, "EVIL", 1),
        look.replace("0123", "$(EV)"),
        look.replacen("abcdef", "abcdee", 1),
    ] {
        assert!(!looks(&other), "{other}");
    }
}

#[test]
fn positional_arguments_are_shown_with_the_command() {
    assert_eq!(plain(&["sh", "-c", "echo && eval 'x"]), "echo && eval 'x");
    assert_eq!(plain(&["bash", "-o", "pipefail", "-O", "extglob", "-c", "ls"]), "ls");
    assert_eq!(plain(&["bash", "--norc", "-c", "--", "ls"]), "ls");
    assert_eq!(plain(&["bash", "-lc", "ls", "/bin/bash"]), "ls", "its own name hides nothing");
    assert_eq!(plain(&["bash", "-c", "\"$@\"", "x", "rm", "-rf"]), "bash -c '\"$@\"' x rm -rf");
    assert_eq!(plain(&["bash", "-c", "$0", "/tmp/bash"]), "bash -c '$0' /tmp/bash");
    assert_eq!(plain(&["bash", "-c", "--", "-x; EVIL", "ls"]), "bash -c -- '-x; EVIL' ls");
    assert_eq!(plain(&["zsh", "-c", "-oshglob", "EVIL", "ls", "x"]), "zsh -c -oshglob EVIL ls x");
    assert_eq!(plain(&["bash", "--rcfile", "EVIL", "-ic", "ls"]), "bash --rcfile EVIL -ic ls");
    assert_eq!(plain(&["bash", "-rcfile", "EVIL", "-ic", "ls"]), "bash -rcfile EVIL -ic ls");
    assert_eq!(plain(&["zsh", "-cb", "-EVIL", "ls"]), "zsh -cb -EVIL ls");
    assert_eq!(plain(&["grep", "-v", "foo bar"]), "grep -v 'foo bar'");
    assert_eq!(plain(&["bash"]), "bash");
}
