// Whether a cluster moves data. Where nobody scrapes Ceph there is no series, and nothing is held back.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local clusters = promql.join(std.filter(function(label) label != 'instance', config.instanceLabels)),

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-recovery.rules',
      rules: [{
        record: 'plumbline:recovery:bool',
        // `max`, not `sum`: a manager that failed over leaves two sets of the same figures for a while.
        expr: 'max by (%s) ({__name__=~"ceph_pg_(%s)"}) > bool 0' % [clusters, std.join('|', config.recovery.pgStates)],
      }],
    }],
  },
}
