#!/bin/sh
# Installs rexec below a prefix, or removes what it installed there. In rexec's tree it builds. With --from, and from an
# unpacked archive, it needs no compiler; then this file works alone, in any POSIX shell:
#
#   curl -fsSL URL/install.sh | sh -s -- --from URL
#
# Edits no profile, and the settings of those agents only that are named. It prints what to do next.
set -euf

# Where releases are published. scripts/release.sh fills it in from Cargo.toml, once that names a repository.
releases=

usage() {
    cat <<'USAGE'
usage: install.sh [--from PLACE] [--prefix DIR] [--quiet] [--yes] [AGENT ...]
       install.sh --update [--from PLACE] [--prefix DIR] [--quiet]
       install.sh --uninstall [--prefix DIR] [--quiet] [--yes]

  AGENT          afterwards, put rexec's shell into this agent's settings: rexec init AGENT ..., which shows the changes
                 and asks
  --from PLACE   a folder, or a URL, with the archives of a release and their SHA256SUMS. The one for this machine is
                 installed, if its sum is right
  --prefix DIR   where to install (default: ~/.local; for lib/rexec/install.sh of an installation, where that is)
  --update       install the release that is in the same place now
  --uninstall    remove what was installed there, and nothing else; journals stay. Agents whose settings name this
                 shell get their own settings back first: rexec uninit, which shows the changes and asks
  --yes          do not ask
  --quiet        print no next steps

Changes no shell profile, and without AGENT no settings. It installs the programs rexec-host and rexec in bin, the
shell for agents with its links in lib/rexec, man pages, completions and the README in share. lib/rexec/installed
lists it all, for --uninstall.
USAGE
}

die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

has() { command -v "$1" >/dev/null 2>&1; }

list=lib/rexec/installed
origin=lib/rexec/origin

# Whether a file is one that an install may write. Nothing else is taken from an archive or from a list.
is_ours() { # PATH
    case /$1/ in */../* | */./* | *//*) return 1 ;; esac
    case $1 in
        bin/rexec | bin/rexec-host | lib/rexec/?* | share/doc/rexec/?* | share/man/man1/rexec?*) ;;
        share/bash-completion/completions/rexec | share/zsh/site-functions/_rexec) ;;
        share/fish/vendor_completions.d/rexec.fish) ;;
        *) return 1 ;;
    esac
}

# Whether a folder is one that an install may make.
is_folder_of_ours() { # PATH/
    case /$1 in */../* | /./?* | ?*/./* | *//*) return 1 ;; esac
    case $1 in ./ | bin/ | lib/ | lib/rexec/* | share/*) ;; *) return 1 ;; esac
}

remove() {
    if [ ! -f "$prefix/$list" ]; then
        [ "$quiet" = yes ] || printf 'Nothing of rexec is installed below %s.\n' "$prefix"
        return 0
    fi
    # Their shell would be gone, and some agents would go on without a word.
    links=${XDG_DATA_HOME:-${HOME-}/.local/share}/rexec/shells
    if [ "$(readlink "$links/rexec-sh")" = "$(readlink -f "$prefix/lib/rexec/rexec-sh")" ]; then
        "$prefix/bin/rexec" uninit ${sure:+"$sure"} >&2 || die "the settings of agents still name this shell; nothing was removed"
    fi
    cp "$prefix/$list" "$work/listed"
    while IFS= read -r path; do
        if is_ours "$path"; then rm -f "$prefix/$path"; fi
    done <"$work/listed"
    rm -f "${prefix:?}/$list"
    # Folders after what is in them. One that holds something of somebody else's stays.
    LC_ALL=C sort -r "$work/listed" | while IFS= read -r path; do
        # rmdir(1) takes no path that ends in a dot.
        if [ "$path" != ./ ] && is_folder_of_ours "$path"; then rmdir "$prefix/$path" 2>/dev/null || true; fi
    done
    ! grep -qxF ./ "$work/listed" || rmdir "$prefix" 2>/dev/null || true
    [ "$quiet" = yes ] || printf 'Removed rexec from %s. The journals in ~/.rexec stay.\n' "$prefix"
}

# Gets a file of the release.
fetch() { # NAME FILE
    case $from in
        http://* | https://*)
            if has curl; then curl -fsSL --retry 2 -o "$2" "$from/$1"
            elif has wget; then wget -q -O "$2" "$from/$1"
            else die "curl or wget is needed to fetch $from/$1"
            fi || die "$from/$1 cannot be fetched" ;;
        *) cp "$from/$1" "$2" || die "$from has no $1" ;;
    esac
}

sum_of() { # FILE
    if has sha256sum; then sha256sum "$1"; elif has shasum; then shasum -a 256 "$1"; else die "sha256sum is needed"; fi
}

# Unpacks the archive for this machine into $tree, or returns 1 if that is installed already.
unpack() {
    [ "$(uname -s)" = Linux ] || die "Linux only, for now"
    case $(uname -m) in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) die "there is no release for $(uname -m); in rexec's tree, scripts/install.sh builds one" ;;
    esac
    fetch SHA256SUMS "$work/sums"
    name=$(sed -n "s/^[0-9a-f]\{64\}  \(rexec-[0-9A-Za-z.]*-$machine-linux\.tar\.gz\)$/\1/p" "$work/sums")
    case $name in
        '') die "$from has no archive for $machine" ;;
        *"
"*) die "$from has several archives for $machine" ;;
    esac
    sum=$(sed -n "s/  $name$//p" "$work/sums")
    if [ "$update" = yes ] && [ "$(sed -n 2p "$prefix/$origin" 2>/dev/null)" = "$sum" ]; then return 1; fi
    fetch "$name" "$work/archive"
    found=$(sum_of "$work/archive")
    [ "${found%% *}" = "$sum" ] || die "$name is damaged: its SHA-256 sum is not the one in SHA256SUMS; nothing was installed"
    mkdir "$work/unpacked"
    tar -xzf "$work/archive" -C "$work/unpacked"
    tree=$work/unpacked/${name%.tar.gz}
    printf '%s\n%s\n' "$from" "$sum" >"$tree/$origin"
}

# Puts what lies in $tree below the prefix. Each file is made anew and then takes its place in one step, so a host that
# runs from an old one is not disturbed.
put() {
    (cd "$tree" && find . ! -type d) | sed 's|^\./||' >"$work/files"
    (cd "$tree" && find . -type d) | sed 's|^\./||' >"$work/folders"
    while IFS= read -r path; do
        is_ours "$path" || die "the release has $path, which does not belong there; nothing was installed"
        [ ! -d "$prefix/$path" ] || die "$prefix/$path is a folder; remove it, or choose another --prefix"
    done <"$work/files"
    : >"$work/old"
    [ ! -f "$prefix/$list" ] || cp "$prefix/$list" "$work/old"
    # The folders that this install makes, and those that an earlier one made, go with --uninstall.
    while IFS= read -r path; do
        if [ ! -d "$prefix/$path" ] || grep -qxF "$path/" "$work/old"; then printf '%s/\n' "$path"; fi
    done <"$work/folders" >"$work/made"
    mkdir -p "$prefix"
    prefix=$(cd "$prefix" && pwd)
    while IFS= read -r path; do mkdir -p "$prefix/$path"; done <"$work/folders"
    # First the list: an install that is cut short can be removed as well.
    sort -u "$work/files" "$work/made" "$work/old" >"$prefix/$list"
    while IFS= read -r path; do
        # Left behind by an install that was cut short. A link would lead the copy elsewhere.
        if [ -e "$prefix/$path.new" ] || [ -h "$prefix/$path.new" ]; then rm -f "$prefix/$path.new"; fi
        cp -pP "$tree/$path" "$prefix/$path.new"
        mv -f "$prefix/$path.new" "$prefix/$path"
    done <"$work/files"
    # What the earlier one had besides.
    grep -vxFf "$work/files" "$work/old" >"$work/others" || true
    while IFS= read -r path; do
        if is_ours "$path" && [ "$path" != "$list" ]; then rm -f "$prefix/$path"; fi
    done <"$work/others"
    { cat "$work/files" "$work/made"; printf '%s\n' "$list"; } >"$work/listed"
    cp "$work/listed" "$prefix/$list"
}

next_steps() {
    shown="Installed $("$prefix/bin/rexec" --version) below $prefix:
  bin/rexec-host  bin/rexec
  lib/rexec/rexec-sh  and its links  rexec-bash  rexec-zsh  bash-only/bash
  man pages and completions in share"
    on_path=
    case :$PATH: in
        *":$prefix/bin:"*) ;;
        *) on_path="  0. Put the programs on your PATH:           export PATH=\"$prefix/bin:\$PATH\"
" ;;
    esac
    cat <<NEXT

$shown

Next:
$on_path  1. In a terminal of its own, start the host:  rexec-host
  2. In another, start an agent through it:     rexec run claude
     (rexec run --list names the other agents; rexec init makes it permanent)
  3. Watch its commands in the first terminal.

To remove it:  $prefix/lib/rexec/install.sh --uninstall
NEXT
}

main() {
    # The folder of this file, unless a shell reads it from a pipe.
    here=
    case $0 in */install.sh) here=$(cd "${0%/*}" && pwd) ;; install.sh) here=$(pwd) ;; esac
    prefix='' from='' quiet=no uninstall=no update=no sure='' agents=''
    while [ $# -gt 0 ]; do
        case $1 in
            --prefix) [ $# -ge 2 ] || die "--prefix needs a folder"; prefix=$2; shift ;;
            --prefix=*) prefix=${1#--prefix=} ;;
            --from) [ $# -ge 2 ] || die "--from needs a folder or a URL"; from=$2; shift ;;
            --from=*) from=${1#--from=} ;;
            --update) update=yes ;;
            --uninstall) uninstall=yes ;;
            --quiet) quiet=yes ;;
            --yes) sure=--yes ;;
            -h | --help) usage; exit 0 ;;
            -*) usage >&2; die "unknown argument $1" ;;
            *) agents="$agents $1" ;;
        esac
        shift
    done
    if [ -z "$prefix" ]; then
        if [ -n "$here" ] && [ -f "$here/installed" ]; then prefix=${here%/lib/rexec}
        else prefix=${HOME:?HOME is not set, so --prefix is needed}/.local
        fi
    fi
    work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-install.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if [ "$uninstall" = yes ]; then
        case $agents$from$update in no) ;; *) die "--uninstall takes no agent, no --from and no --update" ;; esac
        remove
        exit
    fi
    if [ "$update" = yes ]; then
        [ -f "$prefix/$list" ] || die "nothing of rexec is installed below $prefix"
        [ -n "$from" ] || from=$(sed -n 1p "$prefix/$origin" 2>/dev/null) || true
    fi

    from=${from#file://}
    tree=$work/tree
    if [ -z "$from" ] && [ -n "$here" ] && [ -x "$here/build.sh" ]; then
        "$here/build.sh" --out "$work/built"
        "$here/package/stage.sh" "$work/built" "$tree"
    elif [ -z "$from" ] && [ -n "$here" ] && [ -f "$here/rexec-sh" ] && [ ! -f "$here/installed" ]; then
        tree=${here%/lib/rexec}
    else
        from=${from:-$releases}
        [ -n "$from" ] || die "no release page is named yet: give --from URL or --from DIR, or run scripts/install.sh in rexec's tree"
        case $from in
            http://* | https://*) from=${from%/} ;;
            *) from=$(cd "$from" && pwd) || die "there is no folder $from" ;;
        esac
        if ! unpack; then
            [ "$quiet" = yes ] || printf '%s below %s is the newest from %s.\n' "$("$prefix/bin/rexec" --version)" "$prefix" "$from"
            exit 0
        fi
    fi
    put
    if [ "$update" = yes ]; then
        [ "$quiet" = yes ] || printf 'Installed %s below %s. A host that runs keeps its program until you start it anew.\n' \
            "$("$prefix/bin/rexec" --version)" "$prefix"
    elif [ "$quiet" = no ]; then
        next_steps
    fi
    # shellcheck disable=SC2086 # They are words.
    [ -z "$agents" ] || "$prefix/bin/rexec" init ${sure:+"$sure"} $agents
}

# A shell that reads this from a pipe has read all of it now.
main "$@"
exit
