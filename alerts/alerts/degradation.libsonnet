// Periodic probes against their baseline: never on one run, but when the latest run and most of the last ones agree.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),
  local votes = config.probe.votes,
  local classes = config.probe.intervalClasses,
  local ratio = 'plumbline:degradation:ratio',

  // The votes of probes whose interval lies in (previous class, this class].
  local majority(aspect, index) =
    local interval = promql.seconds(classes[index]);
    local step = interval / votes.samplesPerRun;
    |||
      sum_over_time(plumbline:probe_beyond_tolerance:bool{aspect="%(aspect)s"}[%(window)ds:%(step)ds]) > %(half)d
      and on (%(probe)s)
      plumbline_probe_interval_seconds > %(above)d <= %(upTo)d
    ||| % (labels {
             aspect: aspect,
             window: votes.runs * interval,
             step: step,
             half: std.floor(votes.runs * votes.samplesPerRun / 2),
             above: if index == 0 then 0 else promql.seconds(classes[index - 1]),
             upTo: interval,
           }),

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
    + std.join('  or\n', [indent(majority(aspect, index)) for index in std.range(0, std.length(classes) - 1)])
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
