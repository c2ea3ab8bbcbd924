//! The facts about programs by their names: filters and shells.

/// A list of words: each word's bytes, if they are known.
pub(super) type Known<'w> = [Option<&'w [u8]>];

/// The folders whose programs have their usual names.
const SYSTEM_FOLDERS: [&[u8]; 6] =
    [b"/bin", b"/sbin", b"/usr/bin", b"/usr/sbin", b"/usr/local/bin", b"/opt/homebrew/bin"];

/// The last part of a path.
#[must_use]
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The known name of a program. A path counts only in a folder of the system.
pub(super) fn known_name(path: &[u8]) -> Option<&str> {
    let name = base_name(path);
    let folder = &path[..path.len() - name.len()];
    let is_known = folder.is_empty() || SYSTEM_FOLDERS.contains(&folder.strip_suffix(b"/").unwrap_or(folder));
    if is_known { std::str::from_utf8(name).ok() } else { None }
}

/// Programs that read standard input as data, builtins that ask nobody, and tools that read nothing at all.
const FILTERS: &str = " cat head tail grep egrep fgrep zgrep rg sed awk gawk mawk sort uniq wc tr cut jq tee less column nl \
    diff cmp xxd od hexdump strings base32 base64 gzip gunzip zcat bzip2 bunzip2 xz unxz xzcat zstd tar cpio xargs split tac \
    rev paste join comm fold fmt expand unexpand iconv sum \
    read mapfile readarray echo printf true false : test [ cd pushd popd dirs pwd export unset set shift local declare \
    typeset readonly return exit break continue wait kill umask alias unalias hash type let jobs disown shopt ulimit getopts \
    ls mkdir basename dirname date sleep stat readlink realpath touch seq which ";

/// Programs that never read an answer from standard input: they ask only at the terminal.
const ASK_ELSEWHERE: &str = " ssh scp sftp rsync ssh-copy-id sudo doas git gpg gpg2 ";

/// Returns true if the name is in a list between blanks.
#[must_use]
pub fn is_listed(name: &[u8], list: &str) -> bool {
    !name.is_empty() && list.as_bytes().split(|byte| *byte == b' ').any(|listed| listed == name)
}

pub(super) fn is_filter(name: &str) -> bool {
    is_listed(name.as_bytes(), FILTERS) || (name.len() > 3 && name.ends_with("sum"))
}

pub(super) fn asks_elsewhere(name: &str) -> bool {
    is_listed(name.as_bytes(), ASK_ELSEWHERE)
}

pub(super) fn is_shell(name: &str) -> bool {
    is_readable_shell(name) || matches!(name, "fish" | "csh" | "tcsh")
}

/// The shells whose code is read as bash's.
pub(super) fn is_readable_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "rbash")
}

/// The words after a shell's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellReads {
    /// The code of `-c`, at this place.
    Code(usize),
    /// A script's name, at this place.
    Script(usize),
    /// Nothing, so it reads standard input. Its arguments begin at this place.
    Input(usize),
}

/// The call of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShellCall {
    pub(super) reads: ShellReads,
    /// It must have job control. An interactive one takes the terminal and lends it, and does not count.
    pub(super) controls_jobs: bool,
}

/// Reads these words as a call of a shell.
pub(super) fn shell_call(words: &Known<'_>) -> ShellCall {
    let mut at = 1;
    let mut has_code = false;
    let mut reads_input = false;
    let mut controls_jobs = false;
    while let Some(&Some(word)) = words.get(at) {
        if word == b"--" || word == b"-" {
            at += 1;
            break;
        }
        let is_letters = matches!(word.first(), Some(b'-' | b'+')) && !word.starts_with(b"--");
        if !is_letters && !word.starts_with(b"--") {
            break;
        }
        has_code |= is_letters && word[0] == b'-' && word.contains(&b'c');
        reads_input |= is_letters && word[0] == b'-' && word.contains(&b's');
        let is_long_with_value = word == b"--rcfile" || word == b"--init-file";
        let takes_next = is_long_with_value || (is_letters && matches!(word.last(), Some(b'o' | b'O')));
        controls_jobs |= has_job_control(word, words.get(at + 1));
        at += 1 + usize::from(takes_next);
    }
    let reads = if has_code && at < words.len() {
        ShellReads::Code(at)
    } else if !reads_input && at < words.len() {
        ShellReads::Script(at)
    } else {
        ShellReads::Input(at)
    };
    ShellCall { reads, controls_jobs }
}

/// Returns true if a builtin of this name with these words turns on job control.
pub(super) fn turns_on_job_control(name: &str, words: &Known<'_>) -> bool {
    let mut options = words.iter().skip(1);
    let names_monitor = || words.iter().skip(1).flatten().any(|word| word.eq_ignore_ascii_case(b"monitor"));
    match name {
        "set" => {
            while let Some(&Some(word)) = options.next() {
                if word.len() < 2 || word == b"--" || !matches!(word[0], b'-' | b'+') {
                    break;
                }
                let value = if word.ends_with(b"o") { options.next() } else { None };
                if has_job_control(word, value) {
                    return true;
                }
            }
            false
        }
        "setopt" => names_monitor(),
        "shopt" => names_monitor() && options.flatten().any(|word| word.starts_with(b"-") && word.contains(&b's')),
        _ => false,
    }
}

/// Returns true if an option of a shell or of `set`, with the word after it, turns on job control.
fn has_job_control(option: &[u8], next: Option<&Option<&[u8]>>) -> bool {
    match option {
        b"--monitor" => true,
        [b'-', letters @ ..] if !letters.starts_with(b"-") => {
            let names = letters.ends_with(b"o") && next.is_some_and(|next| next.as_deref() == Some(b"monitor"));
            names || letters.contains(&b'm')
        }
        _ => false,
    }
}
