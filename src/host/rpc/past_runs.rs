//! Questions about the past, which a `rexec` answers.

use super::Requester;
use super::serve::RpcService;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::history::{PastOutputParams, PastQuestion, PastRunParams, PastRunsParams};
use crate::front::rpc::methods::{Serve, Served, method};

impl RpcService<'_> {
    fn ask(&mut self, to: &Requester, question: PastQuestion) -> Result<(), RpcError> {
        self.rpc.lookups.add(to.clone(), question.checked()?, self.commands.turn.now)?;
        self.rpc.meet(to.peer).waiting += 1;
        Ok(())
    }
}

impl Serve<method::PastRuns, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: PastRunsParams) -> Served<method::PastRuns> {
        self.ask(to, params.question()).map(|()| None)
    }
}

impl Serve<method::PastRun, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: PastRunParams) -> Served<method::PastRun> {
        let session = self.commands.recorder.session();
        self.ask(to, params.question(session.as_deref())).map(|()| None)
    }
}

impl Serve<method::PastOutput, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: PastOutputParams) -> Served<method::PastOutput> {
        let session = self.commands.recorder.session();
        self.ask(to, params.question(session.as_deref())).map(|()| None)
    }
}
