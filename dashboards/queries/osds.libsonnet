// The queries of the OSDs' page. All stand on the rules over both of Ceph's producers, but for what is in or out.
function(config)
  local matchers = import '../lib/matchers.libsonnet';
  local firing = import 'firing.libsonnet';

  local cluster = 'cluster=~"$cluster"';
  local sel = matchers.selector(cluster);
  local osd = 'cluster, ceph_daemon';

  // OSDs of the chosen class. Of one that is gone Ceph tells no class: it is shown with any, because leaving out those of
  // other classes keeps it.
  local others = 'plumbline:osd:info{%s, device_class!~"$device_class"}' % cluster;
  local of(expr) = |||
    %s
    unless on (cluster, ceph_daemon)
    %s
  ||| % [expr, others];

  // What rules record of each class. The class of an OSD that is gone is empty: it counts with any.
  local class(more='') = '{%s}' % std.join(', ', [cluster, 'device_class=~"$device_class|"'] + (if more == '' then [] else [more]));
  local classSum(by, metric, more='') = 'sum by (%s) (plumbline:osd_class_%s%s)' % [by, metric, class(more)];
  local classMean(by, name, more='') = '%s / %s' % [classSum(by, name + ':' + figure, more) for figure in ['sum', 'count']];

  // A count that is 0 where there are OSDs and none of them is so, and nothing where nobody tells of OSDs.
  local number(expr) = 'count(%s) or 0 * count(plumbline:osd_up:bool%s)' % [expr, sel()];

  local suspects(verdict) = 'group by (%s) (plumbline:osd_suspect:info%s unless on (%s) %s)' % [osd, sel('verdict="%s"' % verdict), osd, others];
  local one(expr) = 'max by (%s) (%s)' % [osd, expr];
  local write = one('plumbline:osd_latency:mean5m' + sel('operation="write", part="total"'));
  local worst = one('plumbline:osd_class:ratio' + sel());

  // Suspects and who is out of line; and the slowest writers, so that a healthy cluster's page is not empty.
  local rows = |||
    (
      plumbline:osd_suspect:info%(sel)s
      or on (%(osd)s)
      label_replace(group by (%(osd)s) (plumbline:osd_slow:info%(sel)s), "verdict", "out of line", "", "")
      or on (%(osd)s)
      label_replace(topk(5, %(write)s unless on (%(osd)s) %(others)s), "verdict", "none", "", "")
    )
    unless on (%(osd)s)
    %(others)s
  ||| % { sel: sel(), osd: osd, write: write, others: others };
  local ofRows(expr) = |||
    %s
    and on (cluster, ceph_daemon)
    (
      %s
    )
  ||| % [expr, std.strReplace(std.rstripChars(rows, '\n'), '\n', '\n  ')];

  {
    clients: (import '../lib/clients.libsonnet').query(''),
    hostCauses: 'max by (cluster, instance, cause) (plumbline:host_compared:figure%s and on (cluster, instance, cause) plumbline:host_cause:info)' % sel(),
    state: {
      down: number('max by (%s) (plumbline:osd_up:bool%s) == 0 unless on (%s) %s' % [osd, sel(), osd, others]),
      up: 'sum(%s)' % std.rstripChars(of(one('plumbline:osd_up:bool' + sel())), '\n'),
      // Of one that is down and out Ceph 16 tells nothing any more: those it told of lately count, too.
      out: number(|||
        (
          max by (%(osd)s) (ceph_osd_in%(sel)s) == 0
          or on (%(osd)s)
          max by (%(osd)s) (last_over_time(plumbline:osd_up:bool%(sel)s[%(remember)s]))
          unless on (%(osd)s)
          max by (%(osd)s) (ceph_osd_in%(sel)s) == 1
        )
        unless on (%(osd)s)
        %(others)s
      ||| % { osd: osd, sel: sel(), others: others, remember: config.osdHosts.remember }),
      disk: number(suspects('disk')),
      elsewhere: number('group by (%s) (plumbline:osd_suspect:info%s unless on (%s) %s)' % [osd, sel('verdict=~"host|network"'), osd, others]),
      queue: number(suspects('queue')),
      peer: number(suspects('peer')),
      outlier: number('group by (%(osd)s) (plumbline:osd_slow:info%(sel)s unless on (%(osd)s) %(others)s unless on (%(osd)s) plumbline:osd_suspect:info%(sel)s)'
                      % { osd: osd, sel: sel(), others: others }),
    },
    suspects: {
      verdict: 'max by (%s, verdict) (%s)' % [osd, std.rstripChars(rows, '\n')],
      place: ofRows('group by (%s, device_class, hostname) (plumbline:osd:info%s)' % [osd, sel()]),
      disk: ofRows('topk by (%(osd)s) (1, group by (%(osd)s, instance, device) (plumbline:osd_disk:info%(sel)s))' % { osd: osd, sel: sel() }),
      ratio: ofRows(worst),
      write: ofRows(write),
      commit: ofRows(one('plumbline:osd_store_latency:mean5m' + sel('part="commit"'))),
      queue: ofRows(one('plumbline:osd_latency:mean5m' + sel('operation="write", part="queue"'))),
      peers: ofRows(one('plumbline:osd_write_part:seconds' + sel('part="peers"'))),
      operations: ofRows('sum by (%s) (plumbline:osd_operations:rate5m%s)' % [osd, sel()]),
    },
    percentiles: {
      p99: 'topk(10, %s)' % std.rstripChars(of('plumbline:osd_latency:p99_seconds' + sel('operation=~"$operation"')), '\n'),
      p50: 'topk(10, %s)' % std.rstripChars(of('plumbline:osd_latency:p50_seconds' + sel('operation=~"$operation"')), '\n'),
    },
    parts: {
      write: classMean('part', 'write_part'),
      read: classMean('part', 'read_part'),
      total(operation): classMean('operation', 'latency', 'operation="%s"' % operation),
      store: classMean('part', 'store_latency'),
    },
    outliers: 'topk(%d, plumbline:osd_class_furthest:ratio{%s, device_class=~"$device_class"})' % [config.osd.drawn, cluster],
    operations: classSum('operation', 'operations:rate5m'),
    heartbeat: {
      worst: 'topk(%d, plumbline:osd_heartbeat_furthest:seconds%s)' % [config.osd.drawn, sel()],
      median: 'max by (cluster, interface) (plumbline:osd_heartbeat_median:seconds%s)' % sel(),
      accused: 'topk(10, plumbline:osd_accusations:count%s)' % sel(),
    },
    accusations: {
      local told = 'topk(10, max by (%s, interface) (plumbline_osd_heartbeat_seconds%s))' % [osd, sel('statistic="worst"')],
      local beside(expr) = 'max by (%(osd)s, interface) (%(expr)s) and on (%(osd)s, interface) %(told)s' % { osd: osd, expr: expr, told: told },
      worst: told,
      peer: beside('plumbline_osd_heartbeat_worst_peer_id' + sel()),
      median: beside('plumbline_osd_heartbeat_seconds' + sel('statistic="median"')),
    },
    blocked: {
      stage: 'sum by (cluster, stage) (plumbline:osd_blocked_operations:count%s)' % sel(),
      slow: 'sum by (cluster, stage) (plumbline:osd_slow_operations:count%s)' % sel(),
      age: 'max(plumbline_osd_blocked_operation_age_seconds%s)' % sel(),
      sockets: 'count(plumbline_osd_socket_up%s == 0) or 0 * count(plumbline_osd_socket_up%s)' % [sel(), sel()],
    },
    capacity: {
      local far = 'topk(20, max by (%s) (plumbline:osd_capacity:ratio%s))' % [osd, sel()],
      assumed: 'max by (%(osd)s) (plumbline:osd_capacity:iops%(sel)s) and on (%(osd)s) %(far)s' % { osd: osd, sel: sel(), far: far },
      place: 'group by (%(osd)s, device_class) (plumbline:osd_capacity:iops%(sel)s) and on (%(osd)s) %(far)s' % { osd: osd, sel: sel(), far: far },
      ratio: far,
    },
    bench: {
      iops: 'avg by (cluster, device_class, workload) (plumbline_probe_iops%s)' % sel('layer="osd", device_class=~"$device_class"'),
      baselineIops: 'max by (cluster, device_class, workload, source) (plumbline:baseline_in_force:iops%s)' % sel('layer="osd", device_class=~"$device_class"'),
      documentedIops: 'max by (device_class, workload, profile) (plumbline_baseline_iops%s)' % sel('layer="osd", source="documented"'),
      throughput: 'avg by (cluster, device_class, workload) (plumbline_probe_throughput_bytes_per_second%s)' % sel('layer="osd", device_class=~"$device_class"'),
      baselineThroughput: 'max by (cluster, device_class, workload, source) (plumbline:baseline_in_force:throughput_bytes_per_second%s)' % sel('layer="osd", device_class=~"$device_class"'),
      documentedThroughput: 'max by (device_class, workload, profile) (plumbline_baseline_throughput_bytes_per_second%s)' % sel('layer="osd", source="documented"'),
    },
    firing: firing(cluster + ', layer="osd"'),
  }
