#!/usr/bin/env bash
# Tests the metrics of a standing rack with a real Prometheus, which scrapes while faults come and go (scripts/metrics.py), and with the
# linter of metrics. Uses the loopback interface only.
#
#     scripts/metrics.sh
#
# RACKLOOM names the program; the default is that of the debug build. On Debian the package is `prometheus`. As root, the script installs it if
# it is missing. Without it the script prints the reason and ends with 0, unless RACKLOOM_METRICS=required is set.
set -euo pipefail
cd "$(dirname "$0")/.."

rackloom=${RACKLOOM:-${CARGO_TARGET_DIR:-target}/debug/rackloom}

skip() {
    echo "SKIPPED (1): metrics are not read by Prometheus: $*"
    [ "${RACKLOOM_METRICS:-}" != required ]
    exit
}

has_all() { command -v prometheus >/dev/null && command -v promtool >/dev/null && command -v curl >/dev/null; }

[ -x "$rackloom" ] || skip "there is no $rackloom; build it with: cargo build --workspace --bin rackloom"
if ! has_all && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    # A file that forbids the start of services: the package has one.
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod +x /usr/sbin/policy-rc.d
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus curl >/dev/null || true
    rm -f /usr/sbin/policy-rc.d
fi
has_all || skip 'prometheus, promtool or curl is missing'

folder=$(mktemp -d)
export XDG_RUNTIME_DIR="$folder/run"
mkdir "$XDG_RUNTIME_DIR"
prometheus_pid=
end() {
    [ -z "$prometheus_pid" ] || kill "$prometheus_pid" 2>/dev/null || true
    "$rackloom" down --all >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap end EXIT

"$rackloom" up topologies/star-4.yaml --name metrics --metrics 127.0.0.1:0 | tee "$folder/up.txt"
address=$(sed -n 's|^metrics at http://\(.*\)/metrics$|\1|p' "$folder/up.txt")
curl -sf "http://$address/metrics" >"$folder/plain.txt"
promtool check metrics <"$folder/plain.txt"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$folder/prometheus.yml" <<YAML
scrape_configs:
  - job_name: rackloom
    scrape_interval: 500ms
    static_configs:
      - targets: ["$address"]
YAML
promtool check config "$folder/prometheus.yml" >/dev/null
prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" \
    --web.listen-address="127.0.0.1:$port" >"$folder/prometheus.log" 2>&1 &
prometheus_pid=$!
python3 scripts/metrics.py "$port" "$rackloom"
echo "metrics: passed"
