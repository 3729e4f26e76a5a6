// What a page about what clients feel says of its cause: what is suspected below it, and who agrees. Templates, looked up
// when the alert is sent: none of it changes what the alert is.
local promql = import 'promql.libsonnet';

// As many as a pager shows; the dashboards have all.
local atMost = 3;

// `query` of an expression in which each `%s` is matchers for these labels of the alert (or of what `of` names), and for those
// it must not have.
local query(labels, expr, others=[], of='$labels') =
  local matchers = std.join(',', [label + '=%q' for label in labels] + [label + '!=%q' for label in others]);
  local arguments = std.join('', [' %s.%s' % [of, label] for label in labels + others]);
  '(query (printf `%s`%s))'
  % [std.strReplace(expr, '%s', matchers), std.repeat(arguments, promql.count(expr, '%s'))];

// "PlumblineDown, pending", of a suspect that a range calls `$each`.
local alert = '{{ $each.Labels.alertname }}{{ if eq $each.Labels.alertstate "pending" }}, pending{{ end }}';

local listed(each) =
  '{{ if lt $index %d }}{{ if $index }}, {{ end }}%s{{ else if eq $index %d }} and others{{ end }}' % [atMost, each, atMost];

// "disk sdb on stor02:10047 (osd.3; PlumblineDiskLatencyOutlier, pending)", of a suspect that a range calls `$each`.
local subject(config) =
  local clusters = promql.clusterLabels(config);
  local found(own, labels, expr, name='') =
    '{{ range %s | sortByLabel "%s" }}%s{{ .Labels.%s }}; {{ end }}' % [query(labels, expr, of='$each.Labels'), own, name, own];
  local related(own, matchers, name='') = found(own, clusters + matchers, 'plumbline:osd_disk:info{%s}', name);
  // Which of its networks a slow OSD suffers from is in no label: those of its host, one as a rule.
  local ports = found(
    'device', config.instanceLabels, 'group by (device) (plumbline_nic_role_info{role=~".+_(public|cluster)",%s})'
  );
  '{{ with $each.Labels }}'
  + '{{ if .ceph_daemon }}{{ .ceph_daemon }}{{ else if .device }}{{ if eq .layer "disk" }}disk {{ end }}{{ .device }}'
  + '{{ else if .probe }}probe {{ .probe }}{{ else }}{{ if eq .layer "self" }}host{{ else }}layer {{ .layer }}{{ end }}{{ end }}'
  + '{{ with .instance }}{{ if or $each.Labels.ceph_daemon $each.Labels.device $each.Labels.probe (ne $each.Labels.layer "self") }} on{{ end }} {{ . }}{{ end }} ('
  + '{{ end }}'
  + '{{ if and $each.Labels.ceph_daemon (ne $each.Labels.layer "network") }}' + related('device', ['ceph_daemon'], 'disk ')
  + '{{ else if $each.Labels.ceph_daemon }}' + ports
  + '{{ else if $each.Labels.device }}' + related('ceph_daemon', ['instance', 'device']) + '{{ end }}'
  + alert + ')';

{
  // A line break and "Suspected: disk sdb on stor02:10047 (osd.3; PlumblineDiskLatencyOutlier, pending)." What
  // explains most seconds comes first. For alerts whose series carry the labels of a cluster.
  // `differing`: labels of the alert that a suspect does not share, so that a page about a layer is no cause of itself.
  cause(config, differing=[])::
    local clusters = promql.clusterLabels(config);
    '\nSuspected: {{ range $index, $each := ' + query(clusters, 'sort(plumbline:suspected:info{%s})', differing)
    + ' }}' + listed(subject(config))
    + '{{ else }}nothing yet; no host, network, disk or OSD is out of line{{ end }}.' + self.maintenance(config),

  // " Maintenance is under way on stor02:10047.": not every fault during it is part of it.
  maintenance(config)::
    '{{ with ' + query(promql.clusterLabels(config), 'plumbline:maintenance_node:info{%s}')
    + ' | sortByLabel "instance" }} Maintenance is under way on {{ range $index, $each := . }}' + listed('{{ $each.Labels.instance }}') + '{{ end }}.{{ end }}',

  // "; suspected: disk sdb of osd.3 on stor02", for a title: the first that `cause` lists; nothing where it lists none.
  short(config, differing=[])::
    local clusters = promql.clusterLabels(config);
    '{{ with ' + query(clusters, 'sort(plumbline:suspected:info{%s})', differing) + ' | sortByLabel "alertstate" }}'
    + '{{ with (first .).Labels }}; suspected: '
    + '{{ if eq .layer "self" }}host{{ else if and .ceph_daemon (eq .layer "osd") }}{{ .ceph_daemon }}{{ else }}{{ .layer }}'
    + '{{ with .device }} {{ . }}{{ end }}'
    + '{{ with .ceph_daemon }} of {{ . }}{{ else }}{{ range ' + query(clusters + ['instance', 'device'], 'plumbline:osd_disk:info{%s}', of='')
    + ' }} of {{ .Labels.ceph_daemon }}{{ end }}{{ end }}{{ end }}{{ with .instance }} on {{ . | stripPort }}{{ end }}{{ end }}{{ end }}',

  // The same, but only of hosts that are gone and of the network: what keeps a monitor out. Nothing where neither is suspected.
  causeOutside(config)::
    '{{ with ' + query(promql.clusterLabels(config), 'sort(plumbline:suspected:info{layer=~"self|network",%s})')
    + ' }}\nSuspected: {{ range $index, $each := . }}' + listed(subject(config))
    + '{{ end }}.{{ end }}',

  // " Full: osd.3 on stor02, osd.7 on stor03." with `name` Full: the daemons that an expression finds, nothing where it finds
  // none. `%s` in it are matchers for the alert's cluster; `host`: the label that has the host, where it is known.
  daemons(config, name, expr, host)::
    '{{ with ' + query(promql.clusterLabels(config), expr) + ' | sortByLabel "ceph_daemon" }} ' + name + ': '
    + '{{ range $index, $each := . }}' + listed('{{ .Labels.ceph_daemon }}{{ with .Labels.%s }} on {{ . }}{{ end }}' % host)
    + '{{ end }}.{{ end }}',

  // A line break and "Hosts that agree: 2 of 3, at least since 2026-11-23 20:15:00 +0000 UTC: stor01:10047 (2.1 times its baseline), …":
  // the hosts of whose canaries more than half have `agreed` 1, with the median of `shown`. Both are
  // selectors with `%s` among their matchers, for `labels` of the alert; `span` is how long they have agreed when the
  // alert begins. The first notification is written before the alert's own series are.
  vantagePoints(config, alertname, agreed, shown, span, labels)::
    local one(expr) = query(labels, expr);
    local byHost(metric) = 'quantile by (instance) (0.5, ' + metric + ')';
    local agreeing = byHost(agreed) + ' > 0.5';
    local began = '(min(ALERTS_FOR_STATE{alertname="%s",%%s}) or vector(time())) - %d' % [alertname, promql.seconds(span)];
    local first(expr, format='') = '{{ with ' + one(expr) + ' }}{{ . | first | value' + format + ' }}{{ end }}';
    '\nHosts that agree: ' + first('count(' + agreeing + ')') + ' of ' + first('count(' + byHost(agreed) + ')')
    + ', at least since ' + first(began, ' | humanizeTimestamp') + ': '
    + '{{ range $index, $each := ' + one('%s and on (instance) %s' % [byHost(shown), agreeing]) + ' | sortByLabel "instance" }}'
    + listed('{{ $each.Labels.instance }} ({{ printf "%.1f" $each.Value }} times its baseline)') + '{{ end }}.',
}
