//! Random numbers from a seed, so that a failure can be repeated, and loops that use a new seed each round.

use std::time::{Duration, Instant};

/// Runs `body` with ever new dice for a fixed number of rounds, or for the time that `REXEC_FUZZ_SECONDS` asks for; the
/// answer is the number of rounds. When one panics, its seed is told.
pub(crate) fn rounds(normally: u64, mut body: impl FnMut(&mut Dice)) -> u64 {
    let asked: Option<u64> = std::env::var("REXEC_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let start = Instant::now();
    let mut round = Round(0);
    let more = |round: &Round| match asked {
        Some(seconds) => start.elapsed() < Duration::from_secs(seconds),
        None => round.0 < normally,
    };
    while more(&round) {
        round.0 += 1;
        body(&mut Dice::new(round.0));
    }
    if asked.is_some() {
        tell(&format!("{}: {} rounds", std::thread::current().name().unwrap_or_default(), round.0));
    }
    round.0
}

/// The number of a round, which is its seed.
struct Round(u64);

impl Drop for Round {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tell(&format!("the seed of this round is {}", self.0));
        }
    }
}

#[expect(clippy::print_stderr, reason = "what a person needs to know of a long or failed loop")]
pub(crate) fn tell(what: &str) {
    eprintln!("{what}");
}

#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Odd, so never zero, and far apart for seeds that are close.
        Self((seed << 1 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next number (xorshift64).
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() >> 8).expect("usize has 64 bits") % bound
    }

    /// So many bytes, each from `from` to `to`.
    pub(crate) fn bytes(&mut self, count: usize, from: u8, to: u8) -> Vec<u8> {
        let span = usize::from(to - from) + 1;
        (0..count).map(|_| from + u8::try_from(self.below(span)).expect("a span of bytes")).collect()
    }

    /// Cuts bytes into pieces of any size, most of them small.
    pub(crate) fn pieces<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let most = [1, 4, 40, 400][self.below(4)];
            let (piece, tail) = rest.split_at((1 + self.below(most)).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        pieces
    }
}
