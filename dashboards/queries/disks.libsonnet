// The queries of the disks' page, apart from its layout. For thousands of disks: lines are the worst few, chosen once at
// the end of the range, and what is summed over all disks is recorded by class; raw buckets are never read here.
local sel(more='') = '{cluster=~"$cluster"%s}' % (if more == '' then '' else ', ' + more);
local operation = sel('operation=~"$operation"');
local identity = 'cluster, instance, device';
local disk = identity + ', operation';

// Only of the chosen class.
local ofClass(expr, at='') =
  '(%s) and on (%s) plumbline:disk_kind:info%s%s' % [expr, identity, sel('device_class=~"$device_class"'), at];
local one(metric) = 'max by (%s) (%s%s)' % [disk, metric, operation];

local toPeers = one('plumbline:disk_latency_peers:ratio');
local toPast = one('plumbline:disk_latency_past:ratio');
local p99 = one('plumbline:disk_latency:p99_seconds');
// The worst by each measure: a disk without peers or without a past has one of them only.
local outliers = std.join(' or ', ['topk(20, %s)' % ofClass(each) for each in [toPeers, toPast, p99]]);
local ofOutliers(expr) = '%s and on (%s) (%s)' % [expr, disk, outliers];

// In a graph the same few from its beginning to its end. Those that compare with peers first, else by the figure itself.
local atEnd(metric) = ofClass('%s%s @ end()' % [metric, operation], ' @ end()');
local drawn = 'topk(8, %s) or topk(4, %s)' % [atEnd('plumbline:disk_latency_peers:ratio'), atEnd('plumbline:disk_latency:p99_seconds')];
local ofDrawn(metric) = '%s%s and on (%s) (%s)' % [metric, operation, disk, drawn];

local ofDisk(metric) = 'max by (%s) (%s%s)' % [identity, metric, sel()];
// Whatever is noteworthy about a disk's health, and the most worn.
local unhealthy = std.join(' or ', [
  'topk(20, %s)' % ofClass(ofDisk('plumbline_disk_wear_ratio')),
  ofClass(ofDisk('plumbline_disk_smart_passed') + ' == 0'),
  ofClass(ofDisk('plumbline_disk_health_available') + ' == 0'),
  ofClass('max by (%s) (plumbline_disk_critical_warning%s) > 0' % [identity, sel()]),
  'topk(20, %s)' % ofClass(ofDisk('plumbline_disk_pending_sectors') + ' > 0'),
  'topk(20, %s)' % ofClass(ofDisk('plumbline_disk_media_errors_total') + ' > 0'),
  'topk(20, %s)' % ofClass(ofDisk('plumbline_disk_reallocated_sectors') + ' > 0'),
  'topk(20, %s)' % ofClass(ofDisk('plumbline_disk_interface_errors_total') + ' > 0'),
]);
local ofUnhealthy(expr) = '%s and on (%s) (%s)' % [expr, identity, unhealthy];

local info(labels) = 'max by (%s, %s) (plumbline_disk_info%s)' % [identity, labels, sel()];
local bucket = 'plumbline:disk_class_latency_bucket:ops_per_second'
               + sel('device_class=~"$device_class", operation=~"$operation"');
local classQuantile(rank) = 'histogram_quantile(%g, sum by (device_class, operation, le) (%s))' % [rank, bucket];

local degraded = 'max by (cluster, instance, address, device) (plumbline:pcie_link:ratio%s) < 1' % sel();
local findings = 'plumbline_finding%s == 1' % sel('check=~"(disk|pcie|health|array)[.].+", severity!="info"');
local increase(metric) = 'sum(increase(%s%s[$__rate_interval]))' % [metric, sel()];

{
  stats: {
    disks: 'count(%s)' % ofClass('plumbline:disk_kind:info' + sel()),
    busy: 'count(count by (%s) (%s))' % [identity, ofClass('plumbline:disk_latency:p99_seconds' + sel())],
    outliers: 'count(count by (%s) (ALERTS%s)) or vector(0)'
              % [identity, sel('alertname=~"PlumblineDiskLatency(Outlier|Regressed)", alertstate="firing"')],
    hung: 'count(plumbline:disk_hung:info%s) or vector(0)' % sel(),
    missing: 'count(max by (cluster, instance, device, serial) (plumbline_disk_present%s) == 0) or vector(0)' % sel(),
    endurance: 'min(%s)' % ofClass(ofDisk('plumbline:disk_endurance_left:seconds')),
    pcie: 'count(%s) or vector(0)' % degraded,
    findings: 'count(%s) or vector(0)' % findings,
  },
  heatmap: 'sum by (le) (%s)' % bucket,
  outliers: {
    toPeers: ofOutliers(toPeers),
    toPast: ofOutliers(toPast),
    p99: ofOutliers(p99),
    peers: ofOutliers(one('plumbline:disk_latency:peer_p99_seconds')),
    operations: ofOutliers(one('plumbline:disk_latency:ops_per_second')),
    info: '%s and on (%s) (%s)' % [info('device_class, model, osd'), identity, outliers],
  },
  latency: {
    p99: ofDrawn('plumbline:disk_latency:p99_seconds'),
    peers: 'max by (operation) (%s)' % ofDrawn('plumbline:disk_latency:peer_p99_seconds'),
    baseline: 'max by (device_class, workload, operation, source, profile) (plumbline:baseline_in_force:latency_seconds%s)'
              % sel('layer="disk", statistic="p99", device_class=~"$device_class", operation=~"$operation"'),
    toPeers: ofDrawn('plumbline:disk_latency_peers:ratio'),
  },
  class: {
    p50: classQuantile(0.5),
    p99: classQuantile(0.99),
    baseline: 'max by (device_class, workload, operation, source, profile) (plumbline:baseline_in_force:latency_seconds%s)'
              % sel('layer="disk", statistic="p50", device_class=~"$device_class", operation=~"$operation"'),
    operations: 'sum by (device_class, operation) (plumbline:disk_class_latency_bucket:ops_per_second%s)'
                % sel('device_class=~"$device_class", operation=~"$operation", le="+Inf"'),
  },
  health: {
    local of(metric) = ofUnhealthy(ofDisk(metric)),
    info: ofUnhealthy(info('device_class, model, serial, osd')),
    enduranceLeft: of('plumbline:disk_endurance_left:seconds'),
    wear: of('plumbline_disk_wear_ratio'),
    spare: of('plumbline_disk_spare_ratio'),
    passed: of('plumbline_disk_smart_passed'),
    available: of('plumbline_disk_health_available'),
    mediaErrors: of('plumbline_disk_media_errors_total'),
    pending: of('plumbline_disk_pending_sectors'),
    reallocated: of('plumbline_disk_reallocated_sectors'),
    interfaceErrors: of('plumbline_disk_interface_errors_total'),
    temperature: of('plumbline_disk_temperature_celsius'),
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
    info: 'max by (cluster, instance, address, kind, name) (plumbline_pcie_info%s) and on (cluster, instance, address) (%s)' % [sel(), degraded],
  },
  findings: {
    count: 'count by (cluster, check, severity) (%s)' % findings,
    nodes: 'count by (cluster, check, severity) (count by (cluster, instance, check, severity) (%s))' % findings,
  },
  errors: {
    media: increase('plumbline_disk_media_errors_total'),
    interface: increase('plumbline_disk_interface_errors_total'),
    pending: 'sum(plumbline_disk_pending_sectors%s)' % sel(),
    pcie: increase('plumbline_pcie_aer_errors_total'),
  },
}
