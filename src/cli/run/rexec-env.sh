# For agents that start bash by its full path: bash sources the file that BASH_ENV names before it runs a command
# string, and this one hands that string to the rexec shell beside it. Scripts and interactive shells go on as they are.
#
# Use it in the agent's environment only:  BASH_ENV=/absolute/path/of/rexec-env.sh agent …
# shellcheck shell=bash

# With -x, bash would trace these lines too.
{ __rexec_letters=${-//[^abefkmnptuvxCEPT]/}; set +x; } 2>/dev/null
if [[ -n ${BASH_EXECUTION_STRING+set} && -x ${BASH_SOURCE[0]%/*}/rexec-bash ]]; then
    # The programs that the command starts run bash as usual.
    unset BASH_ENV
    # The options that bash would run the command string with.
    __rexec=()
    ! shopt -q login_shell || __rexec+=(-l)
    [[ -z $__rexec_letters ]] || __rexec+=("-$__rexec_letters")
    [[ ! -o pipefail ]] || __rexec+=(-o pipefail)
    [[ ! -o posix ]] || __rexec+=(-o posix)
    ! shopt -q extglob || __rexec+=(-O extglob)
    __rexec+=(-c "$BASH_EXECUTION_STRING")
    # A command string without a name of its own gets the shell's name as $0.
    if (($#)) || [[ $0 != "$BASH" && $0 != bash ]]; then
        exec -a "$BASH" "${BASH_SOURCE[0]%/*}/rexec-bash" "${__rexec[@]}" "$0" "$@"
    fi
    exec -a "$0" "${BASH_SOURCE[0]%/*}/rexec-bash" "${__rexec[@]}"
fi
# Scripts read the user's own file, which `rexec run` has handed on.
# shellcheck disable=SC1090 # The file is of the user's choice.
[[ -z ${REXEC_OWN_BASH_ENV-} || ! -r $REXEC_OWN_BASH_ENV ]] || . "$REXEC_OWN_BASH_ENV"
case $__rexec_letters in
    *x*) unset __rexec_letters; set -x ;;
    *) unset __rexec_letters ;;
esac
