// Pools, images and placement groups as the manager tells them, in base units, one series each: of two managers around
// a failover the larger.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local clusters = promql.clusterLabels(config),
  local labels = {
    window: config.ceph.window,
    pool: promql.join(clusters + ['pool_id']),
    named: promql.join(clusters + ['pool_id', 'pool']),
    state: promql.join(clusters + ['pool_id', 'state']),
    image: promql.join(clusters + ['pool', 'namespace', 'image']),
    nanoseconds: promql.perSecond.nanoseconds,
  },

  // `expr` has the pool's number; with its name, where that is known.
  local withName(expr) = promql.joined(expr, labels.pool, 'pool', 'plumbline:pool:info'),

  local largest(metric) = 'max by (%s) (%s)' % [labels.pool, metric],

  local tracked = {
    up: largest('plumbline_ceph_pool_available_seconds_total'),
    down: largest('plumbline_ceph_pool_unavailable_seconds_total'),
    failures: largest('plumbline_ceph_pool_failures_total'),
  },

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-ceph.rules',
      rules: [
        {
          record: 'plumbline:pool:info',
          expr: |||
            topk by (%(pool)s) (1,
              group by (%(named)s) (label_replace(ceph_pool_metadata, "pool", "$1", "name", "(.+)"))
            )
          ||| % labels,
        },
        {
          // 0 to 1, although Ceph's name says percent
          record: 'plumbline:pool_used:ratio',
          expr: withName(largest('ceph_pool_percent_used')),
        },
        {
          // Placement groups that take no operation: not active, or nobody has told of them any more. Those of a new
          // pool are not active yet.
          record: 'plumbline:pg_unavailable:count',
          expr: withName(|||
            (
              clamp_min(
                %(total)s
                - on (%(pool)s)
                %(active)s
                - on (%(pool)s)
                %(creating)s,
                0
              )
              > on (%(pool)s)
              %(stale)s
              or on (%(pool)s)
              %(stale)s
            )
          ||| % (labels {
                   total: largest('ceph_pg_total'),
                   active: largest('ceph_pg_active'),
                   creating: largest('ceph_pg_creating'),
                   stale: largest('ceph_pg_stale'),
                 })),
        },
        {
          // Placement groups with a copy that is wrong or missing, by what is said of it.
          record: 'plumbline:pg_damaged:count',
          expr: withName(|||
            max by (%(state)s) (
              %(states)s
            )
          ||| % (labels {
                   states: std.join('\n  or\n  ', [
                     'label_replace(ceph_pg_%s, "state", "%s", "", "")' % [state, state]
                     for each in config.alerts.PlumblineCephDataDamaged.severities
                     for state in each.pgStates
                   ]),
                 })),
        },
        {
          // Fewer copies than configured, whatever is still served.
          record: 'plumbline:pool_redundancy_reduced:bool',
          expr: withName(|||
            (
              %(degraded)s
              + on (%(pool)s)
              %(undersized)s
              > bool 0
            )
          ||| % (labels { degraded: largest('ceph_pg_degraded'), undersized: largest('ceph_pg_undersized') })),
        },
        {
          // As the monitors of Ceph 20 track it: Ceph's own score.
          record: 'plumbline:pool_availability:ratio',
          expr: withName(|||
            (
              %(up)s
              / on (%(pool)s)
              (%(up)s + on (%(pool)s) %(down)s > 0)
            )
          ||| % (labels + tracked)),
        },
        {
          record: 'plumbline:pool_mtbf:seconds',
          expr: withName('(%(up)s / on (%(pool)s) (%(failures)s > 0))' % (labels + tracked)),
        },
        {
          record: 'plumbline:pool_mttr:seconds',
          expr: withName('(%(down)s / on (%(pool)s) (%(failures)s > 0))' % (labels + tracked)),
        },
      ] + [
        {
          // Nanoseconds, whatever Ceph's help said before 17. Measured in the OSD: no client, no network.
          record: 'plumbline:rbd_latency:mean5m',
          expr: |||
            max by (%(image)s) (
              rate(ceph_rbd_%(operation)s_latency_sum[%(window)s])
              /
              (rate(ceph_rbd_%(operation)s_latency_count[%(window)s]) > 0)
            )
            / %(nanoseconds)d
          ||| % (labels { operation: operation }),
          labels: { operation: operation },
        }
        for operation in ['read', 'write']
      ],
    }],
  },
}
