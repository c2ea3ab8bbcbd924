//! The host's program; everything is in the library.

fn main() -> std::process::ExitCode {
    rexec_host::cli::host::main()
}
