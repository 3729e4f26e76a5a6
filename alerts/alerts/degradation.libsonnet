// Periodic probes against their baseline: never on one run, but when the latest run and most of the last three agree.
// Two of three are beyond the tolerance exactly when their median is, and the daemon keeps that (`_recent_`): so a probe
// of ten minutes and one of a month are judged alike, by rules that look back no further than the last scrape.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),

  // Where one workload has entries for several configuration hashes the widest tolerance holds: the ratio no longer
  // says which of them it came from.
  local beyond(judged) = |||
    (%(ratio)s)
    > on (%(tolerance)s) group_left ()
    max by (%(tolerance)s) (plumbline:baseline_in_force:tolerance_ratio)
  ||| % (labels { ratio: judged }),

  // And not only by a few microseconds.
  local noticeable = |||
    > on (%(tolerance)s, statistic) group_left ()
    plumbline:baseline_in_force:floor_ratio
  ||| % labels,

  local baseline = 'the {{ $labels.source }} baseline ({{ $labels.profile }})',
  local votedAlert(name, judged, summary, description, floor='') = alert.new(
    config,
    name,
    beyond(judged(config, 'plumbline:degradation:ratio')) + floor
    + 'and on (%(judged)s)\n' % labels
    + beyond(judged(config, 'plumbline:degradation_median_of_three:ratio')),
    { signal: 'latency' },
    summary,
    description + ', in most of the last runs.',
  ),

  local subject = 'Probe {{ $labels.probe }} ({{ $labels.workload }}, {{ $labels.operation }}) on {{ $labels.instance }}: ',

  _firstSteps+:: {
    PlumblineProbeLatencyHigh: first.probes + '; is a canary of the same layer slow, too?',
    PlumblineProbeThroughputLow: first.probes + '; is its latency high, too?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-degradation',
      rules: [
        votedAlert(
          'PlumblineProbeLatencyHigh',
          promql.judgedLatency,
          'A probe measures a higher latency than the baseline.',
          subject + 'the {{ $labels.statistic }} latency is {{ printf "%.2f" $value }} times ' + baseline,
          noticeable,
        ),
        votedAlert(
          'PlumblineProbeThroughputLow',
          promql.judgedThroughput,
          'A probe measures less throughput than the baseline.',
          subject + 'too few operations or bytes per second; ' + baseline + ' is {{ printf "%.2f" $value }} times as high',
        ),
      ],
    }],
  },
}
