//! Which invocations of a shell go to the host, and which real shell a name stands for. Pure: arguments in, answer out.
//!
//! Only `-c STRING` goes to the host, with options of the shell before the `-c`, in one cluster with it (`-lc`), or
//! behind it (`-c -l STRING`). ShimOptions are read as the shells themselves read them (bash 5, dash, zsh), because some
//! take an argument that must not be mistaken for the command. Whatever a shell would reject goes to the real shell,
//! which words the error.

/// A real shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// The system's sh, whichever program that is.
    Sh,
    /// bash.
    Bash,
    /// zsh.
    Zsh,
}

impl Shell {
    /// The `argv[0]` that the real shell gets in place of `name`: the one it would have without rexec. A path that
    /// leads to the shim becomes the real shell's path, a link's name the real shell's name, and the `-` of a login
    /// shell stays. `None` when the name is not the shim's, so that the caller's own choice passes.
    ///
    /// A shell prints this name in front of its errors and as `$0`, and some go by it: a zsh whose name begins with `r`
    /// is restricted, and bash called `sh` is a POSIX shell.
    #[must_use]
    pub fn real_name(self, name: &[u8], real: &Real<'_>, leads_to_shim: impl FnOnce(&[u8]) -> bool) -> Option<Vec<u8>> {
        let (dash, given) = match name.strip_prefix(b"-") {
            Some(given) => (&name[..1], given),
            None => (&name[..0], name),
        };
        let real = if given.contains(&b'/') {
            let is_shim = file_name(given).starts_with(b"rexec-") || leads_to_shim(given);
            is_shim.then_some(real.path)
        } else {
            let is_link = given.starts_with(b"rexec-") && Self::named(given).is_some();
            (is_link || (Self::named(given).is_none() && leads_to_shim(given))).then(|| self.bare_name(real))
        };
        real.map(|real| [dash, real].concat())
    }

    /// What the real shell is called where its caller gives no path.
    fn bare_name<'a>(self, real: &Real<'a>) -> &'a [u8] {
        match file_name(real.path) {
            // busybox is a shell only by the shell's name.
            b"busybox" => self.word().as_bytes(),
            file if real.is_chosen => file,
            _ => self.word().as_bytes(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Sh => "sh",
            Self::Bash => "bash",
            Self::Zsh => "zsh",
        }
    }

    /// The shell that a path or `argv[0]` stands for: the last part of it, less the `-` of a login shell and a
    /// leading `rexec-`. Nothing when that is no shell's name.
    #[must_use]
    pub fn named(path: &[u8]) -> Option<Self> {
        let file = file_name(path);
        let file = file.strip_prefix(b"-").unwrap_or(file);
        match file.strip_prefix(b"rexec-").unwrap_or(file) {
            b"sh" => Some(Self::Sh),
            b"bash" => Some(Self::Bash),
            b"zsh" => Some(Self::Zsh),
            _ => None,
        }
    }
}

/// The real shell that was found for a call.
#[derive(Debug, Clone, Copy)]
pub struct Real<'a> {
    /// Where it is.
    pub path: &'a [u8],
    /// Whether the caller chose it with `REXEC_SHELL`.
    pub is_chosen: bool,
}

/// What stands behind the last `/`.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// ShimOptions of bash that are words. In bash one dash is as good as two.
const WORDS: [&[u8]; 10] = [
    b"debug",
    b"debugger",
    b"login",
    b"noediting",
    b"noprofile",
    b"norc",
    b"posix",
    b"protected",
    b"restricted",
    b"verbose",
];
/// Those that take an argument.
const WORDS_WITH_ARGUMENT: [&[u8]; 2] = [b"rcfile", b"init-file"];

/// What a word with one or two dashes is to a shell.
enum Word {
    Flag,
    TakesArgument,
    /// Something to be printed in place of running a command, or an error.
    Other,
    /// No word but a cluster of letters.
    Letters,
}

/// Whether the arguments (`argv[0]` included) have the form `-c STRING`: the host runs them. Anything else is for the
/// real shell.
#[must_use]
pub fn is_command<'a>(shell: Shell, argv: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut argv = argv.into_iter();
    if argv.next().is_none_or(|name| name.starts_with(b"-")) {
        return false;
    }
    let (mut command, mut letters_seen) = (false, false);
    while let Some(argument) = argv.next() {
        let (sign, letters) = match argument {
            b"-" | b"--" => return command && argv.next().is_some(),
            [sign @ (b'-' | b'+'), letters @ ..] => (*sign, letters),
            _ => return command,
        };
        match word(shell, sign, letters, letters_seen) {
            Word::Flag => continue,
            Word::TakesArgument => {
                argv.next();
                continue;
            }
            Word::Other => return false,
            Word::Letters => letters_seen = true,
        }
        for (at, letter) in letters.iter().enumerate() {
            match letter {
                b'c' => command = true,
                // In zsh the name may be the rest of the word, and `-b` ends the options.
                b'o' if shell == Shell::Zsh && at + 1 < letters.len() => break,
                b'b' if shell == Shell::Zsh => return command && argv.next().is_some(),
                b'o' => drop(argv.next()),
                b'O' if shell != Shell::Zsh => drop(argv.next()),
                _ => {}
            }
        }
    }
    false
}

/// Whether the arguments are those of a shell that reads what is typed at its terminal: options alone.
#[must_use]
pub fn is_interactive<'a>(argv: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut argv = argv.into_iter().skip(1);
    while let Some(argument) = argv.next() {
        match argument {
            b"--rcfile" | b"-rcfile" | b"--init-file" | b"-init-file" | b"-o" | b"+o" | b"-O" | b"+O" => {
                _ = argv.next();
            }
            b"--version" | b"-version" | b"--help" | b"-help" => return false,
            [b'-', b'-', ..] => {}
            [b'-' | b'+', letters @ ..] if !letters.is_empty() => {
                if letters.contains(&b'c') && !WORDS.contains(&letters) {
                    return false;
                }
            }
            _ => return false,
        }
    }
    true
}

fn word(shell: Shell, sign: u8, letters: &[u8], letters_seen: bool) -> Word {
    let (word, dashes) = match letters.strip_prefix(b"-") {
        Some(word) if sign == b'-' => (word, 2),
        _ => (letters, 1),
    };
    let known = !letters_seen && (dashes == 2 || (shell == Shell::Bash && sign == b'-'));
    if shell == Shell::Zsh {
        return match (dashes, word) {
            (1, _) => Word::Letters,
            (_, b"version" | b"help") => Word::Other,
            (_, b"emulate") => Word::TakesArgument,
            (_, _) => Word::Flag,
        };
    }
    if known && WORDS.contains(&word) {
        Word::Flag
    } else if known && WORDS_WITH_ARGUMENT.contains(&word) {
        Word::TakesArgument
    } else if dashes == 2 || (known && matches!(word, b"version" | b"help")) {
        Word::Other
    } else {
        Word::Letters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_to_the_host(shell: Shell, argv: &[&str]) -> bool {
        is_command(shell, argv.iter().map(|argument| argument.as_bytes()))
    }

    #[test]
    fn the_real_shell_gets_the_name_that_it_would_have_without_us() {
        let found = |path: &'static str| Real { path: path.as_bytes(), is_chosen: false };
        let chosen = |path: &'static str| Real { path: path.as_bytes(), is_chosen: true };
        let (bash, zsh, sh) = (found("/bin/bash"), found("/usr/bin/zsh"), found("/bin/sh"));
        for (shell, name, real, expected) in [
            (Shell::Bash, "/x/rexec-bash", bash, Some("/bin/bash")),
            (Shell::Bash, "rexec-bash", bash, Some("bash")),
            (Shell::Bash, "-rexec-bash", bash, Some("-bash")),
            (Shell::Bash, "-/x/rexec-bash", bash, Some("-/bin/bash")),
            (Shell::Bash, "/shim/bash", bash, Some("/bin/bash")),
            (Shell::Bash, "/usr/bin/bash", bash, None),
            (Shell::Bash, "bash", bash, None),
            (Shell::Bash, "-bash", bash, None),
            (Shell::Bash, "rexec-bash", chosen("/opt/bash-5.3"), Some("bash-5.3")),
            (Shell::Bash, "/x/rexec-bash", chosen("/opt/bash-5.3"), Some("/opt/bash-5.3")),
            (Shell::Zsh, "./rexec-zsh", zsh, Some("/usr/bin/zsh")),
            (Shell::Zsh, "-rexec-zsh", zsh, Some("-zsh")),
            (Shell::Zsh, "/rexec-x/zsh", zsh, None),
            (Shell::Sh, "rexec-sh", sh, Some("sh")),
            (Shell::Sh, "rexec-sh", found("/bin/dash"), Some("sh")),
            (Shell::Sh, "rexec-sh", chosen("/bin/busybox"), Some("sh")),
            (Shell::Sh, "/shim/recorder", sh, Some("/bin/sh")),
            (Shell::Sh, "shim-recorder", sh, Some("sh")),
            (Shell::Sh, "recorder", sh, None),
            (Shell::Sh, "", sh, None),
        ] {
            let leads_to_shim = |name: &[u8]| name.starts_with(b"/shim/") || name.starts_with(b"shim-");
            let name_given = shell.real_name(name.as_bytes(), &real, leads_to_shim);
            assert_eq!(name_given.as_deref(), expected.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn names_stand_for_shells() {
        for (name, shell) in [
            ("bash", Shell::Bash),
            ("/x/rexec-bash", Shell::Bash),
            ("-bash", Shell::Bash),
            ("-rexec-zsh", Shell::Zsh),
            ("/bashdir/zsh", Shell::Zsh),
            ("rexec-sh", Shell::Sh),
            ("/bin/sh", Shell::Sh),
        ] {
            assert_eq!(Shell::named(name.as_bytes()), Some(shell), "{name}");
        }
        for name in ["", "-", "recorder", "bash/", "rexec", "dash", "rexec-rexec-sh"] {
            assert_eq!(Shell::named(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn command_strings_go_to_the_host() {
        for line in [
            "bash -c X",
            "bash -lc X",
            "bash -cl X",
            "bash -c -l X",
            "bash -l -c X",
            "bash -ec X",
            "bash -xec X",
            "bash -i -c X",
            "bash -ic X",
            "bash +x -c X",
            "bash +c X",
            "bash -c X name a b",
            "bash -c X -x --version",
            "bash -o pipefail -c X",
            "bash +o posix -c X",
            "bash -eo pipefail -c X",
            "bash -euo pipefail -c X",
            "bash -co errexit X",
            "bash -oO pipefail extglob -c X",
            "bash -O extglob -c X",
            "bash +O extglob -c X",
            "bash -Oc extglob X",
            "bash -o -c -c X",
            "bash --norc -c X",
            "bash --norc --noprofile -c X",
            "bash -norc -c X",
            "bash --rcfile F -c X",
            "bash -rcfile F -c X",
            "bash --init-file F --posix -c X",
            "bash --rcfile -c -c X",
            "bash --login -ec X",
            "bash -restricted -c X",
            "bash -c -- X",
            "bash -c - X",
            "bash -c -e -- X",
            "bash -c -- -X",
            "bash -sc X",
            "bash -c -s X",
        ] {
            assert!(goes_to_the_host(Shell::Bash, &line.split(' ').collect::<Vec<_>>()), "{line}");
        }
        assert!(goes_to_the_host(Shell::Bash, &["bash", "-c", ""]), "an empty command is a command");
    }

    #[test]
    fn everything_else_goes_to_the_real_shell() {
        for line in [
            "bash",
            "bash -c",
            "bash -c -l",
            "bash -c --",
            "bash -c -o X",
            "bash script -c X",
            "bash -x script -c X",
            "bash -- -c X",
            "bash - -c X",
            "bash --norc -- -c X",
            "bash -s",
            "bash -s -c",
            "bash -i",
            "bash -l",
            "bash --version",
            "bash -version",
            "bash --help",
            "bash -o -c X",
            "bash -O -c X",
            "bash --rcfile -c X",
            "bash --version -c X",
            "bash --frobnicate -c X",
            "bash -c --norc X",
            "-bash",
            "-bash -c X",
        ] {
            assert!(!goes_to_the_host(Shell::Bash, &line.split(' ').collect::<Vec<_>>()), "{line}");
        }
        assert!(!goes_to_the_host(Shell::Bash, &["bash", "", "-c", "X"]), "an empty script name is a script");
        assert!(!goes_to_the_host(Shell::Bash, &[]));
        assert!(!goes_to_the_host(Shell::Bash, &[""]));
    }

    #[test]
    fn a_shell_without_anything_to_run_is_interactive() {
        let is_interactive = |line: &str| super::is_interactive(line.split(' ').map(str::as_bytes));
        for line in
            ["bash", "-bash", "bash -i", "bash -l", "bash --norc --noprofile -i", "bash --rcfile F -i", "zsh -il"]
        {
            assert!(is_interactive(line), "{line}");
        }
        for line in ["bash file", "bash -c X", "bash -ic X", "bash --version", "bash -x file", "bash -- file", "bash -"]
        {
            assert!(!is_interactive(line), "{line}");
        }
    }

    #[test]
    fn sh_has_letters_and_the_words_of_bash_with_two_dashes() {
        for (line, host) in [
            ("sh -c X", true),
            ("sh -ec X", true),
            ("sh -o errexit -c X", true),
            ("sh -c -o errexit X", true),
            ("sh -lc X", true),
            ("sh -c -- X", true),
            ("sh --norc -c X", true),
            ("sh -restricted X", true),
            ("sh -rcfile X", true),
            ("sh -s", false),
            ("sh -- -c X", false),
            ("sh --help -c X", false),
            ("sh file", false),
            ("sh -login -c X", false),
        ] {
            assert_eq!(goes_to_the_host(Shell::Sh, &line.split(' ').collect::<Vec<_>>()), host, "{line}");
        }
    }

    #[test]
    fn zsh_takes_names_in_the_same_word_and_any_word() {
        for (line, host) in [
            ("zsh -c X", true),
            ("zsh -fc X", true),
            ("zsh -oextendedglob -c X", true),
            ("zsh -o extendedglob -c X", true),
            ("zsh -foc -c X", true),
            ("zsh --extended-glob -c X", true),
            ("zsh --emulate sh -c X", true),
            ("zsh -O -c X", true),
            ("zsh -c -b X", true),
            ("zsh -b -c X", false),
            ("zsh -oc X", false),
            ("zsh --emulate -c X", false),
            ("zsh --version -c X", false),
            ("zsh -f", false),
        ] {
            assert_eq!(goes_to_the_host(Shell::Zsh, &line.split(' ').collect::<Vec<_>>()), host, "{line}");
        }
    }
}
