// The queries of the node overview, apart from its layout. `cluster` may be missing: `=~"$cluster"` with `.*` matches it.
local node = 'cluster=~"$cluster", instance="$instance"';
local sel(more='') = '{%s%s}' % [node, if more == '' then '' else ', ' + more];
local rate(metric, more='') = 'rate(%s%s[$__rate_interval])' % [metric, sel(more)];

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
  },
  watcher: {
    duration: 'plumbline_collector_duration_seconds%s' % sel(),
    success: 'min by (collector) (plumbline_collector_success%s)' % sel(),
    cpu: 'rate(process_cpu_seconds_total%s[$__rate_interval]) and on (instance) plumbline_build_info%s' % [sel(), sel()],
    memory: 'process_resident_memory_bytes%s and on (instance) plumbline_build_info%s' % [sel(), sel()],
  },
}
