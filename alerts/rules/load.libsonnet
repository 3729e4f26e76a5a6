// Load is not a fault: does a canary's disk or OSD serve more than when its baseline was recorded, and does that explain
// its latency?
//
//   load  = operations and bytes served now ÷ those of the recording, or of the same hours before where it has none
//   busy  = clearly more load, and the latency has grown no more than the load; or most of the time goes by in the
//           queue while the device itself is as fast as at these hours before
//
// Only what was served is load. A queue grows because of a fault as well and proves nothing alone.
local over = import '../lib/canary.libsonnet';
local histograms = import '../lib/histogram.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local load = config.load,
  local expr = over(config),
  local clusters = promql.clusterLabels(config),
  local labels = promql.labels(config) + load {
    local own = self,
    window: config.canary.fastWindow,
    hour: config.canary.seasonWindow,
    figures: own.series + ', figure',
    onDevice: own.series + ', device',
    probeDevice: own.probe + ', device',
    probeTarget: own.probe + ', target',
    class: promql.join(config.instanceLabels + ['device_class']),
    osd: promql.join(clusters + ['ceph_daemon']),
    target: promql.join(clusters + ['target']),
    local seconds(metric) = histograms(config).sum('rate', metric, '[%s]' % config.disk.window),
    queueing: seconds('plumbline_disk_queue_seconds'),
    serving: seconds('plumbline_disk_latency_seconds'),
  },

  local figure(expr, name) = promql.labelled(std.rstripChars(expr, '\n'), 'figure', name),
  local anyOf(exprs) = std.join('\nor\n', [std.rstripChars(each, '\n') for each in exprs]),

  // Reads and writes, as the recording counts them.
  local served(metric) = |||
    max by (%(series)s) (
      plumbline:canary_device:info
      * on (%(interface)s) group_left ()
      sum by (%(interface)s) (rate(%(metric)s{operation=~"read|write"}[%(window)s]))
    )
  ||| % (labels { metric: metric }),

  // An OSD on another host has its disks there, and that host's daemon counts what they serve; where none runs, Ceph's own
  // operations.
  local ofTarget(ofOsd) = |||
    max by (%(series)s) (
      max by (%(series)s) (plumbline_canary_workload_info)
      * on (%(probe)s) group_left ()
      max by (%(probe)s) (
        max by (%(probeTarget)s) (plumbline_probe_target_info{target=~"osd[.].+",device=""})
        * on (%(target)s) group_left ()
        label_replace(
          %(ofOsd)s,
          "target", "$1", "ceph_daemon", "(.+)"
        )
      )
    )
  ||| % (labels { ofOsd: promql.nested(promql.nested(promql.nested(promql.nested(ofOsd)))) }),
  local servedByDisks(metric) = ofTarget(|||
    max by (%(osd)s) (
      plumbline:osd_disk:info
      * on (%(interface)s) group_left ()
      sum by (%(interface)s) (rate(%(metric)s{operation=~"read|write"}[%(window)s]))
    )
  ||| % (labels { metric: metric })),

  // What canaries ask of a target themselves, from however many hosts.
  local own = |||
    max by (%(series)s) (plumbline_canary_workload_info)
    * on (%(probe)s) group_left ()
    max by (%(probe)s) (
      max by (%(probeTarget)s) (plumbline_probe_target_info)
      * on (%(target)s) group_left ()
      sum by (%(target)s) (
        sum by (%(probe)s) (plumbline:canary_attempts_fast:ops_per_second)
        * on (%(probe)s) group_left (target)
        max by (%(probeTarget)s) (plumbline_probe_target_info)
      )
    )
  ||| % labels,
  local withoutOwn(expr) = |||
    clamp_min(
      (
        %(expr)s
      )
      - on (%(series)s)
      (
        %(own)s
        or on (%(series)s)
        0 * max by (%(series)s) (plumbline_canary_workload_info)
      ),
      0
    )
  ||| % (labels { expr: promql.nested(promql.nested(expr)), own: promql.nested(promql.nested(own)) }),

  local recorded(metric) = |||
    max by (%(series)s) (
      max by (%(series)s, config_hash) (plumbline_canary_workload_info)
      * on (%(key)s) group_left ()
      (
        max by (%(entry)s) (%(metric)s)
        and on (%(entry)s)
        plumbline:baseline_in_force:info
      )
    )
  ||| % (labels { metric: metric }),

  local now = 'plumbline:canary_load:figure',

  // The least reference: a share of what the node's baselines of this class achieved, else of what is usual.
  local floor(name, inForce) = [
    |||
      0 * %(now)s{figure="%(name)s"}
      + on (%(class)s) group_left ()
      %(share)g * max by (%(class)s) (plumbline:baseline_in_force:%(inForce)s{layer="disk"})
    ||| % (labels { now: now, name: name, inForce: inForce }),
  ] + [
    '0 * %s{figure="%s"%s} + %g' % [now, name, matcher.text, load.share * load.ability[name][matcher.class]]
    for matcher in [
      { class: 'hdd', text: ',device_class="hdd"' },
      { class: 'nvme', text: ',device_class="nvme"' },
      { class: 'other', text: '' },
    ]
  ],

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-load.rules',
      interval: load.interval,
      rules: [
        {
          // The disk below each canary, where it is on the canary's own host.
          record: 'plumbline:canary_device:info',
          expr: |||
            max by (%(series)s) (plumbline_canary_workload_info)
            * on (%(probe)s) group_left (device)
            max by (%(probeDevice)s) (plumbline_probe_target_info{device!=""})
          ||| % labels,
        },
        {
          record: now,
          expr: anyOf([
            figure(withoutOwn(anyOf([
              served('plumbline_disk_ios_total'),
              servedByDisks('plumbline_disk_ios_total'),
              ofTarget('sum by (%s) (plumbline:osd_operations:rate5m)' % labels.osd),
            ])), 'operations'),
            figure(anyOf([served('plumbline_disk_io_bytes_total'), servedByDisks('plumbline_disk_io_bytes_total')]), 'bytes'),
          ]),
        },
        {
          record: 'plumbline:canary_load_hour:figure',
          expr: |||
            quantile_over_time(0.5, %(now)s[%(hour)s])
            and on (%(figures)s)
            %(now)s offset %(hour)s
            and on (%(figures)s)
            %(seen)s
          ||| % (labels { now: now, seen: promql.seen(config, now, labels.hour, config.seen.slots.slow) }),
        },
        {
          record: 'plumbline:canary_load_recorded:figure',
          expr: anyOf([
            figure(recorded('plumbline_baseline_load_ops_per_second'), 'operations'),
            figure(recorded('plumbline_baseline_load_bytes_per_second'), 'bytes'),
          ]),
        },
        {
          // As recorded; else the most that was usual at this hour of the days before; of a canary without such days the last hour.
          record: 'plumbline:canary_load_reference:figure',
          expr: |||
            plumbline:canary_load_recorded:figure
            or on (%(figures)s)
            max without (season) (
              %(offsets)s
            )
            or on (%(figures)s)
            plumbline:canary_load_hour:figure
          ||| % (labels {
                   offsets: promql.nested(expr.past('plumbline:canary_load_hour:figure offset %s')),
                 }),
        },
        {
          // Of a day, against what was recorded alone and whatever the device can do: not whether load explains this minute, but
          // whether the baseline is one of this load.
          record: 'plumbline:canary_load_growth:ratio',
          expr: |||
            max by (%(series)s) (
              avg_over_time(plumbline:canary_load_hour:figure{figure="operations"}[%(day)s])
              / on (%(figures)s)
              clamp_min(plumbline:canary_load_recorded:figure{figure="operations"}, %(leastRecorded)g)
            )
            and on (%(series)s)
            %(seen)s
          ||| % (labels {
                   day: config.canary.dayWindow,
                   seen: promql.seen(config, 'plumbline:canary_load_hour:figure{figure="operations"}', config.canary.dayWindow, config.seen.slots.slow),
                 }),
        },
        {
          record: 'plumbline:canary_load_floor:figure',
          expr: std.join('\nor on (%(figures)s)\n' % labels, [
            std.rstripChars(each, '\n')
            for each in floor('operations', 'iops') + floor('bytes', 'throughput_bytes_per_second')
          ]),
        },
        {
          record: 'plumbline:canary_load:ratio',
          expr: |||
            max by (%(series)s) (
              %(now)s
              / on (%(figures)s)
              (
                plumbline:canary_load_reference:figure > on (%(figures)s) plumbline:canary_load_floor:figure
                or on (%(figures)s)
                (plumbline:canary_load_floor:figure and on (%(figures)s) plumbline:canary_load_reference:figure)
              )
            )
          ||| % (labels { now: now }),
        },
        {
          // Most of the time goes by before the device has the request, and the device takes no longer than before.
          record: 'plumbline:canary_queueing:info',
          expr: |||
            plumbline:canary_device:info{layer="disk"}
            and on (%(disk)s)
            (
              sum by (%(disk)s) (%(queueing)s)
              >
              sum by (%(disk)s) (%(serving)s)
            )
            and on (%(disk)s)
            (
              plumbline:disk_latency:mean_seconds
              <= on (%(disk)s)
              %(deviceTolerance)g * min without (season) (
                %(offsets)s
              )
            )
          ||| % (labels {
                   offsets: promql.indented(promql.indented(expr.past(
                     'quantile_over_time(0.5, plumbline:disk_latency:mean_seconds[%s] offset %%s)' % labels.hour
                   ))),
                 }),
        },
        {
          record: 'plumbline:canary_busy:info',
          expr: |||
            group by (%(judged)s) (
              (
                %(latency)s
                <= on (%(series)s) group_left ()
                plumbline:canary_load:ratio
                or
                %(latency)s
                and on (%(series)s)
                plumbline:canary_queueing:info
              )
              and on (%(series)s)
              (plumbline:canary_load:ratio >= %(factor)g)
            )
          ||| % (labels { latency: promql.nested(promql.nested(expr.latest)) }),
        },
      ],
    }],
  },
}
