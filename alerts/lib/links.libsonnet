// Adds runbook_url and dashboard_url to every alert, in this one place.
{
  local config = $._config,

  // An alert without an instance (the watchdog) links the dashboard as it opens.
  local dashboard =
    '%s/d/%s' % [config.dashboardBaseUrl, config.dashboardUid]
    + '{{ with $labels.instance }}?var-instance={{ . | urlquery }}'
    + '{{ with $labels.cluster }}&var-cluster={{ . | urlquery }}{{ end }}{{ end }}',

  // What is no node's has a page of its own.
  local own(rule) =
    '%s/d/%s' % [config.dashboardBaseUrl, config.dashboardUids[rule.alert]]
    + '{{ with $labels.cluster }}?var-cluster={{ . | urlquery }}{{ end }}',

  local withLinks(rule) = rule {
    annotations+: {
      runbook_url: '%s/%s.md' % [config.runbookBaseUrl, rule.alert],
      dashboard_url: if rule.alert in config.dashboardUids then own(rule) else dashboard,
    },
  },

  prometheusAlerts+:: {
    groups: [group { rules: std.map(withLinks, group.rules) } for group in super.groups],
  },
}
