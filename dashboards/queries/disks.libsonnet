// The queries of the disks' page, apart from its layout. For thousands of disks: lines are the worst few, chosen once at
// the end of the range, and what is summed over all disks is recorded by class; raw buckets are never read here.
local matchers = import '../lib/matchers.libsonnet';
local proof = import '../lib/proof.libsonnet';

local sel = matchers.selector('cluster=~"$cluster"');
local operation = sel('operation=~"$operation"');
local identity = 'cluster, instance, device';
local disk = identity + ', operation';

// Only of the chosen class: before the worst are taken, and once for each list of them, since it costs a look at every disk.
local ofClass(expr, at='') =
  '(%s) and on (%s) plumbline:disk_kind:info%s%s' % [expr, identity, sel('device_class=~"$device_class"'), at];
local worst(count, expr, at='') = 'topk(%d, %s)' % [count, ofClass(expr, at)];

// The worst by each measure: a disk without peers or without a past has one of them only.
local outliers = std.join(' or ', [
  worst(20, metric + operation)
  for metric in ['plumbline:disk_latency_peers:ratio', 'plumbline:disk_latency_past:ratio', 'plumbline:disk_latency:p99_seconds']
]);
local ofOutliers(metric) = 'max by (%s) (%s%s and on (%s) (%s))' % [disk, metric, operation, disk, outliers];

// In a graph the same few from its beginning to its end. Those that compare with peers first, else by the figure itself.
local atEnd(count, metric) = worst(count, '%s%s @ end()' % [metric, operation], ' @ end()');
local drawn = '%s or %s' % [atEnd(8, 'plumbline:disk_latency_peers:ratio'), atEnd(4, 'plumbline:disk_latency:p99_seconds')];
local ofDrawn(metric) = '%s%s and on (%s) (%s)' % [metric, operation, disk, drawn];

local ofDisk(metric) = 'max by (%s) (%s%s)' % [identity, metric, sel()];
// With what a disk is, and only of the chosen class. topk: two rows of one device would fail the join.
local named(expr) =
  '(%s) * on (%s) group_left (device_class, model, serial, osd) topk by (%s) (1, plumbline_disk_info%s)'
  % [expr, identity, identity, sel('device_class=~"$device_class"')];
// Each column has its own worst: one list for all of them would look at every disk again for each column.
local shown(expr) = 'max by (%s, device_class, model, serial, osd) (%s)' % [identity, expr];
local most(metric) = shown('topk(20, %s)' % named(metric + sel() + ' > 0'));
local least(metric) = shown('bottomk(20, %s)' % named(metric + sel()));
local not(metric) = shown(named(metric + sel() + ' == 0'));

local info(labels) = 'max by (%s, %s) (plumbline_disk_info%s)' % [identity, labels, sel()];
local bucket = 'plumbline:disk_class_latency_bucket:ops_per_second'
               + sel('device_class=~"$device_class", operation=~"$operation"');
// Without operations it is NaN: such a line has nothing to draw, and its legend would say that nobody measures.
local classQuantile(rank) = 'histogram_quantile(%g, sum by (device_class, operation, le) (%s)) >= 0' % [rank, bucket];

local degraded = 'max by (cluster, instance, pci_address, device) (plumbline:pcie_link:ratio%s) < 1' % sel();
local findings = 'plumbline_finding%s == 1' % sel('check=~"(disk|pcie|health|array)[.].+", urgency!="info"');
local increase(metric) = 'sum(increase(%s%s[$__rate_interval]))' % [metric, sel()];

{
  stats: {
    disks: 'count(%s)' % ofClass('plumbline:disk_kind:info' + sel()),
    busy: 'count(count by (%s) (%s))' % [identity, ofClass('plumbline:disk_latency:p99_seconds' + sel())],
    outliers: proof.counted('count by (%s) (ALERTS%s)' % [identity, sel('alertname=~"PlumblineDiskLatency(Outlier|Regressed)", alertstate="firing"')]),
    hung: proof.counted('plumbline:disk_hung:info' + sel()),
    missing: proof.counted('max by (cluster, instance, device, serial) (plumbline_disk_present%s) == 0' % sel(), of='plumbline_disk_present' + sel()),
    endurance: 'min(%s)' % ofClass(ofDisk('plumbline:disk_endurance_left:seconds')),
    pcie: proof.counted(degraded),
    findings: proof.counted(findings, of='plumbline_finding' + sel()),
  },
  heatmap: 'sum by (le) (%s)' % bucket,
  outliers: {
    toPeers: ofOutliers('plumbline:disk_latency_peers:ratio'),
    toPast: ofOutliers('plumbline:disk_latency_past:ratio'),
    p99: ofOutliers('plumbline:disk_latency:p99_seconds'),
    peers: ofOutliers('plumbline:disk_latency:peer_p99_seconds'),
    operations: ofOutliers('plumbline:disk_latency:ops_per_second'),
    info: '%s and on (%s) (%s)' % [info('device_class, model, osd'), identity, outliers],
  },
  latency: {
    p99: ofDrawn('plumbline:disk_latency:p99_seconds'),
    peers: 'max by (operation) (%s)' % ofDrawn('plumbline:disk_latency:peer_p99_seconds'),
    baseline: 'max by (device_class, workload, operation, source, profile) (plumbline:baseline_in_force:latency_seconds%s)'
              % sel('layer="disk", statistic="p99", device_class=~"$device_class", operation=~"$operation"'),
    toPeers: ofDrawn('plumbline:disk_latency_peers:ratio'),
    local worstMean = atEnd(8, 'plumbline:disk_mean_equals:ratio'),
    mean: 'plumbline:disk_mean_equals:ratio%s and on (%s) (%s)' % [operation, disk, worstMean],
    meanLimit: 'max by (device_class, among) (plumbline:disk_mean_limit:ratio%s and on (%s) (%s))' % [operation, disk, worstMean],
  },
  class: {
    p50: classQuantile(0.5),
    p99: classQuantile(0.99),
    baseline: 'max by (device_class, workload, operation, source, profile) (plumbline:baseline_in_force:latency_seconds%s)'
              % sel('layer="disk", statistic="p50", device_class=~"$device_class", operation=~"$operation"'),
    local class = 'device_class=~"$device_class", operation=~"$operation"',
    // Every bucket of a classic histogram, or one native one (dashboards/lib/histograms.libsonnet).
    operations: 'sum by (device_class, operation) (%(metric)s%(last)s) or histogram_count(sum by (device_class, operation) (%(metric)s%(all)s))'
                % { metric: 'plumbline:disk_class_latency_bucket:ops_per_second', last: sel(class + ', le="+Inf"'), all: sel(class) },
  },
  health: {
    wear: most('plumbline_disk_wear_ratio'),
    enduranceLeft: least('plumbline:disk_endurance_left:seconds'),
    spare: shown('bottomk(20, %s)' % named('plumbline_disk_spare_ratio%s < 1' % sel())),
    passed: not('plumbline_disk_smart_passed'),
    available: not('plumbline_disk_health_available'),
    warnings: shown(named('sum by (%s) (plumbline_disk_critical_warning%s) > 0' % [identity, sel()])),
    mediaErrors: most('plumbline_disk_media_errors_total'),
    pending: most('plumbline_disk_pending_sectors'),
    reallocated: most('plumbline_disk_reallocated_sectors'),
    interfaceErrors: most('plumbline_disk_interface_errors_total'),
  },
  models: {
    disks: 'count by (cluster, device_class, model, firmware) (%s)' % ofClass('plumbline_disk_info' + sel()),
    wear: 'max by (cluster, device_class, model, firmware) (plumbline_disk_wear_ratio%s * on (%s) group_left (device_class, model, firmware) (%s))'
          % [sel(), identity, ofClass('max by (%s, device_class, model, firmware) (plumbline_disk_info%s)' % [identity, sel()])],
  },
  hung: {
    inFlight: 'max by (%s) (plumbline_disk_queue_length%s) and on (%s) plumbline:disk_hung:info' % [identity, sel(), identity],
    info: '%s and on (%s) plumbline:disk_hung:info' % [info('device_class, model, osd'), identity],
  },
  pcie: {
    ratio: degraded,
    info: 'max by (cluster, instance, pci_address, device_type, product) (plumbline_pcie_info%s) and on (cluster, instance, pci_address) (%s)' % [sel(), degraded],
  },
  findings: {
    count: 'count by (cluster, check, urgency) (%s)' % findings,
    nodes: 'count by (cluster, check, urgency) (count by (cluster, instance, check, urgency) (%s))' % findings,
  },
  errors: {
    media: increase('plumbline_disk_media_errors_total'),
    interface: increase('plumbline_disk_interface_errors_total'),
    pending: 'sum(plumbline_disk_pending_sectors%s)' % sel(),
    pcie: increase('plumbline_pcie_aer_errors_total'),
  },
}
