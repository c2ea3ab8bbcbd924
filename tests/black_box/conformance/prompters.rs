//! The programs of the table of prompts: those that ask the terminal, and those that only touch it.

use super::prompts::Note::{May, Names, Never};
use super::prompts::Prompt;

/// Runs on as if nobody watched.
const QUIET: Prompt = Prompt { name: "", script: "", needs: &[], out: "end", left: "", note: Never };
/// Takes the end of file.
const ASKS: Prompt = Prompt { note: May, ..QUIET };

pub(super) const READERS: &[Prompt] = &[
    Prompt { name: "read", script: "read x </dev/tty; echo $? end", out: "1 end", note: Names("bash"), ..ASKS },
    Prompt { name: "read -p", script: "read -p 'name? ' x </dev/tty; echo end", note: Names("bash"), ..ASKS },
    Prompt { name: "read -s", script: "read -s x </dev/tty; echo $? end", out: "1 end", ..ASKS },
    Prompt { name: "read -t", script: "read -t 1 x </dev/tty; echo end", ..ASKS },
    Prompt {
        name: "read without echo",
        script: "stty -echo </dev/tty; read x </dev/tty; stty echo </dev/tty; echo $? end",
        out: "0 end",
        left: "1 end",
        ..ASKS
    },
    Prompt { name: "select", script: "select x in a b; do :; done </dev/tty; echo end", note: Names("bash"), ..ASKS },
    Prompt { name: "cat", script: "cat /dev/tty; echo $? end", out: "0 end", note: Names("cat"), ..ASKS },
    Prompt {
        name: "rm -i",
        script: "touch f; rm -i f </dev/tty; ls f; echo end",
        out: "f\nend",
        note: Names("rm"),
        ..ASKS
    },
    Prompt { name: "bc", script: "bc -q </dev/tty; echo $? end", needs: &["bc"], out: "0 end", ..ASKS },
    Prompt { name: "ed", script: "ed </dev/tty; echo $? end", needs: &["ed"], out: "0 end", note: Names("ed"), ..ASKS },
    Prompt {
        name: "python input",
        script: "python3 -c 'input(\"name? \")' </dev/tty; echo $? end",
        needs: &["python3"],
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "python getpass",
        script: "python3 -c 'import getpass; getpass.getpass()'; echo $? end",
        needs: &["python3"],
        out: "1 end",
        ..ASKS
    },
    Prompt { name: "python", script: "python3 -i </dev/tty; echo $? end", needs: &["python3"], out: "0 end", ..ASKS },
    Prompt { name: "node", script: "node -i </dev/tty; echo $? end", needs: &["node"], out: "0 end", ..ASKS },
    Prompt {
        name: "node readline",
        script: "node -e 'require(\"readline\").createInterface({ input: require(\"fs\").createReadStream(\"/dev/tty\"), \
                 output: process.stdout }).question(\"name? \", () => {})'; echo end",
        needs: &["node"],
        note: Names("node"),
        ..ASKS
    },
    Prompt { name: "npm init", script: "npm init </dev/tty; echo end", needs: &["npm"], ..ASKS },
    Prompt { name: "sqlite3", script: "sqlite3 </dev/tty; echo $? end", needs: &["sqlite3"], ..ASKS },
    Prompt { name: "gdb", script: "gdb -q </dev/tty; echo $? end", needs: &["gdb"], ..ASKS },
    Prompt {
        name: "perl",
        script: "perl -e 'open F, \"</dev/tty\"; <F>'; echo end",
        needs: &["perl"],
        note: Names("perl"),
        ..ASKS
    },
    Prompt {
        name: "zsh read",
        script: "zsh -fc 'read x </dev/tty; echo $? end'",
        needs: &["zsh"],
        out: "1 end",
        note: Names("zsh"),
        ..ASKS
    },
    Prompt { name: "an interactive zsh", script: "zsh -fi </dev/tty; echo end", needs: &["zsh"], ..ASKS },
    Prompt { name: "an interactive bash", script: "bash --norc -i </dev/tty; echo end", ..ASKS },
    Prompt { name: "bash -ic read", script: "bash --norc -ic 'read x; echo $? end' </dev/tty", out: "1 end", ..ASKS },
    Prompt { name: "jobs that read", script: "set -m; cat </dev/tty; (read x </dev/tty) & wait; echo end", ..ASKS },
    // Passwords.
    Prompt { name: "sudo", script: "sudo -k true; echo end", needs: &["sudo"], ..ASKS },
    Prompt { name: "su", script: "su -c true; echo end", needs: &["su"], ..ASKS },
    Prompt { name: "passwd", script: "passwd </dev/tty; echo end", needs: &["passwd"], ..ASKS },
    Prompt {
        name: "ssh-keygen",
        script: "ssh-keygen -q -t ed25519 -N secret -f k; ssh-keygen -y -f k; echo $? end",
        needs: &["ssh-keygen"],
        out: "255 end",
        ..ASKS
    },
    Prompt {
        name: "ssh-add",
        script: "ssh-keygen -q -t ed25519 -N secret -f k; ssh-agent ssh-add k; echo end",
        needs: &["ssh-add", "ssh-agent"],
        ..ASKS
    },
    Prompt {
        name: "openssl enc",
        script: "openssl enc -aes-128-cbc -pbkdf2 -in /etc/passwd -out f; echo $? end",
        needs: &["openssl"],
        out: "1 end",
        ..ASKS
    },
    Prompt { name: "openssl passwd", script: "openssl passwd; echo $? end", needs: &["openssl"], out: "1 end", ..ASKS },
    Prompt {
        name: "gpg",
        script: "mkdir -m 700 g; export GNUPGHOME=$PWD/g; gpg -q --pinentry-mode loopback -c /etc/passwd; echo $? end; gpgconf --kill all",
        needs: &["gpg"],
        out: "2 end",
        ..ASKS
    },
    Prompt { name: "psql", script: "psql -W -h 127.0.0.1 -p 1; echo $? end", needs: &["psql"], out: "2 end", ..ASKS },
    Prompt {
        name: "mysql",
        script: "mysql -p -h 127.0.0.1 -P 1; echo $? end",
        needs: &["mysql"],
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "git of a server that wants a password",
        script: "git clone http://127.0.0.1:$LOCKED_PORT/x; echo $? end",
        needs: &["git"],
        out: "128 end",
        ..ASKS
    },
    Prompt {
        name: "git add -p",
        script: "git init -q; echo >f; git add f; echo x >>f; git add -p </dev/tty; git diff --cached --stat; echo end",
        needs: &["git", "perl"],
        ..ASKS
    },
    // Pagers, editors and others that fill the screen.
    Prompt { name: "less", script: "less /etc/services /etc/passwd; echo end", needs: &["less"], ..ASKS },
    Prompt { name: "less in a pipe", script: "seq 1 1000 | less; echo end", needs: &["less"], ..ASKS },
    Prompt { name: "more", script: "more /etc/services 2<>/dev/tty; echo end", needs: &["more"], ..ASKS },
    Prompt { name: "man", script: "MANPAGER=less man less; echo end", needs: &["man", "less"], ..ASKS },
    Prompt {
        name: "git log",
        script: "git init -q; git -c user.name=a -c user.email=a commit -q --allow-empty -m m; GIT_PAGER='less -+F' git log; echo end",
        needs: &["git", "less"],
        ..ASKS
    },
    Prompt {
        name: "git commit",
        script: "git init -q; GIT_EDITOR='vim -u NONE' git -c user.name=a -c user.email=a commit --allow-empty </dev/tty; echo end",
        needs: &["git", "vim"],
        ..ASKS
    },
    Prompt {
        name: "git rebase -i",
        script: "git init -q; git config user.name a; git config user.email a; git commit -q --allow-empty -m m; \
                 git commit -q --allow-empty -m n; GIT_EDITOR='vim -u NONE' git rebase -i HEAD~1 </dev/tty; echo end",
        needs: &["git", "vim"],
        ..ASKS
    },
    Prompt { name: "vi", script: "vi -u NONE f </dev/tty; echo end", needs: &["vi"], ..ASKS },
    Prompt { name: "nano", script: "nano f </dev/tty >/dev/tty; echo end", needs: &["nano"], ..ASKS },
    Prompt { name: "top", script: "top </dev/tty; echo end", needs: &["top"], ..ASKS },
    Prompt { name: "dialog", script: "dialog --inputbox hi 10 40; echo end", needs: &["dialog"], ..ASKS },
    Prompt { name: "whiptail", script: "whiptail --yesno hi 10 40; echo end", needs: &["whiptail"], ..ASKS },
    Prompt { name: "fzf", script: "seq 1 9 | fzf; echo end", needs: &["fzf"], ..ASKS },
    // Below others, where a guard has to look for them.
    Prompt {
        name: "read below timeout",
        script: "timeout 60 sh -c 'read x </dev/tty'; echo $? end",
        out: "1 end",
        note: Names("sh"),
        ..ASKS
    },
    Prompt {
        name: "read below two timeouts",
        script: "timeout 60 timeout 50 sh -c 'read x </dev/tty; read x </dev/tty'; echo $? end",
        out: "1 end",
        left: "2 end",
        note: Names("sh"),
        ..ASKS
    },
    Prompt {
        name: "less below timeout",
        script: "timeout 60 less /etc/services </dev/tty 2>/dev/tty >/dev/tty; echo $? end",
        needs: &["less"],
        out: "129 end",
        left: "1 end",
        note: Names("less"),
    },
    Prompt { name: "vi below timeout", script: "timeout 60 vi -u NONE f </dev/tty; echo end", needs: &["vi"], ..ASKS },
    Prompt {
        name: "read in a group of its own",
        script: "python3 -c 'import subprocess; print(subprocess.run([\"sh\", \"-c\", \"read x </dev/tty\"], process_group=0).returncode, \"end\")'",
        needs: &["python3"],
        out: "1 end",
        note: Names("sh"),
        ..ASKS
    },
    Prompt {
        name: "read in a group whose leader is gone",
        script: "cat >inside <<'END'
set -m; sh -c '(sleep 0.2; read x </dev/tty; echo $? end >f) & exit'; until test -s f; do sleep 0.1; done; cat f
END
bash inside",
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "read in a group whose leader is a zombie",
        script: "python3 -c 'import os, subprocess, time
subprocess.Popen([\"sh\", \"-c\", \"(sleep 0.2; read x </dev/tty; echo $? end >f) & exit\"], process_group=0)
while not os.path.exists(\"f\") or not open(\"f\").read(): time.sleep(0.1)'; cat f",
        needs: &["python3"],
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "read beside one that prints",
        script: "(while sleep 0.1; do echo .; done) & timeout 60 sh -c 'read x </dev/tty'; kill $!; echo end",
        note: Names("sh"),
        ..ASKS
    },
    Prompt {
        name: "one that catches the stop and stops itself",
        script: "python3 -c 'import os, signal, termios, time
def stop(*_): time.sleep(0.01); os.kill(os.getpid(), signal.SIGSTOP)
signal.signal(signal.SIGTTOU, stop); f = os.open(\"/dev/tty\", os.O_RDWR)
try: termios.tcsetattr(f, termios.TCSANOW, termios.tcgetattr(f))
except termios.error: pass'; echo end",
        needs: &["python3"],
        note: Never,
        ..ASKS
    },
    // A shell that takes the foreground reads there and is not stopped.
    Prompt {
        name: "reads of a shell with job control",
        script: "zsh -fic 'cat </dev/tty; cat </dev/tty'; echo end",
        needs: &["zsh"],
        ..ASKS
    },
    Prompt {
        name: "reads in a foreground that was taken",
        script: "python3 -c 'import os, signal; signal.signal(signal.SIGTTOU, signal.SIG_IGN)
f = os.open(\"/dev/tty\", os.O_RDWR); os.tcsetpgrp(f, os.getpgrp()); print(os.read(f, 9), os.read(f, 9), \"end\")'",
        needs: &["python3"],
        out: "b'' b'' end",
        ..ASKS
    },
];

/// None of these asks for anything, though they touch the terminal.
pub(super) const OTHERS: &[Prompt] = &[
    Prompt { name: "stty sane", script: "stty sane </dev/tty; sleep 3; echo $? end", out: "0 end", ..QUIET },
    Prompt { name: "stty tostop", script: "stty tostop </dev/tty; echo end; echo again", out: "end\nagain", ..QUIET },
    Prompt {
        name: "stty below timeout",
        script: "timeout 60 stty -echo </dev/tty; echo $? end",
        out: "0 end",
        ..QUIET
    },
    Prompt { name: "tput", script: "tput cols >f; tput clear; echo end", needs: &["tput"], ..QUIET },
    Prompt { name: "reset", script: "reset </dev/tty >f 2>&1; echo $? end", needs: &["reset"], out: "0 end", ..QUIET },
    Prompt { name: "bash -ic", script: "bash --norc -ic 'echo end'", ..QUIET },
    Prompt { name: "a job of bash -ic", script: "bash --norc -ic 'sleep 1; echo end' </dev/tty", ..QUIET },
    Prompt { name: "dash -ic", script: "dash -ic 'sleep 1; echo end'", needs: &["dash"], ..QUIET },
    Prompt { name: "fish -ic", script: "fish -ic 'sleep 1; echo end'", needs: &["fish"], ..QUIET },
    Prompt { name: "a job of zsh -ic", script: "zsh -fic 'sleep 1; echo end'", needs: &["zsh"], ..QUIET },
    Prompt { name: "jobs", script: "set -m; sleep 0.8 & sleep 0.1; wait; echo $? end", out: "0 end", ..QUIET },
    Prompt {
        name: "watch -g",
        script: "watch -g -n 0.2 date >f; echo $? end",
        needs: &["watch"],
        out: "0 end",
        ..QUIET
    },
    Prompt {
        name: "watch below timeout",
        script: "timeout 2 watch -n 0.5 date >f; echo $? end",
        needs: &["watch"],
        out: "124 end",
        ..QUIET
    },
    Prompt { name: "top -b", script: "top -b -n 1 >f; echo $? end", needs: &["top"], out: "0 end", ..QUIET },
    Prompt { name: "tmux attach", script: "tmux -L $$ attach; echo $? end", needs: &["tmux"], out: "1 end", ..QUIET },
    Prompt { name: "screen", script: "screen; echo $? end", needs: &["screen"], out: "1 end", ..QUIET },
    Prompt {
        name: "ssh to nobody",
        script: "ssh -p 1 127.0.0.1 true; echo $? end",
        needs: &["ssh"],
        out: "255 end",
        ..QUIET
    },
    Prompt {
        name: "read in a session without a terminal",
        script: "setsid -w sh -c 'read x </dev/tty'; echo $? end",
        out: "2 end",
        ..QUIET
    },
    Prompt {
        name: "a background job of another terminal",
        script: "script -qc \"bash --norc -ic 'cat & until jobs | grep -q Stopped; do sleep 0.1; done; jobs; kill %1'\" /dev/null; echo end",
        needs: &["script"],
        out: "Stopped",
        ..QUIET
    },
    Prompt {
        name: "a job that stopped itself",
        script: "bash -c 'set -m; sh -c \"kill -STOP \\$\\$; echo on\" & until jobs | grep -q Stopped; do sleep 0.1; done; \
                 jobs; kill -KILL %1'; echo end",
        out: "Stopped",
        ..QUIET
    },
];
