//! Black box.

mod chaos;
mod clocks;
mod conformance;
mod console;
mod errors;
mod faults;
mod fuzz;
mod hygiene;
mod journal;
mod lifecycle;
mod regressions;
mod relay;
mod sandbox;
mod socket;
mod support;
