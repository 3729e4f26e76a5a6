// The canary against its baseline: the median in two windows, the catastrophe in one, the tail as a budget burn.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local high = config.alerts.PlumblineCanaryLatencyHigh,
  local extreme = config.alerts.PlumblineCanaryLatencyExtreme,
  local burn = config.alerts.PlumblineCanaryBudgetBurn,
  local latency = { signal: 'latency' },

  local subject = '{{ $labels.probe }}, {{ $labels.operation }} ({{ $labels.workload }}) on {{ $labels.instance }}, device class {{ $labels.device_class }}',
  local baseline = 'the {{ $labels.source }} baseline {{ $labels.profile }}',

  local burnAlert(window) = alert.fromTunables(
    burn { severity: window.severity },
    'PlumblineCanaryBudgetBurn',
    |||
      avg_over_time(%(share)s[%(long)s:%(step)s]) > %(threshold)g
      and
      avg_over_time(%(share)s[%(short)s:%(step)s]) > %(threshold)g
      and
      count_over_time(%(share)s[%(long)s:%(step)s]) >= %(points)d
    ||| % (window {
             share: 'plumbline:canary_slow_operations:ratio',
             step: canary.burnStep,
             threshold: window.burn * canary.slowOperationsBudget,
             points: std.floor(canary.burnCoverage * promql.seconds(window.long) / promql.seconds(canary.burnStep)),
           }),
    latency { window: window.long },
    'Too many canary operations are slower than the baseline allows.',
    '{{ $value | humanizePercentage }} of the last %s of canary ' % window.long + subject + ', were slower than the bound of its baseline; %g%% are allowed for.' % (100 * canary.slowOperationsBudget),
  ),

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-canary',
      rules: [
        alert.new(
          config,
          'PlumblineCanaryLatencyExtreme',
          'plumbline:degradation_fast:ratio{statistic="p50"} >= %g' % extreme.ratio,
          latency,
          'What a canary measures is many times slower than its baseline.',
          'Canary ' + subject + ': the {{ $labels.statistic }} latency of the last %s is {{ printf "%%.1f" $value }} times ' % canary.fastWindow + baseline + '.',
        ),
        alert.new(
          config,
          'PlumblineCanaryLatencyHigh',
          |||
            (%(short)s) > %(shortRatio)g
            and
            (%(long)s) > %(longRatio)g
          ||| % (high {
                   short: promql.judgedLatency(config, 'plumbline:degradation:ratio'),
                   long: promql.judgedLatency(config, 'plumbline:degradation_long:ratio'),
                 }),
          latency,
          'What a canary measures is slower than its baseline.',
          'Canary ' + subject + ': the {{ $labels.statistic }} latency of the last %s is {{ printf "%%.1f" $value }} times ' % canary.shortWindow + baseline + ', and the longer window agrees.',
        ),
      ] + std.map(burnAlert, burn.windows),
    }],
  },
}
