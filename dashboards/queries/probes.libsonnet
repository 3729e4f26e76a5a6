// The queries of the probes page: schedule, cost, history against the baseline. `$instance`, `$layer`, `$device_class`, `$probe` and
// `$workload` may be all.
function(config)
  local histograms = import '../lib/histograms.libsonnet';
  local limits = import '../lib/limits.libsonnet';
  local matchers = import '../lib/matchers.libsonnet';
  local proof = import '../lib/proof.libsonnet';

  local nodes = 'cluster=~"$cluster", instance=~"$instance"';
  local sel = '{%s}' % nodes;
  local named = matchers.selector(nodes + ', probe=~"$probe"');
  local layered = matchers.selector(nodes + ', layer=~"$layer", device_class=~"$device_class", probe=~"$probe"');
  // Figures know their workload, too; a canary has several and names none.
  local measured = matchers.selector(nodes + ', layer=~"$layer", device_class=~"$device_class", probe=~"$probe", workload=~"$workload"');
  // A baseline knows no probe.
  local accepted = matchers.selector(nodes + ', layer=~"$layer", device_class=~"$device_class", workload=~"$workload"');

  local probe = 'cluster, instance, probe';
  local info = 'max by (%s, layer, device_class, probe_type) (plumbline_probe_info%s)' % [probe, layered()];
  // Only of the layers chosen; metrics of the schedule don't say theirs.
  local chosen(expr) = '(%s and on (%s) plumbline_probe_info%s)' % [expr, probe, layered()];
  local by(metric) = chosen('max by (%s) (%s%s)' % [probe, metric, named()]);
  local age(metric) = chosen('time() - max by (%s) (%s%s)' % [probe, metric, named()]);
  local any = 'plumbline_build_info{%s}' % nodes;
  local counted(expr) = proof.counted(expr, of=any);

  local likeness = 'layer, device_class, workload, operation';
  // The worst and the median of all nodes, and what stands beside them.
  local figures(of, statistic='') = {
    local metric = 'plumbline_probe_' + of,
    local own = if of == 'latency_seconds' then '(%s%s or plumbline:canary_latency:seconds%s)' % [metric, measured(statistic), measured(statistic)] else metric + measured(statistic),
    local beside(by) = 'and on (%s) %s' % [by, own],
    worst(aggregation):: '%s by (%s) (%s)' % [aggregation, likeness, own],
    median: 'quantile by (%s) (0.5, %s)' % [likeness, own],
    baseline: 'quantile by (%s, source) (0.5, plumbline:baseline_in_force:%s%s) %s' % [likeness, of, accepted(statistic), beside(likeness)],
    // Another site's classes have other names; documents mostly give a mean, which is better than nothing.
    documented: 'max by (%s, profile%s) (plumbline_baseline_%s%s) %s' % [
      likeness,
      if statistic == '' then '' else ', statistic',
      of,
      accepted('source="documented"' + (if statistic == '' then '' else ', statistic=~"$statistic|mean"')),
      beside('workload, operation'),
    ],
  };

  {
    local stuck = config.alerts.PlumblineProbeStuck,
    verdict: {
      probes: counted('plumbline_probe_info' + layered()),
      failed: counted('%s == 0' % by('plumbline_probe_success')),
      overdue: proof.counted('%s > %g' % [by('plumbline:probe_since_success:intervals'), config.probe.staleIntervals]),
      // As the alert has it: a canary's one operation, a run beyond its own time limit.
      stuck: counted(|||
        max by (%(probe)s) (plumbline_probe_in_flight_seconds%(named)s) > %(canarySeconds)d
        and on (%(probe)s) plumbline_probe_info%(canary)s
        or
        max by (%(probe)s) (plumbline_probe_in_flight_seconds%(named)s)
        > on (%(probe)s)
        (max by (%(probe)s) (plumbline_probe_timeout_seconds%(named)s) + %(graceSeconds)d)
        and on (%(probe)s) plumbline_probe_info%(any)s
      ||| % (stuck { probe: probe, named: named(), canary: layered('probe_type=~".*canary"'), any: layered() })),
      degradation: 'max(plumbline:degradation:ratio%s)' % measured(),
      missing: 'sum(plumbline_baseline_missing%s) or %s' % [measured(), proof.zero(any)],
      mismatched: 'sum(plumbline_baseline_mismatch%s) or %s' % [measured(), proof.zero(any)],
      outdated: counted('max by (cluster, instance, source, profile) (plumbline_baseline_environment_changed%s) == 1' % sel),
    },
    schedule: {
      info: info,
      local row(expr) = '(%s) * on (%s) group_left (layer, device_class, probe_type) (%s)' % [expr, probe, info],
      lastRun: row(age('plumbline_probe_last_run_timestamp_seconds')),
      lastSuccess: row(age('plumbline_probe_last_success_timestamp_seconds')),
      intervals: row(by('plumbline:probe_since_success:intervals')),
      interval: row(by('plumbline_probe_interval_seconds')),
      success: row(by('plumbline_probe_success')),
      duration: row(by('plumbline_probe_duration_seconds')),
      inFlight: row(by('plumbline_probe_in_flight_seconds')),
      degradation: row('max by (%s) (plumbline:degradation:ratio%s)' % [probe, layered()]),
    },
    runs: {
      local increase(metric) = 'increase(%s%s[$__rate_interval])' % [metric, named()],
      skipped: 'sum by (reason) (%s) > 0' % chosen(increase('plumbline_probe_runs_skipped_total')),
      results: 'sum by (result) (%s)' % chosen(increase('plumbline_probe_runs_total')),
      since: 'topk(10, %s)' % by('plumbline:probe_since_success:intervals'),
      inFlight: 'topk(10, %s) > 0' % by('plumbline_probe_in_flight_seconds'),
      failures: 'topk(10, sum by (%s, result) (%s)) > 0' % [probe, chosen(increase('plumbline_probe_runs_total'))],
    },
    cost: {
      share: 'topk(10, sum by (cluster, instance) (%s / %s))' % ['(%s)' % by('plumbline_probe_duration_seconds'), '(%s)' % by('plumbline_probe_interval_seconds')],
      duration: 'max by (probe_type) ((%s) * on (%s) group_left (probe_type) (%s))' % [by('plumbline_probe_duration_seconds'), probe, info],
      cpu: 'topk(10, rate(process_cpu_seconds_total%s[$__rate_interval]) and on (cluster, instance) plumbline_build_info%s)' % [sel, sel],
      canary: 'sum by (layer, device_class, operation) (%s)'
              % histograms.count('rate', 'plumbline_canary_latency_seconds', measured() + '[$__rate_interval]'),
      allowed: config.alerts.PlumblineDaemonHeavy.cpus,
    },
    history: {
      latency: figures('latency_seconds', 'statistic="$statistic"'),
      iops: figures('iops'),
      throughput: figures('throughput_bytes_per_second'),
      percentiles: 'quantile by (%s, statistic) (0.5, plumbline_probe_latency_seconds%s or plumbline:canary_latency:seconds%s)' % [likeness, measured(), measured()],
      degradation: 'max by (%s, statistic) (plumbline:degradation:ratio%s)' % [likeness, measured('statistic=~"p50|mean|iops|throughput"')],
      limit: 'min by (%s) (%s)' % [likeness, limits.ratio(measured)],
    },
    recent: {
      local row = 'cluster, instance, probe, workload, operation',
      local one(metric, more='') = 'max by (%s) (%s%s)' % [row, metric, measured(more)],
      latency: one('plumbline_probe_latency_seconds', 'statistic="p50"'),
      recentLatency: one('plumbline_probe_median_of_three_latency_seconds', 'statistic="p50"'),
      iops: one('plumbline_probe_iops'),
      recentIops: one('plumbline_probe_median_of_three_iops'),
      throughput: one('plumbline_probe_throughput_bytes_per_second'),
      recentThroughput: one('plumbline_probe_median_of_three_throughput_bytes_per_second'),
      degradation: one('plumbline:degradation_median_of_three:ratio'),
    },
    baselines: {
      local entry = 'cluster, instance, source, profile',
      missing: 'max by (cluster, instance, probe, layer, device_class, workload, operation) (plumbline_baseline_missing%s == 1)' % measured(),
      mismatched: 'max by (cluster, instance, probe, layer, device_class, workload, operation) (plumbline_baseline_mismatch%s == 1)' % measured(),
      age: 'time() - min by (%s) (plumbline_baseline_measured_timestamp_seconds%s and on (%s, %s, config_hash) plumbline:baseline_in_force:info%s)' % [entry, sel, entry, likeness, sel],
      changed(part):: 'max by (%s) (plumbline_baseline_environment_changed%s)' % [entry, matchers.selector(nodes)('part="%s"' % part)],
    },
  }
