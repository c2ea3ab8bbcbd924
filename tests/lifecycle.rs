//! From start to end: kills, signals, shutdown, crashes, what is left behind, and many runs at once.

#[expect(dead_code, reason = "every test file uses its part of the harness")]
mod support;

#[path = "lifecycle/endings.rs"]
mod endings;
#[path = "lifecycle/kills.rs"]
mod kills;
#[path = "lifecycle/leftovers.rs"]
mod leftovers;
#[path = "lifecycle/loads.rs"]
mod loads;
#[path = "lifecycle/orders.rs"]
mod orders;
#[path = "lifecycle/shutdown.rs"]
mod shutdown;
