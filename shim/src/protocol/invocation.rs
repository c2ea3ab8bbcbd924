//! Decides which invocations of a shell go to the host, and which real shell a name stands for. Pure: arguments in,
//! answer out.
//!
//! Only `-c STRING` goes to the host, with options of the shell before the `-c`, in one cluster with it (`-lc`), or
//! after it (`-c -l STRING`). Options are read as the shells themselves read them (bash 5, dash, zsh, fish), because
//! some take an argument that must not be mistaken for the command. Invocations that a shell would reject go to the
//! real shell, which words the error.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// The system's sh, whichever program that is.
    Sh,
    Bash,
    Zsh,
    Dash,
    /// The system's ksh, whichever program that is.
    Ksh,
    Mksh,
    Fish,
    /// busybox, which is a shell by its first argument.
    Busybox,
}

/// Shells that the shim cannot stand for.
const OTHER_SHELLS: [&str; 15] = [
    "ash", "csh", "elvish", "es", "hush", "ksh93", "loksh", "nu", "oksh", "osh", "pwsh", "rc", "tcsh", "xonsh", "yash",
];

impl Shell {
    /// The real shell's `argv[0]` in place of `name`: the one it would have without rexec. A path that leads to the
    /// shim becomes the real shell's path, a link's name the real shell's name, and the `-` of a login shell stays.
    /// `None` if the name is not the shim's, so that the caller's own choice passes.
    ///
    /// A shell prints this name before its errors and as `$0`, and some act on it: a zsh whose name begins with `r` is
    /// restricted, and bash called `sh` is a POSIX shell.
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

    /// The real shell's name if its caller gives no path.
    fn bare_name<'a>(self, real: &Real<'a>) -> &'a [u8] {
        match file_name(real.path) {
            // busybox is a shell only by the shell's name.
            b"busybox" => self.word().as_bytes(),
            file if real.is_chosen => file,
            _ => self.word().as_bytes(),
        }
    }

    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Sh => "sh",
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Dash => "dash",
            Self::Ksh => "ksh",
            Self::Mksh => "mksh",
            Self::Fish => "fish",
            Self::Busybox => "busybox",
        }
    }

    /// The shell of a path or `argv[0]`. Its last part counts, without the `-` of a login shell and without a leading
    /// `rexec-`. `None` if that is not the name of a shell in [`Shell::ALL`].
    #[must_use]
    pub fn named(path: &[u8]) -> Option<Self> {
        let name = shell_name(path);
        Self::ALL.into_iter().find(|shell| shell.word().as_bytes() == name)
    }

    /// All shells that the shim can stand for.
    pub const ALL: [Self; 8] =
        [Self::Sh, Self::Bash, Self::Zsh, Self::Dash, Self::Ksh, Self::Mksh, Self::Fish, Self::Busybox];
}

/// The shell of a path or `argv[0]`, if that is one that the shim cannot stand for.
#[must_use]
pub fn other_shell(path: &[u8]) -> Option<&'static str> {
    OTHER_SHELLS.into_iter().find(|name| name.as_bytes() == shell_name(path))
}

/// The last part of a path or `argv[0]`, without the `-` of a login shell and without a leading `rexec-`.
fn shell_name(path: &[u8]) -> &[u8] {
    let file = file_name(path);
    let file = file.strip_prefix(b"-").unwrap_or(file);
    file.strip_prefix(b"rexec-").unwrap_or(file)
}

#[derive(Debug, Clone, Copy)]
pub struct Real<'a> {
    pub path: &'a [u8],
    /// True if the caller chose it with `REXEC_SHELL`.
    pub is_chosen: bool,
}

/// The part after the last `/`.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Long options of bash. bash takes them with one dash too.
const LONG_OPTIONS: [&[u8]; 10] = [
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
/// Long options of bash that take an argument.
const LONG_OPTIONS_WITH_ARGUMENT: [&[u8]; 2] = [b"rcfile", b"init-file"];

/// The meaning of an argument that begins with one or two dashes.
enum DashedArgument {
    Flag,
    TakesArgument,
    /// The shell prints something instead of running a command, or fails.
    Other,
    /// A cluster of one-letter options.
    Letters,
}

/// Returns true if the arguments (including `argv[0]`) make the shell run a command string, as `-c STRING` does. The
/// host runs those. The real shell takes all others.
#[must_use]
pub fn is_command<'a>(shell: Shell, argv: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut argv = argv.into_iter();
    if argv.next().is_none_or(|name| name.starts_with(b"-")) {
        return false;
    }
    match shell {
        Shell::Fish => return is_fish_command(argv),
        Shell::Busybox if !argv.next().is_some_and(|name| matches!(name, b"sh" | b"ash" | b"hush")) => return false,
        _ => {}
    }
    let (mut command, mut letters_seen) = (false, false);
    while let Some(argument) = argv.next() {
        let (sign, letters) = match argument {
            b"-" | b"--" => return command && argv.next().is_some(),
            [sign @ (b'-' | b'+'), letters @ ..] => (*sign, letters),
            _ => return command,
        };
        match word(shell, sign, letters, letters_seen) {
            DashedArgument::Flag => continue,
            DashedArgument::TakesArgument => {
                argv.next();
                continue;
            }
            DashedArgument::Other => return false,
            DashedArgument::Letters => letters_seen = true,
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

/// As [`is_command`], for fish: it takes `-c STRING` as often as it is given, and options as getopt_long(3).
fn is_fish_command<'a>(mut argv: impl Iterator<Item = &'a [u8]>) -> bool {
    const WITH_ARGUMENT: &[u8] = b"cCdDfop";
    const LONG_WITH_ARGUMENT: [&[u8]; 8] = [
        b"command",
        b"init-command",
        b"debug",
        b"debug-output",
        b"debug-stack-frames",
        b"features",
        b"profile",
        b"profile-startup",
    ];
    let mut command = false;
    while let Some(argument) = argv.next() {
        match argument {
            b"-" | b"--" => return command,
            [b'-', b'-', long @ ..] => {
                let (name, value) = match long.iter().position(|&byte| byte == b'=') {
                    Some(at) => (&long[..at], Some(&long[at + 1..])),
                    None => (long, None),
                };
                if matches!(name, b"version" | b"help") {
                    return false;
                }
                if !LONG_WITH_ARGUMENT.contains(&name) {
                    continue;
                }
                if value.or_else(|| argv.next()).is_none() {
                    return false;
                }
                command |= name == b"command";
            }
            [b'-', letters @ ..] => {
                let ends = |letter: &u8| WITH_ARGUMENT.contains(letter) || matches!(letter, b'v' | b'h');
                let Some(at) = letters.iter().position(ends) else { continue };
                if matches!(letters[at], b'v' | b'h') || (at + 1 == letters.len() && argv.next().is_none()) {
                    return false;
                }
                command |= letters[at] == b'c';
            }
            _ => return command,
        }
    }
    command
}

/// Returns true if the arguments (including `argv[0]`) are only options. The shell then reads commands from its
/// terminal.
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
                if letters.contains(&b'c') && !LONG_OPTIONS.contains(&letters) {
                    return false;
                }
            }
            _ => return false,
        }
    }
    true
}

fn word(shell: Shell, sign: u8, letters: &[u8], letters_seen: bool) -> DashedArgument {
    let (word, dashes) = match letters.strip_prefix(b"-") {
        Some(word) if sign == b'-' => (word, 2),
        _ => (letters, 1),
    };
    let known = !letters_seen && (dashes == 2 || (shell == Shell::Bash && sign == b'-'));
    if shell == Shell::Zsh {
        return match (dashes, word) {
            (1, _) => DashedArgument::Letters,
            (_, b"version" | b"help") => DashedArgument::Other,
            (_, b"emulate") => DashedArgument::TakesArgument,
            (_, _) => DashedArgument::Flag,
        };
    }
    if known && LONG_OPTIONS.contains(&word) {
        DashedArgument::Flag
    } else if known && LONG_OPTIONS_WITH_ARGUMENT.contains(&word) {
        DashedArgument::TakesArgument
    } else if dashes == 2 || (known && matches!(word, b"version" | b"help")) {
        DashedArgument::Other
    } else {
        DashedArgument::Letters
    }
}

#[cfg(test)]
mod tests;
