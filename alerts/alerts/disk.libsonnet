// A disk among its peers, against its own past, and whether it answers at all.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),
  local disk(signal) = { layer: 'disk', signal: signal },
  local name = 'Disk ' + promql.diskName(config),

  // "1.5ms": a recorded figure of the alert's disk and operation, after `before`; where there is none, neither.
  local figure(metric, selector='', before='') =
    '{{ with query (printf `' + metric + '{' + selector + 'device=%q,operation=%q,' + promql.instanceFormat(config)
    + '}` $labels.device $labels.operation ' + promql.instanceArguments(config) + ') }}'
    + before + '{{ . | first | value | humanizeDuration }}{{ end }}',

  local outlier = alerts.PlumblineDiskLatencyOutlier,
  local regressed = alerts.PlumblineDiskLatencyRegressed,
  local missing = alerts.PlumblineDiskMissing,
  local queue = alerts.PlumblineDiskQueueSettings,

  // A disk that has left has no identity of its own any more, only a past one.
  local lastKnown = '(printf `last_over_time(plumbline_disk_info{device=%q,serial=%q,' + promql.instanceFormat(config)
                    + '}[' + missing.window + '])` $labels.device $labels.serial ' + promql.instanceArguments(config) + ')',

  // "sda, sdb"
  local subjects =
    '{{ range $index, $finding := query (printf `plumbline_finding{check=%q,urgency!="info",'
    + promql.instanceFormat(config) + '} == 1` $labels.check ' + promql.instanceArguments(config)
    + ') | sortByLabel "subject" }}{{ if $index }}, {{ end }}{{ .Labels.subject }}{{ end }}',

  _firstSteps+:: {
    PlumblineDiskLatencyOutlier: first.disk + ': errors, firmware, link, load?',
    PlumblineDiskLatencyRegressed: first.disk + '; are the other disks of the node slower, too?',
    PlumblineDiskHung: first.disk + ' names its OSD; do not run smartctl, it would hang',
    PlumblineDiskMissing: first.on('dmesg -T') + ': removed after errors, or pulled?',
    PlumblineDiskQueueSettings: first.check + ' shows the command that sets it',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-disk',
      rules: [
        alert.new(
          config,
          'PlumblineDiskLatencyOutlier',
          |||
            plumbline:disk_latency_peers:ratio >= %(ratio)g
            and on (%(disk)s)
            plumbline:disk_latency:p99_seconds >= %(floorSeconds)g
            or
            max by (%(disk)s) (
              plumbline:disk_mean_equals:ratio >= plumbline:disk_mean_limit:ratio
              and on (%(disk)s)
              (
                plumbline:disk_mean:figure{figure="latency"}
                >= on (%(inCluster)s) group_left ()
                %(floorShare)g * plumbline:disk_model:figure
              )
            )
          ||| % (labels + outlier {
                   inCluster: promql.join(promql.clusterLabels(config) + promql.equalDisks),
                 }),
          disk('latency'),
          'A disk takes much longer than its peers.',
          name + ': its {{ $labels.operation }} operations take {{ printf "%.1f" $value }} times as long as those of its peers'
          + figure('plumbline:disk_mean:figure', 'figure="latency",', '; mean of %s: ' % config.disk.mean.window)
          + figure('plumbline:disk_equals:figure', 'figure="latency",', ', median of its model: ')
          + figure('plumbline:disk_latency:p99_seconds', before='; p99: ')
          + figure('plumbline:disk_latency:peer_p99_seconds', before=', median of its class: ')
          + '. I/O that is spread over all of them waits for this disk.',
        ),
        alert.new(
          config,
          'PlumblineDiskLatencyRegressed',
          |||
            plumbline:disk_latency_past:ratio >= %(ratio)g
            and on (%(disk)s)
            plumbline:disk_hour:figure{figure="latency"} >= %(floorSeconds)g
          ||| % (labels + regressed),
          disk('latency'),
          'The slowest operations of a disk take much longer than in the days before.',
          name + ': the p99 of its {{ $labels.operation }} latency is '
          + figure('plumbline:disk_hour:figure', 'figure="latency",')
          + ' or more, {{ printf "%.0f" $value }} times the usual value at this hour of the last days, and its load has not grown as much.',
        ),
        alert.new(
          config,
          'PlumblineDiskHung',
          // A stacked device hangs with what lies below it: told once, for the lowest.
          |||
            max by (%(interface)s) (plumbline_disk_queue_length)
            and on (%(interface)s)
            plumbline:disk_hung:info
            unless on (%(interface)s)
            (
              plumbline_disk_relation_info
              and on (%(instance)s, lower)
              label_replace(plumbline:disk_hung:info, "lower", "$1", "device", "(.+)")
            )
          ||| % labels,
          disk('error'),
          'A disk has operations in flight and completes none.',
          name + ': no operation has completed for more than %s, with {{ $value }} operation%s in flight. Everything that waits for this disk hangs.' % [config.disk.hungWindow, promql.plural],
        ),
        alert.new(
          config,
          'PlumblineDiskMissing',
          // Not where another disk has taken its place, nor where it is back under another name.
          |||
            max by (%(interface)s, serial) (plumbline_disk_present) == 0
            unless on (%(interface)s)
            plumbline_disk_present == 1
            unless on (%(instance)s, serial)
            plumbline_disk_present{serial!=""} == 1
          ||| % labels,
          disk('error'),
          'A disk has disappeared from a node.',
          'Disk {{ $labels.device }}' + promql.diskIdentity(lastKnown)
          + ' on {{ $labels.instance }} is gone: the kernel no longer sees it. Unless somebody removed it, the disk, its slot or its cable has failed.',
        ),
        alert.new(
          config,
          'PlumblineDiskQueueSettings',
          |||
            count by (%(instance)s, check) (plumbline_finding{check=~"%(regex)s", urgency!="info"} == 1)
          ||| % (labels { regex: std.strReplace(std.join('|', queue.checks), '.', '\\\\.') }),
          disk('health'),
          'A disk runs with the wrong scheduler, or with flushes switched off.',
          'Open finding on {{ $labels.instance }}: {{ $labels.check }} for ' + subjects + '.',
        ),
      ],
    }],
  },
}
