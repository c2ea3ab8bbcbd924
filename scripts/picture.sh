#!/usr/bin/env bash
# Makes the moving picture at the top of the README: the console of a host while three agents call. A second host records
# the console, as it records any command, and rexec export makes a cast of it. svg-term, from npm, makes the SVG.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/picture.sh [--prefix DIR] [FILE]

  --prefix DIR   use what scripts/install.sh put there, build nothing
  FILE           where to put the picture (default: .github/console.svg)
USAGE
}

die() { printf 'picture.sh: %s\n' "$*" >&2; exit 1; }

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
prefix='' file=$scripts/../.github/console.svg
while (($#)); do
    case $1 in
        --prefix) (($# >= 2)) || die "--prefix needs a folder"; prefix=$2; shift 2 ;;
        -h | --help) usage; exit ;;
        -*) usage >&2; die "unknown argument $1" ;;
        *) file=$1; shift ;;
    esac
done
for tool in npm script make python3; do command -v "$tool" >/dev/null || die "$tool is needed"; done

work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-picture.XXXXXX")
outer=
clean_up() {
    if [[ -n $outer ]] && kill "$outer" 2>/dev/null; then wait "$outer" || true; fi
    rm -rf -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

tools=${XDG_CACHE_HOME:-$HOME/.cache}/rexec-picture
[[ -x $tools/node_modules/.bin/svg-term ]] || npm install --silent --no-fund --prefix "$tools" svg-term-cli@2.1.1
if [[ -z $prefix ]]; then
    prefix=$work/prefix
    "$scripts/install.sh" --quiet --prefix "$prefix"
fi
prefix=$(cd -- "$prefix" && pwd)

mkdir -m 700 -- "$work/outer" "$work/inner"
mkdir -p -- "$work/shop/web"
cat >"$work/shop/Makefile" <<'MAKEFILE'
test:
	@python3 check.py
MAKEFILE
cat >"$work/shop/check.py" <<'CHECK'
import time
for name, result in (("sum of three prices", "\x1b[32mok\x1b[0m"), ("tax is rounded", "\x1b[32mok\x1b[0m"),
                     ("discount is never below zero", "\x1b[31mFAILED\x1b[0m: -4 is not 0")):
    print(name, "...", result, flush=True)
    time.sleep(0.5)
print("1 of 3 checks failed")
raise SystemExit(1)
CHECK
cat >"$work/shop/deploy.sh" <<'DEPLOY'
#!/bin/bash
read -r -p 'Deploy to production? [y/N] ' answer </dev/tty
[[ $answer == y ]] && echo "deployed" || { echo "not deployed"; exit 1; }
DEPLOY
chmod +x "$work/shop/deploy.sh"

# What the agents and the person do, while the host has the terminal.
cat >"$work/agents" <<'AGENTS'
call() { # NAME FOLDER COMMAND
    (cd -- "$work/shop/$2" && REXEC_WHOAMI=$1 exec "$prefix/lib/rexec/rexec-bash" -c "$3" </dev/null >/dev/null 2>&1)
}
until [[ -S $REXEC_SOCKET ]]; do sleep 0.05; done
sleep 1.5
call "Claude Code" web 'python3 -u -m http.server 8000 2>&1' 2>/dev/null & server=$!
sleep 1.5
call Codex . 'make test' || true
sleep 1
call "Gemini CLI" . 'grep -c price *.py' || true
sleep 1.5
call "Claude Code" . './deploy.sh' & deploy=$!
sleep 3.5
waiting=$("$prefix/bin/rexec" ps --json | sed -n 's/.*"seq":\([0-9]*\).*"state":"waiting".*/\1/p')
"$prefix/bin/rexec" send "$waiting" y >/dev/null
wait "$deploy" || true
sleep 2
"$prefix/bin/rexec" kill 1 >/dev/null
wait "$server" || true
sleep 2.5
"$prefix/bin/rexec" --stop-host >/dev/null
AGENTS
# Without the variables that say that a host is above.
cat >"$work/stage" <<STAGE
stty cols 96 rows 24
exec env -i PATH="$prefix/bin:$PATH" HOME="$work" TERM=xterm-256color LANG=C.UTF-8 TZ=UTC0 work="$work" prefix="$prefix" \
    REXEC_SOCKET="$work/inner/host.sock" REXEC_HOME="$work/inner/journal" \
    bash -c 'bash "\$work/agents" >"\$work/said" 2>&1 & exec rexec-host --prompts ask'
STAGE

export REXEC_SOCKET=$work/outer/host.sock REXEC_HOME=$work/outer/journal
"$prefix/bin/rexec-host" --no-config </dev/null >"$work/console" 2>&1 &
outer=$!
for _ in {1..100}; do [[ -S $REXEC_SOCKET ]] && break; sleep 0.05; done
SHELL=/bin/sh timeout 60 script -qec "stty cols 96 rows 24; '$prefix/bin/rexec' exec -- bash '$work/stage'" /dev/null >/dev/null
[[ ! -s $work/said ]] || die "$(<"$work/said")"
"$prefix/bin/rexec" export 1 --cast >"$work/cast"
# The places of a user's own host, and no end, so that the last lines stay until it begins anew.
python3 -c '
import json, re, sys
work, lines = sys.argv[1], sys.stdin.read().splitlines()
head = json.loads(lines[0])
print(json.dumps({key: head[key] for key in ("version", "width", "height")}))
for line in lines[1:]:
    time, kind, text = json.loads(line)
    text = text.replace(work + "/inner/host.sock", "/run/user/1000/rexec/host.sock").replace(work + "/inner/journal", "~/.rexec")
    text = re.sub("\x1b\\[[0-9;]*m\u258crexec: this host is root.*?\r\n", "", text)
    if "\u22ef ending" in text:
        break
    # What script(1) types where it has no terminal.
    if text != "^@":
        print(json.dumps([time, kind, text]))' "$work" <"$work/cast" >"$work/shown"
"$tools/node_modules/.bin/svg-term" --window --no-cursor <"$work/shown" >"$work/svg"
grep -q '<svg' "$work/svg" || die "svg-term made no picture"
# The blanks of the status line count.
sed -i 's|<style>|<style>text{white-space:pre}|' "$work/svg"
install -m 644 -- "$work/svg" "$file"
stat -c '%s bytes  %n' -- "$file"
