//! The parsers of foreign bytes: the host reads shims, JSON clients and guards; the shim reads its host.

use rexec_host::front::budget::Budget;
use rexec_host::front::jsonl::Jsonl;
use rexec_host::front::shim::Shim;
use rexec_host::front::{PeerRequest, TerminalEvent};
use rexec_host::guard::control::{GuardReport, ORDER_BYTES, REPORT_BYTES, decode_order, encode_order};
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::{self, Decoded, FromHost, HEADER_BYTES, Hello};

use super::mutation::{host_stream, lines, mutated, shim_stream};
use crate::support::dice::{Dice, rounds};
use crate::support::waiting;

type Take<'a> = dyn FnMut(&mut Vec<u8>, &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> + 'a;

/// Everything that a protocol makes of a stream in these pieces: what is asked, how it ends, and what it answers.
fn heard(pieces: &[&[u8]], take: &mut Take<'_>) -> (Vec<String>, Vec<u8>) {
    let (mut inbox, mut out, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    let mut sent = 0;
    for piece in pieces {
        inbox.extend_from_slice(piece);
        sent += piece.len();
        loop {
            match take(&mut inbox, &mut out) {
                Ok(Some(one)) => {
                    check(&one, sent);
                    asked.push(format!("{one:?}"));
                }
                Ok(None) => break,
                Err(violation) => {
                    asked.push(violation.problem.into_owned());
                    return (asked, out);
                }
            }
        }
    }
    (asked, out)
}

/// What is asked is made of what was sent, and can be used.
fn check(asked: &PeerRequest, sent: usize) {
    match asked {
        PeerRequest::Run(command) => {
            let run = command.run().expect("the frame was understood once");
            assert_eq!(run.descriptor_count(), command.descriptors);
            assert!(command.frame.len() <= sent && !command.exec.is_empty());
            drop(command.redactor());
        }
        PeerRequest::RunWords(request) => {
            let all = request.exec.iter().chain(request.envs.keys()).chain(request.envs.values());
            let mut all = all.chain([&request.dir]);
            assert!(!request.exec[0].is_empty() && all.all(|text| !text.contains('\0')), "{request:?}");
        }
        PeerRequest::Signal(signal) => assert!((1..=64).contains(&signal.number())),
        PeerRequest::NoteInteractive { whoami } => assert!(whoami.len() <= 3 * sent),
        PeerRequest::NoteLeft { whoami, command } => assert!(whoami.len() + command.len() <= 3 * sent),
        PeerRequest::Terminal(TerminalEvent::Keys(keys)) => assert!(keys.len() <= sent),
        PeerRequest::Send(request) => assert!(request.text.len() <= 3 * sent),
        PeerRequest::Attach(_) => {}
        PeerRequest::Rpc(call) => assert!(call.is_broken || call.id.is_some() || call.call.is_ok() || sent > 0),
        PeerRequest::Terminal(_)
        | PeerRequest::HasLetGo
        | PeerRequest::Abort
        | PeerRequest::OutputClosed(_)
        | PeerRequest::Supervise(_) => {}
    }
}

#[test]
fn what_shims_send() {
    let mut broken = 0_u64;
    let all = rounds(waiting::size(6_000, 100_000) as u64, |dice| {
        let stream = shim_stream(dice);
        let stream = mutated(dice, &stream);
        let (mut whole, mut cut) = (Shim::new(), Shim::new());
        let expected = heard(&[&stream], &mut |inbox, out| whole.take(inbox, out));
        let seen = heard(&dice.pieces(&stream), &mut |inbox, out| cut.take(inbox, out));
        assert_eq!(seen, expected, "{}", stream.escape_ascii());
        broken += u64::from(!whole.has_asked());
    });
    assert!(broken > all / 20 && broken < all / 20 * 19, "{broken} of {all} had no request left");
}

#[test]
fn what_json_clients_send() {
    let mut broken = 0_u64;
    let all = rounds(waiting::size(6_000, 100_000) as u64, |dice| {
        let stream = lines(dice);
        let stream = mutated(dice, &stream);
        let outputs = Budget::new(1 << 20, 0);
        let (mut whole, mut cut) = (Jsonl::new(&outputs), Jsonl::new(&outputs));
        let expected = heard(&[&stream], &mut |inbox, out| whole.take(inbox, out));
        let seen = heard(&dice.pieces(&stream), &mut |inbox, out| cut.take(inbox, out));
        assert_eq!(seen, expected, "{}", stream.escape_ascii());
        for line in seen.1.split_inclusive(|&byte| byte == b'\n') {
            serde_json::from_slice::<serde_json::Value>(line).expect("every answer is a line of JSON");
        }
        broken += u64::from(!whole.has_asked());
    });
    assert!(broken > all / 20 && broken < all / 20 * 19, "{broken} of {all} had no request left");
}

/// The frames of a host, one after the other, as the shim takes them; the answer is where it stopped.
fn frames(stream: &[u8]) -> (Vec<String>, usize) {
    let (mut frames, mut at) = (Vec::new(), 0);
    match Hello::decode(stream) {
        Ok(Decoded::Item(_, taken)) => at += taken,
        other => return (vec![format!("{other:?}")], 0),
    }
    loop {
        match FromHost::decode(&stream[at..]) {
            Ok(Decoded::Item(frame, taken)) => {
                assert_eq!(again(&frame), stream[at..at + taken], "{frame:?}");
                frames.push(format!("{frame:?}"));
                at += taken;
            }
            Ok(Decoded::Skip(taken)) => at += taken,
            Ok(Decoded::Incomplete) => return (frames, at),
            Err(error) => {
                frames.push(error.to_string());
                return (frames, at);
            }
        }
    }
}

/// The frame, encoded once more.
fn again(frame: &FromHost<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match frame {
        // Nothing is not worth a frame to the encoder.
        FromHost::Out([]) => out.extend_from_slice(&[0x11, 0, 0, 0, 0]),
        FromHost::Err([]) => out.extend_from_slice(&[0x12, 0, 0, 0, 0]),
        FromHost::Out(bytes) => wire::encode_output(wire::CallerStream::Out, bytes, &mut out),
        FromHost::Err(bytes) => wire::encode_output(wire::CallerStream::Err, bytes, &mut out),
        FromHost::Note(text) => wire::FromHost::Note(text).encode(&mut out),
        FromHost::Exit(exit) => wire::FromHost::Exit(*exit).encode(&mut out),
        FromHost::Fail { code, text } => wire::FromHost::Fail { code: *code, text }.encode(&mut out),
        FromHost::Refuse => wire::FromHost::Refuse.encode(&mut out),
        FromHost::Heard => wire::FromHost::Heard.encode(&mut out),
        FromHost::Accepted => wire::FromHost::Accepted.encode(&mut out),
        FromHost::OutputEnded(stream) => wire::FromHost::OutputEnded(*stream).encode(&mut out),
        FromHost::Attach => wire::FromHost::Attach.encode(&mut out),
        FromHost::Taken(bytes) => wire::FromHost::Taken(*bytes).encode(&mut out),
        FromHost::Stopped(signal) => wire::FromHost::Stopped(*signal).encode(&mut out),
        FromHost::Modes(modes) => wire::FromHost::Modes(*modes).encode(&mut out),
        FromHost::Return => wire::FromHost::Return.encode(&mut out),
    }
    out
}

#[test]
fn what_hosts_send() {
    rounds(waiting::size(6_000, 100_000) as u64, |dice| {
        let stream = host_stream(dice);
        let stream = mutated(dice, &stream);
        let (all, at) = frames(&stream);
        // A beginning gives the beginning of the same frames.
        let cut = dice.below(stream.len() + 1);
        let (some, end) = frames(&stream[..cut]);
        let is_error = some.len() == 1 && end == 0;
        assert!(all.starts_with(&some) || is_error, "{} cut at {cut}", stream.escape_ascii());
        assert!(at <= stream.len() && end <= cut && stream.len() - at <= wire::FRAME_BYTES_MAX + HEADER_BYTES);
    });
}

/// Guards are forks of the host; still nothing of theirs is taken for more than it is.
#[test]
fn what_guards_send() {
    rounds(100_000, |dice: &mut Dice| {
        let mut bytes: [u8; REPORT_BYTES] = dice.bytes(REPORT_BYTES, 0, 255).try_into().expect("so many");
        bytes[0] %= 12;
        if let Some(report) = GuardReport::decode(&bytes) {
            assert_eq!(GuardReport::decode(&report.encode()), Some(report), "{bytes:?}");
            if let GuardReport::Stopped { program, .. } | GuardReport::Unkillable { program, .. } = report {
                let text = program.to_string();
                assert!(!text.contains(char::is_control), "{text:?}");
            }
        }
        let order: [u8; ORDER_BYTES] = dice.bytes(ORDER_BYTES, 0, 9).try_into().expect("so many");
        if let Some(order) = decode_order(order) {
            assert_eq!(decode_order(encode_order(order)), Some(order));
        }
    });
}
