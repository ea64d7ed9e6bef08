#!/bin/sh
# Started by the CustomScript extension on the CycleCloud server; its exit status is the deployment's result.
# The deployment adds two lines above this text, each the base64 of a JSON object:
#   CYCLEFORGE_FACTS=…    what the deployment knows (addresses, names of the payload deployments, digest)
#   CYCLEFORGE_SECRETS=…  passwords; they go into a file that only root can read, and this script removes itself
# It fetches the payload from the outputs of the payload deployments with the server's identity, checks its digest,
# unpacks it, starts cycleforge-bootstrap.service and waits, within a limit, until that has succeeded or failed. Then it
# sees that the site answers although the unit has ended, and passes the server's fingerprints on to the deployment.
set -eu
umask 077
# In the C locale the Python of EL 8 reads and writes ASCII only.
export LC_ALL=C.UTF-8 PYTHONIOENCODING=utf-8

readonly root="${CYCLEFORGE_ROOT:-}"
readonly home="${root}/var/lib/cycleforge" versions="${root}/opt/cycleforge" units="${root}/etc/systemd/system"
readonly unit=cycleforge-bootstrap.service
readonly imds="${CYCLEFORGE_IMDS:-http://169.254.169.254}"
readonly fetch_s="${CYCLEFORGE_FETCH_SECONDS:-900}" pause_s="${CYCLEFORGE_PAUSE_SECONDS:-5}"
# The extension itself ends after 90 minutes; fetching (15) and the program (65) end before this script gives up (84).
# The site and the record of the fingerprints get two minutes each.
readonly wait_s="${CYCLEFORGE_WAIT_SECONDS:-5040}" after_s="${CYCLEFORGE_AFTER_SECONDS:-120}"
started=$(date +%s)
readonly started
readonly api=2021-04-01
token_until=0

log() { printf '%s start.sh: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"; }
die() {
    log "ERROR: $*" >&2
    exit 1
}

# The extension keeps its script on disk; ours begins with the secrets.
remove_script() {
    if [ -f "$0" ] && grep -q '^CYCLEFORGE_SECRETS=.' "$0"; then
        shred -u "$0" 2>/dev/null || rm -f "$0"
    fi
}

# shellcheck disable=SC2329 # the trap calls it
clean_up() {
    status=$?
    rm -rf "${scratch:-/nonexistent}"
    remove_script
    exit "${status}"
}

find_python() {
    for python in "${CYCLEFORGE_PYTHON:-}" python3 /usr/libexec/platform-python; do
        if [ -n "${python}" ] && command -v "${python}" >/dev/null 2>&1; then
            return
        fi
    done
    die "this server has neither python3 nor /usr/libexec/platform-python"
}

# lines PATH...: the values at these paths (`a.b`) of the JSON on standard input, one a line; empty if there is none. A list
# is one line of words. Isolated and without packages: nothing but the standard library has a say, whatever the locale.
lines() {
    "${python}" -I -S -c '
import json, sys
document = json.loads(sys.stdin.buffer.read().decode("utf-8"))
for path in sys.argv[1:]:
    value = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    words = value if isinstance(value, list) else [] if value is None else [value]
    line = " ".join(" ".join(str(word).split()) for word in words) + "\n"
    sys.stdout.buffer.write(line.encode("utf-8"))' "$@"
}

# store FILE TEXT PATH...: JSON that the deployment passed, stored completely or not at all; the values at these paths go
# into the file FILE.lines.
store() {
    file=$1 text=$2
    shift 2
    printf '%s' "${text}" | base64 -d >"${home}/.${file}.new" 2>/dev/null || die "${file} of the deployment is not base64"
    lines "$@" <"${home}/.${file}.new" >"${scratch}/${file}.lines" 2>/dev/null || die "${file} of the deployment is not JSON"
    mv -f "${home}/.${file}.new" "${home}/${file}"
}

# For what this script asks of Resource Manager; the program reads the same facts.
use_proxy() {
    [ -n "${proxy}" ] || return 0
    export http_proxy="${proxy}" https_proxy="${proxy}" no_proxy="${exceptions}"
}

take_over() {
    install -d -m 0700 "${home}"
    [ -n "${CYCLEFORGE_FACTS:-}" ] || die "the deployment did not pass CYCLEFORGE_FACTS"
    [ -n "${CYCLEFORGE_SECRETS:-}" ] || die "the deployment did not pass CYCLEFORGE_SECRETS"
    store facts.json "${CYCLEFORGE_FACTS}" \
        armEndpoint subscriptionId resourceGroup payloadSha256 payloadDeployments fingerprintRecord proxyUrl noProxy
    store secrets.json "${CYCLEFORGE_SECRETS}"
    sync
    {
        read -r arm
        read -r subscription
        read -r resource_group
        read -r sha
        read -r payloads
        read -r record
        read -r proxy
        read -r exceptions
    } <"${scratch}/facts.json.lines"
    use_proxy
    group="${arm%/}/subscriptions/${subscription}/resourceGroups/${resource_group}"
    case "${sha}" in
    '' | *[!0-9a-f]*) die "payloadSha256 of the deployment is not a valid sha256" ;;
    esac
}

# The bearer token goes into a header file: every user can read command lines. It is asked for again after five minutes,
# as the program does, or when it was refused.
fetch_token() {
    [ "$(date +%s)" -ge "${token_until}" ] || return 0
    curl -sS --noproxy '*' --max-time 10 -H Metadata:true -G -o "${scratch}/token.json" \
        --data-urlencode "resource=${arm}" \
        "${imds}/metadata/identity/oauth2/token?api-version=2018-02-01" 2>"${scratch}/why" || return 1
    token=$(lines access_token <"${scratch}/token.json" 2>/dev/null) || token=
    if [ -z "${token}" ]; then
        printf 'instance metadata gave no token\n' >"${scratch}/why"
        return 1
    fi
    printf 'Authorization: Bearer %s\n' "${token}" >"${scratch}/header"
    token_until=$(($(date +%s) + 300))
}

# ask ARGUMENT...: one request to Resource Manager with these arguments of curl; its `code` and, in three lines of the
# file `parsed`: message of an error, state, content.
ask() {
    fetch_token || return 1
    code=$(curl -sS --max-time 60 -H "@${scratch}/header" -o "${scratch}/answer" -w '%{http_code}' "$@" \
        2>"${scratch}/why") || return 1
    [ "${code}" != 401 ] || token_until=0
    # What is not JSON has neither.
    lines error.message properties.provisioningState properties.outputs.content.value \
        <"${scratch}/answer" >"${scratch}/parsed" 2>/dev/null || printf '\n\n\n' >"${scratch}/parsed"
    {
        read -r message
        read -r state
    } <"${scratch}/parsed"
}

# The reason of a request that was refused.
refused() { printf 'HTTP %s: %s\n' "${code}" "$(printf '%s' "${message}" | cut -c 1-300)" >"${scratch}/why"; }

# read_deployment NAME: its answer and its state; 1 = try again, 2 = permanent.
read_deployment() {
    ask "${group}/providers/Microsoft.Resources/deployments/$1?api-version=${api}" || return 1
    if [ "${code}" != 200 ]; then
        refused
        return 1
    fi
    case "${state}" in
    Succeeded) ;;
    Failed | Canceled)
        printf 'the deployment is %s\n' "${state}" >"${scratch}/why"
        return 2
        ;;
    *)
        printf 'the deployment is still %s\n' "${state:-unknown}" >"${scratch}/why"
        return 1
        ;;
    esac
}

# fetch_chunk NAME: append the output `content` of one payload deployment; returns as read_deployment.
fetch_chunk() {
    read_deployment "$1" || return $?
    tail -n 1 "${scratch}/parsed" | base64 -d >"${scratch}/chunk" 2>/dev/null || return 1
    if [ ! -s "${scratch}/chunk" ]; then
        printf 'the deployment has no output named content yet\n' >"${scratch}/why"
        return 1
    fi
    cat "${scratch}/chunk" >>"${scratch}/payload"
}

fetch_payload() {
    deadline=$((started + fetch_s))
    : >"${scratch}/payload"
    [ -n "${payloads}" ] || die "the deployment names no payload deployments"
    for name in ${payloads}; do
        while :; do
            result=0
            fetch_chunk "${name}" || result=$?
            [ "${result}" -ne 0 ] || break
            why=$(cat "${scratch}/why")
            [ "${result}" -ne 2 ] || die "payload ${name}: ${why}"
            [ "$(date +%s)" -lt "${deadline}" ] || die "payload ${name} could not be read within ${fetch_s} s: ${why}. The server's identity needs to read deployments of its resource group; a new role takes up to ten minutes."
            log "payload ${name}: ${why}; next attempt in ${pause_s} s"
            sleep "${pause_s}"
        done
    done
    have=$(sha256sum <"${scratch}/payload" | cut -d ' ' -f 1)
    [ "${have}" = "${sha}" ] || die "the payload is damaged: its sha256 is ${have}, the deployment expects ${sha}"
}

unpack() {
    if [ -d "${versions}/${sha}" ]; then
        log "payload ${sha} is already unpacked"
        return
    fi
    fetch_payload
    install -d -m 0755 "${versions}"
    rm -rf "${versions}/.new"
    install -d -m 0755 "${versions}/.new"
    tar -xzf "${scratch}/payload" --no-same-owner -C "${versions}/.new" || die "the payload cannot be unpacked"
    sync
    mv "${versions}/.new" "${versions}/${sha}"
    log "payload ${sha} unpacked"
}

start_unit() {
    here="${versions}/${sha}/bootstrap"
    ln -sfn "${sha}" "${versions}/.current.new"
    mv -Tf "${versions}/.current.new" "${versions}/current"
    install -d -m 0755 "${units}" "${root}/usr/local/sbin"
    install -m 0644 "${here}/${unit}" "${units}/${unit}"
    ln -sfn /opt/cycleforge/current/bootstrap/cycleforge-bootstrap "${root}/usr/local/sbin/cycleforge-bootstrap"
    # The result of an earlier run must not be mistaken for this one's.
    systemctl stop "${unit}" 2>/dev/null || :
    [ ! -f "${home}/status.json" ] || mv -f "${home}/status.json" "${home}/status.previous.json"
    systemctl daemon-reload
    systemctl enable "${unit}"
    systemctl restart --no-block "${unit}"
}

# The state of the bootstrap and the address of its site; both empty while there is no status file.
read_status() {
    state='' site=''
    [ -f "${home}/status.json" ] || return 0
    lines state site.address <"${home}/status.json" >"${scratch}/status"
    {
        read -r state
        read -r site
    } <"${scratch}/status"
}

show() { "${here}/cycleforge-bootstrap" status || :; }

# The web server must not end with the unit that started it: the proof is an answer when nothing of the unit is left.
see_that_it_lasts() {
    while systemctl is-active --quiet "${unit}"; do
        [ "$(date +%s)" -lt "${deadline}" ] || die "${unit} has succeeded but does not end"
        sleep "${pause_s}"
    done
    until_s=$(($(date +%s) + after_s))
    [ -n "${site}" ] || die "the status file names no address of the site, so whether it answers cannot be checked"
    while :; do
        code=$(curl -sk --noproxy '*' --max-time 10 -o "${scratch}/page" -w '%{http_code}' "${site}/ui/metadata" 2>"${scratch}/why") || code=000
        case "${code}" in
        000 | 5*) ;;
        *) return ;;
        esac
        if [ "$(date +%s)" -ge "${until_s}" ]; then
            show >&2
            die "the first boot succeeded, but ${site} does not answer after its end (HTTP ${code}); see /opt/cycle_server/logs"
        fi
        sleep "${pause_s}"
    done
}

# A deployment without resources whose outputs the template reads: the extension itself has no output.
put_record() {
    ask -X PUT -H 'Content-Type: application/json' --data "@${scratch}/record" \
        "${group}/providers/Microsoft.Resources/deployments/${record}?api-version=${api}" || return 1
    case "${code}" in
    200 | 201 | 202) ;;
    *)
        refused
        return 1
        ;;
    esac
}

pass_fingerprints() {
    [ -n "${record}" ] || return 0
    until_s=$(($(date +%s) + after_s))
    # shellcheck disable=SC2016 # Python's text
    "${python}" -I -S -c '
import json, sys
site = json.load(sys.stdin).get("site") or {}
keys = ["{type} {fingerprint}".format(**key) for key in site.get("sshHostKeys", [])]
outputs = {
    "certificateSha256": {"type": "string", "value": site.get("certificateSha256", "")},
    "sshHostKeys": {"type": "array", "value": keys},
}
schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
template = {"$schema": schema, "contentVersion": "1.0.0.0", "resources": [], "outputs": outputs}
json.dump({"properties": {"mode": "Incremental", "template": template}}, sys.stdout)' \
        <"${home}/status.json" >"${scratch}/record"
    state=
    while [ "${state}" != Succeeded ]; do
        if put_record; then
            state=
            sleep "${pause_s}"
            read_deployment "${record}" || :
        fi
        [ "${state}" != Succeeded ] || break
        [ "$(date +%s)" -lt "${until_s}" ] || die "the fingerprints of the server could not be recorded as deployment ${record} within ${after_s} s: $(cat "${scratch}/why"). The server's identity needs Contributor in its resource group."
        log "deployment ${record}: $(cat "${scratch}/why"); next attempt in ${pause_s} s"
        sleep "${pause_s}"
    done
    log "fingerprints recorded as deployment ${record}"
}

# As long as the unit runs it is asked for its result only when the time is over: that costs an interpreter.
wait_for_result() {
    deadline=$((started + wait_s))
    gone=0 late=0
    while [ "${late}" -eq 0 ]; do
        # Between two attempts of systemd the unit is down for ten seconds.
        if systemctl is-active --quiet "${unit}"; then gone=0; else gone=$((gone + 1)); fi
        [ "$(date +%s)" -lt "${deadline}" ] || late=1
        if [ "${gone}" -gt 0 ] || [ "${late}" -eq 1 ]; then
            read_status
            case "${state}" in
            succeeded)
                see_that_it_lasts
                pass_fingerprints
                show
                return
                ;;
            failed)
                show >&2
                die "the bootstrap failed; see /var/log/cycleforge/bootstrap.log; after the fix run: sudo cycleforge-bootstrap retry"
                ;;
            esac
        fi
        if [ "${gone}" -ge 6 ]; then
            show >&2
            die "${unit} ended without a result; see: journalctl -u ${unit}"
        fi
        [ "${late}" -eq 1 ] || sleep "${pause_s}"
    done
    show >&2
    die "no result within ${wait_s} s; the bootstrap is still running, follow it with: sudo cycleforge-bootstrap status"
}

main() {
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    scratch=$(mktemp -d)
    find_python
    take_over
    remove_script
    unpack
    start_unit
    wait_for_result
}

# One line, so that the shell has read it before it runs: the file is gone when main returns.
main "$@"; exit
