//! Programs that run another one: how their own words end, and what the rest of them is.

use super::programs::{Known, base_name, is_listed};
use WrapperRuns::{Assigned, Code, Extended, Package, Program};

/// The form of a wrapper's own words, before those of the program that it runs.
#[derive(Debug)]
pub(super) struct Wrapper {
    name: &'static str,
    /// The words that lead to the program, as in `docker exec NAME`; [`ANY_WORD`] for a name that is none of its own commands.
    verbs: &'static str,
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
    verbs: &'static str,
    letters: &'static str,
    long: &'static str,
    operands: usize,
    runs: WrapperRuns,
) -> Wrapper {
    Wrapper { name, verbs, letters, long, operands, runs }
}

/// In the place of a verb, any word that is no command of `pnpm` or `yarn` themselves.
const ANY_WORD: &str = "*";

/// By their names; of several with one name, the first that fits counts.
static WRAPPERS: [Wrapper; 125] = [
    wrapper("adb", "shell", "sPH", "", 0, Code),
    wrapper("aws-vault", "exec", "dr", " duration region ", 1, Program),
    wrapper("builtin", "", "", "", 0, Program),
    wrapper("bun", "x", "", " cwd ", 0, Package),
    wrapper("bun", "run", "", " cwd filter ", 0, Package),
    wrapper("bundle", "exec", "", "", 0, Program),
    wrapper("bunx", "", "", "", 0, Package),
    wrapper("busybox", "", "", "", 0, Program),
    wrapper("bwrap", "", "", BWRAP_LONG, 0, Program),
    wrapper("caffeinate", "", "tw", "", 0, Program),
    wrapper("chamber", "exec", "", "", 1, Program),
    wrapper("choom", "", "n", " adjust ", 0, Program),
    wrapper("chronic", "", "", "", 0, Program),
    wrapper("chroot", "", "", "", 1, Program),
    wrapper("chrt", "", "TPD", "", 1, Program),
    wrapper("command", "", "", "", 0, Program),
    wrapper("conda", "run", "np", " name prefix ", 0, Program),
    wrapper("cpulimit", "", "lpPe", " limit ", 0, Program),
    wrapper("cross-env", "", "", "", 0, Assigned),
    wrapper("dbus-run-session", "", "", "", 0, Program),
    wrapper("deno", "run", "", " config import-map ", 0, Package),
    wrapper("direnv", "exec", "", "", 1, Program),
    wrapper("doas", "", "uCa", "", 0, Program),
    wrapper("docker", "exec", "euwHcl", DOCKER_EXEC_LONG, 1, Program),
    wrapper("docker", "container exec", "euwHcl", DOCKER_EXEC_LONG, 1, Program),
    wrapper("docker", "compose exec", "euwfp", COMPOSE_LONG, 1, Program),
    wrapper("docker", "compose run", "euwfpv", COMPOSE_LONG, 1, Program),
    wrapper("docker", "run", DOCKER_LETTERS, DOCKER_LONG, 1, Program),
    wrapper("docker", "container run", DOCKER_LETTERS, DOCKER_LONG, 1, Program),
    wrapper("docker-compose", "exec", "euwfp", COMPOSE_LONG, 1, Program),
    wrapper("docker-compose", "run", "euwfpv", COMPOSE_LONG, 1, Program),
    wrapper("doppler", "run", "pct", " project config token ", 0, Program),
    wrapper("dotenv", "", "evp", "", 0, Program),
    wrapper("entr", "", "", "", 0, Program),
    wrapper("env", "", "uCSP", " unset chdir split-string ", 0, Assigned),
    wrapper("env-cmd", "", "fe", " file environments ", 0, Program),
    wrapper("exec", "", "a", "", 0, Program),
    wrapper("fakeroot", "", "", "", 0, Program),
    wrapper("faketime", "", "", "", 1, Program),
    wrapper("firejail", "", "", "", 0, Program),
    wrapper("flock", "", "wE", " timeout wait conflict-exit-code ", 1, Program),
    wrapper("gosu", "", "", "", 1, Program),
    wrapper("gtimeout", "", "sk", " signal kill-after ", 1, Program),
    wrapper("heroku", "run", "asre", " app size remote env ", 0, Program),
    wrapper("hyperfine", "", "wmMrLS", " warmup runs shell ", 0, Code),
    wrapper("infisical", "run", "", " env path projectId token ", 0, Program),
    wrapper("ionice", "", "cnpPu", " class classdata ", 0, Program),
    wrapper("k3s", "", "", "", 0, Program),
    wrapper("kubectl", "exec", "ncs", KUBECTL_LONG, 1, Program),
    wrapper("ld-linux-x86-64.so.2", "", "", " library-path preload argv0 ", 0, Program),
    wrapper("linux32", "", "", "", 0, Program),
    wrapper("linux64", "", "", "", 0, Program),
    wrapper("ltrace", "", "eopsuanl", "", 0, Program),
    wrapper("lxc", "exec", "", " env cwd user group project ", 1, Program),
    wrapper("microk8s", "", "", "", 0, Program),
    wrapper("minikube", "", "p", " profile ", 0, Program),
    wrapper("mise", "exec", "C", " cd ", 0, Program),
    wrapper("mise", "x", "C", " cd ", 0, Program),
    wrapper("nerdctl", "exec", "euw", DOCKER_EXEC_LONG, 1, Program),
    wrapper("nerdctl", "run", DOCKER_LETTERS, DOCKER_LONG, 1, Program),
    wrapper("nice", "", "n", " adjustment ", 0, Program),
    wrapper("nix", "develop", "", "", 0, Program),
    wrapper("nocorrect", "", "", "", 0, Program),
    wrapper("noglob", "", "", "", 0, Program),
    wrapper("nohup", "", "", "", 0, Program),
    wrapper("npm", "exec", "w", " package prefix workspace ", 0, Program),
    wrapper("npx", "", "pw", " package cache userconfig prefix workspace ", 0, Package),
    wrapper("nsenter", "", "tSGW", " target ", 0, Program),
    wrapper("numactl", "", "CNmpi", " cpunodebind physcpubind membind preferred interleave ", 0, Program),
    wrapper("oc", "exec", "ncs", KUBECTL_LONG, 1, Program),
    wrapper("op", "run", "", " env-file account ", 0, Program),
    wrapper(
        "parallel",
        "",
        "jNISaC",
        " jobs colsep results sshlogin joblog tmpdir workdir arg-file delay timeout retries ",
        0,
        Code,
    ),
    wrapper("pdm", "run", "p", " project ", 0, Program),
    wrapper("perf", "stat", "eoprxIDCt", " event output repeat ", 0, Program),
    wrapper("perf", "record", "eoFcC", " event output freq ", 0, Program),
    wrapper("pipenv", "run", "", "", 0, Program),
    wrapper("pipx", "run", "", " spec python ", 0, Package),
    wrapper("pkexec", "", "", " user ", 0, Program),
    wrapper("pnpm", "exec", "CF", " dir filter ", 0, Program),
    wrapper("pnpm", "dlx", "CF", PNPM_LONG, 0, Package),
    wrapper("pnpm", "run", "CF", PNPM_LONG, 0, Package),
    wrapper("pnpm", "*", "CF", PNPM_LONG, 0, Package),
    wrapper("pnpx", "", "", " package ", 0, Package),
    wrapper("podman", "exec", "euwc", DOCKER_EXEC_LONG, 1, Program),
    wrapper("podman", "run", DOCKER_LETTERS, DOCKER_LONG, 1, Program),
    wrapper("poetry", "run", "CP", " directory project ", 0, Program),
    wrapper("prlimit", "", "", "", 0, Program),
    wrapper("proxychains", "", "f", "", 0, Program),
    wrapper("proxychains4", "", "f", "", 0, Program),
    wrapper("run-one", "", "", "", 0, Program),
    wrapper("runcon", "", "cturl", " type user role range ", 1, Program),
    wrapper("runuser", "", "ugGwc", " user group supp-group ", 0, Program),
    wrapper("sail", "", "", "", 0, Program),
    wrapper("script", "", "cEIOBTmo", " command ", 0, Code),
    wrapper("setarch", "", "", "", 1, Program),
    wrapper(
        "setpriv",
        "",
        "",
        " ambient-caps inh-caps bounding-set ruid euid rgid egid reuid regid groups securebits pdeathsig ptracer \
        selinux-label apparmor-profile landlock-access landlock-rule seccomp-filter ",
        0,
        Program,
    ),
    wrapper("setsid", "", "", "", 0, Program),
    wrapper("spring", "", "", "", 0, Program),
    wrapper("ssh", "", "bcDEeFIiJLlmOopQRSWw", "", 1, Code),
    wrapper("sshpass", "", "pfdP", "", 0, Program),
    wrapper("stdbuf", "", "ioe", " input output error ", 0, Program),
    wrapper("strace", "", "eopsuabIOSPX", "", 0, Program),
    wrapper("su-exec", "", "", "", 1, Program),
    wrapper(
        "sudo",
        "",
        "ughpCrtTUDRa",
        " user group host prompt chdir chroot close-from role type other-user ",
        0,
        Assigned,
    ),
    wrapper("systemd-run", "", "upEMHpG", " unit property setenv machine host slice uid gid ", 0, Program),
    wrapper("taskset", "", "", "", 1, Program),
    wrapper("time", "", "fo", " format output ", 0, Program),
    wrapper("timeout", "", "sk", " signal kill-after ", 1, Program),
    wrapper("torsocks", "", "", "", 0, Program),
    wrapper("toybox", "", "", "", 0, Program),
    wrapper("tsp", "", "LNE", "", 0, Program),
    wrapper("unbuffer", "", "", "", 0, Program),
    wrapper("unshare", "", "RSGw", " root wd ", 0, Program),
    wrapper("uv", "run", "p", " with python directory project extra group ", 0, Program),
    wrapper("uvx", "", "p", " from with python index ", 0, Package),
    wrapper("valgrind", "", "", "", 0, Program),
    wrapper("watch", "", "nq", " interval equexit ", 0, Code),
    wrapper(
        "xargs",
        "",
        "IEnPLsdaJR",
        " max-args max-procs delimiter arg-file max-lines max-chars replace ",
        0,
        Extended,
    ),
    wrapper("xvfb-run", "", "ensfpw", "", 0, Program),
    wrapper("yarn", "exec", "", " cwd ", 0, Program),
    wrapper("yarn", "dlx", "p", " cwd package ", 0, Package),
    wrapper("yarn", "run", "", " cwd ", 0, Package),
    wrapper("yarn", "workspace", "", " cwd ", 1, Package),
    wrapper("yarn", "workspaces foreach", "jp", " cwd include exclude from ", 0, Package),
    wrapper("yarn", "*", "", " cwd ", 0, Package),
];

const BWRAP_LONG: &str = " add-seccomp-fd args argv0 block-fd cap-add cap-drop chdir dev dir exec-label file-label gid hostname \
    info-fd json-status-fd lock-file mqueue overlay-src perms pidns proc remount-ro ro-overlay seccomp size sync-fd tmp-overlay \
    tmpfs uid unsetenv userns userns-block-fd userns2 ";
/// The options of `bwrap` with two values.
const BWRAP_PAIRS: &str = " bind bind-data bind-fd bind-try chmod dev-bind dev-bind-try file ro-bind ro-bind-data ro-bind-fd \
    ro-bind-try setenv symlink ";
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

/// Programs that run others on another machine, in a container, or below another root.
const ELSEWHERE: &str = " adb bwrap chroot docker docker-compose flyctl fly gcloud heroku k3s kubectl lxc microk8s \
    minikube nerdctl oc podman sail ssh vagrant ";

/// Returns true if a layer, such as `docker exec`, leads to one of these places.
pub(super) fn leads_elsewhere(layer: &[u8]) -> bool {
    is_listed(layer.split(|byte| *byte == b' ').next().unwrap_or(layer), ELSEWHERE)
}

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

/// For each byte, the number of wrappers whose name begins with a smaller one.
static BEGINNING_BELOW: [usize; 257] = {
    let mut below = [0; 257];
    let mut at = 0;
    while at < WRAPPERS.len() {
        let mut byte = WRAPPERS[at].name.as_bytes()[0] as usize + 1;
        while byte < below.len() {
            below[byte] += 1;
            byte += 1;
        }
        at += 1;
    }
    below
};

/// The wrappers of this name.
fn named(name: &str) -> &'static [Wrapper] {
    let Some(first) = name.bytes().next().map(usize::from) else { return &[] };
    let alike = &WRAPPERS[BEGINNING_BELOW[first]..BEGINNING_BELOW[first + 1]];
    let begin = alike.iter().position(|wrapper| wrapper.name == name).unwrap_or(alike.len());
    let length = alike[begin..].iter().take_while(|wrapper| wrapper.name == name).count();
    &alike[begin..begin + length]
}

/// Returns true if the program of this name may be a wrapper.
pub(super) fn is_wrapper(name: &str) -> bool {
    !named(name).is_empty()
}

/// The program of these words, if the first is a wrapper of this name. The inner `None` means that one of its own words
/// is unknown.
pub(super) fn inner(name: &str, words: &Known<'_>) -> Option<Option<Inner>> {
    let (wrapper, begin) = wrapper_of(name, words)?;
    Some(wrapper.inner(words, begin))
}

/// The words that lead to the program in a wrapper's arguments, such as `exec` for `docker exec`. `None` if there are none.
pub(super) fn verbs(name: &str, words: &Known<'_>) -> Option<&'static str> {
    let (wrapper, _) = wrapper_of(name, words)?;
    Some(wrapper.verbs).filter(|verbs| !verbs.is_empty() && *verbs != ANY_WORD)
}

/// The wrapper that these words call, and the place behind the words that lead to a program.
fn wrapper_of(name: &str, words: &Known<'_>) -> Option<(&'static Wrapper, usize)> {
    named(name).iter().find_map(|wrapper| Some((wrapper, wrapper.end_of_verbs(words)?)))
}

impl Wrapper {
    /// The place behind the words that lead to a program, if these do. Options may stand before each.
    fn end_of_verbs(&self, words: &Known<'_>) -> Option<usize> {
        let mut at = 1;
        for verb in self.verbs.split_ascii_whitespace() {
            while let Some(option) = words.get(at)?.as_deref().filter(|word| word.len() > 1 && word[0] == b'-') {
                at += 1 + self.values(option);
            }
            let word = words.get(at)?.as_deref()?;
            if verb == ANY_WORD {
                (!is_listed(word, PACKAGE_VERBS)).then_some(())?;
            } else {
                (word == verb.as_bytes()).then_some(())?;
                at += 1;
            }
        }
        Some(at)
    }

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
                at += 1 + self.values(word);
            } else if operands > 0 {
                operands -= 1;
                at += 1;
                takes_options &= matches!(self.name, "ssh" | "kubectl" | "oc");
            } else if is_assignment {
                at += 1;
            } else {
                break;
            }
        }
        if at < words.len() { Some(Inner { at, runs: self.runs }) } else { None }
    }

    /// The number of words behind this option that are its values.
    fn values(&self, option: &[u8]) -> usize {
        if let Some(long) = option.strip_prefix(b"--") {
            let has_two = self.name == "bwrap" && is_listed(long, BWRAP_PAIRS);
            return if has_two { 2 } else { usize::from(is_listed(long, self.long)) };
        }
        let letters = &option[1..];
        let first = letters.iter().position(|letter| self.letters.as_bytes().contains(letter));
        usize::from(first.is_some_and(|at| at + 1 == letters.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_stand_in_the_order_of_their_names() {
        assert!(WRAPPERS.is_sorted_by_key(|wrapper| wrapper.name));
    }
}
