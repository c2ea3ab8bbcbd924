//! Faults from outside: shortages, misbehaving peers, stuck consoles, processes that cannot be killed, and every limit.

mod closing;
mod consoles;
mod doors;
mod executing;
mod farewells;
mod limits;
pub(crate) mod peers;
mod shortages;
mod system_calls;
mod trees;
mod turns;
