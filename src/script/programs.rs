//! The facts about programs by their names: filters, wrappers, shells, interpreters.

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

fn is_listed(name: &str, list: &str) -> bool {
    !name.is_empty() && list.split(' ').any(|listed| listed == name)
}

pub(super) fn is_filter(name: &str) -> bool {
    is_listed(name, FILTERS) || (name.len() > 3 && name.ends_with("sum"))
}

pub(super) fn asks_elsewhere(name: &str) -> bool {
    is_listed(name, ASK_ELSEWHERE)
}

pub(super) fn is_shell(name: &str) -> bool {
    is_listed(name, " sh bash dash zsh ksh mksh ash rbash fish csh tcsh ")
}

/// The shells whose code is read as bash's.
pub(super) fn is_readable_shell(name: &str) -> bool {
    is_shell(name) && !is_listed(name, " fish csh tcsh ")
}

/// The form of a wrapper's own words, before those of the program that it runs.
#[derive(Debug)]
pub(super) struct Wrapper {
    name: &'static str,
    /// The letters of options whose value is the next word.
    letters: &'static str,
    /// The long options whose value is the next word, without their dashes.
    long: &'static str,
    /// Words before the program: a time limit, a host, a file.
    operands: usize,
    /// The meaning of the rest.
    pub(super) runs: WrapperRuns,
}

/// The words after a wrapper's own ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrapperRuns {
    /// A program with its arguments.
    Program,
    /// A program with assignments in front.
    Assigned,
    /// A program with further, unknown arguments at the end.
    Extended,
    /// A program of a package, whose name may have a version.
    Package,
    /// Words that are joined to code, for a shell here or elsewhere.
    Code,
}

const fn wrapper(
    name: &'static str,
    letters: &'static str,
    long: &'static str,
    operands: usize,
    runs: WrapperRuns,
) -> Wrapper {
    Wrapper { name, letters, long, operands, runs }
}

const WRAPPERS: [Wrapper; 76] = [
    wrapper("env", "uCSP", " unset chdir split-string ", 0, WrapperRuns::Assigned),
    wrapper(
        "sudo",
        "ughpCrtTUDRa",
        " user group host prompt chdir chroot close-from role type other-user ",
        0,
        WrapperRuns::Assigned,
    ),
    wrapper("doas", "uCa", "", 0, WrapperRuns::Program),
    wrapper("pkexec", "", " user ", 0, WrapperRuns::Program),
    wrapper("runuser", "ugGwc", " user group supp-group ", 0, WrapperRuns::Program),
    wrapper("command", "", "", 0, WrapperRuns::Program),
    wrapper("builtin", "", "", 0, WrapperRuns::Program),
    wrapper("exec", "a", "", 0, WrapperRuns::Program),
    wrapper("nohup", "", "", 0, WrapperRuns::Program),
    wrapper("nice", "n", " adjustment ", 0, WrapperRuns::Program),
    wrapper("ionice", "cnpPu", " class classdata ", 0, WrapperRuns::Program),
    wrapper("chrt", "TPD", "", 1, WrapperRuns::Program),
    wrapper("taskset", "", "", 1, WrapperRuns::Program),
    wrapper("timeout", "sk", " signal kill-after ", 1, WrapperRuns::Program),
    wrapper("gtimeout", "sk", " signal kill-after ", 1, WrapperRuns::Program),
    wrapper("stdbuf", "ioe", " input output error ", 0, WrapperRuns::Program),
    wrapper("setsid", "", "", 0, WrapperRuns::Program),
    wrapper(
        "setpriv",
        "",
        " ambient-caps inh-caps bounding-set ruid euid rgid egid reuid regid groups securebits pdeathsig ptracer \
        selinux-label apparmor-profile landlock-access landlock-rule seccomp-filter ",
        0,
        WrapperRuns::Program,
    ),
    wrapper("time", "fo", " format output ", 0, WrapperRuns::Program),
    wrapper("strace", "eopsuabIOSPX", "", 0, WrapperRuns::Program),
    wrapper("ltrace", "eopsuanl", "", 0, WrapperRuns::Program),
    wrapper("valgrind", "", "", 0, WrapperRuns::Program),
    wrapper("busybox", "", "", 0, WrapperRuns::Program),
    wrapper("toybox", "", "", 0, WrapperRuns::Program),
    wrapper("chroot", "", "", 1, WrapperRuns::Program),
    wrapper("unshare", "RSGw", " root wd ", 0, WrapperRuns::Program),
    wrapper("nsenter", "tSGW", " target ", 0, WrapperRuns::Program),
    wrapper("systemd-run", "upEMHpG", " unit property setenv machine host slice uid gid ", 0, WrapperRuns::Program),
    wrapper("flock", "wE", " timeout wait conflict-exit-code ", 1, WrapperRuns::Program),
    wrapper("unbuffer", "", "", 0, WrapperRuns::Program),
    wrapper("chronic", "", "", 0, WrapperRuns::Program),
    wrapper("choom", "n", " adjust ", 0, WrapperRuns::Program),
    wrapper("cpulimit", "lpPe", " limit ", 0, WrapperRuns::Program),
    wrapper("faketime", "", "", 1, WrapperRuns::Program),
    wrapper("gosu", "", "", 1, WrapperRuns::Program),
    wrapper("su-exec", "", "", 1, WrapperRuns::Program),
    wrapper("numactl", "CNmpi", " cpunodebind physcpubind membind preferred interleave ", 0, WrapperRuns::Program),
    wrapper("prlimit", "", "", 0, WrapperRuns::Program),
    wrapper("runcon", "cturl", " type user role range ", 1, WrapperRuns::Program),
    wrapper("run-one", "", "", 0, WrapperRuns::Program),
    wrapper("setarch", "", "", 1, WrapperRuns::Program),
    wrapper("linux32", "", "", 0, WrapperRuns::Program),
    wrapper("linux64", "", "", 0, WrapperRuns::Program),
    wrapper("ld-linux-x86-64.so.2", "", " library-path preload argv0 ", 0, WrapperRuns::Program),
    wrapper("sshpass", "pfdP", "", 0, WrapperRuns::Program),
    wrapper("torsocks", "", "", 0, WrapperRuns::Program),
    wrapper("proxychains", "f", "", 0, WrapperRuns::Program),
    wrapper("tsp", "LNE", "", 0, WrapperRuns::Program),
    wrapper("cross-env", "", "", 0, WrapperRuns::Assigned),
    wrapper("env-cmd", "fe", " file environments ", 0, WrapperRuns::Program),
    wrapper("dotenv", "evp", "", 0, WrapperRuns::Program),
    wrapper("sail", "", "", 0, WrapperRuns::Program),
    wrapper("spring", "", "", 0, WrapperRuns::Program),
    wrapper("microk8s", "", "", 0, WrapperRuns::Program),
    wrapper("minikube", "p", " profile ", 0, WrapperRuns::Program),
    wrapper("k3s", "", "", 0, WrapperRuns::Program),
    wrapper("npx", "pw", " package cache userconfig prefix workspace ", 0, WrapperRuns::Package),
    wrapper("bunx", "", "", 0, WrapperRuns::Package),
    wrapper("pnpx", "", " package ", 0, WrapperRuns::Package),
    wrapper("uvx", "p", " from with python index ", 0, WrapperRuns::Package),
    wrapper("dbus-run-session", "", "", 0, WrapperRuns::Program),
    wrapper("xvfb-run", "ensfpw", "", 0, WrapperRuns::Program),
    wrapper("proxychains4", "f", "", 0, WrapperRuns::Program),
    wrapper("firejail", "", "", 0, WrapperRuns::Program),
    wrapper("bwrap", "", "", 0, WrapperRuns::Program),
    wrapper("fakeroot", "", "", 0, WrapperRuns::Program),
    wrapper("caffeinate", "tw", "", 0, WrapperRuns::Program),
    wrapper("noglob", "", "", 0, WrapperRuns::Program),
    wrapper("nocorrect", "", "", 0, WrapperRuns::Program),
    wrapper(
        "xargs",
        "IEnPLsdaJR",
        " max-args max-procs delimiter arg-file max-lines max-chars replace ",
        0,
        WrapperRuns::Extended,
    ),
    wrapper(
        "parallel",
        "jNISaC",
        " jobs colsep results sshlogin joblog tmpdir workdir arg-file delay timeout retries ",
        0,
        WrapperRuns::Code,
    ),
    wrapper("watch", "nq", " interval equexit ", 0, WrapperRuns::Code),
    wrapper("ssh", "bcDEeFIiJLlmOopQRSWw", "", 1, WrapperRuns::Code),
    wrapper("hyperfine", "wmMrLS", " warmup runs shell ", 0, WrapperRuns::Code),
    wrapper("entr", "", "", 0, WrapperRuns::Program),
    wrapper("script", "cEIOBTmo", " command ", 0, WrapperRuns::Code),
];

/// Programs whose first words lead to a program: `docker exec NAME`, `uv run`. Their options may stand before these words.
const VERB_WRAPPERS: [(&str, &str, Wrapper); 49] = [
    ("docker", "exec", wrapper("", "euwHcl", DOCKER_EXEC_LONG, 1, WrapperRuns::Program)),
    ("docker", "container exec", wrapper("", "euwHcl", DOCKER_EXEC_LONG, 1, WrapperRuns::Program)),
    ("docker", "compose exec", wrapper("", "euwfp", COMPOSE_LONG, 1, WrapperRuns::Program)),
    ("docker", "compose run", wrapper("", "euwfpv", COMPOSE_LONG, 1, WrapperRuns::Program)),
    ("docker-compose", "exec", wrapper("", "euwfp", COMPOSE_LONG, 1, WrapperRuns::Program)),
    ("docker-compose", "run", wrapper("", "euwfpv", COMPOSE_LONG, 1, WrapperRuns::Program)),
    ("docker", "run", wrapper("", DOCKER_LETTERS, DOCKER_LONG, 1, WrapperRuns::Program)),
    ("docker", "container run", wrapper("", DOCKER_LETTERS, DOCKER_LONG, 1, WrapperRuns::Program)),
    ("podman", "exec", wrapper("", "euwc", DOCKER_EXEC_LONG, 1, WrapperRuns::Program)),
    ("podman", "run", wrapper("", DOCKER_LETTERS, DOCKER_LONG, 1, WrapperRuns::Program)),
    ("kubectl", "exec", wrapper("kubectl", "ncs", KUBECTL_LONG, 1, WrapperRuns::Program)),
    ("oc", "exec", wrapper("kubectl", "ncs", KUBECTL_LONG, 1, WrapperRuns::Program)),
    ("uv", "run", wrapper("", "p", " with python directory project extra group ", 0, WrapperRuns::Program)),
    ("poetry", "run", wrapper("", "CP", " directory project ", 0, WrapperRuns::Program)),
    ("pipenv", "run", wrapper("", "", "", 0, WrapperRuns::Program)),
    ("pdm", "run", wrapper("", "p", " project ", 0, WrapperRuns::Program)),
    ("bundle", "exec", wrapper("", "", "", 0, WrapperRuns::Program)),
    ("direnv", "exec", wrapper("", "", "", 1, WrapperRuns::Program)),
    ("mise", "exec", wrapper("", "C", " cd ", 0, WrapperRuns::Program)),
    ("mise", "x", wrapper("", "C", " cd ", 0, WrapperRuns::Program)),
    ("conda", "run", wrapper("", "np", " name prefix ", 0, WrapperRuns::Program)),
    ("pnpm", "exec", wrapper("", "CF", " dir filter ", 0, WrapperRuns::Program)),
    ("yarn", "exec", wrapper("", "", " cwd ", 0, WrapperRuns::Program)),
    ("npm", "exec", wrapper("", "w", " package prefix workspace ", 0, WrapperRuns::Program)),
    ("pnpm", "dlx", wrapper("", "CF", PNPM_LONG, 0, WrapperRuns::Package)),
    ("pnpm", "run", wrapper("", "CF", PNPM_LONG, 0, WrapperRuns::Package)),
    ("pnpm", "", wrapper("", "CF", PNPM_LONG, 0, WrapperRuns::Package)),
    ("yarn", "dlx", wrapper("", "p", " cwd package ", 0, WrapperRuns::Package)),
    ("yarn", "run", wrapper("", "", " cwd ", 0, WrapperRuns::Package)),
    ("yarn", "workspace", wrapper("", "", " cwd ", 1, WrapperRuns::Package)),
    ("yarn", "workspaces foreach", wrapper("", "jp", " cwd include exclude from ", 0, WrapperRuns::Package)),
    ("yarn", "", wrapper("", "", " cwd ", 0, WrapperRuns::Package)),
    ("bun", "x", wrapper("", "", " cwd ", 0, WrapperRuns::Package)),
    ("bun", "run", wrapper("", "", " cwd filter ", 0, WrapperRuns::Package)),
    ("deno", "run", wrapper("", "", " config import-map ", 0, WrapperRuns::Package)),
    ("pipx", "run", wrapper("", "", " spec python ", 0, WrapperRuns::Package)),
    ("nerdctl", "exec", wrapper("", "euw", DOCKER_EXEC_LONG, 1, WrapperRuns::Program)),
    ("nerdctl", "run", wrapper("", DOCKER_LETTERS, DOCKER_LONG, 1, WrapperRuns::Program)),
    ("lxc", "exec", wrapper("", "", " env cwd user group project ", 1, WrapperRuns::Program)),
    ("adb", "shell", wrapper("", "sPH", "", 0, WrapperRuns::Code)),
    ("heroku", "run", wrapper("", "asre", " app size remote env ", 0, WrapperRuns::Program)),
    ("nix", "develop", wrapper("", "", "", 0, WrapperRuns::Program)),
    ("perf", "stat", wrapper("", "eoprxIDCt", " event output repeat ", 0, WrapperRuns::Program)),
    ("perf", "record", wrapper("", "eoFcC", " event output freq ", 0, WrapperRuns::Program)),
    ("aws-vault", "exec", wrapper("", "dr", " duration region ", 1, WrapperRuns::Program)),
    ("chamber", "exec", wrapper("", "", "", 1, WrapperRuns::Program)),
    ("doppler", "run", wrapper("", "pct", " project config token ", 0, WrapperRuns::Program)),
    ("infisical", "run", wrapper("", "", " env path projectId token ", 0, WrapperRuns::Program)),
    ("op", "run", wrapper("", "", " env-file account ", 0, WrapperRuns::Program)),
];

const DOCKER_EXEC_LONG: &str = " env user workdir env-file detach-keys host context config log-level ";
const PNPM_LONG: &str = " dir filter workspace-concurrency reporter ";
/// The own commands of `pnpm` and `yarn`. Any other word is a program of the project.
const PACKAGE_VERBS: &str = " add audit bin cache config create dlx exec help import info init install i link list login logout \
    ls node npm outdated pack patch plugin prune publish rebuild remove rm root run self-update set setup store test t unlink \
    up update upgrade version why workspace workspaces ";
const COMPOSE_LONG: &str = " env user workdir index file project-name project-directory profile env-file name entrypoint \
    volume publish label ansi progress parallel ";
const KUBECTL_LONG: &str = " namespace container context cluster user kubeconfig server token as as-group filename \
    pod-running-timeout request-timeout ";
const DOCKER_LETTERS: &str = "aceghlmpuvw";
const DOCKER_LONG: &str = " name volume env env-file publish user workdir network entrypoint mount label memory cpus platform \
    hostname add-host device restart ";

/// The name of a package's program, without a scope in front and a version behind.
pub(super) fn package_program(package: &[u8]) -> &[u8] {
    let name = base_name(package.strip_prefix(b"npm:").unwrap_or(package));
    let end = name.iter().skip(1).position(|byte| *byte == b'@').map_or(name.len(), |at| at + 1);
    &name[..end]
}

/// The program or code of a wrapper.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inner {
    /// The place where the program or the code begins.
    pub(super) at: usize,
    pub(super) runs: WrapperRuns,
}

/// The program of these words, if the first is a wrapper of this name. The inner `None` means that one of its own words
/// is unknown.
pub(super) fn inner(name: &str, words: &Known<'_>) -> Option<Option<Inner>> {
    let plain = WRAPPERS.iter().find(|wrapper| wrapper.name == name).map(|wrapper| (wrapper, 1));
    let (wrapper, begin) = plain.or_else(|| verb_wrapper(name, words).map(|(_, wrapper, begin)| (wrapper, begin)))?;
    Some(wrapper.inner(words, begin))
}

/// The words that lead to a program, and the place behind them, if the first is a program of this name.
fn verb_wrapper(name: &str, words: &Known<'_>) -> Option<(&'static str, &'static Wrapper, usize)> {
    VERB_WRAPPERS.iter().filter(|(program, ..)| *program == name).find_map(|(_, verbs, wrapper)| {
        let mut at = 1;
        for verb in verbs.split(' ') {
            while let Some(option) = words.get(at)?.as_deref().filter(|word| word.len() > 1 && word[0] == b'-') {
                at += 1 + usize::from(wrapper.takes_next(option));
            }
            let word = std::str::from_utf8(words.get(at)?.as_deref()?).ok()?;
            if verb.is_empty() {
                (!is_listed(word, PACKAGE_VERBS)).then_some(())?;
            } else {
                (word == verb).then_some(())?;
                at += 1;
            }
        }
        Some((*verbs, wrapper, at))
    })
}

/// The words that lead to the program in a wrapper's arguments, such as `exec` for `docker exec`. None if it always runs
/// another one.
pub(super) fn verbs(name: &str, words: &Known<'_>) -> Option<&'static str> {
    verb_wrapper(name, words).map(|(verbs, ..)| verbs)
}

impl Wrapper {
    fn inner(&self, words: &Known<'_>, begin: usize) -> Option<Inner> {
        let mut at = begin;
        let mut operands = self.operands;
        let mut takes_options = true;
        while let Some(word) = words.get(at) {
            let Some(word) = word.as_deref() else {
                // An unknown host or limit is still one word.
                if operands == 0 {
                    break;
                }
                operands -= 1;
                at += 1;
                continue;
            };
            let is_assignment = self.runs == WrapperRuns::Assigned && word.contains(&b'=') && !word.starts_with(b"=");
            if word == b"--" && (takes_options || begin > 1) {
                takes_options = operands > 0;
                at += 1;
            } else if word == b"-" && self.name == "env" {
                at += 1;
            } else if takes_options && word.len() > 1 && word[0] == b'-' {
                at += 1 + usize::from(self.takes_next(word));
            } else if operands > 0 {
                operands -= 1;
                at += 1;
                takes_options &= matches!(self.name, "ssh" | "kubectl");
            } else if is_assignment {
                at += 1;
            } else {
                break;
            }
        }
        if at < words.len() { Some(Inner { at, runs: self.runs }) } else { None }
    }

    /// Returns true if the value of this option is the next word.
    fn takes_next(&self, option: &[u8]) -> bool {
        if let Some(long) = option.strip_prefix(b"--") {
            return std::str::from_utf8(long).is_ok_and(|long| is_listed(long, self.long));
        }
        let letters = &option[1..];
        let first = letters.iter().position(|letter| self.letters.as_bytes().contains(letter));
        first.is_some_and(|at| at + 1 == letters.len())
    }
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
