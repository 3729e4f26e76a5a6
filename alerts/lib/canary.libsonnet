// Expressions over the canary's histogram, for the figures that are shown and for those that judge.
local promql = import 'promql.libsonnet';

function(config) {
  local labels = promql.labels(config) {
    operationOfProbe: promql.join(config.instanceLabels + ['probe', 'operation']),
    match: self.key + ', statistic',
  },

  // `>= 0` drops the NaN that an idle window gives: no operation, no figure. Not of a sum by `le`: adding up buckets that
  // are one canary's anyhow takes as long again as reading them.
  quantile(q, window):: |||
    max by (%(series)s) (
      histogram_quantile(%(q)g, rate(plumbline_canary_latency_seconds_bucket[%(window)s]))
    ) >= 0
  ||| % (labels { q: q, window: window }),

  // Measured ÷ baseline. The outer `max by` only drops config_hash, which has done its work.
  ratio(measured):: |||
    max by (%(judged)s, statistic) (
      %(measured)s
      / on (%(match)s) group_left (source, profile)
      plumbline:baseline_in_force:latency_seconds
    )
  ||| % (labels { measured: promql.nested(measured) }),

  // The canary's figure with its configuration hash, as long as enough operations stand behind it.
  enough(span, window, minimum):: |||
    (
      plumbline:canary_latency%(span)s:seconds
      * on (%(series)s) group_left (config_hash)
      max by (%(series)s, config_hash) (plumbline_canary_workload_info)
      and on (%(series)s)
      (sum by (%(series)s) (increase(plumbline_canary_latency_seconds_count[%(window)s])) >= %(minimum)d)
    )
  ||| % (labels { span: span, window: window, minimum: minimum }),

  local bound = 'label_replace(plumbline_canary_bound_info, "le", "$1", "bound", "(.+)")',

  local failed(of, window) =
    'sum by (%(operationOfProbe)s) (%(of)s(plumbline_canary_errors_total[%(window)s]))'
    % (labels { of: of, window: window }),

  // All operations, the failed ones (which are in no bucket) included. `or`: without errors there may be no counter.
  local attempted(of, window) = |||
    (
      sum by (%(series)s) (%(of)s(plumbline_canary_latency_seconds_count[%(window)s]))
      + on (%(operationOfProbe)s) group_left ()
      %(failed)s
      or on (%(series)s)
      sum by (%(series)s) (%(of)s(plumbline_canary_latency_seconds_count[%(window)s]))
    )
  ||| % (labels { of: of, window: window, failed: failed(of, window) }),

  local enoughAttempted(window, minimum) = |||
    and on (%(series)s)
    %(attempted)s >= %(minimum)d
  ||| % (labels { attempted: std.rstripChars(attempted('increase', window), '\n'), minimum: minimum }),

  // Share of operations above the baseline's bound, and of failed ones: the bucket whose `le` is the bound, letter for
  // letter (`bound` is written as Prometheus 3 writes `le`), so no edge is ever written down here. `max`, not `sum`:
  // buckets are cumulative, of two bounds the higher counts. `offset`: right after a new bound its bucket has no history
  // while the count has; their quotient would call everything slow.
  slowShare(window, minimum):: |||
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
    %(enough)s
    and on (%(series)s)
    (
      plumbline_canary_latency_seconds_bucket offset %(window)s
      and on (%(series)s, le)
      %(bound)s
    )
  ||| % (labels {
           bound: bound,
           window: window,
           attempted: promql.nested(attempted('rate', window)),
           enough: std.rstripChars(enoughAttempted(window, minimum), '\n'),
         }),

  // Share of failed operations: what no recovery excuses.
  failedShare(window, minimum):: |||
    1
    -
    sum by (%(series)s) (rate(plumbline_canary_latency_seconds_count[%(window)s]))
    / on (%(series)s)
    %(attempted)s
    %(enough)s
  ||| % (labels {
           window: window,
           attempted: std.rstripChars(attempted('rate', window), '\n'),
           enough: std.rstripChars(enoughAttempted(window, minimum), '\n'),
         }),
}
