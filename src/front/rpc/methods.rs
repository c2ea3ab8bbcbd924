//! The methods of JSON-RPC, in one table: name, parameters, answer, what a caller needs to be allowed, what it does.
//!
//! The table makes the host's dispatch, the answer to `hello`, the calls of clients and the document of `rexec schema
//! rpc`, and a test compares the list in `rexec help protocol` with it. A method's parameters and its answer are types of
//! the files beside this one, and the host serves it in an `impl Serve<method::…>`, without which the table does not
//! compile.

use serde::Serialize;
use serde_json::{Map, Value};

use super::answers::{
    Accepted, Answered, AskList, Cancelled, Done, Greeting, LeftList, Met, OutputAnswer, PastLines, RunList, Started,
    Subscribed, WholeAnswer,
};
use super::error::RpcError;
use super::history::{PastOutputParams, PastRunParams, PastRunsParams};
use super::listing::ListedRun;
use super::params::{
    AskParams, CancelParams, DecideParams, HelloParams, ListParams, NoParams, OutputParams, ResizeParams, RunParams,
    SignalParams, SubscribeParams, UndoParams, UnsubscribeParams, WaitParams, WriteParams, read,
};
use super::projects::{EndedSession, ListedSession, SessionList, SessionParams, SessionVariables};
use super::shape::{Shape, shape_of};
use super::start::{StartParams, StreamMode};
use crate::front::answer::HostStatus;
use crate::front::projects::ProjectDefinition;

/// A method, as a type that stands for it.
pub trait RpcMethod {
    const NAME: &'static str;
    type Params;
    type Answer: Serialize;
}

/// What a caller must be allowed to do, so that it may call a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Run a command.
    Start,
    /// Type for commands, or set what they begin with.
    Decide,
    /// Say whether held ones begin, and which rules count: the same, and belong to no agent.
    Answer,
    /// See, pause or end them.
    Supervise,
}

/// The outcome of a call: its answer, or `None` when that comes later or has been given.
pub type Served<M> = Result<Option<<M as RpcMethod>::Answer>, RpcError>;

/// The service of one method. `To` says whom to answer.
pub trait Serve<M: RpcMethod, To> {
    /// Does what a call asks.
    ///
    /// # Errors
    /// The call is refused.
    fn serve(&mut self, to: &To, params: M::Params) -> Served<M>;
}

/// A host that answers calls.
pub trait AnswerCalls<To> {
    fn answer<M: RpcMethod>(&mut self, to: &To, answer: &M::Answer);
}

/// A row of the table, as a document shows it.
#[derive(Debug)]
pub struct MethodRow {
    pub name: &'static str,
    /// What it does.
    pub text: &'static str,
    pub params: fn() -> Shape,
    /// The name of the answer's type.
    pub answer: &'static str,
}

macro_rules! rpc {
    (
        $(#[doc = $text:literal] $name:literal $method:ident($params:ty) -> $answer:ty, $permission:ident;)+
        $($alias:literal = $of:ident $(, $change:expr)?;)+
    ) => {
        /// A type for each method.
        pub mod method {
            $(#[doc = $text] #[derive(Debug)] pub struct $method;)+
        }

        $(impl RpcMethod for method::$method {
            const NAME: &'static str = $name;
            type Params = $params;
            type Answer = $answer;
        })+

        /// A call: its method and its parameters.
        #[derive(Debug)]
        pub enum Call {
            $(#[doc = $text] $method(Box<$params>),)+
        }

        /// The names of all methods.
        pub const METHODS: &[&str] = &[$($name,)+ $($alias),+];

        pub const METHOD_ROWS: &[MethodRow] = &[$(
            MethodRow { name: $name, text: $text, params: shape_of::<$params>, answer: stringify!($answer) },
        )+];

        /// The other names of methods, each with its method.
        pub const ALIASES: &[(&str, &str)] = &[$(($alias, method::$of::NAME)),+];

        impl Call {
            /// The call of the method of this name; `None` for an unknown method.
            pub(super) fn named(name: &str, params: Map<String, Value>) -> Option<Result<Self, RpcError>> {
                Some(match name {
                    $($name => read(params).map(Self::$method),)+
                    $($alias => {
                        let params = read(params);
                        $(let params = params.map(|params| altered(params, $change));)?
                        params.map(Self::$of)
                    })+
                    _ => return None,
                })
            }

            #[must_use]
            pub fn permission(&self) -> Permission {
                match self {
                    $(Self::$method(_) => Permission::$permission,)+
                }
            }

            /// Has the host serve the call, and answers it unless the answer comes later.
            ///
            /// # Errors
            /// The call is refused.
            pub fn serve_by<To, H>(self, host: &mut H, to: &To) -> Result<(), RpcError>
            where
                H: AnswerCalls<To> $(+ Serve<method::$method, To>)+,
            {
                match self {
                    $(Self::$method(params) => {
                        if let Some(answer) = Serve::<method::$method, To>::serve(host, to, *params)? {
                            host.answer::<method::$method>(to, &answer);
                        }
                    })+
                }
                Ok(())
            }
        }
    };
}

rpc! {
    /// Gives the client's name, for its runs.
    "hello" Hello(HelloParams) -> Greeting, Supervise;
    /// Runs a command; the answer comes at its end.
    "exec.run" Run(StartParams) -> WholeAnswer, Start;
    /// Starts a command; the answer comes at once.
    "exec.start" Start(StartParams) -> Started, Start;
    /// Starts a command that outlives the connection.
    "exec.runBackground" RunBackground(StartParams) -> Started, Start;
    /// Asks the person, and brings back what a run destroyed.
    "exec.undo" Undo(UndoParams) -> Started, Start;
    /// Writes to a run's input.
    "exec.write" Write(WriteParams) -> Accepted, Decide;
    /// Changes the size of a run's terminal.
    "exec.resize" Resize(ResizeParams) -> Done, Decide;
    /// Signals a run.
    "exec.signal" Signal(SignalParams) -> Done, Supervise;
    /// Stops all processes of a run until it is resumed.
    "exec.pause" Pause(RunParams) -> Done, Supervise;
    /// Lets a paused run go on.
    "exec.resume" Resume(RunParams) -> Done, Supervise;
    /// Ends a run, or what it left running.
    "exec.cancel" Cancel(CancelParams) -> Cancelled, Supervise;
    /// Decides whether a held run begins, or the next one of a command; for a person's own clients.
    "exec.decide" Decide(DecideParams) -> Answered, Answer;
    /// Lists what a person is asked, and what nobody answered.
    "exec.asks" ListAsks(AskParams) -> AskList, Supervise;
    /// Reads a run's output.
    "exec.output" Output(OutputParams) -> OutputAnswer, Supervise;
    /// Waits for something about a run.
    "exec.wait" Wait(WaitParams) -> Met, Supervise;
    /// Returns the facts about a run.
    "exec.status" Status(RunParams) -> ListedRun, Supervise;
    /// Lists the runs.
    "exec.list" List(ListParams) -> RunList, Supervise;
    /// Lists the ended runs that left processes running.
    "exec.left" ListLeft(NoParams) -> LeftList, Supervise;
    /// Reports events from now on.
    "events.subscribe" Subscribe(SubscribeParams) -> Subscribed, Supervise;
    /// Ends a subscription.
    "events.unsubscribe" Unsubscribe(UnsubscribeParams) -> Done, Supervise;
    /// Defines a project session.
    "session.create" CreateSession(ProjectDefinition) -> ListedSession, Decide;
    /// Lists the project sessions.
    "session.list" ListSessions(NoParams) -> SessionList, Supervise;
    /// Ends a project session.
    "session.destroy" DestroySession(SessionParams) -> EndedSession, Supervise;
    /// Returns the variables for the commands of a project session.
    "session.env" SessionEnv(SessionParams) -> SessionVariables, Decide;
    /// Pauses a project session.
    "session.suspend" SuspendSession(SessionParams) -> ListedSession, Supervise;
    /// Resumes a project session.
    "session.resume" ResumeSession(SessionParams) -> ListedSession, Supervise;
    /// Reads the files of rules again; for a person's own clients.
    "rules.reread" RereadRules(NoParams) -> Done, Answer;
    /// Lists runs of the past, as rexec log does.
    "history.log" PastRuns(PastRunsParams) -> PastLines, Supervise;
    /// Returns all that the journal knows of a run, as rexec show does.
    "history.show" PastRun(PastRunParams) -> PastLines, Supervise;
    /// Returns what a run wrote, as rexec out does.
    "history.out" PastOutput(PastOutputParams) -> PastLines, Supervise;
    /// Returns the host's state.
    "host.status" ReadHostStatus(NoParams) -> HostStatus, Supervise;

    "pty.spawn" = Start, |start: &mut StartParams| start.mode = StreamMode::Pty;
    "pty.write" = Write;
    "pty.resize" = Resize;
    "pty.close" = Cancel;
}

fn altered<P>(mut params: Box<P>, change: impl FnOnce(&mut P)) -> Box<P> {
    change(&mut params);
    params
}
