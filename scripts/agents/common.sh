# What the scripts that drive real programs share: their command line, a rexec of their own, hosts, and what was not run.
#
# A script that sources this names in `all` what it can drive, in `flags` its own options with the variables that they set
# to yes, and has a function `usage`.
# shellcheck shell=bash

me=${0##*/}
scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# Where agents and clients are installed, once for all.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rexec-agents
passed=() failed=() skipped=()

die() { printf '%s: %s\n' "$me" "$*" >&2; exit 1; }
# What cannot be tried is not a failure, but it is always named.
skip() { printf '%s: SKIPPED, not run: %s\n' "$1" "$2"; skipped+=("$1"); }

# Sets `prefix`, the variables of the flags, and `chosen`, which is what was named of `all` and
# `on_request`, or else `all`.
read_options() { # ARGUMENT …
    prefix=
    chosen=()
    while (($#)); do
        case $1 in
            --prefix) (($# >= 2)) || die "--prefix needs a folder"; prefix=$2; shift ;;
            -h | --help) usage; exit 0 ;;
            *)
                if [[ -n ${flags[$1]-} ]]; then
                    printf -v "${flags[$1]}" yes
                elif [[ " ${all[*]} ${on_request[*]-} " == *" $1 "* ]]; then
                    chosen+=("$1")
                else
                    usage >&2
                    die "unknown argument $1"
                fi
                ;;
        esac
        shift
    done
    ((${#chosen[@]})) || chosen=("${all[@]}")
}

# Makes `work`, a folder that goes with the script, and has `clean_up` called at its end, however it ends.
make_work() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/rexec-${me%.sh}.XXXXXX")
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'give_up; exit 143' TERM
}

# Builds rexec, unless `prefix` says where one is installed.
provide_rexec() {
    [[ -z $prefix ]] || return 0
    prefix=$work/prefix
    "$scripts/install.sh" --quiet --prefix "$prefix" >"$work/install" 2>&1 || die "the build failed: $(tail -n 20 "$work/install")"
}

# Ends processes of this shell's, and waits for them.
end() { # PID …
    local pid
    for pid in "$@"; do kill "$pid" 2>/dev/null || true; done
    for pid in "$@"; do wait "$pid" 2>/dev/null || true; done
}

# Waits until a file contains a pattern, for 10 s at the longest.
wait_for() { # FILE PATTERN WHAT
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        if grep -q -- "$2" "$1" 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    die "$3: it did not get ready: $(tail -n 5 -- "$1" 2>/dev/null)"
}

# Starts a host with its files in a folder, each with a name of its own, and with a person's settings, if a folder with them
# is named. Sets `host`, its process, and `socket`.
start_host() { # FOLDER NAME [SETTINGS]
    local settings=(env -u REXEC_INSIDE) options=(--no-config)
    [[ -z ${3-} ]] || { settings+=(XDG_CONFIG_HOME="$3"); options=(); }
    socket=$1/$2-run/host.sock
    mkdir -m 700 -- "$1/$2-run"
    "${settings[@]}" REXEC_SOCKET="$socket" REXEC_HOME="$1/$2-journal" \
        "$prefix/bin/rexec-host" "${options[@]}" </dev/null >"$1/$2.console" 2>"$1/$2.host" &
    host=$!
    wait_for "$1/$2.console" '^rexec journal:' "the host"
}

# Counts as failed what has not ended, and sums up: this script runs out of time.
give_up() {
    local name
    for name in "${chosen[@]}"; do
        [[ " ${passed[*]} ${failed[*]} ${skipped[*]} " == *" $name "* ]] || failed+=("$name")
    done
    sum_up
}

# Says what passed, what was skipped and what failed. Exits 1 if something has failed.
sum_up() {
    ((${#passed[@]} == 0)) || printf '%s: passed: %s\n' "$me" "$(IFS=, && printf '%s' "${passed[*]}")"
    ((${#skipped[@]} == 0)) || printf '%s: SKIPPED, not run: %s\n' "$me" "${skipped[*]}"
    ((${#failed[@]} == 0)) || die "a check failed of: ${failed[*]}"
}
