//! rexec-sh, the shell that an agent calls: a command string goes to the host, anything else to the real shell.
//!
//! Invariants: the real shell is executed with the name that it would have without the shim, with the other arguments
//! unchanged, and with the signal mask, dispositions and descriptors that this process was started with; once the
//! request is sent, the command never runs in this process.
//!
//! The library half's header has the map of all modules.
#![no_main]

mod client;
mod collect;
mod connect;
mod controlling_terminal;
mod direct;
mod inside;
mod lifeline;
mod local_run;
mod notice;
mod output_descriptor;
mod output_relay;
mod report;
mod reporter;
mod shell;
mod sys;
mod unseen;

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::direct::DirectCall;
use rexec_sh::protocol::environment::Rules;
use rexec_sh::protocol::exit_code::{NOT_EXECUTABLE, OWN_FAILURE};
use rexec_sh::protocol::invocation::{Real, Shell, is_command, is_interactive, other_shell};
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::options::{Choices, ShimOptions, given};
use rexec_sh::protocol::run_changes::{FED_IF_PIPE, RunChanges, own_value};
use rexec_sh::protocol::unseen::UnseenReason;
use rexec_sh::protocol::wire::{
    Attributes, CallerStream, FromShim, Hello, INHERITED_MAX, OutputBudget, Rest, encode_left, encode_run,
};

use client::{Client, ClientEnd, Held};
use collect::StandardStreams;
use connect::NoHost;
use controlling_terminal::ControllingTerminal;
use inside::Inside;
use lifeline::Lifeline;
use output_descriptor::OutputDescriptor;
use report::Reporting;
use sys::{SignalSet, bit};

/// The pause, milliseconds, and the number of retries if the user has too many descriptors in flight (sendmsg(2),
/// ETOOMANYREFS).
const IN_FLIGHT_PAUSE_MS: i32 = 20;
const IN_FLIGHT_RETRIES_MAX: u32 = 250;

/// The time in which the host must note a shell that runs without it, milliseconds.
const TELL_PATIENCE_MS: i32 = 500;

/// One call of the shim as a shell.
struct ShimCall<'a> {
    argv: &'a [&'a CStr],
    env: &'a [&'static CStr],
    options: ShimOptions<'static>,
    kind: Shell,
    shell: &'a CStr,
    /// The program to run in place of the shell.
    direct: Option<DirectCall<'a>>,
}

/// The reason why the host did not run the command.
enum Attempt {
    /// The real shell runs it, from this process.
    Locally {
        /// This process may not use sockets.
        lacks_sockets: bool,
    },
    /// The real shell runs it in this process, and the host has the report.
    Told,
    Absent(Notice),
    /// Nothing runs.
    Failed(Notice),
}

pub(crate) fn run(argv: &[&'static CStr], env: &[&'static CStr]) -> ! {
    let notice = start(argv, env);
    notice::tell(&notice);
    sys::exit(notice.code)
}

/// Carries out the shell's call. Returns only if something failed.
fn start(argv: &[&'static CStr], env: &[&'static CStr]) -> Notice {
    let options = ShimOptions::find(env.iter().copied());
    if let Some(call) = DirectCall::read(argv) {
        return direct::start(call, env, options);
    }
    let name = argv.first().copied().unwrap_or_default();
    let found = kind_of(name, &options).and_then(|kind| Ok((kind, shell::find(kind, options.shell, env)?)));
    let (kind, shell) = match found {
        Ok(found) => found,
        Err(notice) => return notice,
    };
    let real = Real { path: shell.to_bytes(), is_chosen: !given(options.shell).is_empty() };
    let real_name = kind.real_name(name.to_bytes(), &real, |name| shell::leads_to_shim(kind, name));
    let real_name = real_name.map(|name| CString::new(name).expect("made of C strings"));
    let renamed: Vec<&CStr>;
    let argv = match &real_name {
        None => argv,
        Some(real) => {
            renamed = [real.as_c_str()].into_iter().chain(argv.iter().skip(1).copied()).collect();
            &renamed
        }
    };
    let invocation = ShimCall { argv, env, options, kind, shell, direct: None };
    let inside = inside::judge(given(options.inside));
    if inside == Inside::Yes || report::is_in_reported_run(&options) {
        return shell::become_shell(shell, argv, env);
    }
    let arguments = || argv.iter().map(|argument| argument.to_bytes());
    let mut standard = StandardStreams::inspect();
    let pipe_decides = given(options.fed) == FED_IF_PIPE.as_bytes();
    let is_fed = given(options.fed) == b"1" || (pipe_decides && standard.has_piped_input());
    if !is_command(kind, arguments()) && !is_fed {
        if pipe_decides {
            return shell::become_shell(shell, argv, &shell::without_agent(env));
        }
        let is_interactive = standard.is_at_terminal() && is_interactive(arguments());
        if is_interactive && given(options.interactive) != b"1" {
            invocation.tell_host(|whoami, words| FromShim::Interactive { whoami: Rest(whoami) }.encode(words));
        }
        if !is_interactive || given(options.interactive) != b"1" {
            return shell::become_shell(shell, argv, env);
        }
    }
    let choices = match choices(&options) {
        Ok(choices) => choices,
        Err(notice) => return notice,
    };
    // Done early, because the parent's death goes unnoticed until then.
    let mut lifeline = Lifeline::find(env, &options);
    let (lacks_sockets, unseen) = match invocation.attempt(&mut standard, choices, &mut lifeline) {
        Ok(never) => match never {},
        Err(Attempt::Locally { lacks_sockets: true }) => (true, Some(UnseenReason::Sandboxed)),
        // The host that refused the command shows it.
        Err(Attempt::Locally { lacks_sockets: false }) => (false, None),
        Err(Attempt::Absent(_)) if choices.fallback || inside == Inside::Unseen => (false, Some(UnseenReason::NoHost)),
        Err(Attempt::Told) => return invocation.become_shell(),
        Err(Attempt::Absent(notice) | Attempt::Failed(notice)) => return notice,
    };
    let reporting = match choices.reports {
        true => report::begin(&invocation, lacks_sockets, inside == Inside::Unseen),
        false => Reporting::Nobody,
    };
    invocation.run_here(reporting, unseen, &standard, lifeline)
}

/// The shell that this process stands for, by its `argv[0]` or else its path; sh if neither names a shell.
fn kind_of(name: &CStr, options: &ShimOptions<'_>) -> Result<Shell, Notice> {
    let names = [name.to_bytes(), sys::executed_path().to_bytes()];
    let is_chosen = !given(options.shell).is_empty();
    match (names.into_iter().find_map(Shell::named), names.into_iter().find_map(other_shell)) {
        (Some(kind), _) => Ok(kind),
        (None, Some(other)) if !is_chosen => Err(shell::cannot_be(other)),
        (None, _) => Ok(Shell::Sh),
    }
}

/// The options with a choice of words.
fn choices(options: &ShimOptions<'_>) -> Result<Choices, Notice> {
    options.judge().map_err(|error| {
        let hint = format_args!("correct {}, or unset it", error.name);
        Notice::new(OWN_FAILURE, error, hint)
    })
}

impl ShimCall<'_> {
    /// Lets the host run the command, and exits with its code. `lifeline` stays for the caller if nothing runs.
    fn attempt(
        &self,
        standard: &mut StandardStreams,
        choices: Choices,
        lifeline: &mut Lifeline,
    ) -> Result<Infallible, Attempt> {
        standard.plug().map_err(|error| failed("/dev/null cannot be opened", error))?;
        let inherited = collect::inherited();
        let directory = collect::working_directory().map_err(|error| match error {
            Errno::EACCES => {
                // The host could not enter its directory.
                self.tell_host(|whoami, words| encode_left(whoami, self.argv.iter().copied(), words));
                Attempt::Told
            }
            error => failed("the working directory cannot be opened", error),
        })?;
        let socket = connect::to_host(&self.options).map_err(|no_host| match no_host {
            NoHost::Absent(notice) => Attempt::Absent(notice),
            NoHost::Denied => Attempt::Locally { lacks_sockets: true },
            NoHost::Unfit(notice) => Attempt::Failed(notice),
        })?;
        if inherited.len() > INHERITED_MAX {
            return Err(Attempt::Failed(too_many(inherited.len())));
        }
        let mut attributes = collect::attributes(standard, inherited);
        self.choose(choices, standard, &mut attributes);
        let terminal = ControllingTerminal::of(&attributes.stdio);
        let mut descriptors: Vec<RawFd> = Vec::with_capacity(sys::DESCRIPTORS_MAX);
        descriptors.push(directory.as_raw_fd());
        descriptors.extend(standard.has_stdin().then_some(libc::STDIN_FILENO));
        let brought = terminal.as_ref().filter(|_| attributes.stdio.brings_terminal());
        descriptors.extend(brought.map(ControllingTerminal::descriptor));
        descriptors.extend_from_slice(&attributes.inherited);
        let signals = SignalMask::block(attributes.ignored, standard.window().is_some());
        attributes.blocked = signals.inherited;

        let rules = self.rules();
        let mut request = Vec::with_capacity(16 << 10);
        request.extend_from_slice(&Hello::OURS.encode());
        let program = self.direct.map_or(self.shell, |call| call.argv[0]);
        let names = (given(self.options.whoami), program);
        let env = rules.apply(self.env.iter().copied());
        encode_run(&attributes, names, self.argv.iter().copied(), env.into_iter(), &mut request).map_err(|error| {
            let problem = format_args!("the command and its environment are too long: {error}");
            Attempt::Failed(Notice::without_hint(NOT_EXECUTABLE, problem))
        })?;

        let signal_watch = sys::signal_descriptor(signals.forwarded);
        let signal_watch = signal_watch.map_err(|error| failed("signals cannot be watched", error))?;
        sys::hide_arguments();
        let sent = send_request(&socket, &request, &descriptors, &signals)?;
        let outputs = [CallerStream::Out, CallerStream::Err].map(|stream| OutputDescriptor::new(stream, standard));
        let client = Client::new(socket, signal_watch, std::mem::take(lifeline), outputs);
        let client = client.for_call(self.direct.as_ref());
        let Attributes { inherited, stdio, .. } = attributes;
        let held = Held { directory, has_stdin: stdio.stdin, inherited };
        let mut client = client.with_terminals(terminal, standard.window()).with_held(held, stdio.same_output);
        client.queue_request(&request[sent..]);
        match client.run() {
            ClientEnd::Exit(code) => sys::exit(code),
            ClientEnd::Die { signal, is_group } => sys::die_by(signal, is_group),
            ClientEnd::Failed(notice) => Err(Attempt::Failed(notice)),
            ClientEnd::Refused(came) => {
                // The command has not run yet. The signals are for the shell that runs it now.
                *lifeline = client.take_lifeline();
                sys::raise(came);
                signals.restore();
                Err(Attempt::Locally { lacks_sockets: false })
            }
        }
    }
}

impl<'a> ShimCall<'a> {
    /// Runs the command in this process, or in a child that is reported. Returns only if that failed.
    fn run_here(
        &self,
        reporting: Reporting,
        unseen: Option<UnseenReason>,
        standard: &StandardStreams,
        lifeline: Lifeline,
    ) -> Notice {
        match reporting {
            Reporting::Own(reporter) => {
                let (entry, rules) = (reporter.entry(self.options.socket), self.rules());
                let env = report::environment(&rules, self.env, &entry);
                let become_shell = || shell::become_shell(self.shell, self.argv, &env);
                local_run::run(*reporter, standard, lifeline, become_shell);
            }
            Reporting::Above => {}
            Reporting::Nobody => unseen.into_iter().for_each(|reason| unseen::leave(self, reason)),
        }
        self.become_shell()
    }

    /// Becomes the real shell, which runs the command. Returns only if that failed.
    fn become_shell(&self) -> Notice {
        shell::become_shell(self.shell, self.argv, &self.rules().apply_in_place(self.env))
    }

    /// Adds the choices of the options and of a direct call.
    fn choose(&self, choices: Choices, standard: &StandardStreams, attributes: &mut Attributes) {
        (attributes.tty, attributes.sanitize) = (choices.tty, choices.sanitize);
        attributes.extras.live = choices.live;
        attributes.extras.keeps_nothing = choices.keeps_nothing;
        attributes.extras.agent = given(self.options.run_agent).to_vec();
        attributes.extras.budget = choices.budget.map(|bytes| OutputBudget { bytes, is_file: standard.is_file() });
        if let Some(call) = &self.direct {
            call.apply(attributes);
        }
    }

    /// The rules for the environment's journey.
    fn rules(&self) -> Rules<'a> {
        let value = |name| self.env.iter().find_map(|entry| entry.to_bytes().strip_prefix(name)).unwrap_or_default();
        let named = value(b"SHELL=".as_slice());
        let link = if shell::leads_to_shim(self.kind, named) { named } else { &[] };
        let path = shell::path_without_links(value(b"PATH="));
        // The value that `rexec run` has found there, unless a shell with a link in its SHELL has run it.
        let own = own_value(self.env, b"SHELL");
        let own = if own.is_empty() || shell::leads_to_shim(self.kind, own) { self.shell.to_bytes() } else { own };
        let rules = Rules::new(own, given(self.options.env_drop)).with_link(link);
        rules.undoing(RunChanges(given(self.options.run_set)), path)
    }

    /// Reports to the host, if there is one, that something runs in this process.
    #[cold]
    fn tell_host(&self, encode: impl FnOnce(&[u8], &mut Vec<u8>)) {
        let Ok(socket) = connect::to_host(&self.options) else { return };
        let mut words = Hello::OURS.encode().to_vec();
        encode(given(self.options.whoami), &mut words);
        let fd = socket.as_raw_fd();
        if sys::send(fd, &words).is_ok_and(|sent| sent == words.len()) {
            // A connection that closes before the host has read the request would count as aborted.
            let _ = sys::poll(&mut [sys::watch(fd, libc::POLLRDHUP)], TELL_PATIENCE_MS);
        }
    }
}

/// The inherited signal mask, and the signals added to it.
struct SignalMask {
    inherited: SignalSet,
    forwarded: SignalSet,
}

impl SignalMask {
    /// Blocks the forwarded signals: those that the caller does not ignore, and SIGCONT, which acts even when ignored.
    fn block(ignored: SignalSet, has_window: bool) -> Self {
        let resized = if has_window { bit(sys::WINCH) } else { 0 };
        let forwarded = sys::PASSED_ON & !ignored | bit(sys::CONT) | resized;
        Self { inherited: sys::block_signals(forwarded | sys::WRITE_ERRORS), forwarded }
    }

    /// Gives pending signals the effect that they would have had on the real shell.
    fn restore(&self) {
        sys::restore_mask(self.inherited);
    }
}

/// Sends the first part of the request with the descriptors. Returns its size in bytes.
fn send_request(
    socket: &OwnedFd,
    request: &[u8],
    descriptors: &[RawFd],
    signals: &SignalMask,
) -> Result<usize, Attempt> {
    let mut retries = 0;
    loop {
        match sys::send_with_descriptors(socket.as_raw_fd(), request, descriptors) {
            Ok(sent) => return Ok(sent),
            Err(Errno::EINTR) => {}
            // The limit counts descriptors in flight from all processes of this user.
            Err(Errno::ETOOMANYREFS | Errno::EAGAIN) if retries < IN_FLIGHT_RETRIES_MAX => {
                retries += 1;
                // Nothing runs yet, so a signal acts on this process as it would on the real shell.
                signals.restore();
                sys::pause(IN_FLIGHT_PAUSE_MS);
                sys::block_signals(signals.forwarded | sys::WRITE_ERRORS);
            }
            Err(Errno::EPERM | Errno::EACCES) => {
                signals.restore();
                return Err(Attempt::Locally { lacks_sockets: true });
            }
            Err(error) => return Err(failed("the command cannot be sent to rexec-host", error)),
        }
    }
}

#[cold]
fn failed(what: &str, error: Errno) -> Attempt {
    Attempt::Failed(Notice::new(
        OWN_FAILURE,
        format_args!("{what}: {}", error.desc()),
        "nothing was run; run the command again, and restart rexec-host if it fails again",
    ))
}

#[cold]
fn too_many(count: usize) -> Notice {
    Notice::new(
        OWN_FAILURE,
        format_args!("the command would inherit {count} descriptors besides 0, 1 and 2, more than {INHERITED_MAX}"),
        "close those it does not need, or mark them close-on-exec",
    )
}
