//! Records that belong to no start and no end: what people typed, and commands that ran without a host. They are kept until
//! the file has them, for the next recorder.
//!
//! Invariants: the recorder acknowledges them in the order in which they were sent; what is kept is bounded; what may be
//! lost is counted.

use std::collections::VecDeque;

use crate::limits;

#[derive(Debug, Default)]
pub(super) struct Asides {
    /// Their frames, oldest first.
    kept: VecDeque<Vec<u8>>,
    /// How many later ones were sent and not kept, because there are too many.
    unkept: usize,
}

impl Asides {
    /// Keeps a record's frame, which was sent unless the recorder `is_down`. Returns how many records are given up.
    pub(super) fn keep(&mut self, frame: Vec<u8>, is_down: bool) -> u64 {
        // The order must stay, so nothing is kept behind one that is not.
        let has_room = self.unkept == 0 && self.kept.len() < limits::RECORDER_ASIDES_MAX;
        if has_room {
            self.kept.push_back(frame);
        } else if !is_down {
            self.unkept += 1;
        }
        u64::from(!has_room && is_down)
    }

    /// Notes that the file has this many more.
    pub(super) fn on_done(&mut self, count: usize) {
        let of_kept = count.min(self.kept.len());
        self.kept.drain(..of_kept);
        self.unkept = self.unkept.saturating_sub(count - of_kept);
    }

    /// Notes that the recorder has died. Returns how many records are given up.
    pub(super) fn on_down(&mut self) -> u64 {
        std::mem::take(&mut self.unkept) as u64
    }

    pub(super) fn replay(&self, out: &mut Vec<u8>) {
        self.kept.iter().for_each(|frame| out.extend_from_slice(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_lacks_is_sent_again_in_order_and_the_rest_is_counted() {
        let mut asides = Asides::default();
        let sent_again = |asides: &Asides| {
            let mut out = Vec::new();
            asides.replay(&mut out);
            out
        };
        assert_eq!((1..=4).map(|number| asides.keep(vec![number], false)).sum::<u64>(), 0);
        asides.on_done(2);
        assert_eq!((asides.on_down(), sent_again(&asides)), (0, vec![3, 4]));
        assert_eq!(asides.keep(vec![5], true), 0, "there is room while no recorder is there");
        assert_eq!(sent_again(&asides), [3, 4, 5]);
        let rest = limits::RECORDER_ASIDES_MAX - 3;
        assert_eq!((0..rest).map(|_| asides.keep(vec![6], false)).sum::<u64>(), 0);
        assert_eq!(asides.keep(vec![7], false), 0, "it was sent, and may reach the file");
        asides.on_done(1);
        assert_eq!(asides.keep(vec![8], false), 0, "not kept in front of one that is not kept");
        assert_eq!(sent_again(&asides).len(), limits::RECORDER_ASIDES_MAX - 1);
        assert_eq!(asides.on_down(), 2);
        assert_eq!(asides.keep(vec![9], true), 0);
        assert_eq!(asides.keep(vec![9], true), 1, "there is neither room nor a recorder");
        asides.on_done(limits::RECORDER_ASIDES_MAX);
        assert_eq!((sent_again(&asides), asides.keep(vec![1], false)), (Vec::new(), 0));
    }
}
