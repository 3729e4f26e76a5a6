// The queries of the clients' page: what probes measure above RADOS, by the vantage they look from.
local histograms = import '../lib/histograms.libsonnet';
local matchers = import '../lib/matchers.libsonnet';
local firing = import 'firing.libsonnet';

local cluster = 'cluster=~"$cluster"';
local sel = matchers.selector(cluster);
local above = 'layer=~"rbd|filesystem|object|client"';
local probe = 'cluster, instance, probe';

// A probe's figure with where it looks from. One vantage a probe: of two, around a change, one.
local seen(expr) = |||
  %s
  * on (%s) group_left (vantage)
  topk by (%s) (1, group by (%s, vantage) (plumbline_probe_info{%s, vantage=~"$vantage"}))
||| % [expr, probe, probe, probe, cluster];

local figure(layer, metric, more='') = std.rstripChars(seen('%s{%s, layer="%s"%s}' % [metric, cluster, layer, more]), '\n');
local inForce(layer, kind, more='') =
  'max by (cluster, device_class, workload, operation, source) (plumbline:baseline_in_force:%s{%s, layer="%s"%s})' % [kind, cluster, layer, more];
local documented(layer, metric, more='') =
  'max by (device_class, workload, operation, profile) (%s{%s, layer="%s", source="documented"%s}) and on (workload, operation) plumbline_probe_%s{%s, layer="%s"}'
  % [metric, cluster, layer, more, std.substr(metric, std.length('plumbline_baseline_'), 100), cluster, layer];

// The latest run of a periodic probe, or what a canary measures now.
local latency(matchers) = '(plumbline_probe_latency_seconds{%s} or plumbline:canary_latency:seconds{%s})' % [matchers, matchers];

// What is judged: medians, means, and what comes per second; not a single run's tail.
local judged = 'plumbline:degradation:ratio{%s, %s, statistic=~"p50|mean|iops|throughput"}' % [cluster, above];
local compared = 'cluster, instance, layer, device_class, workload, operation, source, profile';
local within = |||
  (
    %s
    <= bool on (%s) group_left ()
    max by (%s) (plumbline:baseline_in_force:tolerance_ratio{%s, %s})
  )
||| % [judged, compared, compared, cluster, above];
// Share of the range: of all moments at which there was a ratio, those within the tolerance.
local attained(labels) = 'avg by (%s) (avg_over_time(%s[$__range:5m]))' % [labels, std.rstripChars(within, '\n')];
local client = 'cluster, instance, probe, layer, workload, operation';

{
  state: {
    attainment: 'avg(avg_over_time(%s[$__range:5m]))' % std.rstripChars(within, '\n'),
    degradation: 'max(%s)' % judged,
    beyond: 'count(%s == 0) or 0 * count(%s)' % [std.rstripChars(within, '\n'), judged],
    missing: 'sum(plumbline_baseline_missing{%s, %s})' % [cluster, above],
    failing: 'count(plumbline_probe_success{%s} == 0 and on (%s) plumbline_probe_info{%s, %s}) or 0 * count(plumbline_probe_info{%s, %s})' % [cluster, probe, cluster, above, cluster, above],
    writeNow: 'max by (pool) (plumbline:rbd_latency:mean5m%s)' % sel('operation="write"'),
  },
  table: {
    place: std.rstripChars(seen('group by (%s) (%s or plumbline_probe_throughput_bytes_per_second{%s, %s})' % [client, latency('%s, %s' % [cluster, above]), cluster, above]), '\n'),
    latency: 'max by (%s) (%s)' % [client, latency('%s, %s, statistic="$statistic"' % [cluster, above])],
    throughput: 'max by (%s) (plumbline_probe_throughput_bytes_per_second{%s, %s})' % [client, cluster, above],
    ratio: 'max by (%s) (%s)' % [client, judged],
    attainment: attained(client),
    age: 'max by (%s) (time() - plumbline_probe_last_success_timestamp_seconds%s) and on (%s) plumbline_probe_info{%s, %s}' % [probe, sel(), probe, cluster, above],
  },
  layer(name):: {
    latency: std.rstripChars(seen(latency('%s, layer="%s", statistic="$statistic"' % [cluster, name])), '\n'),
    latencyBaseline: inForce(name, 'latency_seconds', ', statistic="$statistic"'),
    latencyDocumented: documented(name, 'plumbline_baseline_latency_seconds', ', statistic="$statistic"'),
    iops: figure(name, 'plumbline_probe_iops'),
    iopsBaseline: inForce(name, 'iops'),
    iopsDocumented: documented(name, 'plumbline_baseline_iops'),
    throughput: figure(name, 'plumbline_probe_throughput_bytes_per_second'),
    throughputBaseline: inForce(name, 'throughput_bytes_per_second'),
    throughputDocumented: documented(name, 'plumbline_baseline_throughput_bytes_per_second'),
  },
  heatmap: histograms.heatmap('plumbline_probe_operation_latency_seconds', '{%s, layer="rbd"}[$__rate_interval]' % cluster),
  ratio: 'topk(10, %s)' % judged,
  vantage: 'max by (vantage, layer) (%s)' % std.rstripChars(seen(judged), '\n'),
  images: {
    write: 'topk(10, max by (cluster, pool, image) (plumbline:rbd_latency:mean5m%s))' % sel('operation="write"'),
    read: 'topk(10, max by (cluster, pool, image) (plumbline:rbd_latency:mean5m%s))' % sel('operation="read"'),
    local operations(operation) = 'topk(10, sum by (cluster, pool, image) (rate(ceph_rbd_%s_latency_count%s[$__rate_interval])))' % [operation, sel()],
    writes: operations('write'),
    reads: operations('read'),
  },
  clients: std.rstripChars(|||
    topk(
      10,
      sum by (cluster, instance, pool, image, operation) (rate(plumbline_rbd_client_operation_seconds_total%s[$__rate_interval]))
      /
      (
        sum by (cluster, instance, pool, image, operation) (rate(plumbline_rbd_client_operations_total%s[$__rate_interval])) > 0
      )
    )
  ||| % [sel(), sel()], '\n'),
  lustre: {
    lost: 'count by (cluster, target) (plumbline_lustre_import_up%s == 0)' % sel(),
    unhealthy: 'count by (cluster, instance) (plumbline_lustre_healthy%s == 0)' % sel(),
    timeouts: 'topk(10, sum by (cluster, instance, target) (rate(plumbline_lustre_timeouts_total%s[$__rate_interval])) > 0)' % sel(),
    errors: 'topk(10, sum by (cluster, instance) (rate(plumbline_lnet_errors_total%s[$__rate_interval])) > 0)' % sel(),
  },
  firing: firing(cluster + ', ' + above),
}
