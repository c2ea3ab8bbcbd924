#!/usr/bin/env bash
# Builds and installs rexec below a prefix, or removes what it installed there: two programs in bin; the shim, its
# links, a file for BASH_ENV and the preload in lib/rexec.
#
# Edits no profile, and the settings of those agents only that are named. It prints what to do next.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/install.sh [--prefix DIR] [--quiet] [--yes] [AGENT …]
       scripts/install.sh --uninstall [--prefix DIR] [--quiet] [--yes]

  AGENT          afterwards, put rexec's shell into this agent's settings: rexec init AGENT …, which shows the changes
                 and asks
  --prefix DIR   where to install (default: ~/.local)
  --uninstall    remove what was installed there, and nothing else; journals stay. Agents whose settings name this
                 shell get their own settings back first: rexec uninit, which shows the changes and asks
  --yes          do not ask
  --quiet        print no next steps

Installs these files, and changes no shell profile and without AGENT no settings:

  bin/rexec-host              the host
  bin/rexec                   the command line
  lib/rexec/rexec-sh          the shell for agents
  lib/rexec/rexec-bash        a link to it; it is bash
  lib/rexec/rexec-zsh         a link to it; it is zsh
  lib/rexec/bash-only/bash    a link to it, in a folder for the front of PATH
  lib/rexec/rexec-env.sh      a file for BASH_ENV
  lib/rexec/librexec_preload.so  for agents that rexec does not know
  lib/rexec/installed         the list of all this, for --uninstall
USAGE
}

die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
prefix=
quiet=no
uninstall=no
agents=()
# What rexec init and rexec uninit get.
sure=()
while (($#)); do
    case $1 in
        --prefix) (($# >= 2)) || die "--prefix needs a folder"; prefix=$2; shift 2 ;;
        --prefix=*) prefix=${1#--prefix=}; shift ;;
        --uninstall) uninstall=yes; shift ;;
        --quiet) quiet=yes; shift ;;
        --yes) sure=(--yes); shift ;;
        -h | --help) usage; exit 0 ;;
        -*) usage >&2; die "unknown argument $1" ;;
        *) agents+=("$1"); shift ;;
    esac
done
[[ -n $prefix ]] || prefix=${HOME:?HOME is not set, so --prefix is needed}/.local

# What is installed, with folders after what is in them: this order is that of --uninstall.
files=(bin/rexec-host bin/rexec lib/rexec/rexec-sh lib/rexec/rexec-bash lib/rexec/rexec-zsh lib/rexec/bash-only/bash
    lib/rexec/rexec-env.sh lib/rexec/librexec_preload.so lib/rexec/installed)
folders=(lib/rexec/bash-only lib/rexec lib bin .)
list=lib/rexec/installed

remove() {
    [[ -f $prefix/$list ]] || { [[ $quiet == yes ]] || printf 'Nothing of rexec is installed below %s.\n' "$prefix"; return 0; }
    # Their shell would be gone, and some agents would go on without a word.
    local listed path links=${XDG_DATA_HOME:-${HOME-}/.local/share}/rexec/shells
    if [[ $(readlink -- "$links/rexec-sh") == "$(realpath -- "$prefix/lib/rexec/rexec-sh")" ]]; then
        "$prefix/bin/rexec" uninit "${sure[@]}" >&2 || die "the settings of agents still name this shell; nothing was removed"
    fi
    mapfile -t listed <"$prefix/$list"
    # Only names that an install writes are taken from the list, whatever else it may hold.
    for path in "${files[@]}"; do
        if [[ $path == "$list" || " ${listed[*]} " == *" $path "* ]]; then rm -f -- "${prefix:?}/$path"; fi
    done
    for path in "${folders[@]}"; do
        # A folder that holds something of somebody else's stays.
        [[ " ${listed[*]} " == *" $path/ "* ]] || continue
        # rmdir(1) takes no path that ends in a dot.
        [[ $path == . ]] && path=$prefix || path=$prefix/$path
        rmdir -- "$path" 2>/dev/null || true
    done
    [[ $quiet == yes ]] || printf 'Removed rexec from %s. The journals in ~/.rexec stay.\n' "$prefix"
}

if [[ $uninstall == yes ]]; then
    ((${#agents[@]} == 0)) || die "--uninstall takes no agent"
    remove
    exit
fi

# The folders that this install makes, and those that an earlier one made, go with --uninstall.
made=()
for folder in "${folders[@]}"; do
    if [[ ! -d $prefix/$folder ]] || grep -qsxF -- "$folder/" "$prefix/$list"; then made+=("$folder/"); fi
done
mkdir -p -- "$prefix"
prefix=$(cd -- "$prefix" && pwd)
for path in "${files[@]}"; do
    [[ ! -d $prefix/$path ]] || die "$prefix/$path is a folder; remove it, or choose another --prefix"
done

built=$(mktemp -d "${TMPDIR:-/tmp}/rexec-install.XXXXXX")
trap 'rm -rf -- "$built"' EXIT
"$scripts/build.sh" --out "$built"

# install(1) makes new files, so a host that runs from the old ones is not disturbed.
install -d -- "$prefix/bin" "$prefix/lib/rexec/bash-only"
# First the list: an install that is cut short can be removed as well.
printf '%s\n' "${files[@]}" "${made[@]}" >"$prefix/$list"
install -m 755 -- "$built/rexec-host" "$built/rexec" "$prefix/bin/"
install -m 755 -- "$built/rexec-sh" "$prefix/lib/rexec/"
# Where the C library has no loader, there is none.
[[ ! -f $built/librexec_preload.so ]] || install -m 644 -- "$built/librexec_preload.so" "$prefix/lib/rexec/"
install -m 644 -- "$scripts/../src/cli/run/rexec-env.sh" "$prefix/lib/rexec/"
# The name a shim is called by says which shell it stands for; agents look for bash or zsh in it.
for name in rexec-bash rexec-zsh; do
    ln -sfn -- rexec-sh "$prefix/lib/rexec/$name"
done
ln -sfn -- ../rexec-sh "$prefix/lib/rexec/bash-only/bash"

init() { ((${#agents[@]} == 0)) || "$prefix/bin/rexec" init "${sure[@]}" "${agents[@]}"; }
[[ $quiet == no ]] || { init; exit; }
on_path=
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) on_path="  0. Put the programs on your PATH:           export PATH=\"$prefix/bin:\$PATH\"
" ;;
esac
cat <<NEXT

Installed below $prefix:
  bin/rexec-host  bin/rexec
  lib/rexec/rexec-sh  and its links  rexec-bash  rexec-zsh  bash-only/bash
  lib/rexec/rexec-env.sh  librexec_preload.so

Next:
$on_path  1. In a terminal of its own, start the host:  rexec-host
  2. In another, start an agent through it:     rexec run claude
     (rexec run --list names the other agents; rexec init makes it permanent)
  3. Watch its commands in the first terminal.

To remove it:  scripts/install.sh --uninstall --prefix $prefix
NEXT
init
