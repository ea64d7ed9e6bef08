#!/usr/bin/env bash
# Installs the programs that tests run and PyPI does not have. Without root or apt nothing is installed on the machine, and
# the tests that need it say why they are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
# program=Debian package
readonly wanted=(
    cloud-init=cloud-init curl=curl flock=util-linux git=git perl=perl ps=procps
    mmdebstrap=mmdebstrap zstd=zstd systemd-nspawn=systemd-container ip=iproute2
    slurmctld=slurmctld slurmd=slurmd srun=slurm-client munged=munge slurmdbd=slurmdbd mariadbd=mariadb-server
    mpirun=openmpi-bin fio=fio
    qemu-system-x86_64=qemu-system-x86 depmod=kmod mke2fs=e2fsprogs
    ssh=openssh-client sshd=openssh-server rsync=rsync
    node=nodejs npm=npm
    chromium=chromium
    /usr/bin/python3=python3
)

# Without apt, what the machine has is what the tests run with.
install_packages() {
    local entry missing=()
    for entry in "${wanted[@]}"; do
        command -v "${entry%%=*}" >/dev/null || missing+=("${entry#*=}")
    done
    ((${#missing[@]})) || return 0
    if [[ "$(id -u)" != 0 ]] || ! command -v apt-get >/dev/null; then
        printf 'not installed (needs root and apt): %s\n' "${missing[*]}" >&2
        return 0
    fi
    export DEBIAN_FRONTEND=noninteractive
    # The tests start daemons themselves, in folders of their own; apt must not start the packages' own.
    local -r policy=/usr/sbin/policy-rc.d
    if [[ ! -e "${policy}" ]]; then
        # shellcheck disable=SC2064
        trap "rm -f '${policy}'" EXIT
        printf '#!/bin/sh\nexit 101\n' >"${policy}"
        chmod 755 "${policy}"
    fi
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" slurm-wlm-basic-plugins debian-archive-keyring fonts-dejavu-core >/dev/null
}

# Azurite, Microsoft's imitation of Azure's blob server, with every dependency as the lock file has it, but for the drivers
# of SQL databases: the lock file calls them optional, which Azurite itself does not, because it loads one only when it
# shall keep its index in such a database. They are a third of all. The folder appears whole or not at all: what a
# killed run left is swept, and of two runs the second finds it there.
install_azurite() {
    local -r version=3.35.0
    local -r folder=".cache/azurite-${version}" source=tests/locker/azurite
    [[ ! -d "${folder}" ]] || return 0
    if ! command -v npm >/dev/null || ! command -v flock >/dev/null; then
        printf 'not installed (needs node, npm and flock): Azurite %s\n' "${version}" >&2
        return 0
    fi
    mkdir -p .cache
    exec 9>"${folder}.lock"
    flock 9
    [[ ! -d "${folder}" ]] || return 0
    rm -rf "${folder}".new
    mkdir "${folder}.new"
    cp "${source}/package.json" "${source}/package-lock.json" "${folder}.new"
    if ! npm ci --prefix "${folder}.new" --ignore-scripts --omit=optional --no-audit --no-fund \
        --loglevel=error >/dev/null; then
        printf 'not installed (npm failed, its words are above): Azurite %s\n' "${version}" >&2
        return 0
    fi
    mv -T "${folder}.new" "${folder}"
}

# Microsoft's compiler of Bicep, 100 MB, unless BICEP or the PATH has one. The digest is pinned by several public projects.
install_bicep() {
    local -r version=0.48.1 digest=b09ec25a9d376c1f8e33ede6ed22b587f915ad68488d5db77a6f9541748c7f6e
    local -r folder=".cache/bicep-${version}" from="https://github.com/Azure/bicep/releases/download/v${version}/bicep-linux-x64"
    local new
    if [[ -d "${folder}" || -n "${BICEP:-}" ]] || command -v bicep >/dev/null; then return 0; fi
    if [[ "$(uname -s) $(uname -m)" != "Linux x86_64" ]] || ! command -v curl >/dev/null; then
        printf 'not installed (needs curl, and Linux on x86_64): Bicep %s\n' "${version}" >&2
        return 0
    fi
    mkdir -p .cache
    new="$(mktemp -d .cache/bicep.XXXXXX)"
    if ! curl --silent --fail --location --connect-timeout 5 --max-time 300 --output "${new}/bicep" "${from}"; then
        printf 'not installed (%s does not answer): Bicep %s\n' "${from}" "${version}" >&2
    elif ! sha256sum --check --status <<<"${digest}  ${new}/bicep"; then
        printf 'not installed (%s is not the file of that digest): Bicep %s\n' "${from}" "${version}" >&2
    else
        chmod 755 "${new}" "${new}/bicep"
        # Of two runs at once the second finds it there.
        mv -T "${new}" "${folder}" 2>/dev/null || true
    fi
    rm -rf "${new}"
}

# PyTorch for the example of the recipe `own`, 147 MB; the only test that needs it skips without.
install_torch() {
    # It keeps what it compiles, whatever the environment says: every rank of a job loads it, in half the time then.
    local -r loaded=(env -u PYTHONDONTWRITEBYTECODE /usr/bin/python3 -c 'import torch')
    # Without loading it, which takes a second: that it is compiled says that it was loaded before.
    local -r compiled='
import importlib.util, os, sys
torch = importlib.util.find_spec("torch")
sys.exit(not (torch and os.path.exists(importlib.util.cache_from_source(torch.origin))))'
    ! /usr/bin/python3 -c "${compiled}" 2>/dev/null || return 0
    ! "${loaded[@]}" 2>/dev/null || return 0
    if [[ "$(id -u)" != 0 ]] || ! command -v apt-get >/dev/null; then return 0; fi
    export DEBIAN_FRONTEND=noninteractive
    # Of the modules in its packages, half of them SymPy's, the test loads few. Their postinst scripts ask whether there is
    # a py3compile and compile all of them, which is a third of the time; only what is loaded is compiled.
    local shims
    shims="$(mktemp -d)"
    printf '#!/bin/sh\nexit 0\n' >"${shims}/py3compile"
    chmod 755 "${shims}/py3compile"
    if ! { timeout 100 apt-get update -qq &&
        timeout 300 apt-get install -y -qq --no-install-recommends -o "DPkg::Path=${shims}:${PATH}" python3-torch >/dev/null; }; then
        printf 'not installed: python3-torch\n' >&2
    fi
    "${loaded[@]}" 2>/dev/null || true
    rm -rf "${shims}"
}

install_packages
install_azurite
install_bicep
install_torch
