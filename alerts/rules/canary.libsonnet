// The canary's latency over the windows that are shown and judged, and its share of slow operations.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local labels = promql.labels(config) {
    operationOfProbe: promql.join(config.instanceLabels + ['probe', 'operation']),
  },

  // `>= 0` drops the NaN that an idle window gives: no operation, no figure.
  local quantile(q, window) = |||
    histogram_quantile(
      %(q)g,
      sum by (%(series)s, le) (rate(plumbline_canary_latency_seconds_bucket[%(window)s]))
    ) >= 0
  ||| % (labels { q: q, window: window }),

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

  local bound = 'label_replace(plumbline_canary_bound_info, "le", "$1", "bound", "(.+)")',

  local latency(span, statistic, expr) = {
    record: 'plumbline:canary_latency%s:seconds' % span,
    expr: expr,
    labels: { statistic: statistic },
  },

  // All operations, the failed ones (which are in no bucket) included. `or`: a daemon that has none exports none.
  local attempted(of, window) = |||
    (
      sum by (%(series)s) (%(of)s(plumbline_canary_latency_seconds_count[%(window)s]))
      + on (%(operation)s) group_left ()
      sum by (%(operation)s) (%(of)s(plumbline_canary_errors_total[%(window)s]))
      or on (%(series)s)
      sum by (%(series)s) (%(of)s(plumbline_canary_latency_seconds_count[%(window)s]))
    )
  ||| % (labels { of: of, window: window, operation: labels.operationOfProbe }),

  local nested(text) = std.strReplace(std.rstripChars(text, '\n'), '\n', '\n    '),

  // Share of operations above the baseline's bound, and of failed ones: the bucket whose `le` is the bound, letter for
  // letter (`bound` is written as Prometheus 3 writes `le`), so no edge is ever written down here. `max`, not `sum`:
  // buckets are cumulative, of two bounds the higher counts.
  local slow(span, window, minimum) = {
    record: 'plumbline:canary_slow_operations%s:ratio' % span,
    expr: |||
      clamp_min(
        1
        -
        max by (%(series)s) (
          rate(plumbline_canary_latency_seconds_bucket[%(window)s])
          and on (%(series)s, le)
          %(bound)s
        )
        / on (%(series)s)
        %(attempted)s,
        0
      )
      and on (%(series)s)
      %(increase)s >= %(minimum)d
      and on (%(series)s)
      (
        plumbline_canary_latency_seconds_bucket offset %(window)s
        and on (%(series)s, le)
        %(bound)s
      )
    ||| % (labels {
             operation: labels.operationOfProbe,
             bound: bound,
             window: window,
             attempted: nested(attempted('rate', window)),
             increase: std.rstripChars(attempted('increase', window), '\n'),
             minimum: minimum,
           }),
  },

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-canary.rules',
      rules: [
        latency('', 'p50', quantile(0.5, canary.shortWindow)),
        latency('', 'p99', quantile(0.99, canary.shortWindow)),
        latency('', 'mean', mean(canary.shortWindow)),
        latency('_long', 'p50', full(quantile(0.5, canary.longWindow), canary.longWindow)),
        latency('_long', 'mean', full(mean(canary.meanLongWindow), canary.meanLongWindow)),
        latency('_fast', 'p50', quantile(0.5, canary.fastWindow)),
        // Right after a new bound its bucket has no history while the count has; their quotient would call everything
        // slow: hence `offset`.
        slow('', canary.burnStep, canary.minimumOperations.short),
        slow('_fast', canary.fastWindow, canary.minimumOperations.fast),
      ],
    }],
  },
}
