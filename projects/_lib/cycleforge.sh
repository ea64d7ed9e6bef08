#!/usr/bin/env bash
# What every CycleForge project shares: logging, steps, node attributes, bounded waits, whole-file writes. Sourced, never
# run; the caller has set -euo pipefail. One source; the build places a copy in each project.
#
# All paths of the node start with CYCLEFORGE_ROOT, which is empty on a node and a folder in the tests.
# shellcheck disable=SC2034 # the CF_ variables are results for the script that sources this

readonly CF_ROOT="${CYCLEFORGE_ROOT:-}"
readonly CF_STATE_DIR="${CF_ROOT}/var/lib/cycleforge"
readonly CF_CONF_DIR="${CF_ROOT}/etc/cycleforge"
CF_PROJECT="${CYCLECLOUD_PROJECT_NAME:-cycleforge}"
CF_STEP=""
CF_STEP_START=0
CF_OUTCOME=""
CF_CHANGED=0
CF_FAILED_AT=""

# ---------------------------------------------------------------- log and stop

cf_log() { TZ=UTC printf '%(%FT%TZ)T %s: %s\n' -1 "${CF_PROJECT}" "$*"; }

cf_warn() { cf_log "WARNING: $*" >&2; }

# cf_die WHAT [WHY [FIX]]: the last words of a script, one line each.
cf_die() {
    cf_log "ERROR: ${CF_STEP:+${CF_STEP}: }$1" >&2
    [[ -z "${2:-}" ]] || cf_log "  why: $2" >&2
    [[ -z "${3:-}" ]] || cf_log "  do:  $3" >&2
    CF_STEP=""
    exit 1
}

# Milliseconds on a clock that only this process compares with itself. EPOCHREALTIME writes the locale's radix character.
cf_now_ms() {
    local now="${EPOCHREALTIME:-$(date +%s.%6N)}" # Bash 4.4 of EL 8 has no EPOCHREALTIME
    now="${now//[.,]/}"
    REPLY=$((10#${now} / 1000))
}

# cf_step NAME COMMAND...: run one step and log it with what it did (cf_outcome) and how long it took.
# The command runs outside any condition, so that set -e holds inside it; cf_on_exit names the step that failed.
cf_step() {
    CF_STEP="$1" CF_OUTCOME="done"
    shift
    cf_now_ms
    CF_STEP_START="${REPLY}"
    "$@"
    cf_now_ms
    cf_log "${CF_STEP}: ${CF_OUTCOME} ($((REPLY - CF_STEP_START)) ms)"
    CF_STEP=""
}

cf_outcome() { CF_OUTCOME="$*"; }

cf_on_exit() {
    local -r code="$1"
    if ((code != 0)) && [[ -n "${CF_STEP}" ]]; then
        cf_log "ERROR: step '${CF_STEP}' ended with exit code ${code}${CF_FAILED_AT:+ at ${CF_FAILED_AT}}" >&2
        cf_log "  do:  read the lines above, then run the script again; it is safe to repeat" >&2
    fi
}

# cf_main FUNCTION ARGS...: entry point of every script.
cf_main() {
    set -o errtrace
    trap 'CF_FAILED_AT="${BASH_SOURCE[0]##*/}:${LINENO}: ${BASH_COMMAND}"' ERR
    trap 'cf_on_exit "$?"' EXIT
    umask 022
    cd /
    "$@"
}

# ---------------------------------------------------------------- the node

# cf_attribute KEY DEFAULT: value of a node attribute in REPLY. Outside CycleCloud (no jetpack) it is the default.
cf_attribute() {
    local -r key="$1" default="$2"
    if ! command -v jetpack >/dev/null; then
        REPLY="${default}"
        return
    fi
    REPLY="$(timeout 60 jetpack config "${key}" "${default:-None}")" ||
        cf_die "jetpack config ${key} failed" "the node agent does not answer" "run 'jetpack config ${key}' on the node"
    # A key that exists without a value prints None, so None means "not set" here.
    if [[ -z "${REPLY}" || "${REPLY}" == "None" ]]; then REPLY="${default}"; fi
}

# cf_attribute_bool KEY true|false: REPLY is true or false. jetpack prints Python's True and False.
cf_attribute_bool() {
    cf_attribute "$1" "$2"
    case "${REPLY,,}" in
        true | yes | on | 1) REPLY=true ;;
        false | no | off | 0) REPLY=false ;;
        *) cf_die "attribute $1 is '${REPLY}', expected true or false" "" "correct it in the definition and build again" ;;
    esac
}

# cf_attribute_int KEY DEFAULT MIN MAX: REPLY is a whole number within the limits.
cf_attribute_int() {
    cf_attribute "$1" "$2"
    if [[ ! "${REPLY}" =~ ^[0-9]{1,12}$ ]] || ((10#${REPLY} < $3 || 10#${REPLY} > $4)); then
        cf_die "attribute $1 is '${REPLY}', expected a whole number from $3 to $4" "" \
            "correct it in the definition and build again"
    fi
    REPLY=$((10#${REPLY}))
}

# cf_attribute_path KEY DEFAULT: REPLY is an absolute path of plain characters, or empty when the default is empty.
cf_attribute_path() {
    cf_attribute "$1" "$2"
    cf_plain_path "$1"
}

# cf_plain_path KEY: stop unless REPLY, the value of KEY, is such a path or empty.
cf_plain_path() {
    if [[ -n "${REPLY}" && ! "${REPLY}" =~ ^(/[A-Za-z0-9._-]+)+$ ]] || [[ "${REPLY}/" == */../* ]]; then
        cf_die "attribute $1 is '${REPLY}', expected an absolute path of letters, digits, '.', '_', '-'" "" \
            "correct it in the definition and build again"
    fi
}

# cf_role: scheduler, login, execute or unknown, in REPLY.
cf_role() {
    cf_attribute slurm.role unknown
    case "${REPLY}" in
        scheduler | login | execute) ;;
        *) REPLY=unknown ;;
    esac
}

# cf_os: family and version in REPLY, for example "ubuntu 24.04", "el 9" or "unknown alpine-3.20".
cf_os() {
    local id="" version="" like="" key value
    if [[ -r "${CF_ROOT}/etc/os-release" ]]; then
        while IFS='=' read -r key value || [[ -n "${key}" ]]; do
            value="${value#\"}" value="${value%\"}"
            case "${key}" in
                ID) id="${value}" ;;
                VERSION_ID) version="${value}" ;;
                ID_LIKE) like="${value}" ;;
            esac
        done <"${CF_ROOT}/etc/os-release"
    fi
    case "${id} ${like} " in
        "ubuntu "*) REPLY="ubuntu ${version}" ;;
        "rhel "* | "almalinux "* | "rocky "* | *" rhel "*) REPLY="el ${version%%.*}" ;;
        *) REPLY="unknown ${id:-none}-${version:-none}" ;;
    esac
}

# ---------------------------------------------------------------- configuration of our own units

# cf_load_conf FILE: KEY=VALUE lines into CF_CONF. Not sourced: a value is text, never code.
declare -gA CF_CONF=()
cf_load_conf() {
    local key value
    CF_CONF=()
    [[ -r "$1" ]] || cf_die "$1 is missing" "the project's cluster-init script writes it" "run the converge again"
    while IFS='=' read -r key value; do
        if [[ "${key}" =~ ^[a-z][a-z0-9_]*$ ]]; then CF_CONF["${key}"]="${value}"; fi
    done <"$1"
}

# ---------------------------------------------------------------- files

# cf_write PATH MODE [OWNER]: standard input, a text, becomes the file, in one rename; CF_CHANGED tells whether anything
# changed. A file that is written gets the owner (UID:GID); one that stays keeps its own.
# Use a redirection, not a pipe: a pipe would run it in a subshell and lose CF_CHANGED. A converge writes a hundred files,
# so Bash itself reads and compares them; a program for each of these would take most of its time.
cf_write() {
    local -r path="$1" mode="$2" owner="${3:-}" unread=$'\a'
    local text="${unread}" mask=""
    # 0 is a NUL byte in front of more; a read that fails leaves the variable as it was.
    if IFS= read -r -d '' text || [[ "${text}" == "${unread}" ]]; then
        cf_die "the new content of ${path} is not text or cannot be read" "the file stays as it is" "look at the lines above"
    fi
    cf_temporary "${path}" || return
    # Nearly all files have a mode that a umask gives, without chmod.
    case "${mode}" in
        0644) mask=022 ;;
        0600) mask=077 ;;
    esac
    if cf_holds "${path}" "${text}"; then
        if cf_has_mode "${path}" "${mode}"; then
            CF_CHANGED=0
            return
        fi
        mask="" # the default ACL of a folder counts more than a umask, and less than chmod
    fi
    # mv takes the place of the subshell, which saves one process per file.
    (
        umask "${mask:-077}" && set -o noclobber && {
            cf_is_own && printf '%s' "${text}" && { [[ -z "${owner}" ]] || chown "${owner}" /proc/self/fd/1; } &&
                { [[ -n "${mask}" ]] || chmod "${mode}" /proc/self/fd/1; }
        } >"${CF_TEMPORARY}" && exec mv -fT "${CF_TEMPORARY}" "${path}"
    ) || return
    CF_CHANGED=1
}

# cf_copy SOURCE PATH MODE: the same for a file that need not be text.
cf_copy() {
    local -r source="$1" path="$2" mode="$3"
    cf_temporary "${path}" || return
    if [[ -f "${path}" && ! -L "${path}" ]] && cmp -s "${source}" "${path}" && cf_has_mode "${path}" "${mode}"; then
        CF_CHANGED=0
        return
    fi
    (
        umask 077 && set -o noclobber && { cf_is_own && cat "${source}" && chmod "${mode}" /proc/self/fd/1; } >"${CF_TEMPORARY}" &&
            exec mv -fT "${CF_TEMPORARY}" "${path}"
    ) || return
    CF_CHANGED=1
}

# cf_is_own: whether standard output is a plain file. noclobber makes it new, but opens a device that somebody else has put
# there. In a folder of others a name may be a link a moment later, so mode and owner are given to the open file.
cf_is_own() { [[ -f /proc/self/fd/1 ]]; }

# cf_temporary PATH: CF_TEMPORARY is a file beside it that does not exist; what a killed run left there is removed.
CF_TEMPORARY=""
cf_temporary() {
    local -r folder="${1%/*}" name="${1##*/}"
    local -r left=("${folder}/.${name}.cycleforge."*)
    if [[ -e "${left[0]:-}" || -L "${left[0]:-}" ]]; then rm -f "${left[@]}" || return; fi
    if [[ ! -d "${folder}" ]]; then mkdir -p "${folder}" || return; fi
    CF_TEMPORARY="${folder}/.${name}.cycleforge.${BASHPID}"
}

# cf_holds PATH TEXT: whether it is a file, no link, with exactly this text. No more is read than tells it.
cf_holds() {
    local text=$'\a' LC_ALL=C
    if [[ ! -f "$1" || -L "$1" ]] || IFS= read -r -d '' -n "$((${#2} + 1))" text <"$1"; then return 1; fi
    [[ "${text}" == "$2" ]]
}

# The modes of many files, asked for at once; empty but for a moment.
declare -gA CF_MODES=()
cf_has_mode() {
    local have="${CF_MODES["$1"]:-}"
    if [[ -z "${have}" ]]; then have="$(stat -c %a "$1")" || return; fi
    ((8#${have} == 8#$2))
}

# cf_outcome_file TEXT: the outcome of a step that wrote one file.
cf_outcome_file() {
    if ((CF_CHANGED)); then cf_outcome "${1:+$1, }written"; else cf_outcome "${1:+$1, }unchanged"; fi
}

cf_remove() {
    CF_CHANGED=0
    if [[ -e "$1" || -L "$1" ]]; then
        rm -f "$1"
        CF_CHANGED=1
    fi
}

# cf_sweep PATH...: remove those that are there, folders whole; where none is, as a pattern that matches nothing, no program starts.
cf_sweep() {
    local path
    local -a found=()
    for path in "$@"; do
        if [[ -e "${path}" || -L "${path}" ]]; then found+=("${path}"); fi
    done
    if ((${#found[@]} > 0)); then rm -rf "${found[@]}"; fi
}

# cf_install_files SOURCE_DIR TARGET_DIR NAME...: files that must outlive the spec's folder, which lies on a disk that
# deallocation empties. CF_CHANGED counts the files that differed.
cf_install_files() {
    local -r source="$1" target="$2"
    local name mode changed=0
    shift 2
    if [[ -d "${target}" ]]; then
        while read -r mode name; do CF_MODES["${target}/${name}"]="${mode}"; done < <(
            cd "${target}" && stat -c '%a %n' -- "$@" 2>/dev/null || true
        )
    fi
    for name in "$@"; do
        mode=0644
        if [[ "${name}" == *.sh ]]; then mode=0755; fi
        cf_write "${target}/${name}" "${mode}" <"${source}/${name}"
        changed=$((changed + CF_CHANGED))
    done
    CF_MODES=()
    CF_CHANGED="${changed}"
}

# cf_applied NAME FILES: whether cf_apply has succeeded for exactly this content of FILES (paths separated by colons);
# their digest in REPLY.
cf_applied() {
    local -r stamp="${CF_STATE_DIR}/applied/$1"
    local -a paths=()
    IFS=':' read -r -a paths <<<"$2"
    REPLY="$(cat -- "${paths[@]}" 2>/dev/null | sha256sum || true)"
    [[ -r "${stamp}" && "$(<"${stamp}")" == "${REPLY}" ]]
}

# cf_apply NAME FILES COMMAND...: run the command unless it has succeeded for this content. The stamp is written after the
# command, so a kill in between repeats it.
cf_apply() {
    local -r name="$1"
    CF_CHANGED=0
    if cf_applied "${name}" "$2"; then return; fi
    local -r digest="${REPLY}"
    shift 2
    # Explicit: inside a caller's condition set -e would not stop before the stamp.
    "$@" || return
    cf_write "${CF_STATE_DIR}/applied/${name}" 0644 <<<"${digest}"
    CF_CHANGED=1
}

# ---------------------------------------------------------------- waiting

# cf_wait_for SECONDS COMMAND...: poll until the command succeeds; 1 after the limit.
cf_wait_for() {
    local -r deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        if ((SECONDS >= deadline)); then return 1; fi
        sleep "${CYCLEFORGE_POLL_S:-2}"
    done
}

# ---------------------------------------------------------------- what others can write

# A number that came out of a file or a program is text until cf_number has seen it: Bash takes text for an expression and
# runs the commands in `x[$(...)]`, and it takes 08 for octal. Text is a key of an array only where it has a strict form, and
# never of one that `unset` or (( )) would expand a second time: unset -v 'ARRAY[$key]', $((${ARRAY[${key}]} + 1)).

# cf_number TEXT: TEXT is a whole number of at most 12 digits, which is in REPLY in base ten; otherwise 1.
cf_number() {
    REPLY=""
    # No regular expression: the caller may still need what its own has matched.
    if [[ -z "$1" || "$1" == *[!0123456789]* ]] || ((${#1} > 12)); then return 1; fi
    REPLY=$((10#$1))
}

# cf_given FILE [BYTES]: the text of a file that others can write or replace, in REPLY. 1 when it is no plain file, has more
# than BYTES, or cannot be read. No link is followed, no pipe waited for, and a binary file is a text of odd bytes.
cf_given() {
    local -r most="${2:-65536}"
    local text LC_ALL=C
    REPLY=""
    if [[ ! -f "$1" || -L "$1" ]]; then return 1; fi
    # Between the look and the read another file may take its place.
    text="$(dd if="$1" iflag=nofollow,nonblock,fullblock bs="$((most + 1))" count=1 status=none 2>/dev/null | tr '\0' '?')" || return 1
    if ((${#text} > most)); then return 1; fi
    REPLY="${text}"
}

# ---------------------------------------------------------------- numbers

# cf_milli TEXT: a decimal number without sign or exponent, times 1000 and cut, in REPLY; 1 when it is none.
# Text comparison would call 9.5 more than 23.0; everything that is compared goes through here, hundreds of values in a
# health run, so without a regular expression: Bash compiles it anew each time.
cf_milli() {
    local -r whole="${1%%.*}"
    local fraction=""
    REPLY=""
    if [[ "$1" == *.* ]]; then
        fraction="${1#*.}"
        if [[ -z "${fraction}" ]]; then return 1; fi
    fi
    if [[ -z "${whole}" || "${whole}${fraction}" == *[!0123456789]* ]] || ((${#whole} > 14)); then return 1; fi
    fraction+="000"
    REPLY=$((10#${whole}${fraction:0:3}))
}

# cf_compare A lt|le|gt|ge|eq|ne B: 0 when it holds, 1 when not, 2 when one of them is no number.
cf_compare() {
    local left right
    cf_milli "$1" || return 2
    left="${REPLY}"
    cf_milli "$3" || return 2
    right="${REPLY}"
    case "$2" in
        lt) ((left < right)) ;;
        le) ((left <= right)) ;;
        gt) ((left > right)) ;;
        ge) ((left >= right)) ;;
        eq) ((left == right)) ;;
        ne) ((left != right)) ;;
        *) return 2 ;;
    esac
}

# ---------------------------------------------------------------- systemd and Slurm

# cf_unit FILE: install a unit file or a drop-in (path below /etc/systemd/system) from standard input.
cf_unit() { cf_write "${CF_ROOT}/etc/systemd/system/$1" 0644; }

# cf_own_unit NAME FILES: enable a unit of ours and (re)start it when its files (separated by colons) changed. Never for
# Slurm's daemons: those start after all cluster-init has finished. A failure shows the unit's own last lines.
cf_own_unit() {
    local -r unit="$1" files="$2"
    if [[ "${unit}" != cycleforge-* ]]; then cf_die "cf_own_unit is for our own units, not for ${unit}"; fi
    CF_CHANGED=0
    # Reloading and enabling cost more than all the rest of a converge that changes nothing.
    if cf_applied "unit-${unit}" "${files}" && systemctl --quiet is-enabled "${unit}"; then return; fi
    # enable reloads too unless told not to; one reload serves the unit and its links.
    systemctl --quiet --no-reload enable "${unit}"
    systemctl daemon-reload
    if ! cf_apply "unit-${unit}" "${files}" systemctl restart "${unit}"; then
        journalctl --unit "${unit}" --boot --lines 20 --output cat --no-pager >&2 || true
        cf_die "${unit} did not start" "its last lines are above" \
            "correct the cause, then run 'systemctl restart ${unit}' or converge again"
    fi
}

# cf_drop_unit NAME FILE...: take a unit of ours away again, with its drop-ins (paths below /etc/systemd/system).
cf_drop_unit() {
    local -r unit="$1"
    local file changed=0
    if [[ -e "${CF_ROOT}/etc/systemd/system/${unit}" ]]; then systemctl --quiet --no-reload disable --now "${unit}" || true; fi
    for file in "$@"; do
        cf_remove "${CF_ROOT}/etc/systemd/system/${file}"
        changed=$((changed + CF_CHANGED))
    done
    rm -f "${CF_STATE_DIR}/applied/unit-${unit}"
    if ((changed > 0)); then systemctl daemon-reload; fi
    CF_CHANGED="${changed}"
}

# cf_mounted PATH: whether exactly this path is a mount point.
cf_mounted() { mountpoint -q "${CF_ROOT}$1"; }

# cf_slurm_hook prolog|epilog NAME FILE: put a job hook where slurm.conf of cyclecloud-slurm 4.x looks for it. The
# folder lies on the shared /sched, so the scheduler writes it once for all nodes. No line of slurm.conf changes.
cf_slurm_hook() {
    local folder
    folder="$(readlink -f "${CF_ROOT}/etc/slurm/$1.d" || true)"
    if [[ -z "${folder}" || ! -d "${folder}" ]]; then
        cf_die "/etc/slurm/$1.d is missing on the scheduler" "the slurm project has not configured this node" \
            "check that cyclecloud/slurm:scheduler runs before this project (Order below 10000)"
    fi
    cf_write "${folder}/$2" 0755 <"$3"
}

# cf_node_name: Slurm's name of this node, in REPLY.
cf_node_name() {
    local file options
    REPLY="${SLURMD_NODENAME:-}"
    if [[ -n "${REPLY}" ]]; then return; fi
    for file in "${CF_ROOT}/etc/default/slurmd" "${CF_ROOT}/etc/sysconfig/slurmd"; do
        if [[ -r "${file}" ]]; then
            options="$(grep -m 1 '^SLURMD_OPTIONS=' "${file}" || true)"
            if [[ "${options}" =~ -N[[:space:]]+([A-Za-z0-9._-]+) ]]; then
                REPLY="${BASH_REMATCH[1]}"
                return
            fi
        fi
    done
    REPLY="${HOSTNAME%%.*}"
}

# ---------------------------------------------------------------- limits

# cf_limits: limits of login sessions and jobs. Shared, because the node base and the GPU base must write the same file.
# Memory locking is written only where nothing else does: cyclecloud-slurm 4.x ships limits.d/slurm-limits.conf.
cf_limits() {
    local -r folder="${CF_ROOT}/etc/security/limits.d"
    local nofile changed file
    local foreign=""
    cf_attribute_int cycleforge.limits.nofile 1048576 1024 1048576
    nofile="${REPLY}"
    cf_write "${folder}/90-cycleforge.conf" 0644 <<CONF
# Written by CycleForge. Open files per process.
* soft nofile ${nofile}
* hard nofile ${nofile}
root soft nofile ${nofile}
root hard nofile ${nofile}
CONF
    changed="${CF_CHANGED}"
    for file in "${folder}"/*.conf "${CF_ROOT}/etc/security/limits.conf"; do
        if [[ "${file##*/}" != 90-cycleforge-memlock.conf ]] &&
            grep -q -s -E '^[[:space:]]*\*[[:space:]]+(-|soft|hard)[[:space:]]+memlock[[:space:]]+unlimited' "${file}"; then
            foreign="${file##*/}"
        fi
    done
    if [[ -n "${foreign}" ]]; then
        cf_remove "${folder}/90-cycleforge-memlock.conf"
    else
        cf_write "${folder}/90-cycleforge-memlock.conf" 0644 <<'CONF'
# Written by CycleForge. InfiniBand registers memory, which needs it locked.
* soft memlock unlimited
* hard memlock unlimited
CONF
    fi
    cf_outcome "nofile ${nofile}, memlock by ${foreign:-90-cycleforge-memlock.conf}, $((changed + CF_CHANGED)) files changed"
}
