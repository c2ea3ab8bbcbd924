//! Secrets that a person types for prompts: the journal keeps none of them.

use serde_json::json;

use super::{ATTENDED, CONSOLE, begins_to_answer, ends, send, start, types, waits};
use crate::export::rexec;
use crate::rpc::client::Client;
use crate::rpc::terminals::decoded;
use crate::support::host::Host;
use crate::support::programs;
use crate::support::waiting::wait_until;

/// Everything that the host has written of a command: its journal, what it wrote, and the recording of that.
fn kept(host: &Host) -> String {
    host.wait_for("the end", |journal| journal.of_type("end").next().cloned());
    let mut kept = format!("{:?}", host.journal());
    for args in [&["out", "1"][..], &["export", "1", "--cast"], &["show", "1"]] {
        kept += &rexec(host, args).out();
    }
    kept
}

/// Prompts that show what is typed, with the words of a secret on the terminal or on another stream.
const SHOWN: &[&str] = &[
    "read -rp 'Password: ' x </dev/tty; echo ${#x}",
    "read -rp 'Password: ' x </dev/tty 2>/dev/tty; echo ${#x}",
    "printf 'API key? ' >/dev/tty; read -r x </dev/tty; echo ${#x}",
    "printf 'Enter your token\\n> '; read -r x </dev/tty; echo ${#x}",
    "printf 'Enter your API key:\\n\\033[1m> \\033[0m' >/dev/tty; read -r x </dev/tty; echo ${#x}",
    "read -erp 'Password: ' x </dev/tty; echo ${#x}",
];

/// Draws the line anew at each key, as libraries for prompts do, and once more at its end.
const REDRAWS: &str = r#"cat >ask.py <<'end'
import os, tty
fd = os.open("/dev/tty", os.O_RDWR)
tty.setcbreak(fd)
os.write(fd, b"Enter your API key:\r\n> ")
line = b""
while not line.endswith(b"\r") and not line.endswith(b"\n"):
    line += os.read(fd, 1)
    os.write(fd, b"\r\x1b[K> " + line.strip())
os.write(fd, b"\r\n\x1b[1mkey: " + line.strip() + b"\r\nstored\r\n")
print(len(line.strip()))
end
python3 ask.py"#;

/// A thread writes while the person answers.
const NOISY: &str = r#"cat >ask.py <<'end'
import os, threading, time
fd = os.open("/dev/tty", os.O_RDWR)
os.write(fd, b"Password: ")
def noise():
    while True:
        time.sleep(0.02)
        os.write(fd, b"\r\nunit built\r\n")
threading.Thread(target=noise, daemon=True).start()
print(len(os.read(fd, 100).strip()), flush=True)
os._exit(0)
end
python3 ask.py"#;

#[test]
#[ignore = "long: 10 hosts, each with a prompt that a person answers"]
fn the_journal_has_a_word_in_place_of_a_secret_that_the_terminal_showed() {
    if !programs::has("python3") {
        return;
    }
    for script in SHOWN {
        let host = Host::with(CONSOLE);
        let mut call = start(&host, script);
        waits(&host, 1);
        begins_to_answer(&host, 1);
        for key in b"orange-7" {
            types(&host, &[*key]);
        }
        wait_until("the terminal shows it", || host.console_text().contains("ge-7"));
        types(&host, b"\r");
        assert!(ends(&mut call).out().ends_with("8\n"), "{script}");
        let kept = kept(&host);
        assert!(!kept.contains("orange") && !kept.contains("range-7") && !kept.contains("ge-7"), "{script}: {kept}");
        assert!(kept.contains("⟨typed⟩") && !kept.contains("⟨typed⟩⟨typed⟩"), "{script}: {kept}");
    }
    for (script, keys) in [(REDRAWS, "orange-7\r"), (NOISY, "orange-7\r"), (SHOWN[0], "oranhe\x7f\x7fge-7\x12\r")] {
        let host = Host::with(CONSOLE);
        let mut call = start(&host, script);
        waits(&host, 1);
        begins_to_answer(&host, 1);
        keys.bytes().for_each(|key| types(&host, &[key]));
        assert!(ends(&mut call).out().ends_with("8\n"), "{script}");
        let kept = kept(&host);
        for part in ["orange", "range-7", "ge-7"] {
            assert!(!kept.contains(part), "{script}: {kept}");
        }
        assert!(kept.contains("⟨typed⟩"), "{script}: {kept}");
        assert!(script != REDRAWS || kept.contains("stored"), "{kept}");
    }
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "read -rp 'name? ' y </dev/tty; read -rp 'Password: ' x </dev/tty; echo ${#x}");
    waits(&host, 1);
    send(&host, 1, "ann-of-mill\n");
    waits(&host, 1);
    send(&host, 1, "orange-7\n");
    assert_eq!(ends(&mut call).out(), "8\n");
    let kept = kept(&host);
    assert!(kept.contains("ann-of-mill") && !kept.contains("orange"), "a name is no secret: {kept}");
}

/// A program that reads what commands write by JSON-RPC may be an agent's.
#[test]
fn no_client_is_told_a_secret_that_a_person_typed() {
    let host = Host::with(ATTENDED);
    let mut call =
        start(&host, "exec >/dev/tty; read -rp 'Password: ' x </dev/tty; echo ${#x}; read -rp 'more? ' y </dev/tty");
    waits(&host, 1);
    let mut clients = [Client::new(&host), Client::new(&host), Client::new(&host)];
    clients[0].call("events.subscribe", &json!({"runs": [1], "encoding": "terminal"}));
    clients[1].call("events.subscribe", &json!({"runs": [1], "encoding": "base64"}));
    send(&host, 1, "orange-7\n");
    waits(&host, 1);
    clients[2].call("events.subscribe", &json!({"runs": [1], "encoding": "terminal"}));
    send(&host, 1, "go\n");
    ends(&mut call);
    for (at, mut client) in clients.into_iter().enumerate() {
        let story = client.story(1);
        let written = story.iter().filter_map(|note| note["params"]["base64"].as_str()).flat_map(decoded).collect();
        let written = String::from_utf8(written).expect("text");
        assert!(!written.contains("orange"), "{written}");
        // Only the first one was there, and sees the terminal beside the command's pipes.
        assert_eq!(written.contains("⟨typed⟩"), at == 0, "{written}");
    }
}

/// Gives up after four keys, and the terminal shows keys again while the person goes on.
const GIVES_UP: &str = r#"cat >ask.py <<'end'
import os, termios
fd = os.open("/dev/tty", os.O_RDWR)
before = termios.tcgetattr(fd)
hidden = termios.tcgetattr(fd)
hidden[3] &= ~(termios.ECHO | termios.ICANON)
termios.tcsetattr(fd, termios.TCSANOW, hidden)
os.write(fd, b"Password: ")
keys = b""
while len(keys) < 4:
    keys += os.read(fd, 1)
termios.tcsetattr(fd, termios.TCSANOW, before)
os.write(fd, b"over\nnext? ")
print(f"<{os.read(fd, 100).decode().strip()}>")
end
python3 ask.py"#;

#[test]
fn what_began_hidden_stays_hidden_to_its_return() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::with(CONSOLE);
    let mut call = start(&host, GIVES_UP);
    waits(&host, 1);
    begins_to_answer(&host, 1);
    types(&host, b"oran");
    wait_until("it has given up", || host.console_text().contains("next? "));
    types(&host, b"ge-7");
    types(&host, b"8\r");
    types(&host, b"plain\r");
    assert_eq!(ends(&mut call).out().lines().last(), Some("<plain>"));
    assert!(!host.console_text().contains("ge-7"), "{}", host.console_text());
    assert!(!kept(&host).contains("ge-7"));
}
