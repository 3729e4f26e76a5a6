// Label sets and small PromQL builders shared by rules and alerts. Every join names its labels; none names `job`.
local join(labels) = std.join(', ', labels);

local unitSeconds = { s: 1, m: 60, h: 3600, d: 86400 };

{
  join:: join,

  // Of a noun behind an alert's `$value`, which counts.
  plural:: self.number('', 's'),
  // The word for one, or for several.
  number(one, several):: '{{ if gt $value 1.5 }}%s%s{{ end }}' % [several, if one == '' then '' else '{{ else }}' + one],
  // Most have no name but the default one.
  canary:: '{{ if eq $labels.probe "canary" }}The canary{{ else }}Canary {{ $labels.probe }}{{ end }}',

  // How often `part` stands in `text`. std.findSubstr takes one step of jsonnet a character, which was half of the time that
  // all alerts took to render; std.strReplace is the interpreter's own.
  count(text, part):: (std.length(text) - std.length(std.strReplace(text, part, ''))) / std.length(part),

  // A text of several lines, to be put two columns further in.
  nested(text):: std.strReplace(std.rstripChars(text, '\n'), '\n', '\n  '),

  // The same, its first line included.
  indented(text):: '  ' + self.nested(text),

  // `expr` with a label that `info` has of the same `on`; without it, where there is no such series. Lines with a break at
  // the end.
  joined(expr, on, label, info):: |||
    %(expr)s
    * on (%(on)s) group_left (%(label)s)
    %(info)s
    or on (%(on)s)
    %(expr)s
  ||| % { expr: std.rstripChars(expr, '\n'), on: on, label: label, info: info },

  // `expr` of a disk with the disk's `identity`: its serial number, else its name. Joined with what the same scrape says: by
  // a recorded identity, the first figures after a reboot would be put down to the disk that had the name before.
  identified(config, expr):: |||
    label_replace(
      label_replace(
        %(named)s,
        "identity", "$1", "device", "(.+)"
      ),
      "identity", "$1", "serial", "(.+)"
    )
  ||| % {
    local labels = $.labels(config),
    named: $.nested($.nested($.joined(
      expr, labels.interface, 'serial', 'topk by (%(interface)s) (1, group by (%(interface)s, serial) (plumbline_disk_info))' % labels
    ))),
  },

  // Every series of `expr` with one more label, the same for all.
  labelled(expr, label, value):: 'label_replace(\n  %s,\n  "%s", "%s", "", ""\n)' % [self.nested(expr), label, value],

  // Every series of `expr` with the value of its label `from` under another name too.
  copied(expr, label, from):: 'label_replace(\n  %s,\n  "%s", "$1", "%s", "(.+)"\n)' % [self.nested(expr), label, from],

  // Counters with several names, the newest first: not by a pattern over names, since both are in the window while a daemon
  // is upgraded. The mean is that of pairs `_sum` and `_count`.
  rateOf(names, suffix, window):: std.join(' or ', ['rate(%s%s[%s])' % [name, suffix, window] for name in names]),
  meanOf(names, window):: '(%s)\n/\n((%s) > 0)' % [self.rateOf(names, '_sum', window), self.rateOf(names, '_count', window)],

  // '5m' → 300. One number and one unit, which is all the configuration uses.
  seconds(duration)::
    local last = std.length(duration) - 1;
    std.parseInt(std.substr(duration, 0, last)) * unitSeconds[duration[last]],

  // Whether a span was seen: so many slots of it hold a sample. The lowest or median of a range says nothing about that, and
  // neither does a sample at its beginning: both hold with one before a gap and one after it.
  seen(config, series, span, slot)::
    'count_over_time(last_over_time(%s[%s])[%s:%s]) >= %d' % [
      series,
      slot,
      span,
      slot,
      std.ceil(config.seen.share * $.seconds(span) / $.seconds(slot)),
    ],

  // What tells clusters apart (nothing, where `instance` is all that identifies a node).
  clusterLabels(config):: std.filter(function(label) label != 'instance', config.instanceLabels),

  // What makes two figures comparable, besides the configuration hash (and the statistic).
  likeness:: ['layer', 'device_class', 'workload', 'operation'],

  // What makes figures of two disks comparable by their mean.
  equalDisks:: ['device_class', 'transport', 'model', 'operation', 'figure'],

  // What `ratio`'s series may reach, by device class and by where the equals are: `table` is {class: {among: limit}}.
  limits(ratio, table):: std.join('\nor\n', [
    '0 * %s{device_class="%s", among="%s"} + %g' % [ratio, class, among, table[class][among]]
    for class in std.objectFields(table)
    for among in std.objectFields(table[class])
  ]),

  // Label lists of one configuration, as text for `by (...)` and `on (...)`.
  labels(config):: {
    local instance = config.instanceLabels,
    instance: join(instance),
    probe: join(instance + ['probe']),
    device: join(instance + ['device', 'direction']),
    // one interface, adapter or disk
    interface: join(instance + ['device']),
    // one kind of operation of one disk
    disk: join(instance + ['device', 'operation']),
    // one disk under whatever name
    identity: join(instance + ['identity']),
    address: join(instance + ['pci_address']),
    pool: join(instance + ['pool']),
    slave: join(instance + ['device', 'slave']),
    port: join(instance + ['device', 'port']),
    // one network: all nodes of a cluster (empty where `instance` is all that identifies a node)
    role: join($.clusterLabels(config) + ['role']),
    // one operation of one probe
    series: join(instance + ['probe'] + $.likeness),
    // one baseline, whatever its source
    key: join(instance + $.likeness + ['config_hash']),
    // one entry of one source
    entry: join(instance + $.likeness + ['source', 'profile', 'config_hash']),
    // one tolerance: an entry's, whatever its configuration hash
    tolerance: join(instance + $.likeness + ['source', 'profile']),
    // one degradation ratio, without its statistic
    judged: join(instance + ['probe'] + $.likeness + ['source', 'profile']),
  },

  // The latency ratio that judges: the median, or the mean where the baseline has no median.
  judgedLatency(config, metric)::
    '%(metric)s{statistic="p50"} or on (%(series)s) %(metric)s{statistic="mean"}'
    % { metric: metric, series: $.labels(config).series },

  // The ratio that judges throughput: the worse of the two (with one block size they say the same).
  judgedThroughput(config, metric)::
    'max without (statistic) (%(metric)s{statistic=~"iops|throughput"})' % { metric: metric },

  // A frame counted on VLAN, bond and port is judged once: not on what stands on another interface we know of.
  lowestOnly(config):: |||
    unless on (%(interface)s)
    (
      plumbline_nic_relation_info
      and on (%(instance)s, lower)
      label_replace(plumbline_nic_packets_total, "lower", "$1", "device", "(.+)")
    )
  ||| % $.labels(config),

  // Multiplying by 1 gives an expression the layer its probe measures.
  withLayer(config):: |||
    * on (%(probe)s) group_left (layer)
    max by (%(probe)s, layer) (plumbline_probe_info)
  ||| % $.labels(config),

  // Settings matter where storage traffic runs. A node whose roles are not known is judged on all its interfaces.
  storageOnly(config):: |||
    unless on (%(interface)s)
    plumbline:nic_without_storage:info
  ||| % $.labels(config),

  // What others count in, to a second.
  perSecond:: { nanoseconds: 1000000000 },

  // A template of an alert's value, in bytes per second, as links are rated: in bits.
  bitsPerSecond:: '{{ with query (printf "vector(8 * %f)" $value) }}{{ . | first | value | humanize }}{{ end }}bit/s',

  // A template that names a disk as a person would: "sdg, MK01920GWSSE, serial 1A2B, osd.71 on stor01.example:10047".
  // Looked up when the alert is sent and not joined: a disk without an identity still alerts, under its name alone.
  diskName(config, query=$.diskQuery(config)):: '{{ $labels.device }}' + $.diskIdentity(query)
                                                + ' on {{ $labels.instance }}',
  diskQuery(config, device='$labels.device'):: '(printf `plumbline_disk_info{device=%q,' + $.instanceFormat(config) + '}` '
                                               + device + ' ' + $.instanceArguments(config) + ')',
  diskIdentity(query):: '{{ with query ' + query + ' }}{{ with (first .).Labels }}'
                        + '{{ with .model }}, {{ . }}{{ end }}{{ with .serial }}, serial {{ . }}{{ end }}'
                        + '{{ with .osd }}, {{ . }}{{ end }}{{ end }}{{ end }}',

  // " Switch port: tor-a Ethernet1/7 (discards out 2.0/s)." of a network port, where lldpd runs and an SNMP exporter asks the
  // switch. A port without a link has no neighbour any more: the last of the hour.
  switchPort(config, device='$labels.device')::
    local asked(format) = '(printf `' + format + '` ' + device + ' ' + $.instanceArguments(config) + ')';
    local selector = '{device=%q,' + $.instanceFormat(config) + '}';
    '{{ with query ' + asked('last_over_time(plumbline_nic_neighbor_info' + selector + '[1h])') + ' }} Switch port:'
    + '{{ range $number, $other := . | sortByLabel "switch_port" }}{{ if $number }},{{ end }} {{ .Labels.switch }} {{ .Labels.switch_port }}{{ end }}'
    + '{{ with query ' + asked('plumbline:switch_port:per_second' + selector + ' > 0') + ' }} ('
    + '{{ range $number, $figure := . | sortByLabel "what" }}{{ if $number }}, {{ end }}{{ .Labels.what }} {{ printf "%.1f" .Value }}/s{{ end }})'
    + '{{ end }}.{{ end }}',

  // Selects this alert's node in a template's query: a printf format and its arguments.
  // What a template's printf needs to ask for a series by these labels of the alert: its matchers, and their values.
  format(labels):: std.join(',', [label + '=%q' for label in labels]),
  arguments(labels):: std.join(' ', ['$labels.' + label for label in labels]),
  instanceFormat(config):: $.format(config.instanceLabels),
  instanceArguments(config):: $.arguments(config.instanceLabels),
}
