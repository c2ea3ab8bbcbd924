#!/usr/bin/env bash
# Makes what a release publishes, in target/dist: an archive, a .deb and an .rpm for each machine, the debug symbols apart,
# install.sh, a list of the crates (CycloneDX), and SHA256SUMS. It publishes nothing.
#
# Two runs for one commit make the same bytes, wherever the tree lies: no path, time, owner or order of files gets in.
# (Nothing is promised for another Rust or another linker.) A package whose tool is missing is left out, and said.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/release.sh [--out DIR] [--built DIR] VERSION

  VERSION      the version, which must be that of Cargo.toml
  --out DIR    where to put it all (default: target/dist); what is there goes
  --built DIR  build nothing; make the archive for this machine alone, of what scripts/build.sh has put there
USAGE
}

die() { printf 'release.sh: %s\n' "$*" >&2; exit 1; }
left_out() { printf 'SKIPPED: %s\n' "$*"; }

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
target_dir=$(realpath -m -- "${CARGO_TARGET_DIR:-$root/target}")
out=$target_dir/dist
built='' version=''
while (($#)); do
    case $1 in
        --out) (($# >= 2)) || die "--out needs a folder"; out=$(realpath -m -- "$2"); shift 2 ;;
        --built) (($# >= 2)) || die "--built needs a folder"; built=$(realpath -m -- "$2"); shift 2 ;;
        -h | --help) usage; exit ;;
        -*) usage >&2; die "unknown argument $1" ;;
        *) version=$1; shift ;;
    esac
done
cd -- "$root"
found=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[[ $version == "$found" ]] || die "the version in Cargo.toml is $found"
# The time of all files.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct)}
export SOURCE_DATE_EPOCH TZ=UTC0 LC_ALL=C
umask 022

work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-release.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
[[ ! -e $out || -e $out/SHA256SUMS ]] || die "$out is there, and is not of an earlier release"
rm -rf -- "${out:?}"
mkdir -p -- "$out"

# Packs a folder with fixed times, owners and order.
pack() { # FOLDER
    local folder=$work/$1
    tar --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "${folder%/*}" -c "${1##*/}" |
        gzip -9n >"$out/${1##*/}.tar.gz"
}

if [[ -n $built ]]; then
    name=rexec-$version-$(uname -m)-linux
    scripts/package/stage.sh "$built" "$work/$name"
    pack "$name"
    install -m 755 -- scripts/install.sh "$out/"
    (cd -- "$out" && sha256sum -- * >"$work/sums" && mv -- "$work/sums" SHA256SUMS)
    exit
fi

# Takes the debug symbols out of a program, into a file beside it.
sysroot=$(rustc --print sysroot)
objcopy=$(rustc --print target-libdir)/../bin/rust-objcopy
split_symbols() { # PROGRAM FILE
    # It looks for its library in another folder than the one in which Rust has it.
    local -x LD_LIBRARY_PATH=$sysroot/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    "$objcopy" --only-keep-debug "$1" "$2"
    "$objcopy" --strip-all --add-gnu-debuglink="$2" "$1"
}

# Whether programs that run here do what they are for.
try() { # FOLDER
    local host code=0
    mkdir -m 700 -- "$work/tried"
    local -x REXEC_SOCKET=$work/tried/host.sock REXEC_HOME=$work/tried/journal
    "$1/rexec-host" </dev/null >"$work/tried/console" 2>&1 &
    host=$!
    for _ in {1..100}; do [[ ! -S $REXEC_SOCKET ]] || break; sleep 0.1; done
    [[ $(timeout 20 "$1/rexec-sh" -c 'echo tried' 2>&1) == tried ]] && timeout 20 "$1/rexec" show 1 >/dev/null || code=1
    kill "$host"
    wait "$host" || true
    ((code == 0)) || { cat -- "$work/tried/console" >&2; die "the programs that were built run no command"; }
}

package_deb() { # TREE MACHINE
    local -A called=([x86_64]=amd64 [aarch64]=arm64)
    local arch=${called[$2]} to=$work/deb-$2
    mkdir -p -- "$to/DEBIAN" "$to/usr"
    cp -a -- "$1/." "$to/usr/"
    # What dpkg has installed, dpkg removes. Debian's zsh looks elsewhere.
    rm -- "$to/usr/lib/rexec/install.sh"
    mv -- "$to/usr/share/zsh/site-functions" "$to/usr/share/zsh/vendor-completions"
    find "$to/usr/share/man" -type f -exec gzip -9n {} +
    cat >"$to/DEBIAN/control" <<CONTROL
Package: rexec
Version: $version
Architecture: $arch
Maintainer: the authors of rexec
Installed-Size: $(du -k --apparent-size -s "$to/usr" | cut -f 1)
Section: utils
Priority: optional
Description: $(sed -n 's/^description = "\(.*\)"$/\1/p' Cargo.toml)
 Claude Code, Codex, Gemini CLI, opencode and others run unmodified; rexec
 takes the place of their shell.
CONTROL
    find "$to" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$to" "$out/rexec_${version}_$arch.deb" >/dev/null
}

package_rpm() { # TREE MACHINE
    local top=$work/rpm-$2
    mkdir -p -- "$top"
    cat >"$top/rexec.spec" <<SPEC
Name: rexec
Version: $version
Release: 1
Summary: $(sed -n 's/^description = "\(.*\)"$/\1/p' Cargo.toml)
License: $(sed -n 's/^license = "\(.*\)"$/\1/p' Cargo.toml)
AutoReqProv: no
%description
Claude Code, Codex, Gemini CLI, opencode and others run unmodified; rexec takes the place of their shell.
%install
mkdir -p %{buildroot}/usr
cp -a $1/. %{buildroot}/usr/
rm %{buildroot}/usr/lib/rexec/install.sh
%files
/usr/bin/*
/usr/lib/rexec
/usr/share/doc/rexec
/usr/share/man/man1/*
/usr/share/bash-completion/completions/rexec
/usr/share/zsh/site-functions/_rexec
/usr/share/fish/vendor_completions.d/rexec.fish
SPEC
    rpmbuild --quiet -bb --target "$2-linux" --define "_topdir $top" --define "_rpmdir $top" --define "_buildhost localhost" \
        --define "_build_id_links none" --define "__os_install_post %{nil}" --define "debug_package %{nil}" \
        --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
        --define "_docdir_fmt %{NAME}" "$top/rexec.spec" >"$top/said" 2>&1 || { cat -- "$top/said" >&2; return 1; }
    cp -- "$top/$2/rexec-$version-1.$2.rpm" "$out/"
}

# The crates that are linked into the programs, as CycloneDX.
list_crates() {
    cargo metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-musl | python3 -c '
import json, sys
data, version = json.load(sys.stdin), sys.argv[1]
packages = {package["id"]: package for package in data["packages"]}
nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
linked, left = set(), [data["resolve"]["root"]]
while left:
    node = left.pop()
    if node not in linked:
        linked.add(node)
        left += [d["pkg"] for d in nodes[node]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]
def component(package):
    name, number = package["name"], package["version"]
    found = {"type": "library", "bom-ref": f"pkg:cargo/{name}@{number}", "name": name, "version": number,
        "purl": f"pkg:cargo/{name}@{number}"}
    if package["license"]:
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return found
parts = sorted((component(packages[node]) for node in linked - {data["resolve"]["root"]}), key=lambda part: part["purl"])
own = {"type": "application", "bom-ref": "rexec", "name": "rexec", "version": version}
print(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": own},
    "components": parts}, indent=1))' "$version" >"$out/rexec-$version.cdx.json"
}

# No path of this machine gets into a program. The later of two that match counts.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
flags="${RUSTFLAGS:-} --remap-path-prefix=$root=/rexec --remap-path-prefix=$target_dir=/target"
for crates in "$cargo_home"/registry/src/*/; do flags+=" --remap-path-prefix=${crates%/}=/crates"; done
export RUSTFLAGS=$flags CARGO_TARGET_DIR=$target_dir
# The symbols are taken out below.
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none

own=$(uname -m)
# The programs of this machine first: they print the man pages of all.
for machine in "$own" $(printf '%s\n' x86_64 aarch64 | grep -vx "$own"); do
    name=rexec-$version-$machine-linux
    scripts/build.sh --static "$machine" --out "$work/built-$machine" >"$work/said" 2>&1 || { cat -- "$work/said" >&2; exit 1; }
    if [[ $machine == "$own" ]]; then try "$work/built-$machine"; else left_out "the programs for $machine are not run here"; fi
    mkdir -- "$work/$name-debug"
    if [[ -x $objcopy ]]; then
        for program in "$work/built-$machine"/*; do
            (cd -- "$work/$name-debug" && split_symbols "$program" "${program##*/}.debug")
        done
        pack "$name-debug"
    else
        left_out "the debug symbols stay in the programs, because this Rust has no rust-objcopy"
    fi
    scripts/package/stage.sh "$work/built-$machine" "$work/$name" "$work/built-$own/rexec"
    pack "$name"
    if command -v dpkg-deb >/dev/null; then package_deb "$work/$name" "$machine"; else left_out "the .deb: dpkg-deb is missing"; fi
    if command -v rpmbuild >/dev/null; then package_rpm "$work/$name" "$machine"; else left_out "the .rpm: rpmbuild is missing"; fi
    (cd -- "$work/built-$machine" && stat -c "%8s bytes  $machine %n" -- *)
done
if command -v python3 >/dev/null; then list_crates; else left_out "the list of crates: python3 is missing"; fi

# The place from which install.sh takes archives, where Cargo.toml names one.
page=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
sed "s|^releases=\$|releases=${page:+$page/releases/latest/download}|" scripts/install.sh >"$out/install.sh"
chmod 755 -- "$out/install.sh"
(cd -- "$out" && sha256sum -- * >"$work/sums" && mv -- "$work/sums" SHA256SUMS)
(cd -- "$out" && stat -c '%8s bytes  %n' -- *)
