//! JSON-RPC on the host's socket: the exchanges of the manual, what each method does, and clients that are slow, dead or
//! malicious.

pub(crate) mod client;
mod documented;
mod elder;
mod masked;
mod misbehaving;
mod openrpc;
mod output;
mod past;
mod pipelined;
mod refused;
mod resumed;
mod runs;
pub(crate) mod terminals;
