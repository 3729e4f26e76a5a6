// Advice that stays unheeded: what `plumbline check` finds, once a node and layer, not once a finding.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),
  local tunables = config.alerts.PlumblineFindingOpen,

  // Anchored, and for a double-quoted PromQL string.
  local checks(names) = std.strReplace(std.join('|', names), '.', '\\\\.'),
  local network = '(%s).+' % checks(['network.', 'infiniband.']),

  // Whose ticket it is. What is no matter of the network is one of the disks and what they hang on.
  local layers = [
    { layer: 'network', selector: 'check=~"%s"' % network },
    { layer: 'disk', selector: 'check!~"%s|%s"' % [network, checks(tunables.notThese)] },
  ],

  // "irq-balance (1), ring-size (2)"
  local names(severity, selector) =
    '{{ range $index, $finding := query (printf `count by (check) (plumbline_finding{urgency="' + severity + '",'
    + selector + ',' + promql.instanceFormat(config) + '} == 1)` ' + promql.instanceArguments(config) + ') | sortByLabel "check" }}'
    + '{{ if $index }}, {{ end }}{{ .Labels.check }} ({{ .Value }}){{ end }}',

  local open(each, of) = alert.fromTunables(
    each,
    'PlumblineFindingOpen',
    'count by (%(instance)s) (plumbline_finding{urgency="%(finding)s",%(selector)s} == 1)' % (labels + each + of),
    { layer: of.layer, signal: 'health' },
    'A node does not follow documented advice.',
    '{{ $labels.instance }} has {{ $value }} open finding' + promql.plural + ' of severity %s: ' % each.finding
    + names(each.finding, of.selector)
    + '.',
  ),

  _firstSteps+:: {
    PlumblineFindingOpen: first.check + ' shows the reason for each and the command that fixes it',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-finding',
      rules: [open(each, of) for of in layers for each in tunables.severities],
    }],
  },
}
