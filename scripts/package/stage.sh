#!/usr/bin/env bash
# Lays built programs out as they lie below a prefix. What is installed and what a release has is what this puts there.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/package/stage.sh BUILT DIR [REXEC]

  BUILT   the folder that scripts/build.sh has filled
  DIR     a folder that does not exist
  REXEC   a rexec of this tree that runs here, which prints the man pages (default: that in BUILT)
USAGE
}

case ${1-} in -h | --help) usage; exit ;; esac
(($# == 2 || $# == 3)) || { usage >&2; exit 2; }
built=$1 to=$2 rexec=${3:-$1/rexec}
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
lib=$to/lib/rexec share=$to/share

mkdir -- "$to"
mkdir -p -- "$to/bin" "$lib/bash-only" "$share/doc/rexec" "$share/man/man1" "$share/bash-completion/completions" \
    "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
install -m 755 -- "$built/rexec-host" "$built/rexec" "$to/bin/"
install -m 755 -- "$built/rexec-sh" "$root/scripts/install.sh" "$lib/"
# Where the C library has no loader, there is none.
[[ ! -f $built/librexec_preload.so ]] || install -m 644 -- "$built/librexec_preload.so" "$lib/"
install -m 644 -- "$root/src/cli/run/rexec-env.sh" "$lib/"
# The name a shim is called by says which shell it stands for; agents look for bash or zsh in it.
for name in rexec-bash rexec-zsh; do ln -s -- rexec-sh "$lib/$name"; done
ln -s -- ../rexec-sh "$lib/bash-only/bash"

install -m 644 -- "$root/README.md" "$root/LICENSE" "$share/doc/rexec/"
"$rexec" man >"$share/man/man1/rexec.1"
# The synopsis in the page of rexec itself has a line for each command, in roff.
sed -n '/^\.nf$/,/^\.fi$/p' "$share/man/man1/rexec.1" | while read -r name verb _; do
    verb=${verb//\\/}
    [[ $name != rexec || $verb == -* ]] || "$rexec" man "$verb" >"$share/man/man1/rexec-$verb.1"
done
"$rexec" completions bash >"$share/bash-completion/completions/rexec"
"$rexec" completions zsh >"$share/zsh/site-functions/_rexec"
"$rexec" completions fish >"$share/fish/vendor_completions.d/rexec.fish"
