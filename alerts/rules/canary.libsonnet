// The canary's latency over the windows that are shown, and the mean over a long one.
local over = import '../lib/canary.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local labels = promql.labels(config),
  local expr = over(config),

  local mean(window) = |||
    sum by (%(series)s) (rate(plumbline_canary_latency_seconds_sum[%(window)s]))
    /
    (sum by (%(series)s) (rate(plumbline_canary_latency_seconds_count[%(window)s])) > 0)
  ||| % (labels { window: window }),

  // A long window says nothing before it is full: on a new node one hiccup would be most of its history.
  local full(expr, window) = expr + |||
    and on (%(series)s)
    plumbline_canary_latency_seconds_count offset %(window)s
  ||| % (labels { window: window }),

  local latency(span, statistic, expr) = {
    record: 'plumbline:canary_latency%s:seconds' % span,
    expr: expr,
    labels: { statistic: statistic },
  },

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-canary.rules',
      rules: [
        latency('', 'p50', expr.quantile(0.5, canary.shortWindow)),
        latency('', 'p99', expr.quantile(0.99, canary.shortWindow)),
        latency('', 'mean', mean(canary.shortWindow)),
        latency('_long', 'mean', full(mean(canary.meanLongWindow), canary.meanLongWindow)),
      ],
    }],
  },
}
