//! From start to end: kills, signals, shutdown, crashes, leftovers, and many commands at once.

mod endings;
mod kills;
mod leftovers;
mod lifelines;
mod loads;
mod orders;
mod reuse;
mod shutdown;
mod stoppers;
