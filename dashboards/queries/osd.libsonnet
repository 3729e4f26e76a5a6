// The queries of one OSD's page. `cluster` may be missing: `=~"$cluster"` with `.*` matches it.
local clients = import '../lib/clients.libsonnet';
local histograms = import '../lib/histograms.libsonnet';
local limits = import '../lib/limits.libsonnet';
local matchers = import '../lib/matchers.libsonnet';
local firing = import 'firing.libsonnet';

local this = 'cluster=~"$cluster", ceph_daemon=~"$ceph_daemon"';
local sel = matchers.selector(this);
local osd = 'cluster, ceph_daemon';
local one(expr) = 'max by (%s) (%s)' % [osd, expr];

// The median of its class, where the class has one.
local ofClass(figure) =
  'plumbline:osd_class:figure{cluster=~"$cluster", figure=~"%s"} and on (cluster, device_class) plumbline:osd:info%s' % [figure, sel()];
local latency(part, operation='$operation') = 'plumbline:osd_latency:mean5m' + sel('operation=~"%s", part="%s"' % [operation, part]);
// Its disks: data, and where there are such, DB and log.
local disks(metric) = 'max by (cluster, instance, device, operation) (%s) and on (cluster, instance, device) plumbline:osd_disk:info%s' % [metric, sel()];
local canary = 'cluster=~"$cluster", layer="rados", statistic="$statistic"';
local class = 'plumbline:osd:info' + sel();

{
  state: {
    up: one('plumbline:osd_up:bool' + sel()),
    'in': one('ceph_osd_in' + sel()),
    verdict: 'max by (verdict) (plumbline:osd_suspect:info%s) or on () label_replace(group by () (plumbline:osd:info%s), "verdict", "none", "", "")' % [sel(), sel()],
    ratio: 'max(plumbline:osd_class:ratio%s)' % sel(),
    p99: 'max by (operation) (plumbline:osd_latency:p99_seconds%s)' % sel(),
    blocked: 'sum(plumbline_osd_blocked_operations%s)' % sel(),
    accused: 'sum(plumbline:osd_accusations:count%s) or 0 * sum(plumbline:osd:info%s)' % [sel(), sel()],
  },
  identity: {
    place: 'group by (%s, device_class, hostname) (plumbline:osd:info%s)' % [osd, sel()],
    disk: 'group by (%s, instance, device) (plumbline:osd_disk:info%s)' % [osd, sel()],
    told: 'group by (%s, instance) (plumbline:osd_node:info%s)' % [osd, sel()],
    version: 'topk by (%s) (1, group by (%s, ceph_version) (ceph_osd_metadata%s))' % [osd, osd, sel()],
    capacity: one('plumbline:osd_capacity:iops' + sel()),
    fragmentation: one('plumbline_osd_fragmentation_ratio' + sel()),
  },
  latency: {
    p99: 'max by (operation) (plumbline:osd_latency:p99_seconds%s)' % sel('operation=~"$operation"'),
    p50: 'max by (operation) (plumbline:osd_latency:p50_seconds%s)' % sel('operation=~"$operation"'),
    classP99: ofClass('(read|write)_p99'),
    mean: 'max by (operation) (%s)' % latency('total'),
    classMean: ofClass('read|write'),
    heatmap: histograms.heatmap('plumbline_osd_latency_seconds', sel('operation=~"$operation"') + '[$__rate_interval]'),
  },
  parts: {
    write: 'max by (part) (plumbline:osd_write_part:seconds%s)' % sel(),
    wholeWrite: 'max(%s)' % latency('total', 'write'),
    read: 'max by (part) (plumbline:osd_read_part:seconds%s)' % sel(),
    wholeRead: 'max(%s)' % latency('total', 'read'),
    store: 'max by (part) (plumbline:osd_store_latency:mean5m%s)' % sel(),
    slow: 'max by (part) (plumbline:osd_store_slow:rate5m%s)' % sel(),
    classStore: ofClass('commit'),
    database: one('plumbline_osd_database_used_bytes' + sel()),
    databaseSize: one('plumbline_osd_database_size_bytes' + sel()),
    spilled: one('plumbline_osd_database_spilled_bytes' + sel()),
    logCompaction: 'sum(rate(plumbline_osd_bluefs_log_compaction_seconds_total%(sel)s[$__rate_interval])) / (sum(rate(plumbline_osd_bluefs_log_compactions_total%(sel)s[$__rate_interval])) > 0)' % { sel: sel() },
    compaction: one('plumbline_osd_database_compaction_seconds' + sel()),
    ratio: 'max by (figure) (plumbline:osd_class:ratio%s)' % sel(),
    equals: 'max by (figure) (plumbline:osd_equals:ratio%s)' % sel('figure!="load"'),
    equalsLimit: 'max by (among) (plumbline:osd_equals_limit:ratio%s)' % sel('figure!="load"'),
  },
  work: {
    operations: 'max by (operation) (plumbline:osd_operations:rate5m%s)' % sel(),
    subop: 'sum(rate(plumbline_osd_subops_total%s[$__rate_interval]))' % sel(),
    subopLatency: 'sum(rate(plumbline_osd_subop_seconds_total%(sel)s[$__rate_interval])) / (sum(rate(plumbline_osd_subops_total%(sel)s[$__rate_interval])) > 0)' % { sel: sel() },
    queued: 'sum by (op_class) (plumbline_osd_mclock_queued_operations%s)' % sel(),
    shares: 'max by (op_class, share, mclock_profile) (plumbline_osd_mclock_share_ratio%s)' % sel(),
    classSubop: ofClass('subop'),
    blocked: 'sum by (stage) (plumbline_osd_blocked_operations%s)' % sel(),
    slow: 'sum by (stage) (plumbline_osd_slow_operations%s)' % sel(),
    misses: 'sum(rate(plumbline_osd_onode_lookups_total%s[$__rate_interval])) / (sum(rate(plumbline_osd_onode_lookups_total%s[$__rate_interval])) > 0)' % [sel('result="miss"'), sel()],
  },
  clients: clients.query(' and on (cluster, instance) plumbline:osd_node:info%s' % sel()),
  peers: {
    worst: 'max by (interface) (plumbline_osd_heartbeat_seconds%s)' % sel('statistic="worst"'),
    median: 'max by (interface) (plumbline_osd_heartbeat_seconds%s)' % sel('statistic="median"'),
    everybody: 'quantile by (interface) (0.5, plumbline_osd_heartbeat_seconds{cluster=~"$cluster", statistic="median"})',
    accused: 'max by (interface) (plumbline:osd_accusations:count%s)' % sel(),
  },
  connections: {
    worst: one('plumbline:osd_connection_rtt:seconds' + sel('statistic="worst"')),
    median: one('plumbline:osd_connection_rtt:seconds' + sel('statistic="median"')),
    everybody: 'quantile(0.5, plumbline:osd_connection_rtt:seconds{cluster=~"$cluster", statistic="median"})',
    retransmits: one('plumbline:osd_connection_retransmits:rate5m' + sel()),
  },
  disk: {
    mean: disks('plumbline:disk_latency:mean_seconds{cluster=~"$cluster"}'),
    p99: disks('plumbline:disk_latency:p99_seconds{cluster=~"$cluster"}'),
    peerP99: disks('plumbline:disk_latency:peer_p99_seconds{cluster=~"$cluster"}'),
    busy: 'max by (cluster, instance, device) (rate(plumbline_disk_busy_seconds_total{cluster=~"$cluster"}[$__rate_interval])) and on (cluster, instance, device) plumbline:osd_disk:info%s' % sel(),
    findings: |||
      max by (cluster, instance, subject, check, urgency) (
        plumbline_finding{cluster=~"$cluster"} == 1
        and on (cluster, instance, subject)
        label_replace(plumbline:osd_disk:info%s, "subject", "$1", "device", "(.+)")
      )
    ||| % sel(),
  },
  canary: {
    latency: 'plumbline:canary_latency:seconds{%s, probe=~".+/$ceph_daemon"}' % canary,
    baseline: 'max by (device_class, workload, operation, source) (plumbline:baseline_in_force:latency_seconds{%s}) and on (device_class) %s' % [canary, class],
    limit: 'max by (operation) (%s)' % limits.seconds(matchers.selector('cluster=~"$cluster", layer="rados", probe=~".+/$ceph_daemon"')),
    documented: 'max by (device_class, workload, operation, profile) (plumbline_baseline_latency_seconds{%s, source="documented"}) and on (workload, operation) plumbline:canary_latency:seconds{%s}' % [canary, canary],
    bench: 'max by (workload) (plumbline_probe_iops{cluster=~"$cluster", layer="osd", probe=~".+/$ceph_daemon"})',
    baselineBench: 'max by (device_class, workload, source) (plumbline:baseline_in_force:iops{cluster=~"$cluster", layer="osd"}) and on (device_class) %s' % class,
  },
  firing: firing('cluster=~"$cluster", ceph_daemon=~"$ceph_daemon"'),
}
