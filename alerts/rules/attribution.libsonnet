// Of what each OSD is suspected that is out of line: its own disk, its host, the network, a limit above its disk, its
// queue, or a peer.
local osds = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local osd = config.osd,
  local labels = osd + osds.labels(config) {
    ping: promql.join(config.instanceLabels + ['ceph_daemon', 'interface']),
    hostOsds: osd.host.minimumOsds,
    hostShare: osd.host.share,
    pingFloor: osd.heartbeat.floorSeconds,
    pingSpread: osd.heartbeat.spread,
    pingShare: osd.heartbeat.share,
    rttFloor: osd.connection.floorSeconds,
  },

  local slow(regex, by='class') = 'group by (%s) (plumbline:osd_slow:info{figure=~"%s", by="%s"})' % [labels.osd, regex, by],

  local verdict(name, expr) = {
    record: 'plumbline:osd_suspect:info',
    expr: expr,
    labels: { verdict: name },
  },
  local slowConnection(figure, expr) = {
    record: 'plumbline:osd_slow_connection:info',
    expr: |||
      plumbline:osd_waiting:info
      and on (%s)
      (
        %s
      )
    ||| % [labels.osd, promql.nested(promql.nested(expr))],
    labels: { figure: figure },
  },
  local waits = osds.part(config, 'write', 'peers'),
  // The far end of a slow connection; that of a retransmit may be seen once in a window.
  local farEnd(figure) = std.rstripChars(|||
    (
      max by (%(osd)s) (last_over_time(plumbline_osd_connection_worst_peer_id{figure="%(figure)s"}[%(window)s]))
      and on (%(osd)s)
      plumbline:osd_slow_connection:info{figure="%(figure)s"}
    )
  ||| % (labels { figure: figure }), '\n'),
  local farEnds = std.rstripChars(|||
    (
      %s
      or on (%s)
      %s
    )
  ||| % [promql.nested(farEnd('rtt')), labels.osd, promql.nested(farEnd('retransmits'))], '\n'),
  local slowConnections(end, expr) = {
    record: 'plumbline:osd_slow_connections:count',
    expr: expr,
    labels: { end: end },
  },
  // Starved of CPU time by its quota: it answers pings late and hands its disk's answers on late, and neither the network nor
  // the disk is the reason.
  local throttled = 'plumbline:osd_cpu_throttled:ratio >= %(throttledShare)g' % labels,
  local suspects(regex) = 'group by (%s) (plumbline:osd_suspect:info{verdict=~"%s"})' % [labels.osd, regex],
  local rtt(statistic) = 'max by (%s) (plumbline:osd_connection_rtt:seconds{statistic="%s"})' % [labels.osd, statistic],
  local located = 'group by (%(osdAt)s) (plumbline:osd:info)' % labels,
  local slowAnyhow = slow('commit|store_read|subop|queue'),

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-osd-verdicts.rules',
      interval: config.paces.compared,
      rules: [
        {
          // How many of the OSDs that tell their pings hold this one for the worst of their peers, by network.
          record: 'plumbline:osd_accusations:count',
          expr: |||
            max by (%(osd)s, interface) (
              label_replace(
                count_values by (%(network)s) (
                  "peer",
                  max by (%(ping)s) (plumbline_osd_heartbeat_worst_peer_id)
                  and on (%(ping)s)
                  plumbline_osd_heartbeat_seconds{statistic="worst"} >= %(pingFloor)g
                  and on (%(ping)s)
                  max by (%(ping)s) (plumbline_osd_heartbeat_seconds{statistic="worst"})
                  >= on (%(ping)s)
                  %(pingSpread)g * max by (%(ping)s) (plumbline_osd_heartbeat_seconds{statistic="median"})
                ),
                "ceph_daemon", "osd.$1", "peer", "(.+)"
              )
            )
          ||| % labels,
        },
        // Most of a host's OSDs are slow: none of them is to blame.
        verdict('host', |||
          group by (%(osd)s) (
            (
              %(located)s
              and on (%(osd)s)
              %(slow)s
            )
            and on (%(host)s)
            (
              count by (%(host)s) (%(located)s and on (%(osd)s) %(slow)s) >= %(hostOsds)d
              > on (%(host)s)
              %(hostShare)g * count by (%(host)s) (%(located)s)
            )
          )
        ||| % (labels { located: located, slow: slowAnyhow })),
        {
          // Pings have no disk in them. Most of the others accuse it, or it is far from all of its peers.
          record: 'plumbline:osd_far:info',
          expr: |||
            (
              group by (%(osd)s) (
                plumbline:osd_accusations:count
                > on (%(network)s) group_left ()
                %(pingShare)g * count by (%(network)s) (plumbline_osd_heartbeat_seconds{statistic="worst"})
              )
              or
              group by (%(osd)s) (
                max by (%(osd)s, interface) (plumbline_osd_heartbeat_seconds{statistic="median"}) >= %(pingFloor)g
                >= on (%(network)s) group_left ()
                %(ratio)g * quantile by (%(network)s) (0.5, plumbline_osd_heartbeat_seconds{statistic="median"})
              )
            )
            unless on (%(osd)s)
            %(host)s
            unless on (%(osd)s)
            %(throttled)s
          ||| % (labels { host: suspects('host'), throttled: throttled }),
        },
        // Its store is slow, and its devices say so, too; where they can't be compared, another signal has to. By the
        // mean, whose limits are lower, both have to.
        verdict('disk', |||
          (
            %(slow)s
            and on (%(osd)s)
            (
              plumbline:osd_slow_device:info
              or on (%(osd)s)
              (
                group by (%(osd)s) (plumbline:osd_slow_agreed:info)
                unless on (%(osd)s)
                plumbline:osd_class:ratio{figure="block"}
              )
            )
            or
            %(byMean)s
            and on (%(osd)s)
            %(blockByMean)s
          )
          unless on (%(osd)s)
          %(host)s
          unless on (%(osd)s)
          %(throttled)s
        ||| % (labels {
                 throttled: throttled,
                 slow: slow('commit|store_read'),
                 byMean: slow('commit|store_read', 'equals'),
                 blockByMean: slow('block', 'equals'),
                 host: suspects('host'),
               })),
        // Its store is slow, and its devices, where they can be compared, are not: what holds it back is above them. Or it
        // is out of CPU time by quota, which its pings show when it hardly does an operation any more. After the disk, because a device that is slow or at work all the time explains the
        // store. Before the queue, which only grows because of it. Beside the network: that slows no commit, but an OSD
        // without CPU time answers pings late.
        verdict('limit', |||
          group by (%(osd)s) (
            %(slow)s
            and on (%(osd)s)
            plumbline:osd_class:ratio{figure="block"}
            or
            (
              %(slowAnyhow)s
              or
              max by (%(osd)s) (plumbline_osd_heartbeat_seconds{statistic="worst"}) >= %(pingFloor)g
            )
            and on (%(osd)s)
            %(throttled)s
          )
          unless on (%(osd)s)
          %(others)s
        ||| % (labels {
                 slow: slow('commit|store_read'),
                 slowAnyhow: slowAnyhow,
                 throttled: throttled,
                 others: suspects('host|disk'),
               })),
        verdict('queue', |||
          %(slow)s
          and on (%(osd)s)
          group by (%(osd)s) (
            plumbline:osd_write_share:ratio{part="queue"} >= %(queueShare)g
            or
            plumbline:osd_read_share:ratio{part="queue"} >= %(queueShare)g
          )
          unless on (%(osd)s)
          %(others)s
          unless on (%(osd)s)
          plumbline:osd_far:info
        ||| % (labels { slow: slow('queue'), others: suspects('host|disk|limit') })),
        {
          // Others wait for these.
          record: 'plumbline:osd_slow_peer:info',
          expr: |||
            %(slow)s
            or
            %(suspects)s
            or
            plumbline:osd_far:info
          ||| % { slow: slow('commit|subop'), suspects: suspects('host|disk|limit|queue') },
        },
        {
          // It waits for its replicas, and nothing of its own is slow.
          record: 'plumbline:osd_waiting:info',
          expr: |||
            group by (%(osd)s) (
              plumbline:osd_write_share:ratio{part="peers"} >= %(share)g
              unless on (%(osd)s)
              plumbline:osd_slow_peer:info
            )
          ||| % labels + osds.quiet(config),
        },
        {
          // A round-trip time of TCP without its deviation.
          record: 'plumbline:osd_connection_rtt:seconds',
          expr: |||
            clamp_min(
              max by (%(osd)s, statistic) (plumbline_osd_connection_rtt_seconds)
              - on (%(osd)s, statistic)
              max by (%(osd)s, statistic) (plumbline_osd_connection_rtt_deviation_seconds),
              0
            )
          ||| % labels,
        },
        {
          record: 'plumbline:osd_connection_retransmits:rate5m',
          expr: 'max by (%(osd)s) (rate(plumbline_osd_connection_retransmits_total[%(window)s]))' % labels,
        },
        // It waits, and one of its connections is slower than the others.
        slowConnection('rtt', |||
          (%(worst)s >= %(rttFloor)g >= on (%(osd)s) %(spread)g * %(median)s)
          >= on (%(osd)s)
          %(share)g * %(waits)s
        ||| % (labels + osd.connection { worst: rtt('worst'), median: rtt('median'), waits: waits })),
        // Or most of them are slower than those of other OSDs: it is itself the end that they share, whichever is the worst.
        slowConnection('median', |||
          (
            %(median)s >= %(rttFloor)g
            >= on (%(cluster)s) group_left ()
            %(ratio)g * quantile by (%(cluster)s) (0.5, %(median)s)
          )
          >= on (%(osd)s)
          %(share)g * %(waits)s
        ||| % (labels + osd.connection { median: rtt('median'), waits: waits })),
        // Or retransmits take a good part of what it waits.
        slowConnection('retransmits', |||
          %(timeoutSeconds)g * (plumbline:osd_connection_retransmits:rate5m >= %(lossPerSecond)g)
          >= on (%(osd)s)
          %(lossShare)g * %(waits)s
          * on (%(osd)s)
          max by (%(osd)s) (plumbline:osd_operations:rate5m{operation="write"} > 0)
        ||| % (labels + osd.connection { waits: waits })),
        verdict('network', |||
          plumbline:osd_far:info
          or
          group by (%(osd)s) (plumbline:osd_slow_connection:info)
        ||| % labels),
        // Or it waits no less than its class, and there is another OSD that is slow.
        verdict('peer', |||
          plumbline:osd_waiting:info
          unless on (%(osd)s)
          (
            plumbline:osd_compared:figure{figure="peers"}
            < on (%(peers)s) group_left ()
            plumbline:osd_class:figure
          )
          unless on (%(osd)s)
          %(network)s
          and on (%(cluster)s)
          plumbline:osd_slow_peer:info
        ||| % (labels { network: suspects('network') })),
        // By the far end of the worst connection, how many OSDs are `network` because of their connections. An OSD most of
        // whose own connections are slow accuses nobody.
        slowConnections('far', |||
          max by (%(osd)s) (
            label_replace(
              count_values by (%(cluster)s) (
                "peer",
                %(farEnds)s
                unless on (%(osd)s)
                plumbline:osd_slow_connection:info{figure="median"}
                unless on (%(osd)s)
                plumbline:osd_far:info
              ),
              "ceph_daemon", "osd.$1", "peer", "(.+)"
            )
          )
        ||| % (labels { farEnds: promql.nested(promql.nested(promql.nested(farEnds))) })),
        // Such an OSD itself, if no other names it.
        slowConnections('all', |||
          group by (%(osd)s) (plumbline:osd_slow_connection:info{figure="median"})
          unless on (%(osd)s)
          plumbline:osd_slow_connections:count{end="far"}
          unless on (%(osd)s)
          plumbline:osd_far:info
        ||| % labels),
        // OSDs that wait, where the far end is not known.
        slowConnections('near', |||
          group by (%(osd)s) (plumbline:osd_slow_connection:info)
          unless on (%(osd)s)
          plumbline:osd_slow_connection:info{figure="median"}
          unless on (%(osd)s)
          %(farEnds)s
          unless on (%(osd)s)
          plumbline:osd_far:info
        ||| % (labels { farEnds: farEnds })),
      ],
    }],
  },
}
