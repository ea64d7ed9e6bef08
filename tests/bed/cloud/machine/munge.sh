# shellcheck shell=bash
# Every machine has its own munged: one for all would take the credential that a message carries to the second node for an
# attempt to use it twice.
start_munge() {
    mount -t tmpfs tmpfs /run
    install -d -m 755 /run/munge
    munged --force --key-file=/mnt/munge.key --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/munged.pid \
        --log-file=/var/log/munged.log --seed-file=/run/munge/seed
}
