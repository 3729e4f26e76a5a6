// The queries of the overview, apart from its layout. Recorded series only: one a layer and host, whatever the fleet.
function(config)
  local matchers = import '../lib/matchers.libsonnet';
  local proof = import '../lib/proof.libsonnet';

  local sel = matchers.selector('cluster=~"$cluster"');

  // What judges: the median, or the mean where a baseline has no median; a tail or a single maximum is no verdict.
  local likeness = 'layer, device_class, workload, operation';
  local figure = 'cluster, instance, probe, ' + likeness;
  local judged(metric) =
    '%(metric)s%(p50)s or on (%(figure)s) %(metric)s%(mean)s'
    % { metric: metric, p50: sel('statistic="p50"'), mean: sel('statistic="mean"'), figure: figure };
  local worst(expr) = 'topk(20, max by (%s, statistic) (%s))' % [figure, expr];
  local worstLatency = worst(judged('plumbline:degradation:ratio'));
  local worstRate = worst('plumbline:degradation:ratio' + sel('statistic=~"iops|throughput"'));

  // Of the same figures as the ratios of a table.
  local measured(metric, of, by=figure) =
    'max by (%s) (%s) and on (%s) %s' % [by, metric + sel(), by, of];
  local inForce(metric, of, by) = 'max by (%s) (plumbline:baseline_in_force:%s%s) and on (%s) %s' % [by, metric, sel(), by, of];
  // The disk or OSD that a probe measures, where it is one.
  local target(of) = |||
    label_replace(
      max by (cluster, instance, probe, device, target) (plumbline_probe_target_info%s)
      and on (cluster, instance, probe)
      %s,
      "ceph_daemon", "$1", "target", "(osd[.].+)"
    )
  ||| % [sel(), of];

  local alerts(more) = matchers.join(['alertname=~"Plumbline.+", alertname!="PlumblineWatchdog", severity!="info"', more]);
  local firing(more='') = 'ALERTS' + sel(alerts(matchers.join(['alertstate="firing"', more])));
  local aboutOf = 'cluster, severity, layer, alertname, instance, device, ceph_daemon, probe';
  // When the condition of an alert that fires now began, Unix time: Prometheus keeps it in a series of its own.
  local since = 'min by (%s) (ALERTS_FOR_STATE%s and ignoring (alertstate) %s)' % [aboutOf, sel(alerts('')), firing()];

  {
    stats: {
      // Of each cluster the worst that its managers say: 0, 1 and 2.
      health: 'max(max by (cluster) (ceph_health_status%s))' % sel(),
      osdsDown: 'count(plumbline:osd_up:bool%s == 0) or 0 * count(plumbline:osd_up:bool%s)' % [sel(), sel()],
      degraded: 'sum(max by (cluster) (ceph_num_objects_degraded%s))' % sel(),
      clusters: 'count(count by (cluster) (plumbline_build_info%s))' % sel(),
      nodes: 'count(count by (cluster, instance) (plumbline_build_info%s))' % sel(),
      silent: proof.counted('up%s == 0' % sel(config.plumblineSelector), of='up' + sel(config.plumblineSelector)),
      pages: proof.counted(firing('severity="critical"')),
      tickets: proof.counted(firing('severity="warning"')),
      worst: 'max(plumbline:layer_degradation:ratio%s)' % sel(),
      withoutBaseline: 'sum(plumbline_baseline_missing%s)' % sel(),
      recovering: 'sum(max by (cluster) (plumbline:recovery:bool%s))' % sel(),
    },
    // -1: measured, and no baseline may judge it. A site with one cluster has no such label: one row, called as Grafana
    // calls every cluster, which a link takes for just that.
    matrix: |||
      label_replace(
        max by (cluster, layer) (plumbline:layer_degradation:ratio%(sel)s)
        or on (cluster, layer)
        0 * max by (cluster, layer) (plumbline_baseline_missing%(sel)s == 1) - 1,
        "cluster", "All", "cluster", ""
      )
    ||| % { sel: sel() },
    alerts: {
      age: 'time() - %s' % since,
      // Milliseconds, which Grafana's dates are in.
      since: '1000 * %s' % since,
    },
    blame: {
      // Whatever the layer is judged by: a disk among its peers needs no baseline.
      firing: |||
        label_replace(
          count by (cluster, layer) (%s),
          "cluster", "All", "cluster", ""
        )
      ||| % firing('layer!=""'),
      cluster: 'max by (cluster, layer) (plumbline:blamed_layer_cluster:info%s)' % sel(),
      clusterDegradation: 'max by (cluster, layer) (plumbline:layer_degradation:ratio%s) and on (cluster, layer) plumbline:blamed_layer_cluster:info' % sel(),
      clusterHosts: 'count by (cluster, layer) (plumbline:layer_out_of_line:bool%s) and on (cluster, layer) plumbline:blamed_layer_cluster:info' % sel('instance!=""'),
      host: 'max by (cluster, instance, layer) (plumbline:blamed_layer:info%s)' % sel(),
      hostDegradation: 'max by (cluster, instance, layer) (plumbline:layer_degradation:ratio%s) and on (cluster, instance, layer) plumbline:blamed_layer:info' % sel(),
      osds: 'max by (cluster, ceph_daemon, verdict) (plumbline:osd_suspect:info%s)' % sel('verdict!="peer"'),
      hostFiring: 'count by (cluster, instance) (%s) and on (cluster, instance) plumbline:blamed_layer:info' % firing(),
    },
    latency: {
      ratio: worstLatency,
      measured: 'max by (%(by)s) (plumbline:canary_latency:seconds%(sel)s or plumbline_probe_latency_seconds%(sel)s) and on (%(by)s) %(of)s'
                % { by: figure + ', statistic', sel: sel('statistic=~"p50|mean"'), of: worstLatency },
      baseline: inForce('latency_seconds', worstLatency, 'cluster, instance, %s, statistic' % likeness),
      target: target(worstLatency),
    },
    rate: {
      ratio: worstRate,
      iops: measured('plumbline_probe_iops', worstRate),
      baselineIops: inForce('iops', worstRate, 'cluster, instance, ' + likeness),
      throughput: measured('plumbline_probe_throughput_bytes_per_second', worstRate),
      baselineThroughput: inForce('throughput_bytes_per_second', worstRate, 'cluster, instance, ' + likeness),
      target: target(worstRate),
    },
    history: {
      degradation: 'max by (layer) (plumbline:layer_degradation:ratio%s)' % sel(),
      accepted: 'vector(1)',
      tolerance: 'vector(%g)' % config.minimumTolerance,
      // 2: it makes other hosts wait, 1: something on one host, 0: judged and in line.
      outOfLine: |||
        2 * max by (cluster, layer) (plumbline:layer_out_of_line_cluster:bool%(sel)s)
        or on (cluster, layer)
        max by (cluster, layer) (plumbline:layer_out_of_line:bool%(sel)s)
        or on (cluster, layer)
        0 * max by (cluster, layer) (plumbline:layer_degradation:ratio%(sel)s)
      ||| % { sel: sel() },
      recovery: 'max by (cluster) (plumbline:recovery:bool%s)' % sel(),
    },
  }
