// The queries of the node overview, apart from its layout. `cluster` may be missing: `=~"$cluster"` with `.*` matches it.
local histograms = import '../lib/histograms.libsonnet';
local limits = import '../lib/limits.libsonnet';
local matchers = import '../lib/matchers.libsonnet';
local proof = import '../lib/proof.libsonnet';

local node = 'cluster=~"$cluster", instance=~"$instance"';
local sel = matchers.selector(node);
local rate(metric, more='') = 'rate(%s%s[$__rate_interval])' % [metric, sel(more)];
// What Ceph says of an OSD says nothing of the node; a rule knows which are here.
local osd = 'cluster, ceph_daemon';
local here(expr) = '%s and on (%s) plumbline:osd_host:info%s' % [expr, osd, sel()];
local ofOsd(metric, more='') = here('max by (%s) (%s%s)' % [osd, metric, matchers.selector('cluster=~"$cluster"')(more)]);
local device = 'cluster, instance, device';
local ofDevice(metric, more='') = 'max by (%s) (%s%s)' % [device, metric, sel(more)];
local probe = 'cluster, instance, probe';
local ofProbe(metric) = 'max by (%s) (%s%s)' % [probe, metric, sel()];
local firing = 'alertname=~"Plumbline.+", alertstate="firing"';

{
  verdict: {
    degradation: 'max(plumbline:degradation:ratio%s)' % sel(),
    alerts: proof.counted('ALERTS' + sel(firing)),
    blamed: 'max by (layer) (plumbline:blamed_layer:info%s) or on () label_replace(%s, "layer", "none", "", "")' % [sel(), proof.zero()],
    baselineMissing: 'sum(plumbline_baseline_missing%s)' % sel(),
    collectorsFailing: proof.counted('plumbline_collector_success%s == 0' % sel(), of='plumbline_collector_success' + sel()),
    findings: 'sum(plumbline_finding%s)' % sel('urgency!="info"'),
    probeAge: 'max(time() - plumbline_probe_last_success_timestamp_seconds%s)' % sel(),
  },
  fileserver: {
    local up(by, metric) = 'min by (%s) (%s%s)' % [by, metric, sel()],
    bricks: up('volume, brick', 'plumbline_gluster_brick_up'),
    peers: up('peer', 'plumbline_gluster_peer_connected'),
    chunkservers: up('chunkserver', 'plumbline_moosefs_chunkserver_connected'),
    quorum: up('volume', 'plumbline_gluster_server_quorum'),
    heals: 'max by (volume, brick) (plumbline_gluster_heal_pending_entries%s)' % sel(),
    chunks: 'max by (state) (plumbline_moosefs_chunks%s)' % sel('state=~"missing|endangered|undergoal"'),
  },
  findings: 'max by (urgency, check, subject, cluster, instance) (plumbline_finding%s == 1)' % sel(),
  alerts: 'max by (severity, alertname, layer, cluster, instance, device, ceph_daemon, probe) (time() - (ALERTS_FOR_STATE%s and ignoring (alertstate) ALERTS%s))'
          % [sel('alertname=~"Plumbline.+"'), sel(firing)],
  canary: {
    latency: 'plumbline:canary_latency:seconds%s' % sel('statistic="$statistic"'),
    baseline: 'max by (layer, device_class, workload, operation, source, profile) (plumbline:baseline_in_force:latency_seconds%s) and on (workload, operation) plumbline_canary_workload_info%s'
              % [sel('statistic="$statistic"'), sel()],
    // Documents mostly print the mean, so it is shown whatever the statistic is.
    documented: 'max by (device_class, workload, operation, profile, statistic) (plumbline_baseline_latency_seconds%s) and on (workload, operation) plumbline_canary_workload_info%s'
                % [sel('statistic=~"mean|$statistic", source="documented"'), sel()],
    heatmap: histograms.heatmap('plumbline_canary_latency_seconds', sel() + '[$__rate_interval]'),
    degradation: 'plumbline:degradation:ratio%s' % sel(),
    limit: 'max by (layer, operation, probe, source) (%s)' % limits.ratio(sel),
    limitSeconds: 'max by (workload, operation, source) (%s)' % limits.seconds(sel),
  },
  probe: {
    latency: 'plumbline_probe_latency_seconds%s' % sel('statistic="$statistic"'),
    baseline: 'max by (device_class, workload, operation, source, profile) (plumbline:baseline_in_force:latency_seconds%s) and on (workload, operation) plumbline_probe_latency_seconds%s'
              % [sel('statistic="$statistic"'), sel('statistic="$statistic"')],
    documented: 'max by (device_class, workload, operation, profile, statistic) (plumbline_baseline_latency_seconds%s) and on (workload, operation) plumbline_probe_latency_seconds%s'
                % [sel('statistic=~"mean|$statistic", source="documented"'), sel('statistic="$statistic"')],
    skipped: 'sum by (probe, reason) (increase(plumbline_probe_runs_skipped_total%s[$__rate_interval]))' % sel(),
    inFlight: 'plumbline_probe_in_flight_seconds%s' % sel(),
    info: 'max by (%s, layer, probe_type) (plumbline_probe_info%s)' % [probe, sel()],
    success: ofProbe('plumbline_probe_success'),
    intervals: ofProbe('plumbline:probe_since_success:intervals'),
    lastSuccess: 'time() - ' + ofProbe('plumbline_probe_last_success_timestamp_seconds'),
    duration: ofProbe('plumbline_probe_duration_seconds'),
    degradation: ofProbe('plumbline:degradation:ratio'),
  },
  network: {
    local perPort(metric, more='') = 'sum by (%s) (%s)' % [device, rate(metric, more)],
    drops: 'sum by (cause) (%s)' % rate('plumbline_nic_drops_total'),
    throughput: 'sum by (cluster, instance, device, direction) (%s) * 8' % rate('plumbline_nic_bytes_total'),
    squeeze: 'sum by (cpu) (%s)' % rate('plumbline_softnet_time_squeezes_total'),
    waiting: 'sum by (cpu) (%s)' % rate('plumbline_cpu_run_queue_wait_seconds_total'),
    backlogDrops: 'sum by (cpu) (%s)' % rate('plumbline_softnet_packets_dropped_total'),
    retransmitted: 'sum(%s) / (sum(%s) > 0)' % [rate('plumbline_tcp_segments_retransmitted_total'), rate('plumbline_tcp_segments_total', 'direction="transmit"')],
    // One row a port.
    info: 'max by (%s, driver, master) (plumbline_nic_info%s)' % [device, sel('driver!="loopback"')],
    up: ofDevice('plumbline_nic_up', 'device!="lo"'),
    speed: '%s * 8' % ofDevice('plumbline_nic_speed_bytes_per_second'),
    mtu: ofDevice('plumbline_nic_mtu_bytes', 'device!="lo"'),
    lost: '%s / (%s > 0)' % [perPort('plumbline_nic_drops_total', 'device!="lo", cause!="filter"'), perPort('plumbline_nic_packets_total')],
    errors: perPort('plumbline_nic_errors_total', 'device!="lo"'),
    pause: perPort('plumbline_nic_pause_frames_total'),
    ring: '%s / %s' % [ofDevice('plumbline_nic_ring_entries', 'ring="receive"'), ofDevice('plumbline_nic_ring_entries_max', 'ring="receive"')],
  },
  disk: {
    latency: '%s / (%s > 0)' % [rate('plumbline_disk_io_seconds_total'), rate('plumbline_disk_ios_total')],
    operations: rate('plumbline_disk_ios_total') + ' > 0',
    busy: rate('plumbline_disk_busy_seconds_total'),
    queue: rate('plumbline_disk_io_weighted_seconds_total'),
    p99: 'plumbline:disk_latency:p99_seconds%s' % sel(),
    peerP99: 'max by (operation) (plumbline:disk_latency:peer_p99_seconds%s)' % sel(),
    peerRatio: 'plumbline:disk_latency_peers:ratio%s' % sel(),
    pastRatio: 'plumbline:disk_latency_past:ratio%s' % sel(),
    meanRatio: 'plumbline:disk_mean_equals:ratio%s' % sel(),
    // Of most disks the same; of one that serves more than its equals, higher.
    meanLimit: 'max by (device_class, among) (plumbline:disk_mean_limit:ratio%s)' % sel(),
    // One row a disk.
    info: 'max by (%s, model, serial, firmware, device_class, transport, osd) (plumbline_disk_info%s)' % [device, sel()],
    worstP99: ofDevice('plumbline:disk_latency:p99_seconds'),
    worstPeerRatio: ofDevice('plumbline:disk_latency_peers:ratio'),
    allOperations: 'sum by (%s) (%s)' % [device, rate('plumbline_disk_ios_total')],
    busyShare: 'max by (%s) (%s)' % [device, rate('plumbline_disk_busy_seconds_total')],
  },
  health: {
    available: ofDevice('plumbline_disk_health_available'),
    wear: ofDevice('plumbline_disk_wear_ratio'),
    enduranceLeft: ofDevice('plumbline:disk_endurance_left:seconds'),
    spare: ofDevice('plumbline_disk_spare_ratio'),
    mediaErrors: ofDevice('plumbline_disk_media_errors_total'),
    reallocated: ofDevice('plumbline_disk_reallocated_sectors'),
    pending: ofDevice('plumbline_disk_pending_sectors'),
    interfaceErrors: ofDevice('plumbline_disk_interface_errors_total'),
    temperature: ofDevice('plumbline_disk_temperature_celsius'),
  },
  osds: {
    info: here('group by (%s, device_class) (plumbline:osd:info{cluster=~"$cluster"})' % osd),
    up: ofOsd('plumbline:osd_up:bool'),
    operations: here('sum by (%s) (plumbline:osd_operations:rate5m{cluster=~"$cluster"})' % osd),
    p99(operation):: ofOsd('plumbline:osd_latency:p99_seconds', 'operation="%s"' % operation),
    mean(operation):: ofOsd('plumbline:osd_latency:mean5m', 'part="total", operation="%s"' % operation),
    toClass: ofOsd('plumbline:osd_class:ratio'),
    slow: 'sum by (%s) (plumbline_osd_slow_operations%s)' % [osd, sel()],
    heartbeat: 'max by (%s) (plumbline_osd_heartbeat_seconds%s)' % [osd, sel('statistic="worst"')],
    suspected: here('max by (%s, verdict) (plumbline:osd_suspect:info{cluster=~"$cluster"})' % osd),
    // Over time: Ceph's means, which every release has.
    latency: here('max by (%s, operation) (plumbline:osd_latency:mean5m{cluster=~"$cluster", part="total"})' % osd),
    rate: here('max by (%s, operation) (plumbline:osd_operations:rate5m{cluster=~"$cluster"})' % osd),
  },
  pcie: {
    info: 'max by (pci_address, device_type, physical_slot, numa_node, driver, product) (plumbline_pcie_info%s)' % sel(),
    ratio: 'max by (pci_address) (plumbline:pcie_link:ratio%s)' % sel(),
    speed: 'max by (pci_address) (plumbline_pcie_link_speed_transfers_per_second%s)' % sel(),
    lanes: 'max by (pci_address) (plumbline_pcie_link_lanes%s)' % sel(),
    errors: 'sum by (pci_address) (plumbline_pcie_aer_errors_total%s)' % sel(),
  },
  array: {
    degraded: 'max by (device) (plumbline_md_degraded_disks%s)' % sel(),
    dead: 'count by (device) (plumbline_md_info%s)' % sel('state=~"broken|inactive", raid_level!="container"'),
    sync: 'max by (device) (plumbline_md_sync_ratio%s)' % sel(),
    vdevs: 'count by (pool) (plumbline_zfs_vdev_healthy%s == 0)' % sel(),
    paths: 'max by (device) (plumbline_multipath_lost_paths%s)' % sel(),
  },
  watcher: {
    duration: 'plumbline_collector_duration_seconds%s' % sel(),
    success: 'min by (collector) (plumbline_collector_success%s)' % sel(),
    cpu: 'rate(process_cpu_seconds_total%s[$__rate_interval]) and on (instance) plumbline_build_info%s' % [sel(), sel()],
    memory: 'process_resident_memory_bytes%s and on (instance) plumbline_build_info%s' % [sel(), sel()],
  },
}
