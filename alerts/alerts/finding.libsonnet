// Advice that stays unheeded: what `plumbline check` finds, once a node, not once a finding.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),

  // "irq-balance (1), ring-size (2)"
  local names(severity) =
    '{{ range $index, $finding := query (printf `count by (check) (plumbline_finding{severity="' + severity + '",'
    + promql.instanceFormat(config) + '} == 1)` ' + promql.instanceArguments(config) + ') | sortByLabel "check" }}'
    + '{{ if $index }}, {{ end }}{{ .Labels.check }} ({{ .Value }}){{ end }}',

  local open(tunables) = alert.fromTunables(
    tunables,
    'PlumblineFindingOpen',
    'count by (%(instance)s) (plumbline_finding{severity="%(finding)s"} == 1)' % (labels + tunables),
    { layer: 'network', signal: 'health' },
    'A node does not follow documented advice.',
    'Open on {{ $labels.instance }}, severity %s, {{ $value }} in number: ' % tunables.finding
    + names(tunables.finding)
    + '. `plumbline check` on the node says why, and the command that mends each.',
  ),

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-finding',
      rules: std.map(open, config.alerts.PlumblineFindingOpen.severities),
    }],
  },
}
