#!/bin/bash
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
#
# The one list of Debian 12 packages that rankscope is built and tested with, and the one place that installs them.
#
#   deploy/packages.sh build          install what a build needs and is missing
#   deploy/packages.sh build test     ... and what the tests need
#   deploy/packages.sh nightly        what only the nightly tests need; the target `packages` needs rpm and python3 of it
#   deploy/packages.sh --list SET...  print the names, install nothing
#
# Needs root only when something is missing. Installing starts no daemon.
set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

build_packages=(
  build-essential cmake ninja-build pkg-config git ca-certificates
  clang-14 llvm-14 bpftool libbpf-dev libelf-dev zlib1g-dev libcap-dev  # programs in the kernel
  protobuf-compiler libprotobuf-dev                              # recordings and verdicts
  prometheus-cpp-dev libboost1.81-dev libssl-dev libcrypt-dev libcurl4-openssl-dev  # metrics and HTTP
  libspdlog-dev libfmt-dev libyaml-cpp-dev libre2-dev libcli11-dev libsimdjson-dev
  curl                                                           # deploy/run asks the daemon with it
)
test_packages=(
  nlohmann-json3-dev                                             # a second reader of JSON
  libgtest-dev libgmock-dev libbenchmark-dev libclang-rt-14-dev clang-format-14 clang-tidy-14
  python3 python3-torch python3-numpy python3-torchvision python3-tqdm  # real training runs
  prometheus python3-prometheus-client                           # a real scrape; a second reader of OpenMetrics
  victoria-metrics                                               # a second PromQL and a second reader of the rules
  python3-aiosmtpd prometheus-alertmanager openssl               # where notifications go, and certificates
  python3-jsonschema                                             # every verdict against its schema
  jq procps iproute2 util-linux expect
  qemu-system-x86 busybox-static cpio e2fsprogs                  # a second kernel
  nftables strace                                                # packets dropped; a second opinion on system calls
  python3-fusepy                                                 # slow files, and files that fail
  slurm-wlm slurmdbd slurmrestd munge mariadb-server             # a real Slurm with accounting
)
nightly_packages=(
  lintian rpm mmdebstrap python3 systemd binutils patchelf       # packages: built, judged, installed in a fresh root
  buildah                                                        # an image of them
  chromium-headless-shell fonts-dejavu-core                      # dashboards drawn; npm of any origin brings Grafana's components
)

die() {
  echo "packages: $*" >&2
  exit 1
}

# Names of this script's sets that are not installed, one a line.
missing_of() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' "$@" 2>/dev/null |
    awk '$2 ~ /^.i/ {print $1}') || true
  printf '%s\n' "$@" | grep -vxFf <(printf '%s\n' "$installed" | sed '/^$/d') || true
}

# While packages are installed, invoke-rc.d is told to start nothing; an existing policy stays as it is.
readonly policy=/usr/sbin/policy-rc.d
policy_is_ours=false
forbid_daemons() {
  if [[ ! -e $policy ]]; then
    policy_is_ours=true
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
}
allow_daemons() {
  if $policy_is_ours; then rm -f "$policy"; fi
}

list_only=false
names=()
for set in "$@"; do
  case $set in
    --list) list_only=true ;;
    build) names+=("${build_packages[@]}") ;;
    test) names+=("${test_packages[@]}") ;;
    nightly) names+=("${nightly_packages[@]}") ;;
    *) die "unknown set '$set'; the sets are build, test and nightly" ;;
  esac
done
((${#names[@]} > 0)) || die "name a set: build, test, nightly or several"
if $list_only; then
  printf '%s\n' "${names[@]}"
  exit 0
fi

command -v dpkg-query apt-get >/dev/null || die "this system has no dpkg and apt-get; use Debian 12"
mapfile -t missing < <(missing_of "${names[@]}")
((${#missing[@]} > 0)) || exit 0
((EUID == 0)) || die "not installed: ${missing[*]}; run 'deploy/packages.sh $*' once as root"

echo "packages: installing ${#missing[@]}: ${missing[*]}"
trap allow_daemons EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
forbid_daemons
# Retries: a mirror that is busy for a moment is not a reason to fail.
apt-get -qq -o Acquire::Retries=3 update ||
  die "apt-get update failed; is /etc/apt/sources.list right and the mirror reachable?"
apt-get -qq -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
  install --no-install-recommends "${missing[@]}" >/dev/null ||
  die "apt-get install failed for: ${missing[*]}"
