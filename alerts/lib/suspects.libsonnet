// The first line of a page about what clients feel: what is suspected below it, and who agrees. Templates, looked up when
// the alert is sent: none of it changes what the alert is.
local promql = import 'promql.libsonnet';

// As many as a pager shows; the dashboards have all.
local atMost = 3;

// `query` of an expression in which `%s` is a selector of these labels of the alert, and `more` its other matchers.
local query(labels, expr, more='') =
  local matchers = std.join(',', [label + '=%q' for label in labels] + if more == '' then [] else [more]);
  '(query (printf `%s`%s))' % [expr % ('{%s}' % matchers), std.join('', [' $labels.' + label for label in labels])];

local listed(each) =
  '{{ if lt $index %d }}{{ if $index }}, {{ end }}%s{{ else if eq $index %d }} and others{{ end }}' % [atMost, each, atMost];

{
  // "Suspected: disk sdb on stor02:10047 (osd.3; PlumblineDiskLatencyOutlier, pending)." and a line break. Firing before
  // pending, of each the lowest layer first. For alerts whose series carry the labels of a cluster.
  cause(config)::
    local clusters = promql.clusterLabels(config);
    local related(own, matchers, name='') =
      '{{ range query (printf `plumbline:osd_disk:info{%s}` %s) | sortByLabel "%s" }}%s{{ .Labels.%s }}; {{ end }}' % [
        std.join(',', [label + '=%q' for label in clusters + matchers]),
        std.join(' ', ['$labels.' + label for label in clusters] + ['$each.Labels.' + label for label in matchers]),
        own,
        name,
        own,
      ];
    local subject =
      '{{ with $each.Labels }}'
      + '{{ if .ceph_daemon }}{{ .ceph_daemon }}{{ else if .device }}{{ if eq .layer "disk" }}disk {{ end }}{{ .device }}'
      + '{{ else if .probe }}probe {{ .probe }}{{ else }}{{ if eq .layer "self" }}host{{ else }}layer {{ .layer }}{{ end }}{{ end }}'
      + '{{ with .instance }}{{ if or $each.Labels.ceph_daemon $each.Labels.device $each.Labels.probe }} on{{ end }} {{ . }}{{ end }} ('
      + '{{ end }}'
      + '{{ if $each.Labels.ceph_daemon }}' + related('device', ['ceph_daemon'], 'disk ')
      + '{{ else if $each.Labels.device }}' + related('ceph_daemon', ['instance', 'device']) + '{{ end }}'
      + '{{ $each.Labels.alertname }}{{ if eq $each.Labels.alertstate "pending" }}, pending{{ end }})';
    'Suspected: {{ range $index, $each := ' + query(clusters, 'sort(plumbline:suspected:info%s)')
    + ' | sortByLabel "alertstate" }}' + listed(subject)
    + '{{ else }}no host, network, disk or OSD{{ end }}.\n',

  // "Vantage points that agree: 2 of 3, since 2026-11-23 20:15:00 +0000 UTC: stor01:10047 (2.1 times), …" and a line
  // break: the hosts on which `metric` is above `threshold`, of those that have it. `labels` are the alert's own that
  // select its series; `span` is how long the alert's expression looks back before it holds.
  vantagePoints(config, alertname, metric, threshold, span='0s', labels=promql.clusterLabels(config) + ['layer'])::
    local byHost(condition) = 'max by (instance) (' + metric + '%s)' + condition;
    local one(expr, more='') = query(labels, expr, more);
    local beyond = ' > %g' % threshold;
    'Vantage points that agree: {{ with ' + one('count(' + byHost(beyond) + ')') + ' }}{{ . | first | value }}{{ end }}'
    + ' of {{ with ' + one('count(' + byHost('') + ')') + ' }}{{ . | first | value }}{{ end }}'
    + '{{ with ' + one('min(ALERTS_FOR_STATE%s) - ' + promql.seconds(span), 'alertname="%s"' % alertname)
    + ' }}, since {{ . | first | value | humanizeTimestamp }}{{ end }}: '
    + '{{ range $index, $each := ' + one(byHost(beyond)) + ' | sortByLabel "instance" }}'
    + listed('{{ $each.Labels.instance }} ({{ printf "%.1f" $each.Value }} times)') + '{{ end }}.\n',
}
