//! Which words of a simple command name programs, and which are commands themselves, as behind `sh -c`.

/// A word, as far as it matters here.
pub(super) trait CommandWord {
    fn bytes(&self) -> &[u8];
    /// It is where something goes to or comes from, or part of a list: not the command's own.
    fn is_apart(&self) -> bool;
}

/// Names of programs.
type Names = &'static [&'static [u8]];

/// The programs that run a command behind `-c`.
const SHELLS: Names = &[
    b"sh",
    b"bash",
    b"zsh",
    b"dash",
    b"ksh",
    b"mksh",
    b"ash",
    b"fish",
    b"busybox",
    b"rexec-sh",
    b"rexec-bash",
    b"rexec-zsh",
    b"su",
    b"runuser",
    b"script",
    b"flock",
    b"chroot",
];
/// The programs whose arguments are commands.
const TAKES_COMMANDS: Names = &[b"eval", b"trap", b"ssh", b"watch", b"parallel"];
/// The words behind which a program is named.
const OPENERS: Names = &[b"if", b"then", b"else", b"elif", b"do", b"while", b"until", b"{", b"!", b"time", b"coproc"];
/// The programs behind which `NAME=value` is an assignment, too.
const TAKES_ASSIGNMENTS: Names = &[
    b"export",
    b"declare",
    b"typeset",
    b"local",
    b"readonly",
    b"alias",
    b"env",
    b"sudo",
    b"doas",
    b"command",
    b"builtin",
];
/// The programs that run the one that their arguments name, and how many arguments are theirs.
const RUNNERS: &[(Names, usize)] = &[
    (
        &[
            b"sudo", b"doas", b"env", b"nice", b"nohup", b"time", b"exec", b"command", b"builtin", b"setsid",
            b"stdbuf", b"ionice", b"xargs", b"unshare", b"nsenter", b"setpriv", b"strace", b"sshpass", b"busybox",
            b"eval", b"npx",
        ],
        0,
    ),
    (&[b"timeout", b"chroot", b"flock", b"taskset", b"chrt"], 1),
];

fn is_one(word: &[u8], names: Names) -> bool {
    names.contains(&word)
}

fn basename(word: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', word).map_or(word, |at| &word[at + 1..])
}

pub(super) fn is_shell(word: &impl CommandWord) -> bool {
    // A login shell is called `-bash`.
    let name = basename(word.bytes().strip_prefix(b"-").unwrap_or(word.bytes()));
    is_one(name, SHELLS) || is_one(name, TAKES_COMMANDS)
}

/// Returns true if its arguments are commands.
pub(super) fn takes_commands(word: &impl CommandWord) -> bool {
    is_one(basename(word.bytes()), TAKES_COMMANDS)
}

/// `-c`, `-lc`, `--command`
pub(super) fn is_command_option(word: &[u8]) -> bool {
    match word {
        [b'-', b'-', ..] => word == b"--command",
        [b'-', letters @ ..] => letters.len() <= 8 && letters.contains(&b'c'),
        _ => false,
    }
}

/// `NAME=…`, `NAME+=…`
fn is_assignment(word: &[u8]) -> bool {
    assigned_name(word).is_some()
}

/// The length of the variable's name, if the word gives it a value.
fn assigned_name(word: &[u8]) -> Option<usize> {
    let name = word.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let rest = word[name..].strip_prefix(b"+").unwrap_or(&word[name..]);
    let is_one = name > 0 && !word[0].is_ascii_digit() && rest.first().is_some_and(|byte| matches!(byte, b'=' | b'['));
    is_one.then_some(name)
}

/// A word that gives a variable its value.
#[derive(Debug)]
pub(super) struct AssignedWord {
    /// The index of the word.
    pub(super) nth: usize,
    /// How long the variable's name is, and where its value begins.
    pub(super) name: usize,
    pub(super) value: usize,
}

/// The assignments of a simple command: in front of its program, or behind one that takes them. Other words are only alike.
pub(super) fn assignments(words: &[impl CommandWord]) -> Vec<AssignedWord> {
    let mut takes = true;
    let mut found = Vec::new();
    for (nth, word) in words.iter().enumerate().filter(|(_, word)| !word.is_apart()) {
        let bytes = word.bytes();
        match assigned_name(bytes) {
            Some(name) if takes => {
                let value = bytes.iter().position(|&byte| byte == b'=').map_or(bytes.len(), |at| at + 1);
                found.push(AssignedWord { nth, name, value });
            }
            _ => takes &= is_before_assignment(bytes),
        }
    }
    found
}

/// Returns true if a program is named behind this word, which is none itself.
pub(super) fn is_opener(word: &[u8]) -> bool {
    is_one(word, OPENERS)
}

/// Returns true if an assignment may stand behind this word, which itself may be one.
pub(super) fn is_before_assignment(word: &[u8]) -> bool {
    is_assignment(word) || is_one(word, TAKES_ASSIGNMENTS) || is_opener(word) || word.starts_with(b"-")
}

/// Returns true if this may be the name of a variable.
pub(super) fn is_name(word: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !word.first().is_none_or(u8::is_ascii_digit) && word.iter().all(is_part)
}

/// The variable that this word is: `$NAME`, `${NAME}`.
pub(super) fn variable(word: &[u8]) -> Option<&[u8]> {
    let name = word.strip_prefix(b"$")?;
    let name = name.strip_prefix(b"{").unwrap_or(name);
    let len = name.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    (len > 0).then(|| &name[..len])
}

/// The words of a simple command that name programs.
pub(super) fn program_words(words: &[impl CommandWord]) -> Vec<usize> {
    let mut own = words.iter().enumerate().filter(|(_, word)| !word.is_apart()).peekable();
    let mut found = Vec::new();
    let mut operands = loop {
        let Some((nth, word)) = own.find(|(_, word)| !is_assignment(word.bytes())) else { return found };
        found.push(nth);
        if !is_opener(word.bytes()) {
            break runner(word.bytes());
        }
    };
    // Behind an option stands its value or the program: both may be the name.
    let mut is_behind_option = false;
    while let Some(left) = operands
        && let Some((nth, word)) = own.next()
    {
        let bytes = word.bytes();
        if bytes.starts_with(b"-") {
            is_behind_option = bytes.len() > 1 && !bytes.contains(&b'=');
        } else if !is_assignment(bytes) {
            let is_password = is_behind_option && found.iter().any(|&nth| basename(words[nth].bytes()) == b"sshpass");
            if !is_password {
                found.push(nth);
            }
            if !is_behind_option {
                operands = if left > 0 { Some(left - 1) } else { runner(bytes) };
            }
            is_behind_option = false;
        }
    }
    found
}

/// How many arguments of this program stand before the one that it runs, if it runs one.
fn runner(program: &[u8]) -> Option<usize> {
    let name = basename(program);
    RUNNERS.iter().find(|(names, _)| is_one(name, names)).map(|(_, operands)| *operands)
}
