//! A real terminal emulator: a pane of a tmux server that belongs to the test, with a parent shell and a host in it.

use std::fs;
use std::path::PathBuf;

use crate::support::call::{Call, Outcome, Target, dir};
use crate::support::host::{SHUTDOWN, environment, has_no_new_privs};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{Plan, Warden};

/// All that tmux tells of a pane's state and a program could have changed.
const FLAGS: &[&str] = &[
    "pane_title",
    "window_name",
    "alternate_on",
    "cursor_flag",
    "cursor_x",
    "insert_flag",
    "keypad_cursor_flag",
    "keypad_flag",
    "mouse_all_flag",
    "mouse_any_flag",
    "mouse_button_flag",
    "mouse_sgr_flag",
    "mouse_standard_flag",
    "mouse_utf8_flag",
    "origin_flag",
    "wrap_flag",
    "scroll_region_upper",
    "scroll_region_lower",
    "pane_width",
    "pane_height",
    "pane_tabs",
    "pane_in_mode",
];

/// The title while a host runs.
pub(crate) const OWN_TITLE: &str = "pane_title rexec";

/// Options that let programs do more: what stays untouched was kept away by the host, not by tmux.
pub(crate) const PERMISSIVE: &[&[&str]] = &[
    &["set-option", "-g", "allow-rename", "on"],
    &["set-option", "-g", "allow-passthrough", "on"],
    &["set-option", "-g", "focus-events", "on"],
    &["set-option", "-s", "set-clipboard", "on"],
];

/// The parent shell's part: a host, then everything that the terminal still has to say to somebody. The reply to a
/// query of its own comes after all others, and ends it.
const PARENT: &str = r#"
eval "$HOST"
echo "the host left with $?"
stty -icanon -echo
printf '\033[5n'
IFS= read -r -s -d n typed
printf %q "$typed" >typed.new; mv typed.new typed
exec sleep 1000
"#;

/// What the parent shell reads when nothing but the reply to its own query comes.
const NOTHING: &str = r"$'\E[0'";

pub(crate) struct Pane {
    // Dropped first: a host that still runs makes its socket again in a directory that is emptied.
    _warden: Warden,
    pub(crate) home: TempDir,
    is_raw: bool,
}

impl Pane {
    /// A pane of 100×30, in it a shell that has started a host with these flags, below a program if one is named.
    pub(crate) fn start(wrapper: Option<&str>, flags: &[&str]) -> Self {
        let home = TempDir::new(None);
        let blind = has_no_new_privs().then_some("--allow-sandboxed");
        let program = programs::host().to_str().expect("a path in UTF-8");
        // A shell reads it, and sometimes another one below.
        let program = program.replace(' ', "\\ ");
        let host = [program.as_str()].iter().chain(flags).copied().chain(blind).collect::<Vec<_>>().join(" ");
        let host = wrapper.map_or(host.clone(), |wrapper| wrapper.replace('@', &host));
        let mut env = environment(home.path());
        env.push(format!("HOST={host}").into_bytes());
        // script(1) takes the user's own shell otherwise, which may be none.
        env.push(b"SHELL=/bin/bash".to_vec());
        let socket = home.join("tmux.sock");
        let socket = socket.to_str().expect("a path in UTF-8");
        let mut argv = vec!["tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30"];
        argv.extend(["bash", "-c", PARENT]);
        let tmux = programs::find("tmux").expect("it is installed");
        let mut plan = Plan::new(&tmux, &argv, &env);
        plan.dir = Some(dir(home.path()));
        let mut warden = Warden::start(plan).expect("tmux can be executed");
        assert_eq!(warden.wait(PATIENCE).map(|ended| ended.code()), Some(0), "the pane is there");
        let pane = Self { home, is_raw: flags.iter().any(|flag| flag.ends_with("raw")), _warden: warden };
        pane.tmux(&["set-option", "-g", "automatic-rename", "off"]);
        pane.tmux(&["rename-window", "console"]);
        let ready = waiting::until_true(PATIENCE, || pane.screen().contains("rexec journal: "));
        assert!(ready, "the host did not become ready: {}", pane.screen());
        pane
    }

    /// What tmux answers.
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let mut command = programs::command("tmux");
        command.arg("-S").arg(self.home.join("tmux.sock")).args(args).env_remove("TMUX");
        let output = command.output().expect("tmux can be executed");
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("tmux speaks UTF-8")
    }

    /// The lines on the screen, with their attributes.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// The state of the pane, a line for each flag.
    pub(crate) fn flags(&self) -> String {
        self.look().0
    }

    /// The state and the screen of one moment.
    fn look(&self) -> (String, String) {
        let format: String = FLAGS.iter().map(|flag| format!("{flag} #{{{flag}}}\n")).collect();
        let seen = self.tmux(&["display-message", "-p", &format, ";", "capture-pane", "-p", "-e"]);
        let (flags, screen) = seen.split_once("\n\n").expect("an empty line ends the flags");
        // The host's own title says how many commands run.
        let is_own = |line: &&str| line.starts_with("pane_title rexec");
        let flags = flags.lines().map(|line| if is_own(&line) { OWN_TITLE } else { line }).collect::<Vec<_>>();
        (flags.join("\n"), screen.to_owned())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.join("host.sock")
    }

    /// Runs `bash -c SCRIPT` by the shim.
    pub(crate) fn run(&self, script: &str) -> Outcome {
        Call::bash(script, self.home.path()).run(Target::Shim(&self.socket()))
    }

    /// Runs a command, waits until its line stands on the screen in plain letters between its banner and its end
    /// line, and gives the state of the pane then; or the screen, when that does not happen.
    pub(crate) fn flags_at_the_next(&self, number: usize) -> Result<String, String> {
        let seen = self.run(&format!("printf 'plain %s\\n' {number}"));
        assert_eq!(seen.out(), format!("plain {number}\n"));
        let (banner, text) = (format!("printf 'plain %s\\n' {number}"), format!("plain {number}"));
        let flags = waiting::until(PATIENCE, || {
            let (flags, screen) = self.look();
            // On a busy machine the host's notes on the journal may stand between them.
            let lines: Vec<&str> = screen.lines().filter(|line| !line.contains("▌⋯ the journal ")).collect();
            let stands = lines
                .windows(3)
                .any(|rows| rows[0].ends_with(&banner) && without_resets(rows[1]) == text && rows[2].contains("▌✓"));
            stands.then_some(flags)
        });
        flags.ok_or_else(|| self.screen())
    }

    /// Ends the host as a person does, and gives what was left for the parent shell to read; empty is nothing.
    pub(crate) fn end(&self) -> String {
        let is_over = || !self.socket().exists();
        // While a command runs, q asks.
        let asks = || self.screen().contains("and the host? y/n");
        let was_heard = waiting::until_true(PATIENCE, || {
            self.tmux(&["send-keys", if self.is_raw { "C-c" } else { "q" }]);
            // In one read with other keys it counts as pasted. Then they were many.
            waiting::until_true(PATIENCE / 6, || is_over() || asks())
        });
        assert!(was_heard, "the keyboard is deaf: {}", self.screen());
        if !is_over() {
            self.tmux(&["send-keys", "y"]);
        }
        let typed = self.home.join("typed");
        assert!(waiting::until_true(SHUTDOWN, || typed.exists()), "the host does not leave: {}", self.screen());
        let typed = fs::read_to_string(typed).expect("the shell wrote it");
        if typed == NOTHING { String::new() } else { typed }
    }

    /// The files that lie in the shell's directory and that are not the test's own.
    pub(crate) fn strange_files(&self) -> Vec<String> {
        const OURS: [&str; 5] = ["host.sock", "host.sock.lock", "journal", "tmux.sock", "typed"];
        let entries = fs::read_dir(self.home.path()).expect("a directory");
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| !OURS.contains(&name.as_str())).collect()
    }
}

/// A line without the sequences that say that nothing is special about it.
fn without_resets(line: &str) -> String {
    ["\x1b[39m", "\x1b[49m", "\x1b[0m"].iter().fold(line.to_owned(), |line, reset| line.replace(reset, ""))
}
