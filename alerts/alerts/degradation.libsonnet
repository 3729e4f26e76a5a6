// Periodic probes against their baseline: never on one run, but when the latest run and most of the last ones agree.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),
  local ratio = 'plumbline:degradation:ratio',

  local indent(text) = '  ' + std.strReplace(std.rstripChars(text, '\n'), '\n', '\n  ') + '\n',

  local votedAlert(name, aspect, worst, summary, description) = alert.new(
    config,
    name,
    |||
      (%(worst)s)
      and on (%(judged)s)
      plumbline:probe_beyond_tolerance:bool{aspect="%(aspect)s"} == 1
      and on (%(judged)s)
      (
    ||| % (labels { worst: worst, aspect: aspect })
    + indent(promql.majority(config, 'plumbline:probe_beyond_tolerance:bool{aspect="%s"}' % aspect))
    + ')\n',
    { signal: 'latency' },
    summary,
    description + ' the {{ $labels.source }} baseline {{ $labels.profile }}, in most of the last runs.',
  ),

  local subject = 'Probe {{ $labels.probe }} ({{ $labels.workload }}, {{ $labels.operation }}) on {{ $labels.instance }}: ',

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-degradation',
      rules: [
        votedAlert(
          'PlumblineProbeLatencyHigh',
          'latency',
          promql.judgedLatency(config, ratio),
          'A probe finds its device slower than the baseline.',
          subject + 'the {{ $labels.statistic }} latency is {{ printf "%.2f" $value }} times',
        ),
        votedAlert(
          'PlumblineProbeThroughputLow',
          'throughput',
          promql.judgedThroughput(config, ratio),
          'A probe finds less throughput than the baseline.',
          subject + 'operations or bytes per second are {{ printf "%.2f" $value }} times worse than',
        ),
      ],
    }],
  },
}
