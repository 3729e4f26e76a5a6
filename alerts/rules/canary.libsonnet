// The canary's latency over the windows that are shown, and the mean over a long one.
local over = import '../lib/canary.libsonnet';
local histograms = import '../lib/histogram.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local labels = promql.labels(config),
  local expr = over(config),
  local histogram = histograms(config),
  local metric = 'plumbline_canary_latency_seconds',

  local mean(window) = |||
    sum by (%(series)s) (%(seconds)s)
    /
    (sum by (%(series)s) (%(completed)s) > 0)
  ||| % (labels {
           seconds: histogram.sum('rate', metric, '[%s]' % window),
           completed: expr.completed('rate', window),
         }),

  // A long window says nothing before it is full: on a new node one hiccup would be most of its history.
  local full(expr, window) = expr + |||
    and on (%(series)s)
    %(before)s
  ||| % (labels { before: histogram.present(metric, ' offset ' + window) }),

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
