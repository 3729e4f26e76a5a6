// Block latency as the kernel's histograms show it, device by device: now, against peers, against the disk's own past.
local histograms = import '../lib/histogram.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local disk = config.disk,
  local histogram = histograms(config),
  local labels = promql.labels(config) + disk {
    peers: promql.join(config.instanceLabels + ['operation', 'device_class', 'transport', 'figure']),
    past: promql.join(config.instanceLabels + ['identity', 'operation', 'figure']),
    class: promql.join(histogram.by(promql.clusterLabels(config) + ['device_class', 'operation'])),
    local range = '[%s]' % disk.window,
    buckets: histogram.buckets('rate', 'plumbline_disk_latency_seconds', range),
    completed: histogram.count('rate', 'plumbline_disk_latency_seconds', range),
    seconds: histogram.sum('rate', 'plumbline_disk_latency_seconds', range),
  },

  local indent(text, by='  ') = std.strReplace(text, '\n', '\n' + by),
  local latency(metric) = 'plumbline:disk_latency:' + metric,

  // No figure where next to nothing happens: it would be chance.
  local busy(expr) = expr + |||
    and on (%(disk)s)
    plumbline:disk_latency:ops_per_second >= %(minimumOperationsPerSecond)g
  ||| % labels,

  // Not of a sum by `le`: adding up buckets that are one disk's anyhow takes as long again as reading them.
  local quantile(rank) = busy(|||
    max by (%(disk)s) (histogram_quantile(%(rank)g, %(buckets)s))
  ||| % (labels { rank: rank })),

  // One metric for the figures that are compared alike, told apart by the label `figure`.
  local figures(of) = std.join('\nor\n', [
    'label_replace(%s, "figure", "%s", "", "")' % [of[name], name]
    for name in std.objectFields(of)
  ]),

  // The last hour as it was on each of the past days. By the disk's identity, not its name: names change with a boot,
  // and a slot gets another disk.
  local days = std.join('\nor\n', [
    'label_replace(max by (%s) (plumbline:disk_hour:figure offset %s), "day", "%s", "", "")' % [labels.past, day, day]
    for day in disk.pastDays
  ]),

  prometheusRules+:: {
    groups+: [
      {
        name: 'plumbline-disk.rules',
        rules: [
          {
            // What a disk may be compared by. topk: two rows of one device would fail every join.
            record: 'plumbline:disk_kind:info',
            expr: |||
              topk by (%(interface)s) (
                1,
                group by (%(interface)s, device_class, transport, model) (plumbline_disk_info)
              )
            ||| % labels,
          },
          {
            // Serial number, else name.
            record: 'plumbline:disk_identity:info',
            expr: |||
              topk by (%(interface)s) (
                1,
                group by (%(interface)s, identity) (
                  label_replace(plumbline_disk_info{serial!=""}, "identity", "$1", "serial", "(.+)")
                  or
                  label_replace(plumbline_disk_info{serial=""}, "identity", "$1", "device", "(.+)")
                )
              )
            ||| % labels,
          },
          {
            // Requests in flight, and none has completed. A stacked device (dm, md, bcache) counts in software what is in
            // flight, and that count can leak: kernels 6.4 to 6.9 do not lower it when a path fails over. So it hangs only
            // if something below it has requests in flight, too; a disk's own count cannot leak.
            record: 'plumbline:disk_hung:info',
            expr: |||
              group by (%(interface)s) (
                min_over_time(plumbline_disk_queue_length[%(hungWindow)s]) > 0
                and
                %(seen)s
              )
              and on (%(interface)s)
              sum by (%(interface)s) (increase(plumbline_disk_ios_total[%(hungWindow)s])) == 0
              unless on (%(interface)s)
              (
                plumbline_disk_relation_info
                unless on (%(interface)s)
                (
                  plumbline_disk_relation_info
                  and on (%(instance)s, lower)
                  label_replace(
                    min_over_time(plumbline_disk_queue_length[%(hungWindow)s]) > 0,
                    "lower", "$1", "device", "(.+)"
                  )
                )
              )
            ||| % (labels {
                     seen: promql.seen(config, 'plumbline_disk_queue_length', disk.hungWindow, config.seen.slots.scraped),
                   }),
          },
        ],
      },
      {
        // Who is slower than its peers. Reading every bucket of every disk is the dearest thing that is judged at all.
        name: 'plumbline-disk-tail.rules',
        interval: config.paces.compared,
        rules: [
          {
            record: latency('ops_per_second'),
            expr: 'sum by (%(disk)s) (%(completed)s)' % labels,
          },
          { record: latency('p99_seconds'), expr: quantile(0.99) },
          {
            record: latency('mean_seconds'),
            expr: busy(|||
              sum by (%(disk)s) (%(seconds)s)
              /
              sum by (%(disk)s) (%(completed)s)
            ||| % labels),
          },
          {
            // Mean size of an operation; a flush has none.
            record: 'plumbline:disk_io_size:bytes',
            expr: |||
              sum by (%(disk)s) (rate(plumbline_disk_io_bytes_total[%(window)s]))
              /
              (sum by (%(disk)s) (rate(plumbline_disk_ios_total[%(window)s])) > 0)
            ||| % labels,
          },
          {
            // What is compared, of disks that are busy, with what makes them comparable. One without an identity is
            // compared with none.
            record: 'plumbline:disk_compared:figure',
            expr: |||
              (
                %(figures)s
              )
              * on (%(interface)s) group_left (device_class, transport)
              plumbline:disk_kind:info
              and on (%(disk)s)
              plumbline:disk_latency:p99_seconds{operation=~"%(judgedOperations)s"}
            ||| % (labels {
                     figures: indent(figures({
                       latency: latency('p99_seconds'),
                       load: latency('ops_per_second'),
                       size: 'plumbline:disk_io_size:bytes',
                     })),
                   }),
          },
          {
            // The median over a disk and its peers. The disk's own figure is in it, because PromQL can't leave out one
            // series for each; a median of three or more stands on a healthy disk all the same while one is slow.
            record: 'plumbline:disk_peers:figure',
            expr: |||
              quantile by (%(peers)s) (0.5, plumbline:disk_compared:figure)
              and on (%(peers)s)
              count by (%(peers)s) (plumbline:disk_compared:figure) >= %(minimumPeers)d
            ||| % labels,
          },
          {
            record: latency('peer_p99_seconds'),
            expr: |||
              max by (%(disk)s) (
                0 * plumbline:disk_compared:figure{figure="latency"}
                + on (%(peers)s) group_left ()
                plumbline:disk_peers:figure
              )
            ||| % labels,
          },
          {
            // 1 is as the peers. Not of disks that do other work than they.
            record: 'plumbline:disk_latency_peers:ratio',
            expr: |||
              plumbline:disk_latency:p99_seconds
              / on (%(disk)s)
              (plumbline:disk_latency:peer_p99_seconds > 0)
              unless on (%(disk)s)
              (
                plumbline:disk_compared:figure{figure=~"load|size"}
                > on (%(peers)s) group_left ()
                %(comparableLoad)g * plumbline:disk_peers:figure
              )
            ||| % labels,
          },
        ],
      },
      {
        // What is drawn, and judged by nobody. Each of them reads every bucket of every disk.
        name: 'plumbline-disk-distribution.rules',
        interval: config.paces.drawn,
        rules: [
          { record: latency('p50_seconds'), expr: quantile(0.5) },
          {
            // How many operations a second of a class fall into each bucket: the whole distribution over thousands of
            // disks, which no page could add up from their own buckets.
            record: 'plumbline:disk_class_latency_bucket:ops_per_second',
            expr: |||
              sum by (%(class)s) (
                %(buckets)s
                * on (%(interface)s) group_left (device_class)
                plumbline:disk_kind:info
              )
            ||| % labels,
          },
        ],
      },
      {
        name: 'plumbline-disk-past.rules',
        interval: config.paces.compared,
        rules: [
          {
            // What an hour was like, with the disk's identity.
            record: 'plumbline:disk_hour:figure',
            expr: |||
              (
                %(figures)s
              )
              * on (%(interface)s) group_left (identity)
              plumbline:disk_identity:info
            ||| % (labels {
                     local median(metric) =
                       local of = '%s{operation=~"%s"}' % [latency(metric), disk.judgedOperations];
                       'quantile_over_time(0.5, %s[%s]) and %s'
                       % [of, disk.longWindow, promql.seen(config, of, disk.longWindow, config.seen.slots.slow)],
                     figures: indent(figures({ latency: median('p99_seconds'), load: median('ops_per_second') })),
                   }),
          },
          {
            // What is usual at this hour: the median of the past days, and a week ago if that was more.
            record: 'plumbline:disk_usual:figure',
            expr: |||
              max by (%(past)s) (
                quantile by (%(past)s) (
                  0.5,
                  %(days)s
                )
                and on (%(past)s)
                count by (%(past)s) (
                  %(days)s
                ) >= %(minimumPastDays)d
                or
                label_replace(max by (%(past)s) (plumbline:disk_hour:figure offset %(lastDay)s), "day", "%(lastDay)s", "", "")
              )
            ||| % (labels { days: indent(days, '    '), lastDay: disk.pastDays[std.length(disk.pastDays) - 1] }),
          },
          {
            // 1 is as usual. Nothing is said of a disk that has more to do than ever.
            record: 'plumbline:disk_latency_past:ratio',
            expr: |||
              max by (%(disk)s) (
                plumbline:disk_hour:figure{figure="latency"}
                / on (%(past)s) group_left ()
                (plumbline:disk_usual:figure > 0)
                unless on (%(disk)s)
                (
                  plumbline:disk_hour:figure{figure="load"}
                  > on (%(past)s) group_left ()
                  %(comparableLoad)g * plumbline:disk_usual:figure
                )
              )
            ||| % labels,
          },
          {
            record: 'plumbline:disk_wear:ratio',
            expr: 'max by (%(interface)s, identity) (\n' % labels
                  + promql.indented(promql.identified(config, 'max by (%(interface)s) (plumbline_disk_wear_ratio)' % labels)) + '\n)',
          },
          {
            // What a disk counts for its whole life. By its identity alone: with its name it would seem to grow when two disks
            // change names at a reboot.
            record: 'plumbline:disk_damage:count',
            expr: std.join('\nor\n', [
              promql.labelled(
                'max by (%s) (\n%s\n)' % [labels.identity, promql.indented(promql.identified(config, damage))], 'kind', disk.damage[damage]
              )
              for damage in std.objectFields(disk.damage)
            ]),
          },
          {
            // The disk's whole life so far, or the last two weeks where they wore it faster.
            record: 'plumbline:disk_endurance_left:seconds',
            expr: |||
              min by (%(interface)s) (
                max by (%(interface)s) (plumbline_disk_endurance_left_seconds)
                or
                label_replace(
                  %(wearSeconds)d * (1 - plumbline:disk_wear:ratio)
                  / on (%(identity)s) group_left ()
                  (
                    max by (%(identity)s) (plumbline:disk_wear:ratio)
                    -
                    max by (%(identity)s) (plumbline:disk_wear:ratio offset %(wearWindow)s)
                    >= %(minimumWearSteps)g
                  ),
                  "from", "trend", "", ""
                )
              )
            ||| % (labels { wearSeconds: promql.seconds(disk.wearWindow) }),
          },
        ],
      },
    ],
  },
}
