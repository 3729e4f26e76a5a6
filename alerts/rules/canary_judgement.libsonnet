// How far a canary is beyond what is expected at this hour: what the page and the ticket judge.
//
//   expected = the same hour's median, of yesterday or of a week ago, whichever is higher; at least `leastSeason`, and
//              at most the baseline's own tolerance: the season never excuses what the baseline did not show itself.
//              Without history the whole tolerance, so that a new canary is judged by its baseline alone, more widely.
//   excess   = measured ÷ expected
//
// No rule here reads its own past result (as a CUSUM would): both Prometheus servers of a pair, one after a restart
// and one with backfilled rules come to the same figures.
local over = import '../lib/canary.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local labels = promql.labels(config) {
    ratio: 'plumbline:degradation_fast:ratio{statistic="p50"}',
    tolerance: promql.join(config.instanceLabels + promql.likeness + ['source', 'profile']),
    clusters: promql.join(promql.clusterLabels(config) + promql.likeness),
    hosts: promql.join(config.instanceLabels + promql.likeness),
  } + canary,

  local expr = over(config),

  local offsets = std.join('\nor\n', [
    'label_replace(plumbline:canary_hour:ratio offset %s, "season", "%s", "", "")' % [offset, offset]
    for offset in canary.seasonOffsets
  ]),

  prometheusRules+:: {
    groups+: [{
      // One group, because groups are evaluated at moments of their own: each that a figure passes on its way costs up
      // to an interval.
      name: 'plumbline-judgement.rules',
      interval: canary.interval,
      rules: [
        {
          record: 'plumbline:canary_latency_fast:seconds',
          expr: expr.quantile(0.5, canary.fastWindow),
          labels: { statistic: 'p50' },
        },
        {
          record: 'plumbline:degradation_fast:ratio',
          expr: expr.ratio(expr.enough('_fast', canary.fastWindow, canary.minimumOperations.fast)),
        },
        {
          record: 'plumbline:canary_attempts_fast:ops_per_second',
          expr: expr.attempted,
        },
        {
          record: 'plumbline:canary_slow_operations:ratio',
          expr: expr.slowShare,
        },
        {
          record: 'plumbline:canary_failed_operations:ratio',
          expr: expr.failedShare,
        },
        {
          // A median of medians: hiccups and what lasts less than half an hour leave no trace.
          record: 'plumbline:canary_hour:ratio',
          expr: |||
            quantile_over_time(0.5, %(ratio)s[%(seasonWindow)s])
            and on (%(judged)s)
            %(ratio)s offset %(seasonWindow)s
          ||| % labels,
        },
        {
          record: 'plumbline:canary_expected:ratio',
          expr: |||
            clamp_min(
              max without (season) (
                %(offsets)s
              )
              < on (%(tolerance)s) group_left ()
              max by (%(tolerance)s) (plumbline:baseline_in_force:tolerance_ratio),
              %(leastSeason)g
            )
            or on (%(judged)s)
            0 * %(ratio)s
            + on (%(tolerance)s) group_left ()
            max by (%(tolerance)s) (plumbline:baseline_in_force:tolerance_ratio)
          ||| % (labels { offsets: std.strReplace(offsets, '\n', '\n    ') }),
        },
        {
          record: 'plumbline:canary_excess:ratio',
          expr: |||
            %(ratio)s
            / on (%(judged)s)
            plumbline:canary_expected:ratio
          ||| % labels,
        },
        {
          // Hosts, not canaries: two canaries of one host share its hiccups. The median, so that one odd device of
          // a host neither makes nor hides a verdict about the layer. Too few hosts agree about nothing.
          record: 'plumbline:fleet_beyond:ratio',
          expr: |||
            avg by (%(clusters)s) (
              quantile by (%(hosts)s) (0.5, plumbline:canary_excess:ratio) > bool %(beyond)g
            )
            and
            count by (%(clusters)s) (
              group by (%(hosts)s) (plumbline:canary_excess:ratio)
            ) >= %(minimumHosts)d
          ||| % labels,
        },
      ],
    }],
  },
}
