//! Random numbers from a seed, so that a failure can be had again.

#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
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
}
