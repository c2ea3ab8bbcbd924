//! Valid streams of bytes, and mutations of them.

use rexec_sh::protocol::choice::Sanitize;
use rexec_sh::protocol::process::{Exit, Signal};
use rexec_sh::protocol::wire::{self, Attributes, CallerStream, Extras, Hello, Stdio};

use crate::support::dice::Dice;

/// Numbers that lengths and counts are replaced by.
const NUMBERS: [u32; 9] = [0, 1, 5, 0xff, 0x1_0000, 0x2_0001, 0x80_0001, 0x7fff_ffff, 0xffff_ffff];

/// A few changes at random places; now and then none.
pub(crate) fn mutated(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..dice.below(5) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(12)).min(bytes.len());
        match dice.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let count = dice.below(9);
                let more = dice.bytes(count, 0, 255);
                drop(bytes.splice(at..at, more));
            }
            3 => {
                let again = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, again));
            }
            4 => {
                let number = NUMBERS[dice.below(NUMBERS.len())].to_le_bytes();
                let end = (at + 4).min(bytes.len());
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
            5 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            _ if at < bytes.len() => bytes[at] = dice.bytes(1, 0, 255)[0],
            _ => {}
        }
    }
    bytes
}

/// A request to run a program that does nothing, whatever becomes of its arguments.
pub(crate) fn run_frame(dice: &mut Dice) -> Vec<u8> {
    let attributes = Attributes {
        stdio: Stdio { stdin: dice.below(2) == 0, stdout: true, stderr: true, ..Stdio::default() },
        sanitize: Sanitize::ALL.get(dice.below(5)).copied(),
        umask: 0o22,
        rows: 48,
        cols: 160,
        limits: vec![(1 << 20, u64::MAX); dice.below(17)],
        inherited: (3..3 + i32::try_from(dice.below(3)).expect("small")).collect(),
        extras: Extras { personality: 8, no_huge_pages: dice.below(2) == 0, ..Extras::default() },
        ..Attributes::default()
    };
    let argv = [c"true", c"-c", c"words and \xff\n", c""];
    let env = [c"PATH=/bin", c"EMPTY=", c"API_KEY=0123456789abcdef", c"B\xffAD=\x01"];
    let mut frame = Vec::new();
    let (argv, env) = (argv.into_iter(), env.into_iter());
    wire::encode_run(&attributes, (b"fuzz", c"/bin/true"), argv, env, &mut frame).expect("it is short");
    frame
}

/// Everything a shim may say, in a row.
pub(crate) fn shim_stream(dice: &mut Dice) -> Vec<u8> {
    let mut stream = Hello::OURS.encode().to_vec();
    stream.extend_from_slice(&[0x91, 3, 0, 0, 0, 1, 2, 3]);
    stream.extend(run_frame(dice));
    for _ in 0..dice.below(6) {
        match dice.below(4) {
            0 => wire::FromShim::Signal(Signal::new(1 + u8::try_from(dice.below(64)).expect("small")))
                .encode(&mut stream),
            1 => wire::FromShim::Closed([CallerStream::Out, CallerStream::Err][dice.below(2)]).encode(&mut stream),
            2 => stream.extend_from_slice(&[0x80, 0, 0, 0, 0]),
            _ => wire::FromShim::Abort.encode(&mut stream),
        }
    }
    stream
}

/// Everything a host may say, in a row.
pub(crate) fn host_stream(dice: &mut Dice) -> Vec<u8> {
    let mut stream = Hello::OURS.encode().to_vec();
    for _ in 0..dice.below(8) {
        let count = dice.below(300);
        let bytes = dice.bytes(count, 0, 255);
        match dice.below(5) {
            0 | 1 => wire::encode_output(CallerStream::Out, &bytes, &mut stream),
            2 => wire::encode_output(CallerStream::Err, &bytes, &mut stream),
            3 => wire::FromHost::Note(b"rexec: a note\n").encode(&mut stream),
            4 => wire::FromHost::Heard.encode(&mut stream),
            _ => stream.extend_from_slice(&[0xff, 1, 0, 0, 0, 7]),
        }
    }
    match dice.below(4) {
        0 => wire::FromHost::Fail { code: 125, text: b"rexec: why\nhint: so\n" }.encode(&mut stream),
        1 => wire::FromHost::Refuse.encode(&mut stream),
        2 => wire::FromHost::Exit(Exit::Signal(Signal::TERM)).encode(&mut stream),
        _ => wire::FromHost::Exit(Exit::Code(3)).encode(&mut stream),
    }
    stream
}

/// Lines of JSON as a client sends them.
pub(crate) fn lines(dice: &mut Dice) -> Vec<u8> {
    const LINES: [&str; 8] = [
        r#"{"action":"ping"}"#,
        r#"{"whoami":"Me","dir":"/","exec":["/bin/true","a b","\u00e9"],"envs":{"NAME":"value"},"stdin":"text\n"}"#,
        r#"{"exec":["/bin/true"],"dir":"/tmp","whoami":""}"#,
        r#"{"action":"list"}"#,
        r#"{"action":"kill","seq":3}"#,
        r#"{"action":"abort"}"#,
        r#"{"action":null,"whoami":"Me","dir":"/","exec":["/bin/true"],"more":[{"deep":[1,2.5e9,true]}]}"#,
        "",
    ];
    let mut stream = LINES[dice.below(5)].as_bytes().to_vec();
    for _ in 0..dice.below(3) {
        stream.push(b'\n');
        stream.extend_from_slice(LINES[dice.below(LINES.len())].as_bytes());
    }
    stream.push(b'\n');
    stream
}
