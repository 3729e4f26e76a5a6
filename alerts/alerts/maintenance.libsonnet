// Announced maintenance, told once. What the absence of the host explains is held back: its own alerts by Alertmanager,
// and what stands on other hosts by the rules.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local clusters = promql.clusterLabels(config),
  local matchers = std.join('', [label + '=%q,' for label in clusters]),
  local arguments = std.join('', [' $labels.' + label for label in clusters]),
  // Which of them is for this node is in no label of the lease: a cluster has one or two at a time.
  local leases = '(query (printf `plumbline:maintenance_until:seconds{%s} > time()`%s))' % [matchers, arguments],

  _firstSteps+:: {
    PlumblineMaintenance: 'nothing here; `plumbline maintenance list` on the nodes says who announced it',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-maintenance',
      rules: [
        alert.new(
          config,
          'PlumblineMaintenance',
          'plumbline:maintenance_node:info',
          { layer: 'self', signal: 'health' },
          'A node is in announced maintenance.',
          'Maintenance of {{ $labels.instance }} is under way: that it, its OSDs, its canaries or its links are absent is reported by this alert alone.'
          + ' {{ with ' + leases + ' | sortByLabel "host" }}Announced in this cluster:{{ range . }} {{ with .Labels.host }}{{ . }}{{ else }}all hosts{{ end }} until {{ .Value | humanizeTimestamp }} by {{ .Labels.who }}: {{ .Labels.why }};{{ end }}{{ else }}A flag of Ceph announces it.{{ end }}',
        ),
      ],
    }],
  },
}
