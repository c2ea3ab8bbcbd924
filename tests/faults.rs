//! Faults from outside: shortages, peers that misbehave, consoles that are stuck, processes that cannot be killed, and
//! every limit.

#[expect(dead_code, reason = "every test file uses its part of the harness")]
mod support;

#[path = "faults/consoles.rs"]
mod consoles;
#[path = "faults/farewells.rs"]
mod farewells;
#[path = "faults/limits.rs"]
mod limits;
#[path = "faults/peers.rs"]
mod peers;
#[path = "faults/shortages.rs"]
mod shortages;
#[path = "faults/trees.rs"]
mod trees;
#[path = "faults/turns.rs"]
mod turns;
