# shellcheck shell=bash
# What Azure does for a cluster: VMs by name. A VM is a process whose end ends all of the node, like a power cut.
# Sourced by the programs of power saving and by the test; everything that is asked for is a line of /mnt/azure/calls.
readonly azure=/mnt/azure
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

asked() { printf '%s\n' "$*" >>"${azure}/calls"; }

# vm_runs NAME: a process that has ended and was not taken in yet is not one that runs
vm_runs() {
    local pid line
    [[ -f "${azure}/vms/$1" ]] || return 1
    pid="$(<"${azure}/vms/$1")"
    { read -r line <"/proc/${pid}/stat"; } 2>/dev/null || return 1
    # Behind the name, which may have brackets of its own, comes the state.
    [[ "${line##*) }" != Z* ]]
}

# vm_network NAME: a network of its own with the address that the hosts file has for it, and the same hardware address in
# every boot: the others would ask for a new one only after half a minute.
vm_network() {
    local address name link mac third fourth
    while read -r address name && [[ "${name}" != "$1" ]]; do :; done </etc/hosts
    IFS=. read -r _ _ third fourth <<<"${address}"
    printf -v mac '02:00:0a:4d:%02x:%02x' "${third}" "${fourth}"
    link="node${address#10.77.}"
    if [[ -e "/run/netns/$1" ]]; then ip netns del "$1"; fi
    ip link del "${link}" 2>/dev/null || :
    ip netns add "$1"
    ip link add "${link}" master eth0 up type veth peer name eth0 address "${mac}" netns "$1"
    ip -n "$1" -batch - <<IP
link set lo up
addr add ${address}/16 dev eth0
link set eth0 up
IP
}

# vm_start NAME: options of slurmd are a word per line in options/NAME, else those of cyclecloud-slurm
vm_start() {
    local options=(-b)
    ! vm_runs "$1" || return 0
    if [[ -f "${azure}/options/$1" ]]; then mapfile -t options <"${azure}/options/$1"; fi
    mkdir -p "/mnt/log/$1"
    vm_network "$1"
    setsid nsenter "--net=/run/netns/$1" unshare --uts --mount --pid --fork --kill-child --mount-proc \
        bash /mnt/machine/node.sh "$1" "${options[@]}" </dev/null >>"/mnt/log/$1/console.log" 2>&1 &
    echo "$!" >"${azure}/vms/$1"
    own_session "$!"
}

# own_session PID: returns when the process has left our process group: what a program of power saving leaves in it, Slurm 24.11
# ends when that program has ended
own_session() {
    local line group
    while read -r line <"/proc/$1/stat" && read -r _ _ group _ <<<"${line##*) }" && [[ "${group}" != "$1" ]]; do
        sleep 0.01
    done 2>/dev/null
}

# vm_stop NAME: returns when nothing of it runs
vm_stop() {
    local pid
    vm_runs "$1" || return 0
    pid="$(<"${azure}/vms/$1")"
    # Its child is the first process of the node: the parent ends when nothing of the node runs any more.
    pkill -KILL -P "${pid}" || kill -KILL "${pid}" || :
    while vm_runs "$1"; do sleep 0.02; done
    rm -f "${azure}/vms/$1"
    ip netns del "$1"
}

vm_list() {
    local file
    for file in "${azure}"/vms/*; do
        if vm_runs "${file##*/}"; then echo "${file##*/}"; fi
    done
}
