//! What one side writes the other one reads, and nothing else is taken for it.

use super::*;
use crate::protocol::choice::{Sanitize, Tty};
use crate::protocol::process::{Exit, Signal};

fn sample() -> Vec<u8> {
    let attributes = Attributes {
        stdio: Stdio { stdin: true, stdout: true, stderr: true, same_output: true, ..Stdio::default() },
        tty: Some(Tty::Always),
        sanitize: Some(Sanitize::Strip),
        umask: 0o077,
        nice: -5,
        oom_score_adj: 100,
        ignored: 1 << 12,
        blocked: 1 << 63,
        rows: 48,
        cols: 160,
        limits: vec![(256, u64::MAX), (0, 0)],
        affinity: vec![0b11, 0],
        inherited: vec![3, 255],
        extras: Extras {
            directory: Some(c"/some\xff/where".to_owned()),
            cgroups: b"/a\0/b\0".to_vec(),
            io_priority: 3 << 13,
            scheduler: (3, 0),
            personality: 0x004_0000,
            timer_slack_ns: 1,
            coredump_filter: 0,
            no_huge_pages: true,
            live: Some(false),
            project: Some(2),
            agent: b"7:Codex".to_vec(),
            budget: Some(OutputBudget { bytes: 4096, is_file: true }),
            variables: vec![c"REXEC_SEQ=7".to_owned()],
            timeout_ms: 1500,
            why: b"to see".to_vec(),
            direct: Some(Direct::Bare),
            keeps_nothing: false,
        },
    };
    let argv = [c"bash", c"-c", c"printf '\xff\n'", c""];
    let env = [c"PATH=/bin", c"EMPTY=", c"B\xffAD=\x01"];
    let mut out = Vec::new();
    encode_run(&attributes, (b"Claude Code", c"/bin/bash"), argv.into_iter(), env.into_iter(), &mut out).unwrap();
    out
}

#[test]
fn a_run_comes_back_as_it_was_sent() {
    let bytes = sample();
    let Ok(Decoded::Item(FromShim::Run(run), taken)) = FromShim::decode(&bytes) else { panic!("{bytes:?}") };
    assert_eq!(taken, bytes.len());
    assert_eq!(run.argv.iter().nth(2), Some(c"printf '\xff\n'"));
    assert_eq!(run.argv.iter().nth(3), Some(c""));
    assert_eq!(run.env.iter().count(), 3);
    assert_eq!(run.descriptor_count(), 3, "a directory by its path is not a descriptor");
    let mut again = Vec::new();
    encode_run(&run.attributes, (run.whoami, run.shell), run.argv.iter(), run.env.iter(), &mut again).unwrap();
    assert_eq!(again, bytes);
}

/// An attribute that a side of the same version may not know.
#[test]
fn an_optional_attribute_comes_back_as_it_was_sent() {
    let bytes = sample();
    let Ok(Decoded::Item(FromShim::Run(run), _)) = FromShim::decode(&bytes) else { panic!("{bytes:?}") };
    let extras = Extras { keeps_nothing: true, ..run.attributes.extras.clone() };
    let attributes = Attributes { extras, ..run.attributes.clone() };
    let mut sent = Vec::new();
    encode_run(&attributes, (run.whoami, run.shell), run.argv.iter(), run.env.iter(), &mut sent).unwrap();
    let Ok(Decoded::Item(FromShim::Run(run), _)) = FromShim::decode(&sent) else { panic!("{sent:?}") };
    assert_eq!(run.attributes, attributes);
}

/// What version 3 wrote for [`sample`].
const SAMPLE_OF_VERSION_3: &str = "\
    01540100000f0002023f000000fbffffff64000000001000000000000000000000000000803000a000020001000000000000\
    ffffffffffffffff000000000000000000000000000000000200000003000203000000ff0000000b000000436c6175646520\
    436f64650a0000002f62696e2f6261736800040000001500000062617368002d63007072696e74662027ff0a270000030000\
    0018000000504154483d2f62696e00454d5054593d0042ff41443d0100010c0000002f736f6d65ff2f776865726502060000\
    002f61002f620003040000000060000004080000000300000000000000050400000000000400060800000001000000000000\
    0007040000000000000008000000000901000000000a01000000020b07000000373a436f6465780c0500000000100000010d\
    0b00000052455845435f5345513d370e08000000dc050000000000000f06000000746f20736565100100000002";

/// An older side reads what this one writes, and the reverse. Where a newer version writes something else, what is recorded
/// here is still read.
#[test]
fn a_run_is_written_as_by_the_version_before() {
    let written: String = sample().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, SAMPLE_OF_VERSION_3);
    for (newest, oldest) in [(3, 3), (VERSION_MIN, 1), (9, VERSION)] {
        let hello = Hello { newest, oldest };
        assert_eq!(Hello::decode(&hello.encode()), Ok(Decoded::Item(hello, HELLO_BYTES)));
    }
}

fn host_frames() -> Vec<u8> {
    let mut out = Vec::new();
    encode_output(CallerStream::Out, b"out", &mut out);
    encode_output(CallerStream::Err, &[7; FRAME_BYTES_MAX + 1], &mut out);
    FromHost::Note(b"note").encode(&mut out);
    FromHost::Heard.encode(&mut out);
    FromHost::Accepted.encode(&mut out);
    FromHost::OutputEnded(CallerStream::Err).encode(&mut out);
    FromHost::Fail { code: 125, text: b"why" }.encode(&mut out);
    FromHost::Refuse.encode(&mut out);
    FromHost::Exit(Exit::Signal(Signal::KILL)).encode(&mut out);
    FromHost::Exit(Exit::Code(255)).encode(&mut out);
    out
}

#[test]
fn frames_of_the_host_come_back_in_order() {
    let bytes = host_frames();
    let (mut at, mut frames) = (0, Vec::new());
    while let Ok(Decoded::Item(frame, taken)) = FromHost::decode(&bytes[at..]) {
        at += taken;
        frames.push(frame);
    }
    assert_eq!(at, bytes.len());
    assert_eq!(frames.len(), 11);
    assert_eq!(frames[4..7], [FromHost::Heard, FromHost::Accepted, FromHost::OutputEnded(CallerStream::Err)]);
    assert_eq!(frames[7], FromHost::Fail { code: 125, text: b"why" });
    assert_eq!(frames[9], FromHost::Exit(Exit::Signal(Signal::KILL)));
    assert_eq!(Exit::Signal(Signal::KILL).code(), 137);
}

#[test]
fn every_truncation_is_incomplete_and_never_an_error() {
    for frame in [FromShim::Abort, FromShim::LetGo, FromShim::Signal(Signal::TERM)] {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        (0..bytes.len()).for_each(|n| assert_eq!(FromShim::decode(&bytes[..n]), Ok(Decoded::Incomplete)));
    }
    for n in 0..HELLO_BYTES {
        assert_eq!(Hello::decode(&Hello::OURS.encode()[..n]), Ok(Decoded::Incomplete));
    }
    let run = sample();
    for n in 0..run.len() {
        assert_eq!(FromShim::decode(&run[..n]), Ok(Decoded::Incomplete), "cut at {n}");
    }
}

#[test]
fn a_payload_cut_short_inside_its_frame_is_malformed() {
    let run = sample();
    let Ok(Decoded::Item(FromShim::Run(whole), _)) = FromShim::decode(&run) else { panic!("no RUN") };
    let attributes = Attributes { extras: Extras::default(), ..whole.attributes };
    let mut usual = Vec::new();
    encode_run(&attributes, (whole.whoami, whole.shell), whole.argv.iter(), whole.env.iter(), &mut usual).unwrap();
    // From there on it may end behind each entry; behind the first one, the directory, as well.
    let ends = usual.len() + 5 + 12;
    for n in (HEADER_BYTES..ends).filter(|&n| n != usual.len()) {
        let mut cut = run[..n].to_vec();
        let length = u32::try_from(n - HEADER_BYTES).unwrap();
        cut[1..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
        assert!(matches!(FromShim::decode(&cut), Err(WireError::Malformed(_))), "cut at {n}");
    }
}

#[test]
fn a_million_mutated_frames_neither_panic_nor_lie_about_their_length() {
    let (mut state, shim, host) = (0x9e37_79b9_7f4a_7c15_u64, sample(), host_frames());
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let below = |n: u64, most: usize| usize::try_from(n % most as u64).unwrap();
    let mut errors = 0_u32;
    for round in 0..1_000_000_u32 {
        let source = if round % 8 == 0 { &host[..64] } else { &shim[..] };
        let mut bytes = source[..=below(random(), source.len())].to_vec();
        for _ in 0..=random() % 4 {
            let at = below(random(), bytes.len());
            bytes[at] = random().to_le_bytes()[3];
        }
        // Half of them get a true length, so that the mutation is judged inside the payload.
        if let (0, Some(body)) = (random() % 2, bytes.len().checked_sub(HEADER_BYTES)) {
            bytes[1..HEADER_BYTES].copy_from_slice(&u32::try_from(body).unwrap().to_le_bytes());
        }
        let taken = match (FromShim::decode(&bytes), FromHost::decode(&bytes)) {
            (Ok(Decoded::Item(FromShim::Run(run), taken)), _) => {
                assert!(run.argv.iter().count() == run.argv.len() && run.env.iter().count() == run.env.len());
                taken
            }
            (Ok(Decoded::Item(_, taken) | Decoded::Skip(taken)), _) | (_, Ok(Decoded::Item(_, taken))) => taken,
            _ => 0,
        };
        assert!(taken <= bytes.len());
        errors += u32::from(FromShim::decode(&bytes).is_err());
    }
    assert!(errors > 10_000, "the mutations hardly ever broke a frame: {errors}");
}

#[test]
fn oversized_and_unknown_frames_are_named() {
    assert_eq!(FromShim::decode(&[2, 255, 255, 255, 255]), Err(WireError::TooLong { kind: 2, bytes: 0xffff_ffff }));
    assert_eq!(FromShim::decode(&[0x7f, 0, 0, 0, 0]), Err(WireError::UnknownKind(0x7f)));
    assert_eq!(FromShim::decode(&[0x90, 1, 0, 0, 0, 9]), Ok(Decoded::Skip(6)));
    assert_eq!(FromShim::decode(&[2, 1, 0, 0, 0, 0]), Err(WireError::Malformed("a control frame of the wrong size")));
    assert_eq!(Hello::decode(b"GET /"), Err(WireError::NotRexec));
    let newer = Hello { newest: 9, oldest: 9 };
    assert_eq!(Hello::decode(&newer.encode()), Err(WireError::Version { newest: 9, oldest: 9 }));
    assert!(Hello::decode(&Hello { newest: 9, oldest: 1 }.encode()).is_ok());
}

#[test]
fn what_is_usual_takes_no_bytes_and_what_is_unknown_is_refused_unless_it_is_optional() {
    let argv = || [c"sh"].into_iter();
    let encoded = |extras: &Extras| {
        let attributes = Attributes { extras: extras.clone(), ..Attributes::default() };
        let mut out = Vec::new();
        encode_run(&attributes, (b"", c"/bin/sh"), argv(), std::iter::empty(), &mut out).unwrap();
        out
    };
    let plain = encoded(&Extras::default());
    let changed = Extras { personality: 8, ..Extras::default() };
    assert_eq!(encoded(&changed).len(), plain.len() + 1 + 4 + 4);
    let variables = vec![c"A=1".to_owned(), c"B=".to_owned()];
    let with_cgroups = Extras { cgroups: b"/x\0".to_vec(), variables: variables.clone(), ..changed.clone() };
    let mut added = encoded(&changed);
    add_cgroups(b"/x\0", &mut added).unwrap();
    variables.iter().for_each(|entry| add_variable(entry, &mut added).unwrap());
    let Ok(Decoded::Item(FromShim::Run(run), _)) = FromShim::decode(&added) else { panic!("no RUN") };
    assert_eq!(run.attributes.extras, with_cgroups);
    assert!(run.attributes.extras.are_the_hosts() && !changed.are_the_hosts());
    let with_more = |more: &[u8]| {
        let mut frame = plain.clone();
        frame.extend_from_slice(more);
        let length = u32::try_from(frame.len() - HEADER_BYTES).unwrap();
        frame[1..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
        frame
    };
    let newer = with_more(&[0x80, 3, 0, 0, 0, b'n', b'e', b'w', 5, 4, 0, 0, 0, 8, 0, 0, 0]);
    let Ok(Decoded::Item(FromShim::Run(run), _)) = FromShim::decode(&newer) else { panic!("no RUN") };
    assert_eq!(run.attributes.extras, changed, "what is optional is skipped, and what follows it is read");
    for bad in [
        &[99, 0, 0, 0, 0][..],
        &[5, 1, 0, 0, 0, 7],
        &[1, 2, 0, 0, 0, b'a', 0],
        &[8, 1, 0, 0, 0, 0],
        &[5, 4, 0, 0, 0],
        &[13, 1, 0, 0, 0, b'a'],
    ] {
        assert!(matches!(FromShim::decode(&with_more(bad)), Err(WireError::Malformed(_))), "{bad:?}");
    }
}

/// Reads payloads of chance for each row of a table. What is read is written as the same bytes, so it is read as the same
/// again. Returns the numbers of which no payload was read.
fn unread_rows<'a, M: Message<'a>>(payloads: &'a [Vec<u8>]) -> Vec<u8> {
    let is_read = |&kind: &u8| {
        let read = payloads.iter().filter_map(|payload| Some((M::read(kind, payload).ok()?, payload)));
        let same = read.map(|(message, payload)| {
            let mut written = Vec::new();
            message.put_fields(&mut written);
            assert_eq!((message.kind(), &written), (kind, payload));
        });
        same.count() > 0
    };
    M::KINDS.iter().copied().filter(|kind| !is_read(kind)).collect()
}

#[test]
fn every_row_of_a_table_is_read_as_it_is_written() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()
    };
    let small = |byte: u8| if byte < 200 { byte % 4 } else { byte };
    let mut payloads: Vec<Vec<u8>> =
        (0..4_000_usize).map(|round| (0..round % 40).map(|_| small(random()[0])).collect()).collect();
    payloads.push(sample()[HEADER_BYTES..].to_vec());
    assert_eq!(unread_rows::<FromShim<'_>>(&payloads), []);
    assert_eq!(unread_rows::<FromHost<'_>>(&payloads), []);
    for kinds in [FromShim::KINDS, FromHost::KINDS] {
        assert!(kinds.windows(2).all(|pair| pair[0] < pair[1]), "each number stands once, in order: {kinds:?}");
    }
}

/// Longer than a frame, too.
#[test]
fn output_that_is_appended_is_what_is_encoded() {
    for length in [0, 1, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 1, 3 * FRAME_BYTES_MAX] {
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
        let (mut appended, mut encoded) = (b"before".to_vec(), b"before".to_vec());
        let count = append_output(CallerStream::Err, &mut appended, |out| out.extend_from_slice(&bytes));
        encode_output(CallerStream::Err, &bytes, &mut encoded);
        assert!(count == length && appended == encoded, "{length}");
    }
}
