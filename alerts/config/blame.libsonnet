// Which layer is to blame, which host an OSD is on, and when the cluster moves data.
{
  _config+:: {
    blame: {
      // Lowest first: what a layer does shows in all above it. Those on one line stand beside each other.
      // `self` is the host: its daemon does not answer, and nothing more is known of it.
      order: [
        ['self'],
        ['network'],
        ['disk'],
        ['osd'],
        ['rados'],
        ['rbd', 'filesystem', 'object'],
        ['client'],
      ],

      // Those that clients use: out of line here is what they feel. Of those below one part alone is a ticket.
      clientLayers: std.flattenArrays(self.order[std.find(['rados'], self.order)[0]:]),

      // What is out of line on one host: something is slow, lost, full or broken there at this moment. `health` is
      // left out (settings, findings, overdue probes: they slow nothing by themselves), unless somebody is woken.
      host: { severities: ['warning', 'critical'], signals: ['latency', 'loss', 'saturation', 'error'] },

      // Across hosts only what can make another host wait. A spare sector or a lost path stands for weeks until a part
      // is replaced, and a saturated CPU is common: one of a thousand hosts always has such a ticket.
      cluster: { severities: ['warning', 'critical'], signals: ['latency', 'loss'] },

      // A host that is gone is health, placement groups that hang are an error: what wakes somebody always counts.
      woken: { severities: ['critical'], signals: ['error', 'health'] },

      // A ticket each, and still whatever needs them waits, on any host.
      hung: { names: ['PlumblineDiskHung', 'PlumblineProbeStuck'] },

      // A page names what is suspected below it: hosts that are gone, what counts across hosts, and what may be why
      // operations hang.
      gone: { names: ['PlumblineDown'], severities: ['critical'] },
      suspected: {
        names: $._config.blame.hung.names + [
          'PlumblineCephOsdDown',
          'PlumblineCephOsdFlapping',
          'PlumblinePathMtuBelowInterface',
        ],
      },

      // What explains another's lateness is late by this share of it: an operation of a client is several of a disk, and
      // several round trips, one after the other.
      explains: 0.1,

      // Alerts whose figure stays until the next run, an hour or a day: they explain nothing that is slow now.
      periodic: ['PlumblineProbeLatencyHigh', 'PlumblineProbeThroughputLow', 'PlumblineNetworkLoss', 'PlumblinePathMtuBelowInterface'],

      // A pending alert is not confirmed: its seconds count for this much.
      pending: 0.5,

      // How long an operation waits where nothing has measured it. The largest explains most and is named first.
      seconds: {
        // As long as the clients look for a host that does not answer, and longer than all below.
        gone: 60,
        // The kernel's drivers abort a command after this; packets that are too large never arrive.
        hung: { names: $._config.blame.hung.names + ['PlumblinePathMtuBelowInterface'], seconds: 30 },
        // Until its peers report an OSD (osd_heartbeat_grace).
        down: { names: ['PlumblineCephOsdDown', 'PlumblineCephOsdFlapping'], seconds: 20 },
        // Any other: a lost segment.
        other: $._config.osd.connection.timeoutSeconds,
      },

      // A wrong MTU is suspected as soon as it is seen: it looks like a dead host, and its own ticket waits.
      mtu: { names: ['PlumblineNicMtuMismatch'] },
    },

    osdHosts: {
      // Where an OSD was last seen, for when its host is down and tells nothing. A day bridges a night's outage; an OSD
      // that has moved is found at once on its new host, which still speaks.
      remember: '1d',
      // A pod of Rook for an OSD: "rook-ceph-osd-3-7c9d5b8f6-x2k4q". No node is named like that.
      podName: 'rook-ceph-osd-[0-9]+-.+',
    },

    recovery: {
      // States in which data moves at this moment. Not degraded or undersized: with too few hosts that is for ever.
      pgStates: ['recovering', 'backfilling'],

      // What lasts longer is no excuse any more but how this cluster is, and slow is slow.
      longest: '1d',

      // How long it still takes is told as a range, by its pace over each of these: the pace changes with the load.
      spans: ['5m', '20m'],

      // The upper bound is so many times the time at the slowest pace: at the end fewer and fewer OSDs have data to
      // move. Seen at half-way on a real cluster with two of them: 1.28 times.
      tail: 1.5,
    },

    // The same of other work that the OSDs do by themselves, by the pace of a day: scrubs wait for the night, and for hours
    // without load.
    background: {
      span: '1d',
      // Work → the check that counts its placement groups. Ceph counts those that are late by three quarters of their interval
      // and more (mon_warn_pg_not_deep_scrubbed_ratio).
      late: { scrub: 'PG_NOT_SCRUBBED', 'deep-scrub': 'PG_NOT_DEEP_SCRUBBED' },
      // Trimming ends within hours.
      states: { 'snapshot-trim': ['snaptrim', 'snaptrim_wait'] },
      trimmed: '20m',
    },

    alerts+: {
      PlumblineRecoveryUnderWay: {
        // Wakes nobody and is sent to nobody: it holds back.
        severity: 'info',
        // A restarted OSD catches up within seconds. Not longer than what it holds back: the burn's ticket waits 2 m.
        'for': '1m',
        // The tickets look back over windows that still hold the recovery when it is over. Simulated: 3.3 false
        // tickets a series-month without, none with these two hours.
        keepFiringFor: '2h',
      },

      PlumblineLatencyExplained: {
        // Holds back tickets while something below is late by enough. Who is slow above is well again later: queues drain last,
        // and a ticket that is kept firing says nothing new. After this it is sent.
        severity: 'info',
        'for': '0m',
        keepFiringFor: '15m',
      },

      PlumblineLayerSettling: {
        // Holds back what waits for a layer that paged a moment ago: queues above it drain last, and pages are kept
        // firing from when they were last true. So the longest of those (10 m), and some minutes for the queues.
        severity: 'info',
        'for': '0m',
        keepFiringFor: '15m',
      },

      PlumblineProbeTargetDown: {
        // Holds back as well. At once: a canary's operation hangs seconds after its OSD's host is gone, and the page
        // for the host takes minutes.
        severity: 'info',
        'for': '0m',
      },
    },
  },
}
