//! Faults from outside: shortages, peers that misbehave, consoles that are stuck, processes that cannot be killed, and
//! every limit.

mod consoles;
mod farewells;
mod limits;
mod peers;
mod shortages;
mod trees;
mod turns;
