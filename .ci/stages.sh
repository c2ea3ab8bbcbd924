# What .ci/run is made of: stages with a limit each, and a report at the end from which alone one can mend.
#
# A script that sources this calls begin_stages, then stage for each, then report. `results` has a directory for each
# stage, with its output in `said`, how it ended in `how`, and what .ci/tests writes there.
# shellcheck shell=bash

# The longest report, and what it has of each failure, in lines.
report_lines=200
report_lines_each=30

begin_stages() { # SECONDS_FOR_ALL FOLDER_FOR_RESULTS
    deadline=$((SECONDS + $1))
    results=$2
    mkdir -p -- "$results"
    load_before=$(load)
    passed=() failed=() ended=()
    running=
    aside=
}

# Runs a function that calls stage in the background, where others leave a processor free. Until `gather`, nothing of it
# is shown.
begin_aside() { # FUNCTION
    mkdir -- "$results/aside"
    run_aside "$1" >/dev/null &
    aside=$!
}

run_aside() { # FUNCTION
    local results=$results/aside
    trap 'end_stage; exit 143' TERM
    renice -n 19 "$BASHPID"
    "$1"
}

# Waits for the stages in the background, shows them, and takes them in.
gather() {
    local place new
    wait "$aside" || true
    aside=
    for place in "$results"/aside/*/; do
        [[ -e ${place}how ]] || continue
        new=$results/$((100 + ${#ended[@]}))
        mv -- "$place" "$new"
        printf '\n=== %s\n' "$(sed 's/: .*//' "$new/how")"
        cat -- "$new/said"
        take_in "$new"
    done
    rm -rf -- "$results/aside"
}

# Notes how a stage has ended, and shows it.
take_in() { # PLACE
    local how
    how="=== $(<"$1/how")"
    if [[ -e $1/has-failed ]]; then failed+=("$(<"$1/has-failed")"); else passed+=("$1"); fi
    printf '%s\n' "$how"
    ended+=("$how")
}

# Runs a command as a stage, with a limit in seconds.
stage() { # NAME LIMIT COMMAND …
    local name=$1 limit=$2 from=$SECONDS code=0 left=$((deadline - SECONDS)) place how
    shift 2
    printf '\n=== %s\n' "$name"
    ((left > 0)) || left=1
    ((limit <= left)) || limit=$left
    place=$results/$((100 + ${#ended[@]}))
    mkdir -- "$place"
    # What a stage leaves running may hold a pipe open, so its output goes to a file.
    : >"$place/said"
    CI_RESULTS=$place timeout --kill-after=20 "$limit" "$@" >>"$place/said" 2>&1 &
    running=$!
    # Nobody reads along in the background, and a signal need not wait there for what is in front.
    [[ $results == */aside ]] || tail -n +1 -f -s 0.2 --pid="$running" -- "$place/said"
    wait "$running" || code=$?
    running=
    case $code in
        0) how="passed, $((SECONDS - from)) s" ;;
        124 | 137) how="NOT DONE in $limit s" ;;
        *) how="FAILED with $code, $((SECONDS - from)) s" ;;
    esac
    ((code == 0)) || printf '%s\n' "$name" >"$place/has-failed"
    printf '%s: %s\n' "$name" "$how" >"$place/how"
    take_in "$place"
}

# Ends the stages that run.
end_stage() {
    local process
    for process in ${running-} ${aside-}; do
        kill "$process" 2>/dev/null || true
        wait "$process" || true
    done
}

load() { cut -d ' ' -f 1-3 /proc/loadavg; }

# Whether a package registry answers.
has_network() { (cd / && CARGO_NET_RETRY=0 timeout 20 cargo info memchr) >/dev/null 2>&1; }

# What the results depend on besides the change.
machine() {
    local network=no
    ! has_network || network=yes
    printf 'kernel %s, uid %s, %s cores, load %s at the beginning and %s now\n' \
        "$(uname -sr)" "$(id -u)" "$(nproc)" "$load_before" "$(load)"
    printf 'free: %s MB of memory, %s MB of disk; network: %s\n' \
        "$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)" \
        "$(($(df --output=avail -- "$results" | tail -n 1) / 1024))" "$network"
}

# The names of what failed, then the last lines of each.
failures() {
    local stage unit stages=()
    for stage in "$results"/*/has-failed; do [[ ! -e $stage ]] || stages+=("${stage%/*}"); done
    for stage in "${stages[@]}"; do
        printf 'failed: %s\n' "$(<"$stage/has-failed")"
        for unit in "$stage"/failed/*; do [[ ! -e $unit ]] || printf 'failed:     %s\n' "$(head -n 1 -- "$unit")"; done
    done | sed -n 1,40p
    for stage in "${stages[@]}"; do
        printf '\n--- %s\n' "$(<"$stage/has-failed")"
        for unit in "$stage"/failed/*; do
            if [[ -e $unit ]]; then
                printf -- '--- '
                cat -- "$unit"
            else
                tail -n "$report_lines_each" -- "$stage/said" | cut -c 1-400
            fi
        done
    done
}

# Prints what happened, the most telling last. Returns 1 if something has failed.
report() {
    local count_passed=0 count_failed=0 count_skipped place units
    {
        printf '\n'
        machine
        printf '%s\n' "${ended[@]}"
        grep -ah '^ADVISORY' "$results"/*/said || true
        sed 's/^/FLAKY /' "$results"/*/flaky 2>/dev/null || true
        failures
    } | sed -n "1,${report_lines}p"
    # A stage that counts no units is one itself.
    for place in "$results"/*/; do
        units=()
        [[ ! -s ${place}counts ]] || read -r -a units <"${place}counts"
        ((count_passed += ${units[0]-0}, count_failed += ${units[1]-0})) || true
        if [[ -e ${place}has-failed ]]; then
            ((${units[1]-0} > 0)) || ((count_failed += 1))
        elif ((${#units[@]} == 0)); then
            ((count_passed += 1))
        fi
    done
    # A script names at its end once more what it has skipped.
    count_skipped=$(cat -- "$results"/*/said | grep -aE '^(SKIPPED|[^ ]+: SKIPPED,)' |
        grep -avE '^[^ ]+\.sh: SKIPPED, not run' | sort -u | wc -l) || true
    printf '\n'
    if ((${#failed[@]})); then
        printf 'FAILED after %d s:' "$SECONDS"
        printf ' %s;' "${failed[@]}"
        printf '\n'
    else
        printf 'all stages passed in %d s\n' "$SECONDS"
    fi
    printf '%d passed, %d failed, %d skipped\n' "$count_passed" "$count_failed" "$count_skipped"
    ((${#failed[@]} == 0))
}
