#!/bin/sh
# What Grafana reads, writes and answers at its start; it ends where it may not.
set -e
test -n "$(cat "$GF_SECURITY_ADMIN_PASSWORD__FILE")"
cat /etc/grafana/provisioning/*/*.yaml /var/lib/plumbline-dashboards/*.json "$GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH" >/dev/null
: >/var/lib/grafana/grafana.db
mkdir -p /tmp/www/api
echo '{"database": "ok"}' >/tmp/www/api/health
exec busybox httpd -f -p "$GF_SERVER_HTTP_ADDR:$GF_SERVER_HTTP_PORT" -h /tmp/www
