// What each Prometheus of a sharded fleet evaluates itself: the alerts about rules, notifications and scrapes. A ruler
// that can't ask its shards can't tell of it (docs/scale.md).
//
//   render.py --site alerts/shard.libsonnet --out /etc/prometheus/plumbline-shard
{
  prometheusAlerts+:: { groups: [each for each in super.groups if each.name == 'plumbline-prometheus'] },
  prometheusRules+:: { groups: [] },
  // The ruler's site has the dashboards.
  grafanaDashboards:: {},
}
