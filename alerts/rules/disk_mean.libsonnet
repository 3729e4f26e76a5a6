// Who takes longer on average than its equals: disks of one model on one host, else in the cluster. Beside the tail
// (disk.libsonnet): a disk that is slow with everything has no tail of its own, and where buckets double a ratio below 4
// may be the grid, while a sum divided by a count is exact.
local histograms = import '../lib/histogram.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local disk = config.disk,
  local mean = disk.mean,
  local labels = promql.labels(config) + disk + mean {
    compared: promql.join(config.instanceLabels + ['device', 'operation', 'figure']),
    onHost: promql.join(config.instanceLabels + promql.equalDisks),
    inCluster: promql.join(promql.clusterLabels(config) + promql.equalDisks),
  },

  local histogram = histograms(config),
  local rates = {
    local range(window) = '{operation=~"%s"}[%s]' % [disk.judgedOperations, window],
    local latency = 'plumbline_disk_latency_seconds',
    completed(window):: histogram.count('rate', latency, range(window)),
    seconds(window):: histogram.sum('rate', latency, range(window)),
    counter(name, window):: 'rate(%s%s)' % [name, range(window)],
  },
  local ofDisk(rate) = 'sum by (%s) (%s)' % [labels.disk, rate],
  local rate(counter, window) = ofDisk(rates.counter(counter, window)),

  // A node has the kernel's histogram, or diskstats alone, which has queue time in it: one way for all of its disks.
  local either(latency, diskstats, window) = |||
    (
      %s
      or on (%s)
      %s
    )
  ||| % [ofDisk(latency), labels.instance, rate(diskstats, window)],

  // Of disks that are not idle.
  local operations(window) =
    either(rates.completed(window), 'plumbline_disk_ios_total', window)
    + '>= %g' % disk.minimumOperationsPerSecond,

  local seconds(window) = either(rates.seconds(window), 'plumbline_disk_io_seconds_total', window),

  local ofKind(expr) = |||
    (
      %s
    )
    * on (%s) group_left (device_class, transport, model)
    plumbline:disk_kind:info
  ||| % [promql.nested(expr), labels.interface],

  // In this order: reading the operations and bytes of every disk is dear, so the later ones divide by what is recorded.
  local figures = [
    ['load', ofKind(operations(mean.window))],
    ['bytes', ofKind(rate('plumbline_disk_io_bytes_total', mean.window))],
    // Without its label: VictoriaMetrics keeps one that a rule's own would replace, as exported_figure.
    [
      'latency',
      seconds(mean.window)
      + '/ on (%s) group_right ()\nmax without (figure) (plumbline:disk_mean:figure{figure="load"})\n' % labels.disk,
    ],
    // A burst stays in the longer mean for all of its window; this one tells that it is over.
    ['recent', ofKind(seconds(disk.window) + '/\n(\n  %s\n)' % promql.nested(operations(disk.window)))],
    ['size', |||
      plumbline:disk_mean:figure{figure="bytes"}
      / on (%s, device_class, transport, model)
      plumbline:disk_mean:figure{figure="load"}
    ||| % labels.disk],
  ],

  // The median of a disk's equals, as a figure of the disk itself.
  local equals(among, figures, by, median) = {
    record: 'plumbline:disk_equals:figure',
    labels: { among: among },
    expr: |||
      0 * %(figures)s
      + on (%(by)s) group_left ()
      %(median)s
    ||| % { figures: std.rstripChars(figures, '\n'), by: by, median: std.rstripChars(median, '\n') },
  },

  prometheusRules+:: {
    // Two groups, one that reads every disk and one that compares: at a thousand nodes neither takes a tenth of its pace.
    groups+: [{
      name: 'plumbline-disk-mean.rules',
      interval: config.paces.compared,
      rules: [
        { record: 'plumbline:disk_mean:figure', expr: figure[1], labels: { figure: figure[0] } }
        for figure in figures
      ],
    }, {
      name: 'plumbline-disk-equals.rules',
      interval: config.paces.compared,
      rules: [
        {
          // The median of a model in the whole cluster.
          record: 'plumbline:disk_model:figure',
          expr: |||
            quantile by (%(inCluster)s) (0.5, plumbline:disk_mean:figure)
            and on (%(inCluster)s)
            count by (%(inCluster)s) (plumbline:disk_mean:figure) >= %(minimumPeers)d
          ||| % labels,
        },
        equals('host', 'plumbline:disk_mean:figure', labels.onHost, |||
          (
            quantile by (%(onHost)s) (0.5, plumbline:disk_mean:figure)
            and on (%(onHost)s)
            count by (%(onHost)s) (plumbline:disk_mean:figure) >= %(minimumPeers)d
          )
        ||| % labels),
        // Where a host has too few of a model, those of all hosts. Right after it has enough there are both, in engines in which
        // a rule sees later what another of its group recorded: so nothing may want one row of a disk. A disk without a model is like others of its host at
        // most.
        equals('cluster', |||
          (
            plumbline:disk_mean:figure{model!=""}
            unless on (%(compared)s)
            plumbline:disk_equals:figure{among="host"}
          )
        ||| % labels, labels.inCluster, 'plumbline:disk_model:figure'),
        {
          // Serves so many times what its equals do; 1 where it is less. Only what was served is load: a fault adds none.
          record: 'plumbline:disk_load_equals:ratio',
          expr: |||
            clamp_min(
              max by (%(disk)s) (
                plumbline:disk_mean:figure{figure=~"load|bytes"}
                / on (%(compared)s) group_right ()
                plumbline:disk_equals:figure
              ),
              1
            )
          ||| % labels,
        },
        {
          // 1 is as its equals: the smaller of the two windows. Not of a disk with other work than they.
          record: 'plumbline:disk_mean_equals:ratio',
          expr: |||
            min by (%(disk)s, device_class, among) (
              plumbline:disk_mean:figure{figure=~"latency|recent"}
              / on (%(compared)s) group_right ()
              (plumbline:disk_equals:figure > 0)
            )
            unless on (%(disk)s)
            (
              plumbline:disk_mean:figure{figure="size"}
              > on (%(compared)s) group_right ()
              %(comparableSize)g * plumbline:disk_equals:figure
            )
          ||| % labels,
        },
        {
          // From here on it is out of line: slower at the same load is a fault.
          record: 'plumbline:disk_mean_limit:ratio',
          expr: |||
            (
              %(limits)s
            )
            * on (%(disk)s) group_left ()
            plumbline:disk_load_equals:ratio
          ||| % (labels {
                   limits: promql.nested(
                     promql.limits('plumbline:disk_mean_equals:ratio', config.alerts.PlumblineDiskLatencyOutlier.mean)
                   ),
                 }),
        },
      ],
    }],
  },
}
