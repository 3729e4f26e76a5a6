// Adds runbook_url and, where the site says where Grafana is, dashboard_url to every alert, in this one place.
local pages = import '../../dashboards/lib/pages.libsonnet';
local promql = import 'promql.libsonnet';

{
  local config = $._config,

  local pageOf(name) =
    local fitting = [prefix for prefix in std.objectFields(config.dashboardPages) if std.startsWith(name, prefix)];
    if fitting == [] then
      error '%s opens no dashboard: add its name, or how it begins, to dashboardPages in alerts/config/links.libsonnet' % name
    else config.dashboardPages[std.sort(fitting, keyF=std.length)[std.length(fitting) - 1]],

  // Templates know no time but what a query gives. Until now: who opens it at once sees it live.
  local from = '{{ with query "(time() - %d) * 1000" }}{{ . | first | value | printf "%%.0f" }}{{ end }}'
               % promql.seconds(config.dashboardSpan),

  // A label that the alert has not leaves the page's own choice.
  local variable(label) = '{{ with $labels.%(label)s }}&var-%(label)s={{ . | urlquery }}{{ end }}' % { label: label },

  local dashboard(name) =
    local page = pageOf(name);
    '%s/d/%s?from=%s&to=now' % [config.dashboardBaseUrl, pages[page].uid, from]
    + std.join('', std.map(variable, ['cluster'] + config.dashboardVariables[page])),

  // The node that fired, if its daemon is scraped; else a node of its cluster (for alerts of a cluster, a dead node,
  // Prometheus or Ceph's exporters), else any. If there is none at all, the file's name in the project.
  local cluster = promql.clusterLabels(config),
  local info(labels) = 'plumbline_build_info{%s}' % promql.format(labels),
  local candidates = std.join(' or on () ', [info(config.instanceLabels), info(cluster), 'plumbline_build_info']),
  local nodes = '(printf `%s` %s)' % [
    candidates,
    promql.arguments(config.instanceLabels + cluster),
  ],
  // The page fills labels into its commands and ignores those that it has no use for
  // (exporter/plumbline/pages/runbook_values.py). $externalURL: Prometheus' own. Each alert has this text, and Kubernetes
  // takes 256 KiB for all of them: so the OSD of a disk is looked up by alerts about disks alone.
  local given(name) =
    '{{ $and := "?" }}{{ range $name, $value := $labels }}{{ $and }}{{ $name }}={{ $value | urlquery }}{{ $and = "&" }}{{ end }}'
    + (
      if std.startsWith(name, 'PlumblineDisk') then
        '{{ if not $labels.ceph_daemon }}{{ range query (printf `plumbline_disk_info{osd!="",device=%%q,%s}` %s) }}'
        % [
          promql.format(config.instanceLabels),
          promql.arguments(['device'] + config.instanceLabels),
        ]
        + '{{ $and }}ceph_daemon={{ .Labels.osd | urlquery }}{{ end }}{{ end }}'
      else ''
    )
    + '{{ with $externalURL }}{{ $and }}prometheus={{ . | urlquery }}{{ end }}',
  local runbookOfNode(name) =
    '{{ with query %s }}{{ $node := . | sortByLabel "instance" | first | label "instance" }}' % nodes
    + '%s://{{ $node }}{{ if not (match ":[0-9]+$" $node) }}:%d{{ end }}/runbooks/%s'
      % [config.runbookScheme, config.runbookPort, name]
    + given(name)
    + '{{ else }}alerts/runbooks/%s.md{{ end }}' % name,

  local runbook(name) =
    if config.runbookBaseUrl == null then runbookOfNode(name) else '%s/%s.md' % [config.runbookBaseUrl, name],

  local withLinks(rule) = rule {
    annotations+: {
      runbook_url: runbook(rule.alert),
      [if config.dashboardBaseUrl != null then 'dashboard_url']: dashboard(rule.alert),
    },
  },

  prometheusAlerts+:: {
    groups: [group { rules: std.map(withLinks, group.rules) } for group in super.groups],
  },
}
