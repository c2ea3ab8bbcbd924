//! Speed of the redactor: without known values, and with those of five variables, next to a scan and a copy.

use std::hint::black_box;

use rexec_host::text::encode::base64;
use rexec_host::text::redact::Redactor;

use super::{INPUT_BYTES, ROUNDS, cpu_time, cut, low, median};

/// Secrets as in a coding agent's environment.
const VARIABLES: [(&str, &str); 5] = [
    ("GITHUB_TOKEN", "ghp_Zk3mVq8sT1xYb6LwPd0RcJf4HnUo7GaE2iSv"),
    ("DATABASE_PASSWORD", "correct-horse-battery"),
    ("OPENAI_API_KEY", "sk-proj-9fKq2LmX7vTzR4bWc8YhJd3NpEs6UaGo"),
    ("SESSION_SECRET", "5d41402abc4b2a76b9719d911017c592"),
    ("NPM_TOKEN", "npm_p8Q3rT6yU1iO4aS7dF0gH2jK5lZ9xC3vB6nM"),
];

/// Numbered lines of a few short words.
pub(super) fn plain() -> Vec<u8> {
    (0..4000)
        .map(|n| format!("line {n} of some output that nobody has to read twice, {}\n", n * 7919 % 100_003))
        .collect::<String>()
        .into_bytes()
}

/// Lines of a server's log.
pub(super) fn log() -> Vec<u8> {
    let line = |n: usize| {
        let (method, path) = [("GET", "/api/v1/users"), ("POST", "/login"), ("GET", "/static/app.js")][n % 3];
        let level = ["INFO", "DEBUG", "WARN"][n % 7 % 3];
        format!(
            "2026-03-{:02}T{:02}:{:02}:07.{:03}Z {level} worker-{} http: {method} {path}/{} status=200 \
             bytes={} duration={}ms peer=10.0.{}.{}\n",
            n % 28 + 1,
            n % 24,
            n % 60,
            n % 1000,
            n % 16,
            n * 7919 % 100_003,
            n * 31 % 65_536,
            n % 400,
            n % 256,
            n * 3 % 256,
        )
    };
    (0..4000).map(line).collect::<String>().into_bytes()
}

/// Random bytes in lines of base64.
pub(super) fn base64_lines() -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut line = || {
        let bytes: Vec<u8> = (0..57)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state.to_be_bytes()[0]
            })
            .collect();
        base64(&bytes) + "\n"
    };
    (0..4000).map(|_| line()).collect::<String>().into_bytes()
}

/// Lines of JSON.
pub(super) fn json() -> Vec<u8> {
    let entry = |n: usize| {
        format!(
            "{{\"id\": {n}, \"name\": \"package-{}\", \"version\": \"{}.{}.{}\", \"path\": \"node_modules/package-{}\", \
             \"dependencies\": {{\"left\": \"^{}.0.0\"}}, \"size\": {}, \"dev\": {}}}\n",
            n * 17 % 911,
            n % 9,
            n % 20,
            n % 5,
            n * 17 % 911,
            n % 7,
            n * 7919 % 100_003,
            n.is_multiple_of(2),
        )
    };
    (0..4000).map(entry).collect::<String>().into_bytes()
}

/// Prints the speeds of one input.
#[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
pub(super) fn measure(name: &str, input: &[u8], piece: usize) {
    let bytes: Vec<u8> = input.iter().copied().cycle().take(INPUT_BYTES / 2).collect();
    let pieces = cut(&bytes, piece);
    let redactors = [Redactor::default(), Redactor::new(VARIABLES)];
    let mut out = Vec::with_capacity(4 * piece);
    let mut speeds = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (contender, speeds) in speeds.iter_mut().enumerate() {
            let mut redactor = redactors.get(contender).map(Redactor::fresh);
            let start = cpu_time();
            for piece in &pieces {
                out.clear();
                match &mut redactor {
                    Some(redactor) => redactor.push(piece, &mut out),
                    None => {
                        black_box(memchr::memchr(0x1b, piece));
                        out.extend_from_slice(piece);
                    }
                }
                black_box(&mut out);
            }
            speeds.push(bytes.len() as f64 / (cpu_time() - start).as_secs_f64() / 1e9);
        }
    }
    let lows = speeds.clone().map(low);
    print!("{name:16}");
    for ((contender, speed), low) in
        ["no variable", "five variables", "scan+copy"].iter().zip(speeds.map(median)).zip(lows)
    {
        print!("  {contender} {speed:.2}/{low:.2}");
    }
    println!();
}
