// The queries of one disk's page, apart from its layout.
local histograms = import '../lib/histograms.libsonnet';
local limits = import '../lib/limits.libsonnet';
local matchers = import '../lib/matchers.libsonnet';
local proof = import '../lib/proof.libsonnet';

local identity = 'cluster, instance, device';
// Of the node, and of this disk.
local node = matchers.selector('cluster=~"$cluster", instance="$instance"');
local sel(more='') = node(matchers.join(['device=~"$device"', more]));

local rate(metric, more='') = 'rate(%s%s[$__rate_interval])' % [metric, sel(more)];
local one(metric, by='device', more='') = 'max by (%s) (%s%s)' % [by, metric, sel(more)];
local mean(histogram) =
  local range = sel() + '[$__rate_interval]';
  'sum by (operation) (%s) / (sum by (operation) (%s) > 0)'
  % [histograms.sum('rate', histogram, range), histograms.count('rate', histogram, range)];

// Probes that measure this disk, and the canaries among them with what they run.
local probes = 'plumbline_probe_target_info' + sel();
local canaries = 'plumbline_canary_workload_info%s and on (cluster, instance, probe) %s' % [node(), probes];
local canaryBaseline(statistic) = |||
  max by (workload, operation, source, profile) (
    plumbline:baseline_in_force:latency_seconds%s
    and on (cluster, instance, device_class, workload, operation, config_hash)
    (%s)
  )
||| % [node('layer="disk", statistic="%s"' % statistic), canaries];

// The OSDs with data, DB or log on this disk.
local osds = 'max by (cluster, ceph_daemon) (plumbline:osd_disk:info%s)' % sel();
local ofOsds(metric, by) = 'max by (%s) (%s{cluster=~"$cluster"} and on (cluster, ceph_daemon) %s)' % [by, metric, osds];

local usual(metric) =
  'max by (operation) (plumbline:disk_usual:figure%s * on (cluster, instance, identity) group_left (device) plumbline:disk_identity:info%s)'
  % [node('figure="%s"' % metric), sel()];

// Alerts that name this disk, one of its OSDs, or a probe of it.
local firing = 'alertname=~"Plumbline.+", severity!="info"';
local about(metric, more) = |||
  (
    %(metric)s%(own)s
    or
    %(metric)s%(any)s and on (cluster, ceph_daemon) %(osds)s
    or
    %(metric)s%(ours)s and on (cluster, instance, probe) %(probes)s
  )
||| % {
  metric: metric,
  own: sel(firing + more),
  any: '{cluster=~"$cluster", ceph_daemon!="", %s%s}' % [firing, more],
  ours: node('probe!="", ' + firing + more),
  osds: osds,
  probes: probes,
};
local since = 'min by (severity, layer, alertname, operation, ceph_daemon, probe) (%s and ignoring (alertstate) %s)'
              % [about('ALERTS_FOR_STATE', ''), about('ALERTS', ', alertstate="firing"')];

local address = 'plumbline_pcie_device_info' + sel();
local ofLink(metric) = 'max by (pci_address) (%s%s and on (cluster, instance, pci_address) %s)' % [metric, node(), address];

{
  stats: {
    toPeers: 'max(plumbline:disk_latency_peers:ratio%s)' % sel(),
    toPast: 'max(plumbline:disk_latency_past:ratio%s)' % sel(),
    p99: 'max(plumbline:disk_latency:p99_seconds%s)' % sel(),
    degradation: 'max(plumbline:degradation:ratio%s and on (cluster, instance, probe) %s)' % [node('statistic=~"p50|mean|iops|throughput"'), probes],
    alerts: proof.counted(about('ALERTS', ', alertstate="firing"')),
    findings: proof.counted('plumbline_finding%s == 1' % node('subject=~"$device", urgency!="info"'), of='plumbline_finding' + node()),
    enduranceLeft: 'min(plumbline:disk_endurance_left:seconds%s)' % sel(),
    hung: proof.counted('plumbline:disk_hung:info' + sel()),
  },
  identity: {
    info: one('plumbline_disk_info', 'cluster, instance, device, model, serial, firmware, transport, device_class, osd'),
    size: one('plumbline_disk_size_bytes', 'cluster, instance, device'),
  },
  users: 'max by (cluster, instance, device, use, user) (plumbline_disk_use_info%s)' % sel(),
  // What shares its name with no figure: the words of the queue, then its numbers.
  settings: {
    info: one('plumbline_disk_queue_info', 'device, scheduler, write_cache, zoned'),
    requests: one('plumbline_disk_queue_requests'),
    depth: one('plumbline_disk_queue_depth'),
    readAhead: one('plumbline_disk_read_ahead_bytes'),
    maxIo: one('plumbline_disk_io_max_bytes'),
    affinity: one('plumbline_disk_rq_affinity'),
    merges: one('plumbline_disk_nomerges'),
    throttle: one('plumbline_disk_writeback_throttle_seconds'),
  },
  findings: 'max by (check, urgency, subject) (plumbline_finding%s == 1)' % node('subject=~"$device"'),
  alerts: { age: 'time() - %s' % since, since: '1000 * %s' % since },
  heatmap(operation): histograms.heatmap('plumbline_disk_latency_seconds', sel('operation="%s"' % operation) + '[$__rate_interval]'),
  p99: {
    disk: 'plumbline:disk_latency:p99_seconds' + sel(),
    peers: one('plumbline:disk_latency:peer_p99_seconds', 'operation'),
    usual: usual('latency'),
    weekAgo: 'max by (operation) (plumbline:disk_latency:p99_seconds%s offset 1w)' % sel(),
    canary: canaryBaseline('p99'),
  },
  p50: {
    disk: 'plumbline:disk_latency:p50_seconds' + sel(),
    weekAgo: 'max by (operation) (plumbline:disk_latency:p50_seconds%s offset 1w)' % sel(),
    canary: canaryBaseline('p50'),
  },
  probes: {
    latency: 'max by (probe, workload, operation) (plumbline:canary_latency:seconds%s and on (cluster, instance, probe) %s)' % [node('statistic="p50"'), probes],
    limit: 'max by (probe, operation) (%s and on (cluster, instance, probe) %s)' % [limits.seconds(node), probes],
    runs: 'max by (probe, workload, operation) (plumbline_probe_latency_seconds%s and on (cluster, instance, probe) %s)' % [node('statistic="p50"'), probes],
  },
  ratios: {
    peers: 'max by (operation) (plumbline:disk_latency_peers:ratio%s)' % sel(),
    past: 'max by (operation) (plumbline:disk_latency_past:ratio%s)' % sel(),
    mean: 'max by (operation) (plumbline:disk_mean_equals:ratio%s)' % sel(),
    meanLimit: 'max by (operation) (plumbline:disk_mean_limit:ratio%s)' % sel(),
  },
  times: {
    queue: mean('plumbline_disk_queue_seconds'),
    device: mean('plumbline_disk_latency_seconds'),
  },
  load: {
    operations: 'sum by (operation) (%s)' % rate('plumbline_disk_ios_total'),
    bytes: 'sum by (operation) (%s)' % rate('plumbline_disk_io_bytes_total'),
    size: 'max by (operation) (plumbline:disk_io_size:bytes%s)' % sel(),
    inFlight: rate('plumbline_disk_io_weighted_seconds_total'),
    inFlightNow: 'max by (device) (plumbline_disk_queue_length%s)' % sel(),
    busy: rate('plumbline_disk_busy_seconds_total'),
  },
  osd: {
    total: 'max by (ceph_daemon, operation) (plumbline:osd_latency:mean5m{cluster=~"$cluster", part="total"} and on (cluster, ceph_daemon) %s)' % osds,
    p99: ofOsds('plumbline:osd_latency:p99_seconds', 'ceph_daemon, operation'),
    commit: 'max by (ceph_daemon) (plumbline:osd_store_latency:mean5m{cluster=~"$cluster", part="commit"} and on (cluster, ceph_daemon) %s)' % osds,
    toClass: 'max by (ceph_daemon, figure) (plumbline:osd_class:ratio{cluster=~"$cluster"} and on (cluster, ceph_daemon) %s)' % osds,
  },
  health: {
    wear: one('plumbline_disk_wear_ratio'),
    spare: one('plumbline_disk_spare_ratio'),
    temperature: one('plumbline_disk_temperature_celsius'),
    limit: 'min by (device, limit) (plumbline_disk_temperature_limit_celsius%s)' % sel(),
    mediaErrors: one('plumbline_disk_media_errors_total'),
    reallocated: one('plumbline_disk_reallocated_sectors'),
    pending: one('plumbline_disk_pending_sectors'),
    interfaceErrors: one('plumbline_disk_interface_errors_total'),
  },
  pcie: {
    ratio: ofLink('plumbline:pcie_link:ratio'),
    speed: ofLink('plumbline_pcie_link_speed_transfers_per_second'),
    lanes: ofLink('plumbline_pcie_link_lanes'),
    maxLanes: ofLink('plumbline_pcie_link_lanes_max'),
    errors: 'sum by (pci_address) (plumbline_pcie_aer_errors_total%s and on (cluster, instance, pci_address) %s)' % [node(), address],
  },
}
