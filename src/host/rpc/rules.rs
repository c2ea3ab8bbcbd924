//! A person's client has changed the files of the rules.

use super::Requester;
use super::serve::RpcService;
use crate::front::rpc::answers::Done;
use crate::front::rpc::methods::{Serve, Served, method};
use crate::front::rpc::params::NoParams;

impl Serve<method::RereadRules, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, _: NoParams) -> Served<method::RereadRules> {
        self.rules.look_again(self.commands.turn.now, self.commands.screen);
        Ok(Some(Done {}))
    }
}
