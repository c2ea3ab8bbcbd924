#!/usr/bin/env bash
# Builds and installs rexec below a prefix: two programs into bin, the shim and its links into lib/rexec.
#
# Edits no profile and no agent's settings; it prints what to do next.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/install.sh [--prefix DIR] [--quiet]

  --prefix DIR   where to install (default: ~/.local)
  --quiet        print no next steps
USAGE
}

die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
prefix=
quiet=no
while (($#)); do
    case $1 in
        --prefix) (($# >= 2)) || die "--prefix needs a folder"; prefix=$2; shift 2 ;;
        --prefix=*) prefix=${1#--prefix=}; shift ;;
        --quiet) quiet=yes; shift ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; die "unknown argument $1" ;;
    esac
done
[[ -n $prefix ]] || prefix=${HOME:?HOME is not set, so --prefix is needed}/.local
mkdir -p -- "$prefix"
prefix=$(cd -- "$prefix" && pwd)

built=$(mktemp -d "${TMPDIR:-/tmp}/rexec-install.XXXXXX")
trap 'rm -rf -- "$built"' EXIT
"$scripts/build.sh" --out "$built"

# install(1) makes new files, so a host that runs from the old ones is not disturbed.
install -d -- "$prefix/bin" "$prefix/lib/rexec"
install -m 755 -- "$built/rexec-host" "$built/rexec" "$prefix/bin/"
install -m 755 -- "$built/rexec-sh" "$prefix/lib/rexec/"
# The name a shim is called by says which shell it stands for; agents look for bash or zsh in it.
for name in rexec-bash rexec-zsh; do
    ln -sfn -- rexec-sh "$prefix/lib/rexec/$name"
done

[[ $quiet == no ]] || exit 0
on_path=
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) on_path="  0. Put the programs on your PATH:           export PATH=\"$prefix/bin:\$PATH\"
" ;;
esac
cat <<NEXT

Installed below $prefix:
  bin/rexec-host  bin/rexec  lib/rexec/rexec-sh  lib/rexec/rexec-bash  lib/rexec/rexec-zsh

Next:
$on_path  1. In a terminal of its own, start the host:  rexec-host
  2. In another, start an agent through it:     CLAUDE_CODE_SHELL=$prefix/lib/rexec/rexec-bash claude
  3. Watch its commands in the first terminal.
NEXT
