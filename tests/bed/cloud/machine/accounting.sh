#!/usr/bin/env bash
# usage: accounting.sh CLUSTER   A MariaDB and slurmdbd below /mnt; returns when sacctmgr answers and knows the cluster.
set -euo pipefail
readonly cluster="$1" folder=/mnt/db limit_s=120
# Not /tmp, which the beds share: temporary tables are named after the process, whose number is the same in each.
readonly scratch=/mnt/db-tmp

# wait_for COMMAND…: a daemon that ends instead of answering is not waited for
wait_for() {
    local pid="$1"
    shift
    until "$@" >/dev/null 2>&1; do
        if ! kill -0 "${pid}" 2>/dev/null || ((SECONDS > limit_s)); then
            printf 'does not work: %s\n' "$*" >&2
            return 1
        fi
        sleep 0.1
    done
}

install -d -o mysql "${folder}" "${scratch}" /run/mysqld
export TMPDIR="${scratch}"
mariadb-install-db --no-defaults --user=mysql --datadir="${folder}" --auth-root-authentication-method=normal \
    --skip-test-db >/var/log/mariadb-install.log 2>&1
mariadbd --no-defaults --user=mysql --datadir="${folder}" --socket=/run/mysqld/mysqld.sock --skip-networking \
    --pid-file=/run/mysqld/mysqld.pid --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 \
    >/var/log/mariadb.log 2>&1 </dev/null &
wait_for "$!" mariadb --no-defaults --socket=/run/mysqld/mysqld.sock --user=root --execute='select 1'
# slurmdbd tries the database, creates it and tries again with the same handle, whose queries then all fail with the client
# library 3.4.10 of newer Debians: "Number of columns in result (=1) set execeeds maxmimum allowed number of columns (=0)".
mariadb --no-defaults --socket=/run/mysqld/mysqld.sock --user=root --execute="create database ${cluster}_acct_db"
setsid slurmdbd -D >/var/log/slurmctld/slurmdbd.out 2>&1 </dev/null &
wait_for "$!" sacctmgr --noheader show cluster
sacctmgr --immediate add cluster "${cluster}"
