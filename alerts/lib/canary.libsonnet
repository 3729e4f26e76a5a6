// Expressions over the canary's histogram, for the figures that are shown and for those that judge.
local histograms = import 'histogram.libsonnet';
local promql = import 'promql.libsonnet';

local metric = 'plumbline_canary_latency_seconds';

function(config) {
  local histogram = histograms(config),
  local labels = promql.labels(config) {
    operationOfProbe: promql.join(config.instanceLabels + ['probe', 'operation']),
    match: self.key + ', statistic',
  },

  // `>= 0` drops the NaN that an idle window gives: no operation, no figure. Not of a sum by `le`: adding up buckets that
  // are one canary's anyhow takes as long again as reading them.
  quantile(q, window):: |||
    max by (%(series)s) (
      histogram_quantile(%(q)g, %(rate)s)
    ) >= 0
  ||| % (labels { q: q, rate: histogram.buckets('rate', metric, '[%s]' % window) }),

  // Operations that succeeded within a window, of each probe and kind; `of` is rate or increase.
  completed(of, window):: histogram.count(of, metric, '[%s]' % window),
  anyCompleted(window):: histogram.counted(metric, '[%s]' % window),

  // "… or …": what was so at this hour of the days before, told apart by `season`; in `expr`, %s is the offset.
  past(expr):: std.join('\nor\n', [
    'label_replace(%s, "season", "%s", "", "")' % [expr % offset, offset]
    for offset in config.canary.seasonOffsets
  ]),

  // What a canary measures, in a label `part`: its OSD, whichever hosts measure it; else its host, whose hiccups all its canaries
  // share. Agreement counts these: two hosts that measure one OSD are one witness.
  ofPart(expr):: |||
    (
      %(expr)s
      * on (%(probe)s) group_left (part)
      topk by (%(probe)s) (1,
        group by (%(probe)s, part) (
          label_replace(plumbline_probe_target_info{target=~"osd[.].+"}, "part", "$1", "target", "(.+)")
        )
      )
      or on (%(series)s)
      label_replace(%(expr)s, "part", "$1", "instance", "(.+)")
    )
  ||| % (labels { expr: promql.nested(std.rstripChars(expr, '\n')) }),

  // Measured ÷ baseline at this moment: of the median, or of the mean where the baseline has no median.
  latest:: |||
    max by (%(judged)s) (
      plumbline:degradation_fast:ratio{statistic="p50"}
      or on (%(series)s)
      plumbline:degradation:ratio{statistic="mean"}
    )
  ||| % labels,

  // A range that holds the results of a whole span, its first included.
  whole(span):: '%ds' % (promql.seconds(span) + config.canary.slackSeconds),

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
      (sum by (%(series)s) (%(completed)s) >= %(minimum)d)
    )
  ||| % (labels { span: span, completed: $.completed('increase', window), minimum: minimum }),

  local fast = config.canary.fastWindow,

  // A rate of operations with that of the failed ones, which are in no bucket. `or`: without errors there may be none.
  local withFailed(rate, window) = |||
    %(rate)s
    + on (%(operationOfProbe)s) group_left ()
    sum by (%(operationOfProbe)s) (rate(plumbline_canary_errors_total[%(window)s]))
    or on (%(series)s)
    %(rate)s
  ||| % (labels { window: window, rate: rate }),

  local completed = 'sum by (%s) (%s)' % [labels.series, $.completed('rate', fast)],

  // The two shares below divide by what this recorded, so all three are over the fast window.
  attempted:: withFailed(completed, fast),

  local enoughAttempted = |||
    and on (%(series)s)
    plumbline:canary_attempts_fast:ops_per_second >= %(minimum)d / %(seconds)d
  ||| % (labels { seconds: promql.seconds(fast), minimum: config.canary.minimumOperations.fast }),

  local slow =
    'min by (%(series)s) (rate(plumbline_canary_slow_operations_total[%(window)s]))' % (labels { window: fast }),

  // A share of the attempted operations. At most 1: the counters are not read at one instant, and some engines see the result
  // of a rule in the next evaluation only.
  local shareOfAttempted(part) = |||
    clamp_max(
      (
        %(part)s
      )
      / on (%(series)s)
      plumbline:canary_attempts_fast:ops_per_second,
      1
    )
    %(enough)s
  ||| % (labels { part: promql.nested(promql.nested(part)), enough: std.rstripChars(enoughAttempted, '\n') }),

  // Share of operations above the baseline's bound, and of failed ones. `min`: of two bounds the higher counts.
  // `offset`: right after a new bound its counter has no history while the count has; their quotient would be too small.
  slowShare:: |||
    %(share)s
    and on (%(series)s)
    plumbline_canary_slow_operations_total offset %(window)s
  ||| % (labels { window: fast, share: std.rstripChars(shareOfAttempted(withFailed(slow, fast)), '\n') }),

  // Share of failed operations: what no recovery excuses. 0 where none failed, also before the first that fails.
  failedShare:: shareOfAttempted(withFailed('0 * plumbline:canary_attempts_fast:ops_per_second', fast)),
}
