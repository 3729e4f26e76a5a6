// The queries of the node overview, apart from its layout. `cluster` may be missing: `=~"$cluster"` with `.*` matches it.
local node = 'cluster=~"$cluster", instance="$instance"';
local sel(more='') = '{%s%s}' % [node, if more == '' then '' else ', ' + more];
// One disk and one kind of operation, by the variables.
local disk(more='') = sel('device=~"$device", operation=~"$operation"' + (if more == '' then '' else ', ' + more));
local rate(metric, more='') = 'rate(%s%s[$__rate_interval])' % [metric, sel(more)];
local mean(histogram) =
  'sum by (device) (rate(%(name)s_sum%(sel)s[$__rate_interval])) / (sum by (device) (rate(%(name)s_count%(sel)s[$__rate_interval])) > 0)'
  % { name: histogram, sel: disk() };

{
  verdict: {
    degradation: 'max(plumbline:degradation:ratio%s)' % sel(),
    alerts: 'count(ALERTS%s) or vector(0)' % sel('alertname=~"Plumbline.+", alertstate="firing"'),
    baselineMissing: 'sum(plumbline_baseline_missing%s)' % sel(),
    collectorsFailing: 'count(plumbline_collector_success%s == 0) or vector(0)' % sel(),
    findings: 'sum(plumbline_finding%s)' % sel('severity!="info"'),
    probeAge: 'max(time() - plumbline_probe_last_success_timestamp_seconds%s)' % sel(),
  },
  canary: {
    latency: 'plumbline:canary_latency:seconds%s' % sel('statistic="$statistic"'),
    baseline: 'max by (layer, device_class, workload, operation, source, profile) (plumbline:baseline_in_force:latency_seconds%s) and on (workload, operation) plumbline_canary_workload_info%s'
              % [sel('statistic="$statistic"'), sel()],
    documented: 'max by (device_class, workload, operation, profile) (plumbline_baseline_latency_seconds%s)'
                % sel('statistic="$statistic", source="documented"'),
    heatmap: 'sum by (le) (increase(plumbline_canary_latency_seconds_bucket%s[$__rate_interval]))' % sel(),
    degradation: 'plumbline:degradation:ratio%s' % sel(),
  },
  probe: {
    latency: 'plumbline_probe_latency_seconds%s' % sel('statistic="$statistic"'),
    baseline: 'max by (device_class, workload, operation, source, profile) (plumbline:baseline_in_force:latency_seconds%s) and on (workload, operation) plumbline_probe_latency_seconds%s'
              % [sel('statistic="$statistic"'), sel('statistic="$statistic"')],
    skipped: 'sum by (probe, reason) (increase(plumbline_probe_skipped_total%s[$__rate_interval]))' % sel(),
    inFlight: 'plumbline_probe_in_flight_seconds%s' % sel(),
  },
  network: {
    drops: 'sum by (device, direction, cause) (%s) > 0' % rate('plumbline_nic_drops_total'),
    allDrops: 'sum by (cause) (%s)' % rate('plumbline_nic_drops_total'),
    errors: 'sum by (cause) (%s)' % rate('plumbline_nic_errors_total'),
    throughput: 'sum by (device, direction) (%s) * 8' % rate('plumbline_nic_bytes_total'),
    ring: 'plumbline_nic_ring_entries%s / plumbline_nic_ring_max_entries%s' % [sel(), sel()],
    ringEntries: 'plumbline_nic_ring_entries%s' % sel(),
    ringMax: 'plumbline_nic_ring_max_entries%s' % sel(),
    pause: 'sum by (device, direction) (%s)' % rate('plumbline_nic_pause_frames_total'),
    squeeze: 'sum by (cpu) (%s)' % rate('plumbline_softnet_time_squeeze_total'),
    backlogDrops: 'sum by (cpu) (%s)' % rate('plumbline_softnet_dropped_total'),
    processed: 'sum by (cpu) (%s)' % rate('plumbline_softnet_processed_total'),
  },
  disk: {
    latency: '%s / (%s > 0)' % [rate('plumbline_disk_io_seconds_total'), rate('plumbline_disk_io_total')],
    operations: rate('plumbline_disk_io_total') + ' > 0',
    throughput: rate('plumbline_disk_io_bytes_total') + ' > 0',
    busy: rate('plumbline_disk_busy_seconds_total'),
    queue: rate('plumbline_disk_weighted_io_seconds_total'),
    info: 'plumbline_disk_info%s' % sel(),
    heatmap: 'sum by (le) (increase(plumbline_disk_latency_seconds_bucket%s[$__rate_interval]))' % disk(),
    p99: 'plumbline:disk_latency:p99_seconds%s' % disk(),
    p50: 'plumbline:disk_latency:p50_seconds%s' % disk(),
    peerP99: 'max by (operation) (plumbline:disk_latency:peer_p99_seconds%s)' % disk(),
    peerRatio: 'plumbline:disk_latency_peers:ratio%s' % disk(),
    pastRatio: 'plumbline:disk_latency_past:ratio%s' % disk(),
    deviceTime: mean('plumbline_disk_latency_seconds'),
    queueTime: mean('plumbline_disk_queue_seconds'),
  },
  health: {
    local by(expr) = 'max by (device) (%s)' % expr,
    info: 'max by (device, model, serial, osd) (plumbline_disk_info%s)' % sel(),
    available: by('plumbline_disk_health_available' + sel()),
    wear: by('plumbline_disk_wear_ratio' + sel()),
    enduranceLeft: by('plumbline:disk_endurance_left:seconds' + sel()),
    spare: by('plumbline_disk_spare_ratio' + sel()),
    mediaErrors: by('plumbline_disk_media_errors_total' + sel()),
    reallocated: by('plumbline_disk_reallocated_sectors' + sel()),
    pending: by('plumbline_disk_pending_sectors' + sel()),
    interfaceErrors: by('plumbline_disk_interface_errors_total' + sel()),
    temperature: by('plumbline_disk_temperature_celsius' + sel()),
  },
  pcie: {
    info: 'max by (address, kind, slot, driver, name) (plumbline_pcie_info%s)' % sel(),
    ratio: 'max by (address) (plumbline:pcie_link:ratio%s)' % sel(),
    speed: 'max by (address) (plumbline_pcie_link_transfers_per_second%s)' % sel(),
    lanes: 'max by (address) (plumbline_pcie_link_lanes%s)' % sel(),
    errors: 'sum by (address) (plumbline_pcie_aer_errors_total%s)' % sel(),
    numaNode: 'max by (address) (plumbline_pcie_numa_node%s)' % sel(),
  },
  array: {
    degraded: 'max by (device) (plumbline_md_degraded_disks%s)' % sel(),
    sync: 'max by (device) (plumbline_md_sync_ratio%s)' % sel(),
    vdevs: 'count by (pool) (plumbline_zfs_vdev_healthy%s == 0)' % sel(),
    paths: 'max by (device) (plumbline_multipath_paths%s) - max by (device) (plumbline_multipath_paths_usable%s)' % [sel(), sel()],
  },
  watcher: {
    duration: 'plumbline_collector_duration_seconds%s' % sel(),
    success: 'min by (collector) (plumbline_collector_success%s)' % sel(),
    cpu: 'rate(process_cpu_seconds_total%s[$__rate_interval]) and on (instance) plumbline_build_info%s' % [sel(), sel()],
    memory: 'process_resident_memory_bytes%s and on (instance) plumbline_build_info%s' % [sel(), sel()],
  },
}
