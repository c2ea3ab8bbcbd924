//! From start to end: kills, signals, shutdown, crashes, what is left behind, and many runs at once.

mod endings;
mod kills;
mod leftovers;
mod loads;
mod orders;
mod shutdown;
