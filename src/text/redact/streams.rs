//! The masker of a run's output, which comes on several streams.
//!
//! Each stream is masked by itself. Bytes that may begin a secret are held back, and the output of other streams waits for
//! them, up to a bound: so the order of the streams stays. A secret that is written to two streams in turns is not found.
//! But where a program writes its prompt to one stream and another one shows the answer, the answer is masked as the value
//! of a name in the prompt.

use super::Redactor;

/// Output of other streams that waits for the bytes held back of one, bytes. Beyond it that output goes first, so the
/// order of the streams is lost.
const WAITING_BYTES_MAX: usize = 4 << 10;

/// The maskers of a run's streams.
#[derive(Debug, Clone, Default)]
pub struct StreamRedactor {
    fresh: Redactor,
    /// What came before, which everybody has seen.
    before: Vec<u8>,
    /// One per stream, with the stream's number. There are at most three.
    streams: Vec<(u8, Redactor)>,
    /// The index of the stream of which bytes are held back.
    holder: Option<usize>,
    /// The other streams' masked output since then.
    waiting: Vec<u8>,
    /// The unfinished line of the stream that was held back last.
    asked: Option<AskedLine>,
    /// The masks of maskers that others have taken the place of.
    replaced: u64,
}

/// A line without an end, to which another stream may have the answer.
#[derive(Debug, Clone)]
struct AskedLine {
    /// The index of its stream.
    stream: usize,
    line: Vec<u8>,
    /// It has its answer, or is no prompt.
    is_answered: bool,
}

impl StreamRedactor {
    /// A masker of the secrets that this one knows.
    #[must_use]
    pub fn new(redactor: &Redactor) -> Self {
        Self { fresh: redactor.fresh(), ..Self::default() }
    }

    /// The same behind this text, in which nothing is masked any more.
    #[must_use]
    pub fn after(self, before: &[u8]) -> Self {
        Self { before: before.to_vec(), ..self }
    }

    /// Takes the next bytes of a stream, and appends the masked output that no longer waits.
    pub fn push(&mut self, stream: u8, bytes: &[u8], out: &mut Vec<u8>) {
        let at = self.streams.iter().position(|(number, _)| *number == stream).unwrap_or_else(|| {
            let mut redactor = self.fresh.fresh();
            let mut seen = Vec::new();
            redactor.push(&self.before, &mut seen);
            redactor.release(&mut seen);
            self.streams.push((stream, redactor));
            self.streams.len() - 1
        });
        // A line that goes on is another one.
        self.asked.take_if(|asked| asked.stream == at);
        if self.holder != Some(at) {
            self.note_prompt();
            self.answer_prompt(at);
        }
        if self.holder.is_some_and(|holder| holder != at) {
            self.streams[at].1.push(bytes, &mut self.waiting);
            if self.waiting.len() > WAITING_BYTES_MAX {
                self.let_wait_no_more(out);
            }
            return;
        }
        let before = out.len();
        self.streams[at].1.push(bytes, out);
        // Any output means that the bytes held back are decided.
        if out.len() > before || !self.streams[at].1.is_holding() {
            self.let_wait_no_more(out);
        } else {
            self.holder = Some(at);
        }
    }

    /// Remembers the line of which bytes are held back, before they go on.
    fn note_prompt(&mut self) {
        let Some(stream) = self.holder else { return };
        if self.asked.as_ref().is_some_and(|asked| asked.stream == stream) {
            return;
        }
        let mut line = Vec::new();
        self.streams[stream].1.clone().finish(&mut line);
        line.drain(..memchr::memrchr(b'\n', &line).map_or(0, |newline| newline + 1));
        let is_answered = !line.trim_ascii_end().ends_with(b":");
        self.asked = Some(AskedLine { stream, line, is_answered });
    }

    /// What a stream writes next may be the answer to another one's prompt: it is masked as if it stood behind that.
    fn answer_prompt(&mut self, at: usize) {
        let masker = &self.streams[at].1;
        let Some(asked) = self.asked.as_mut().filter(|asked| !asked.is_answered) else { return };
        if masker.is_holding() || masker.is_dropping() {
            return;
        }
        asked.is_answered = true;
        let mut behind = self.fresh.fresh();
        let mut shown = Vec::new();
        behind.push(&asked.line, &mut shown);
        behind.release(&mut shown);
        self.replaced += masker.count();
        self.streams[at].1 = behind;
    }

    /// Appends the output that waited. From now on output waits for the first stream of which bytes are held back.
    fn let_wait_no_more(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.waiting);
        self.holder = self.streams.iter().position(|(_, redactor)| redactor.is_holding());
    }

    /// Whether some of the output is held back or waits.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        !self.waiting.is_empty() || self.streams.iter().any(|(_, redactor)| redactor.is_holding())
    }

    /// How many bytes are held back of the stream that others wait for.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.holder.map_or(0, |holder| self.streams[holder].1.held_bytes())
    }

    /// Appends all that is held back, because somebody waits for it; see [`Redactor::release`].
    pub fn release(&mut self, out: &mut Vec<u8>) {
        self.note_prompt();
        self.end_all(Redactor::release, out);
    }

    /// Appends what is held back because no more has come for a while; see [`Redactor::relax`]. What waits for the rest of
    /// a secret goes on waiting.
    pub fn relax(&mut self, out: &mut Vec<u8>) {
        self.note_prompt();
        match self.holder {
            Some(holder) => {
                self.streams[holder].1.relax(out);
                if !self.streams[holder].1.is_holding() {
                    self.let_wait_no_more(out);
                }
            }
            None => self.streams.iter_mut().for_each(|(_, redactor)| redactor.relax(out)),
        }
    }

    /// A whole text with the same secrets masked.
    #[must_use]
    pub fn masked_text(&self, text: &str) -> String {
        self.fresh.masked_text(text)
    }

    /// What is held back or waits, as it would go on if no more came.
    #[must_use]
    pub fn held_back(&self) -> Vec<u8> {
        let mut held = Vec::new();
        self.clone().finish(&mut held);
        held
    }

    /// Ends the output: appends all that was held back or waited.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.asked = None;
        self.end_all(Redactor::finish, out);
    }

    /// Appends what is held back, in the order in which the streams wrote it, and what waited for it.
    fn end_all(&mut self, end: fn(&mut Redactor, &mut Vec<u8>), out: &mut Vec<u8>) {
        let holder = self.holder.take();
        if let Some(holder) = holder {
            end(&mut self.streams[holder].1, out);
        }
        out.append(&mut self.waiting);
        for at in (0..self.streams.len()).filter(|&at| Some(at) != holder) {
            end(&mut self.streams[at].1, out);
        }
    }

    /// The number of masks written so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.replaced + self.streams.iter().map(|(_, redactor)| redactor.count()).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The masked output of these writes.
    fn kept(writes: &[(u8, &str)]) -> String {
        let mut masks = StreamRedactor::default();
        let mut out = Vec::new();
        writes.iter().for_each(|(stream, text)| masks.push(*stream, text.as_bytes(), &mut out));
        masks.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bytes_that_are_held_back_keep_their_place() {
        assert_eq!(kept(&[(2, "three"), (1, "one\n")]), "threeone\n");
        assert_eq!(kept(&[(2, "to"), (1, "one"), (2, " much"), (1, "\n")]), "to muchone\n");
        assert_eq!(kept(&[(2, "to"), (1, "one"), (2, "m"), (1, "!")]), "tomone!");
        assert_eq!(kept(&[(1, "e"), (2, "7"), (0, "8\n"), (1, "\n")]), "e\n78\n");
        let long = "0123456789abcde\n".repeat(WAITING_BYTES_MAX / 16 + 1);
        assert!(kept(&[(2, "e"), (1, &long), (1, "last\n")]) == format!("{long}elast\n"));
    }

    /// Bash writes a prompt to standard error, and the terminal shows the answer.
    #[test]
    fn an_answer_is_masked_by_the_prompt_of_another_stream() {
        for cut in 0..=8 {
            let (first, rest) = "hunter-2".split_at(cut);
            let writes = [(2, "Password: "), (0, first), (0, rest), (0, "\r\nhunter-2 was read\r\n")];
            let writes: Vec<_> = writes.into_iter().filter(|(_, text)| !text.is_empty()).collect();
            assert_eq!(kept(&writes), "Password: «redacted:Password»\r\nhunter-2 was read\r\n", "{cut}");
        }
        assert_eq!(kept(&[(2, "Password: "), (0, "hunter-2")]), "Password: «redacted:Password»");
        assert_eq!(kept(&[(2, "Password: "), (0, "hun"), (2, "\n"), (0, "ter-2\n")]).matches("hun").count(), 0);
        assert_eq!(kept(&[(2, "Password: "), (0, "⟨typed⟩\r\n")]), "Password: ⟨typed⟩\r\n");
        assert_eq!(kept(&[(2, "name: "), (0, "ann\r\n"), (2, "tok"), (0, "x\n")]), "name: ann\r\ntokx\n");
    }

    /// Nothing that was written is lost or comes twice, whichever stream asks and whoever waited.
    #[test]
    fn a_prompt_of_another_stream_costs_no_output() {
        let (mut masks, mut out) = (StreamRedactor::default(), Vec::new());
        masks.push(1, b"key=", &mut out);
        masks.release(&mut out);
        masks.push(2, b"token12345 :", &mut out);
        masks.push(1, b"x\n", &mut out);
        masks.push(2, b"\n", &mut out);
        masks.push(1, b"what comes then is there\n", &mut out);
        masks.finish(&mut out);
        assert!(out.ends_with(b"what comes then is there\n"), "{}", out.escape_ascii());

        let (mut masks, mut out) = (StreamRedactor::default(), Vec::new());
        masks.push(2, b"Password: ", &mut out);
        masks.push(0, b"hun", &mut out);
        masks.relax(&mut out);
        masks.relax(&mut out);
        masks.push(0, b"ter-22\r\n", &mut out);
        masks.finish(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("Password: ").count(), 1, "{text}");
        assert!(!text.contains("ter-22"), "{text}");

        let long = format!("password={}", "aB3x".repeat(4_096));
        let writes = [(1, long.as_str()), (2, "Password: "), (1, "zz\n"), (2, "\n"), (1, "0123456789 is no secret\n")];
        assert!(kept(&writes).ends_with("0123456789 is no secret\n"));
    }

    /// Each door lets a prompt go at once, so nobody holds it when the answer comes.
    #[test]
    fn an_answer_is_masked_behind_a_prompt_that_was_let_go() {
        let (mut masks, mut out) = (StreamRedactor::default(), Vec::new());
        masks.push(2, b"Password: ", &mut out);
        masks.release(&mut out);
        masks.push(0, b"hunter-22\r\n", &mut out);
        masks.finish(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "Password: «redacted:Password»\r\n");
    }

    #[test]
    fn a_secret_is_found_whatever_other_streams_write_meanwhile() {
        let token = format!("ghp_{}", "aB3".repeat(12));
        for at in 1..token.len() {
            let (first, rest) = token.split_at(at);
            for other in ["other\n", "gh", &"x".repeat(2 * WAITING_BYTES_MAX)] {
                let kept = kept(&[(1, first), (2, other), (1, rest), (1, "\n"), (2, "\n")]);
                assert!(kept.contains("«redacted:") && !kept.contains("aB3"), "{at}: {kept}");
            }
        }
    }

    #[test]
    fn what_waits_for_long_goes_on_unless_it_is_the_beginning_of_a_secret() {
        for (first, shown) in [
            ("Password: ", "Password: "),
            ("plain tok", "plain tok"),
            ("the s", "the s"),
            ("key=abcd1234", "key="),
            ("see ghp_aB3aB3", "see "),
            ("x corre", "x "),
            ("x co", "x co"),
            ("https://ann:hunt", "https://ann:hunt"),
        ] {
            let known = Redactor::new([("A_TOKEN", "correct-horse")]);
            let mut masks = StreamRedactor::new(&known);
            let mut out = Vec::new();
            masks.push(0, first.as_bytes(), &mut out);
            masks.relax(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), shown);
        }
        let mut masks = StreamRedactor::default();
        let mut out = Vec::new();
        masks.push(0, b"Password: ", &mut out);
        masks.relax(&mut out);
        masks.push(0, b"hunter22\n", &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "Password: «redacted:Password»\n");
    }

    #[test]
    fn what_was_let_go_for_a_prompt_still_tells_what_follows() {
        let token = format!("ghp_{}", "aB3".repeat(12));
        for (first, shown, rest, expected) in [
            ("Password: ", "Password: ", "hunter22\n", "«redacted:Password»\n"),
            ("a key=", "a key=", "k9f72hsa1\n", "«redacted:key»\n"),
            ("plain tok", "plain tok", "ay\n", "ay\n"),
            ("see ghp_aB3aB3", "see ghp_aB3aB3", &token[10..], "«redacted:GITHUB_TOKEN»"),
            ("\u{1b}[1mPassword: \u{1b}[0", "\u{1b}[1mPassword: \u{1b}[0", "mhunter22\n", "«redacted:Password»\n"),
        ] {
            let mut masks = StreamRedactor::default();
            let mut out = Vec::new();
            masks.push(0, first.as_bytes(), &mut out);
            masks.release(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), shown);
            assert!(!masks.is_holding(), "{first}");
            out.clear();
            masks.push(0, rest.as_bytes(), &mut out);
            masks.finish(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{first}");
        }
    }
}
