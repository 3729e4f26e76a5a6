// The queries of the pools' page. The manager's figures of pools are collapsed to the larger of two managers' around a
// failover, and get the pool's name where that is known.
local histograms = import '../lib/histograms.libsonnet';
local matchers = import '../lib/matchers.libsonnet';
local firing = import 'firing.libsonnet';

local cluster = 'cluster=~"$cluster"';
local sel = matchers.selector(cluster);
local named = sel('pool=~"$pool"');

// Of the chosen pools, by name. `expr` is one series a pool_id.
local pools(expr) = '(max by (cluster, pool_id) (%s)) * on (cluster, pool_id) group_left (pool) plumbline:pool:info%s' % [expr, named];
local rate(metric) = 'rate(%s%s[$__rate_interval])' % [metric, sel()];
local state(name) = pools('ceph_pg_%s%s' % [name, sel()]);
local total(expr) = 'sum(%s)' % expr;
local rados = 'cluster=~"$cluster", layer="rados"';

{
  state: {
    health: 'max by (cluster) (ceph_health_status%s)' % sel(),
    unavailable: total('plumbline:pg_unavailable:count' + named),
    degraded: total(state('degraded')),
    damaged: total('plumbline:pg_damaged:count' + named),
    recovery: 'max(plumbline:recovery_left:seconds%s)' % sel(),
    slow: 'max(ceph_healthcheck_slow_ops%s)' % sel(),
    fullest: 'max(plumbline:pool_used:ratio%s)' % named,
    degradation: 'max(plumbline:layer_degradation:ratio{%s})' % rados,
  },
  table: {
    used: 'max by (cluster, pool_id, pool) (plumbline:pool_used:ratio%s)' % named,
    stored: pools('ceph_pool_stored' + sel()),
    left: pools('ceph_pool_max_avail' + sel()),
    groups: state('total'),
    unavailable: 'max by (cluster, pool_id, pool) (plumbline:pg_unavailable:count%s)' % named,
    degraded: state('degraded'),
    damaged: 'sum by (cluster, pool_id, pool) (plumbline:pg_damaged:count%s)' % named,
    reads: pools(rate('ceph_pool_rd')),
    writes: pools(rate('ceph_pool_wr')),
  },
  service: {
    local pool = 'cluster, pool_id, pool',
    local share(metric) = 'max by (%s) (avg_over_time((%s%s > bool 0)[$__range:5m]))' % [pool, metric, named],
    local cephs(metric) = 'max by (%s) (plumbline:pool_%s%s)' % [pool, metric, named],
    unavailable: share('plumbline:pg_unavailable:count'),
    reduced: share('plumbline:pool_redundancy_reduced:bool'),
    score: cephs('availability:ratio'),
    mtbf: cephs('mtbf:seconds'),
    mttr: cephs('mttr:seconds'),
  },
  work: {
    reads: pools(rate('ceph_pool_rd')),
    writes: pools(rate('ceph_pool_wr')),
    readBytes: pools(rate('ceph_pool_rd_bytes')),
    writtenBytes: pools(rate('ceph_pool_wr_bytes')),
    used: 'max by (cluster, pool) (plumbline:pool_used:ratio%s)' % named,
  },
  background: {
    left: 'max by (cluster, work) (plumbline:background_left:count%s)' % sel(),
    time: 'max by (cluster, work) (plumbline:background_left:seconds%s)' % sel(),
  },
  groups: {
    unavailable: 'max by (cluster, pool) (plumbline:pg_unavailable:count%s)' % named,
    degraded: state('degraded'),
    damaged: 'max by (cluster, pool, state) (plumbline:pg_damaged:count%s)' % named,
    moving: 'sum by (state) (label_replace(max by (cluster, pool_id) (ceph_pg_recovering%(sel)s), "state", "recovering", "", "") or label_replace(max by (cluster, pool_id) (ceph_pg_backfilling%(sel)s), "state", "backfilling", "", "") or label_replace(max by (cluster, pool_id) (ceph_pg_remapped%(sel)s), "state", "remapped", "", ""))' % { sel: sel() },
    bytes: pools('ceph_pool_recovering_bytes_per_sec' + sel()),
    objects: pools('ceph_pool_recovering_objects_per_sec' + sel()),
    objectsDegraded: 'max by (cluster) (ceph_num_objects_degraded%s)' % sel(),
    objectsMisplaced: 'max by (cluster) (ceph_num_objects_misplaced%s)' % sel(),
    objectsUnfound: 'max by (cluster) (ceph_num_objects_unfound%s)' % sel(),
  },
  rados: {
    canary: 'avg by (cluster, device_class, operation) (plumbline:canary_latency:seconds{%s, statistic="$statistic"})' % rados,
    canaryBaseline: 'max by (cluster, device_class, operation, source) (plumbline:baseline_in_force:latency_seconds{%s, statistic="$statistic"} and on (cluster, instance, device_class, workload, operation) plumbline_canary_workload_info{%s})' % [rados, rados],
    heatmap: histograms.heatmap('plumbline_canary_latency_seconds', '{%s, operation=~"$operation"}[$__rate_interval]' % rados),
    degradation: 'topk(10, plumbline:degradation:ratio{%s})' % rados,
    throughput: 'plumbline_probe_throughput_bytes_per_second{%s}' % rados,
    throughputBaseline: 'max by (cluster, device_class, workload, source) (plumbline:baseline_in_force:throughput_bytes_per_second{%s})' % rados,
    throughputDocumented: 'max by (device_class, workload, profile) (plumbline_baseline_throughput_bytes_per_second{%s, source="documented"})' % rados,
    latency: 'plumbline_probe_latency_seconds{%s, statistic="mean"}' % rados,
    latencyBaseline: 'max by (cluster, device_class, workload, operation, source) (plumbline:baseline_in_force:latency_seconds{%s, statistic="mean"} and on (cluster, instance, device_class, workload, operation) plumbline_probe_latency_seconds{%s})' % [rados, rados],
    latencyDocumented: 'max by (device_class, workload, operation, profile) (plumbline_baseline_latency_seconds{%s, source="documented", statistic="mean"})' % rados,
  },
  checks: 'max by (cluster, name, severity) (ceph_health_detail%s) == 1' % sel(),
  slow: {
    ceph: 'max by (cluster) (ceph_healthcheck_slow_ops%s)' % sel(),
    blocked: 'sum by (cluster) (plumbline:osd_blocked_operations:count%s)' % sel(),
    recent: 'sum by (cluster) (plumbline:osd_slow_operations:count%s)' % sel(),
  },
  firing: firing(cluster + ', layer="rados"'),
}
