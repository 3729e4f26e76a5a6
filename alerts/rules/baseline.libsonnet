// The baseline in force: of the entries that may judge, the one of the strongest source; a weaker source fills no
// gaps in it, so that all figures of a workload come from the same hardware.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),

  local judging(source) =
    'max by (%(entry)s) (plumbline_baseline_applicable{source="%(source)s"} == 1)' % (labels { source: source }),

  // `> 0`: a figure of zero can't be compared with anything.
  local figure(metric, extraLabel='') = |||
    max by (%(entry)s%(extra)s) (%(metric)s) > 0
    and on (%(entry)s)
    plumbline:baseline_in_force:info
  ||| % (labels { metric: metric, extra: extraLabel }),

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-baseline.rules',
      rules: [
        {
          record: 'plumbline:baseline_in_force:info',
          // topk: the daemon lets one entry of a source judge, but should a node ever export two, a join with two
          // matches would fail the rule for every instance. The values are all 1: one of the two is taken.
          expr: |||
            topk by (%(key)s) (
              1,
              %(judging)s
            )
          ||| % (labels {
                   judging: std.join(
                     '\n  or on (%s)\n  ' % labels.key,
                     [judging(source) for source in config.baselineSources],
                   ),
                 }),
        },
        {
          record: 'plumbline:baseline_in_force:latency_seconds',
          expr: figure('plumbline_baseline_latency_seconds', ', statistic'),
        },
        {
          // What is above a ratio of this is above the least that counts in seconds, too (`floorSeconds`).
          record: 'plumbline:baseline_in_force:floor_ratio',
          expr: '1 +\n(\n  %s\n)' % promql.nested(std.join('\nor\n', [
            '%g / min by (%s, statistic) (plumbline:baseline_in_force:latency_seconds{layer="%s"})'
            % [config.floorSeconds[layer], labels.tolerance, layer]
            for layer in std.objectFields(config.floorSeconds)
          ])),
        },
        { record: 'plumbline:baseline_in_force:iops', expr: figure('plumbline_baseline_iops') },
        {
          record: 'plumbline:baseline_in_force:throughput_bytes_per_second',
          expr: figure('plumbline_baseline_throughput_bytes_per_second'),
        },
        {
          // How far a single run may stray: the baseline's own spread, at least the configured minimum; one that
          // does not say gets the default.
          record: 'plumbline:baseline_in_force:tolerance_ratio',
          expr: |||
            clamp_min(
              max by (%(entry)s) (plumbline_baseline_tolerance_ratio),
              %(minimum)g
            )
            and on (%(entry)s)
            plumbline:baseline_in_force:info
            or on (%(entry)s)
            plumbline:baseline_in_force:info * %(default)g
          ||| % (labels { minimum: config.minimumTolerance, default: config.defaultTolerance }),
        },
      ],
    }],
  },
}
