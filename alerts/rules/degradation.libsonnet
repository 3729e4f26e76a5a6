// The degradation ratio: 1 is as accepted, 2 is twice as bad, in every layer and for every kind of figure.
// Compared is only what agrees in layer, device class, workload, operation, statistic, configuration hash and node.
local over = import '../lib/canary.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local ratio = 'plumbline:degradation:ratio',
  local recent = 'plumbline:degradation_median_of_three:ratio',
  local expr = over(config),
  local labels = promql.labels(config) { match: self.key },

  local nested = promql.nested,

  // A periodic probe's figure with its configuration hash, as long as it is fresh.
  local fresh(metric, extraLabel='') = |||
    (
      max by (%(series)s%(extra)s) (%(metric)s)
      * on (%(info)s) group_left (config_hash)
      max by (%(info)s, config_hash) (plumbline_probe_info)
      and on (%(probe)s)
      (plumbline:probe_since_success:intervals <= %(stale)g)
    )
  ||| % (labels {
           metric: metric,
           extra: extraLabel,
           info: self.probe + ', layer, device_class, workload',
           stale: config.probe.staleIntervals,
         }),

  // Baseline ÷ measured: more is better here.
  local probeRateRatio(record, metric, figure, statistic) = {
    record: record,
    expr: |||
      max by (%(judged)s) (
        plumbline:baseline_in_force:%(figure)s
        / on (%(match)s) group_right (source, profile)
        %(fresh)s
      )
    ||| % (labels { figure: figure, fresh: nested(fresh(metric + figure)) }),
    labels: { statistic: statistic },
  },

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-degradation.rules',
      rules: [
        {
          // One rule for both kinds: rules of the same name have to differ in their labels.
          record: ratio,
          expr: expr.ratio(expr.enough('', canary.shortWindow, canary.minimumOperations.short))
                + 'or\n'
                + expr.ratio(fresh('plumbline_probe_latency_seconds', ', statistic')),
        },
        {
          record: 'plumbline:degradation_long:ratio',
          expr: expr.ratio(expr.enough('_long', canary.meanLongWindow, canary.minimumOperations.long)),
        },
        probeRateRatio(ratio, 'plumbline_probe_', 'iops', 'iops'),
        probeRateRatio(ratio, 'plumbline_probe_', 'throughput_bytes_per_second', 'throughput'),
        {
          // The median of the last three runs of a periodic probe, which the daemon keeps: two of three are beyond a
          // limit exactly when their median is, whatever the interval.
          record: recent,
          expr: expr.ratio(fresh('plumbline_probe_median_of_three_latency_seconds', ', statistic')),
        },
        probeRateRatio(recent, 'plumbline_probe_median_of_three_', 'iops', 'iops'),
        probeRateRatio(recent, 'plumbline_probe_median_of_three_', 'throughput_bytes_per_second', 'throughput'),
        {
          // How much longer than its baseline, in seconds: of two figures the one with more of them explains the other.
          record: 'plumbline:degradation:excess_seconds',
          expr: |||
            (%(latency)s)
            * on (%(tolerance)s, statistic) group_left ()
            min by (%(tolerance)s, statistic) (plumbline:baseline_in_force:latency_seconds)
            - on (%(tolerance)s, statistic) group_left ()
            min by (%(tolerance)s, statistic) (plumbline:baseline_in_force:latency_seconds)
          ||| % (labels { latency: promql.judgedLatency(config, ratio) }),
        },
        {
          // Only what judges: a single run's maximum would colour every layer red for ever.
          record: 'plumbline:layer_degradation:ratio',
          expr: |||
            max by (%(instance)s, layer) (
              (%(latency)s)
              or
              %(ratio)s{statistic=~"iops|throughput"}
            )
          ||| % (labels { latency: promql.judgedLatency(config, ratio), ratio: ratio }),
        },
        {
          // What a review counts: recorded as it happens, because nobody can compare a quarter's worth of samples
          // with the baselines of their day in one query. `bool`: within is 0, as is less than the least number of
          // seconds; what is not judged is absent.
          record: 'plumbline:degradation_beyond:bool',
          expr: |||
            (
              (
                %(judged)s
              )
              > bool on (%(tolerance)s) group_left ()
              max by (%(tolerance)s) (plumbline:baseline_in_force:tolerance_ratio)
            )
            unless on (%(figure)s)
            (%(ratio)s <= on (%(tolerance)s, statistic) group_left () plumbline:baseline_in_force:floor_ratio)
            or on (%(figure)s)
            0 * (
              (
                %(judged)s
              )
              and on (%(tolerance)s)
              plumbline:baseline_in_force:tolerance_ratio
            )
          ||| % (labels {
                   judged: promql.nested(promql.nested(
                     '(%s)\nor\n%s{statistic=~"iops|throughput"}' % [promql.judgedLatency(config, ratio), ratio]
                   )),
                   figure: labels.judged + ', statistic',
                   ratio: ratio,
                 }),
        },
        {
          // Of all judged figures of a layer; above 0 something is beyond.
          record: 'plumbline:layer_beyond:ratio',
          expr: 'avg by (%s) (plumbline:degradation_beyond:bool)'
                % promql.join(promql.clusterLabels(config) + ['layer']),
        },
      ],
    }],
  },
}
