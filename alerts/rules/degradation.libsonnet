// The degradation ratio: 1 is as accepted, 2 is twice as bad, in every layer and for every kind of figure.
// Compared is only what agrees in layer, device class, workload, operation, statistic, configuration hash and node.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local ratio = 'plumbline:degradation:ratio',
  local recent = 'plumbline:degradation_recent:ratio',
  local labels = promql.labels(config) {
    match: self.key,
    matchLatency: self.key + ', statistic',
  },

  local nested = promql.nested,

  // Measured ÷ baseline. The outer `max by` only drops config_hash, which has done its work.
  local latencyRatio(measured) = |||
    max by (%(judged)s, statistic) (
      %(measured)s
      / on (%(matchLatency)s) group_left (source, profile)
      plumbline:baseline_in_force:latency_seconds
    )
  ||| % (labels { measured: nested(measured) }),

  // The canary's figure with its configuration hash, as long as enough operations stand behind it.
  local enough(span, window, minimum) = |||
    (
      plumbline:canary_latency%(span)s:seconds
      * on (%(series)s) group_left (config_hash)
      max by (%(series)s, config_hash) (plumbline_canary_workload_info)
      and on (%(series)s)
      (sum by (%(series)s) (increase(plumbline_canary_latency_seconds_count[%(window)s])) >= %(minimum)d)
    )
  ||| % (labels { span: span, window: window, minimum: minimum }),

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
          expr: latencyRatio(enough('', canary.shortWindow, canary.minimumOperations.short))
                + 'or\n'
                + latencyRatio(fresh('plumbline_probe_latency_seconds', ', statistic')),
        },
        {
          record: 'plumbline:degradation_long:ratio',
          expr: latencyRatio(enough('_long', canary.longWindow, canary.minimumOperations.long)),
        },
        {
          record: 'plumbline:degradation_fast:ratio',
          expr: latencyRatio(enough('_fast', canary.fastWindow, canary.minimumOperations.fast)),
        },
        probeRateRatio(ratio, 'plumbline_probe_', 'iops', 'iops'),
        probeRateRatio(ratio, 'plumbline_probe_', 'throughput_bytes_per_second', 'throughput'),
        {
          // The median of the last three runs of a periodic probe, which the daemon keeps: two of three are beyond a
          // limit exactly when their median is, whatever the interval.
          record: recent,
          expr: latencyRatio(fresh('plumbline_probe_recent_latency_seconds', ', statistic')),
        },
        probeRateRatio(recent, 'plumbline_probe_recent_', 'iops', 'iops'),
        probeRateRatio(recent, 'plumbline_probe_recent_', 'throughput_bytes_per_second', 'throughput'),
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
      ],
    }],
  },
}
