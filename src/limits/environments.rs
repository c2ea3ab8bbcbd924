//! The bounds of the environments that the journal keeps, so that runs can be repeated.

/// The longest value that is kept of a variable, bytes. Of a longer one only the name is kept.
pub const JOURNAL_VALUE_BYTES: usize = 8 << 10;
/// The longest name that is kept, bytes. Variables with longer names are left out without a word.
pub const JOURNAL_NAME_BYTES: usize = 128;
/// All values of one environment, bytes. Of those that do not fit only the names are kept.
pub const JOURNAL_ENVIRONMENT_BYTES: usize = 48 << 10;
/// The most variables of one environment. Further ones are left out without a word.
pub const JOURNAL_VARIABLES_MAX: usize = 1_024;
/// How much a run's environment may differ from one that the file has, bytes. Beyond it the file gets the whole one.
pub const JOURNAL_ENVIRONMENT_CHANGES_BYTES: usize = 1 << 10;
/// Environments of a file that later ones are compared with, newest first.
pub const JOURNAL_ENVIRONMENTS_KNOWN: usize = 8;
/// All environments of a file, bytes. Runs that need a further one are recorded without theirs.
pub const JOURNAL_ENVIRONMENTS_BYTES: usize = 4 << 20;
