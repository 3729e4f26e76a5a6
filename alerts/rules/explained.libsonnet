// What can be the reason of what: by seconds, not by layers alone. A ping that takes 13 us longer explains no operation that
// takes 200 ms longer, whatever the ratios are.
//
//   excess    = measured - usual (baseline, median of the equals), in seconds
//   explained = some part below is late by a stated share of it (`blame.explains`), at this moment
//
// Only what is measured all the time counts: the result of a periodic probe stays until its next run.
local osds = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local blame = config.blame,
  local clusters = promql.clusterLabels(config),
  local labels = promql.labels(config) + osds.labels(config) {
    compared: promql.join(config.instanceLabels + ['device', 'operation', 'figure']),
    past: promql.join(clusters + ['identity', 'operation', 'figure']),
    byLayer: promql.join(clusters + ['layer']),
    device: promql.join(config.instanceLabels + ['device']),
    clients: std.join('|', blame.clientLayers),
    explains: blame.explains,
    loss: config.osd.connection.timeoutSeconds,
    judgedFast: 'plumbline:degradation_fast:ratio{statistic="p50",layer=~"%s"}' % self.clients,
    baselines: 'min by (%s, statistic) (plumbline:baseline_in_force:latency_seconds)' % self.tolerance,
  },

  local part(layer, by, expr) = {
    record: 'plumbline:part_excess:seconds',
    expr: 'max by (%s) (\n  %s\n) > 0\n' % [by, promql.nested(std.rstripChars(expr, '\n'))],
    labels: { layer: layer },
  },

  // Alerts of these layers that fire now, by these labels.
  local firing(layer, signals, by, more='') =
    'group by (%s) (ALERTS{alertname=~"Plumbline.+",alertname!~"%s",alertstate="firing",severity=~"warning|critical",layer=~"%s",signal=~"%s"%s})'
    % [by, std.join('|', blame.periodic), layer, signals, more],

  local order = blame.order,
  local below(stage) = std.join('|', std.flattenArrays(order[1:stage])),
  local clientStages = std.range(std.find(['rados'], order)[0], std.length(order) - 1),

  local explained(stage) = |||
    group by (%(byLayer)s) (
      %(explains)g * max by (%(byLayer)s) (plumbline:layer_excess:seconds{layer=~"%(above)s"})
      <= on (%(cluster)s) group_left ()
      max by (%(cluster)s) (plumbline:explains:seconds{layer=~"%(below)s"})
    )
  ||| % (labels { above: std.join('|', order[stage]), below: below(stage) }),

  // Of a layer without canary and probe no seconds are known: whatever is late below explains an alert about it.
  local unmeasured(stage, layer) = |||
    label_replace(max by (%(cluster)s) (plumbline:explains:seconds{layer=~"%(below)s"}), "layer", "%(layer)s", "", "")
    unless on (%(byLayer)s)
    plumbline:layer_excess:seconds
  ||| % (labels { layer: layer, below: below(stage) }),

  // An OSD whose lateness has its reason in a disk of it, or in the network of its host. No network is in what its own store
  // takes.
  local explainedOsds = |||
    group by (%(osd)s, layer) (
      %(explains)g * plumbline:part_excess:seconds{layer="osd"}
      <= on (%(osd)s) group_left ()
      max by (%(osd)s) (
        plumbline:osd_disk:info
        * on (%(device)s) group_left ()
        (
          plumbline:part_excess:seconds{layer="disk"}
          and on (%(device)s)
          %(slowDisks)s
        )
      )
      or
      %(explains)g * plumbline:part_excess:seconds{layer="osd"}
      <= on (%(osd)s) group_left ()
      max by (%(osd)s) (
        plumbline:osd_node:info
        * on (%(instance)s) group_left ()
        max by (%(instance)s) (
          %(loss)g * %(losing)s
          or
          plumbline:part_excess:seconds{layer="network"}
          * on (%(osd)s) group_left (instance)
          plumbline:osd_node:info
          and on (%(osd)s)
          %(far)s
        )
      )
      unless on (%(osd)s)
      plumbline:osd_suspect:info{verdict=~"disk|host|limit|queue"}
    )
  ||| % (labels {
           slowDisks: firing('disk', 'latency|loss|saturation', labels.device),
           losing: firing('network', 'loss|saturation', labels.instance),
           far: firing('network', 'latency', labels.osd, ',ceph_daemon!=""'),
         }),

  prometheusRules+:: {
    groups+: [{
      // By how much each disk, OSD and host is late: figures of all of them, no faster than they come. An alert about one has
      // waited for longer.
      name: 'plumbline-excess.rules',
      interval: config.paces.compared,
      rules: [
        part('disk', labels.device, |||
          plumbline:disk_mean:figure{figure="latency"}
          - on (%(compared)s) group_right ()
          plumbline:disk_equals:figure{figure="latency"}
          or
          label_replace(
            plumbline:disk_latency:p99_seconds
            - on (%(disk)s)
            plumbline:disk_latency:peer_p99_seconds,
            "of", "tail", "", ""
          )
          or
          label_replace(
            plumbline:disk_hour:figure{figure="latency"}
            - on (%(past)s) group_left ()
            plumbline:disk_usual:figure,
            "of", "past", "", ""
          )
        ||| % (labels { disk: promql.labels(config).disk })),
        part('osd', labels.osd, |||
          plumbline:osd_compared:figure{figure=~"commit|queue|read|store_read|subop|write"}
          - on (%(peers)s) group_left ()
          plumbline:osd_class:figure
        ||| % labels),
        // Nothing else is done for a ping, and little on a connection: all of it is the excess.
        part('network', labels.osd, |||
          label_replace(plumbline_osd_heartbeat_seconds{statistic="worst"}, "of", "ping", "", "")
          or
          label_replace(plumbline:osd_connection_rtt:seconds{statistic="worst"}, "of", "connection", "", "")
        |||),
      ],
    }, {
      // As fast as the routes need it: a ticket is sent 45 s after it fires (`group_wait`), and by then a rule here and the alert
      // that reads it have seen what fires below.
      name: 'plumbline-explained.rules',
      interval: config.canary.interval,
      rules: [
        {
          // How much longer than their baselines operations of a client's layer take, the worst of them.
          record: 'plumbline:layer_excess:seconds',
          expr: |||
            max by (%(byLayer)s) (
              (%(judgedFast)s - 1)
              * on (%(tolerance)s, statistic) group_left ()
              %(baselines)s
            ) > 0
          ||| % labels,
          labels: { of: 'canary' },
        },
        {
          record: 'plumbline:layer_excess:seconds',
          expr: 'max by (%(byLayer)s) (plumbline:degradation:excess_seconds{layer=~"%(clients)s"}) > 0\n' % labels,
          labels: { of: 'probe' },
        },
        {
          // Alerts about latency that is too little to be what clients wait for.
          record: 'plumbline:negligible:info',
          expr: |||
            group by (%(part)s) (
              ALERTS{alertname=~"Plumbline.+",signal="latency",layer="disk"}
              and on (%(device)s)
              (plumbline:part_excess:seconds{layer="disk"} < on (%(cluster)s) group_left () %(least)s)
              or
              ALERTS{alertname=~"Plumbline.+",signal="latency",layer=~"network|osd"}
              and on (%(osd)s, layer)
              (plumbline:part_excess:seconds{ceph_daemon!=""} < on (%(cluster)s) group_left () %(least)s)
              or
              ALERTS{alertname="PlumblineProbeLatencyHigh",layer!~"%(clients)s"}
              and on (%(probe)s, operation)
              (plumbline:degradation:excess_seconds < on (%(cluster)s) group_left () %(least)s)
            )
          ||| % (labels {
                   part: promql.join(config.instanceLabels + ['layer', 'device', 'ceph_daemon', 'probe', 'alertname']),
                   least: '(%g * max by (%s) (plumbline:layer_excess:seconds))' % [labels.explains, labels.cluster],
                 }),
        },
        {
          // How late the worst part of a layer is that has an alert. What a loss costs is the time until it is noticed.
          record: 'plumbline:explains:seconds',
          expr: |||
            max by (%(byLayer)s) (
              plumbline:part_excess:seconds
              and on (%(device)s, layer)
              %(disks)s
              or
              plumbline:part_excess:seconds
              and on (%(osd)s, layer)
              %(osds)s
              or
              plumbline:layer_excess:seconds{of="canary"}
              and on (%(byLayer)s)
              %(clientLayers)s
              or
              %(loss)g * %(losses)s
            )
          ||| % (labels {
                   disks: firing('.+', 'latency|loss', labels.device + ', layer', ',device!=""'),
                   osds: firing('.+', 'latency|loss', labels.osd + ', layer', ',ceph_daemon!=""'),
                   clientLayers: firing(labels.clients, 'latency', labels.byLayer),
                   losses: firing('.+', 'loss', labels.byLayer),
                 }),
        },
        {
          // OSDs and clients' layers whose lateness has its reason below.
          record: 'plumbline:latency_explained:info',
          expr: std.join('or\n', [explainedOsds] + [
            std.join('or\n', [explained(stage)] + [unmeasured(stage, layer) for layer in order[stage]])
            for stage in clientStages
          ]),
        },
      ],
    }],
  },
}
