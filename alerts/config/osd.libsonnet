// OSDs: who is suspected, and of what. Figures seen on a real cluster: docs/osd-verdicts.md.
// Two windows: a burst has left the first by then.
local lasting = { severity: 'warning', 'for': '10m', keepFiringFor: '10m' };

{
  _config+:: {
    osd: {
      // Window of our own counters; the means of Ceph's have `ceph.window`, which is the same.
      window: $._config.ceph.window,

      // An OSD that does less is idle, and its mean is a handful of operations: 600 in the window at this rate.
      minimumOperationsPerSecond: 2,

      // OSDs of one device class that are busy, the judged one included. With fewer, replication ties them all
      // together: of three OSDs one slow disk makes two thirds of all writes slow.
      minimumOsds: 5,

      // How many lines a graph of the furthest has.
      drawn: 10,

      // An OSD with this many times the operations of its class's median does other work than they. Its queue is
      // judged all the same.
      comparableLoad: 4,

      // A mean against the median of the class. Three OSDs on one disk were within a half of each other under every load
      // that was tried; the mildest fault (a device held to 200 writes a second) made 4 to 6 of it.
      ratio: 3,

      // The second signal only has to agree.
      agreeRatio: 2,

      // Percentiles come from buckets that double: what is less than this apart may be the grid alone.
      tailRatio: 4,

      // Less than this share of the class's median operation (reads or writes, the shorter) is nothing that a client
      // waits for. A share, because an NVMe drive that is far behind stays below any time that means something to others.
      floorShare: 0.15,

      // The exact mean against the median of the equals: OSDs of a class on one host, else in the cluster. Beside the
      // ratio above, which is quick and looks at the cluster.
      equals: {
        // As with disks: of three the median is a healthy one.
        minimumOsds: 3,
        // Means of five minutes, so many of them in a row; with the alert's own wait it is a quarter of an hour.
        window: '5m',
        // By class and place, the disks' own: an OSD's store waits for its disk. Any other class has the ratio above alone.
        ratio: $._config.alerts.PlumblineDiskLatencyOutlier.mean,
        // Of the class's median in the cluster: on a host with little to do an OSD may be behind, and as fast as any.
        floorShare: $._config.alerts.PlumblineDiskLatencyOutlier.floorShare,
      },

      // What makes up this much of an operation is what to look at.
      share: 0.5,

      // Ceph counts an operation of the store as slow from here on (bluestore_log_op_age).
      storeSlowSeconds: 5,

      // Of the queue less: it only grows where nobody gets on. Seen: 3 to 6 % in healthy OSDs, 21 % in one with 1,600
      // writes a second of 128 in flight, 94 % with 3,100 reads a second of 32.
      queueShare: 0.15,

      // A device that works all the time. Of a disk that works in parallel it proves nothing alone, but it agrees.
      busyRatio: 0.95,

      // An OSD that uses up its CPU quota in this share of the quota's periods (100 ms) stands still for part of each
      // second. A burst uses up one now and then.
      throttledShare: 0.1,

      // A host is suspected when it has this many slow OSDs, and more than this share of its OSDs are.
      host: { minimumOsds: 2, share: 0.5 },

      heartbeat: {
        // A ping is answered by a thread that does nothing else, within a millisecond on a quiet network; on hosts short
        // of CPU time averages of a minute were seen at 20. Ceph's own warning comes at 1 s.
        floorSeconds: 30e-3,

        // An OSD accuses its worst peer when that is this many times its median peer: on a network that is slow
        // everywhere nobody accuses.
        spread: 1.5,

        // More than this share of the OSDs that tell their pings have to accuse the same one.
        share: 0.5,
      },

      // TCP's round-trip time to other OSDs, without its deviation: delayed acknowledgements raise both alike.
      connection: {
        // Within a data centre it is tenths of a millisecond. On an idle loopback of an overloaded machine it was 0.
        floorSeconds: 2e-3,

        // The worst connection against the median of the same OSD, as with pings; all of an OSD's connections are
        // compared with the cluster's median OSD by `ratio` above.
        spread: $._config.osd.heartbeat.spread,

        // The round-trip time has to be this part of what the writes wait for replicas.
        share: $._config.osd.floorShare,

        // Segments sent again have to explain this much of it, because most cost less than the timeout below. On a starved
        // machine, TCP sends about one a second again that was not lost.
        lossShare: $._config.osd.share,
        lossPerSecond: 2,

        // A lost segment costs a retransmission timeout, which Linux sets no shorter than this; less where the
        // acknowledgements of later segments show the loss.
        timeoutSeconds: 0.2,
      },

      // The bench that mClock's documentation measures the capacity with.
      capacityWorkload: 'osd-bench-4k.*',
    },

    alerts+: {
      PlumblineOsdSlowDisk: lasting,
      PlumblineOsdSlowPeer: lasting,
      PlumblineOsdLimited: lasting,
      PlumblineOsdQueueing: lasting,

      // Information: it explains slow OSDs and is none itself. Below a task at any moment is what a busy host has.
      PlumblineRunQueueLong: { severity: 'info', 'for': '15m', keepFiringFor: '15m', window: '10m', tasks: 1 },

      // Nothing explains it, so it waits longer for something that does.
      PlumblineOsdOutlier: { severity: 'warning', 'for': '15m', keepFiringFor: '15m' },

      PlumblineOsdHeartbeatSlow: {
        severity: 'warning',
        // Pings are averages of a minute already.
        'for': '5m',
        keepFiringFor: '10m',
        // Where nobody is accused: the median of an OSD's peers is a tenth of the way to Ceph's own warning.
        seconds: 0.1,
      },

      PlumblineOsdConnectionSlow: lasting,

      // Asked every 15 s: a dozen questions without an answer, more than an OSD's start takes.
      PlumblineOsdSocketHung: { severity: 'warning', 'for': '3m' },

      // Ceph complains from 30 s on (osd_op_complaint_time); an OSD that comes or goes blocks some for as long.
      PlumblineOsdOperationsBlocked: { severity: 'warning', 'for': '1m', seconds: 60 },

      PlumblineOsdDatabaseFull: {
        severity: 'warning',
        // A compaction needs room for the old files and the new ones, for minutes.
        'for': '1h',
        // Of its device: what is left is what a compaction needs; then the database goes on where the data is.
        fullRatio: 0.9,
        // What has spilled over and stays is told by Ceph's own check (BLUEFS_SPILLOVER, in PlumblineCephHealth). This is
        // what becomes more, by this share of the device in the window: compactions move files to and fro.
        spilledWindow: '1d',
        spilledShare: 0.01,
      },

      PlumblineOsdCapacityMisjudged: {
        severity: 'warning',
        // Set once, at an OSD's first start.
        'for': '1h',
        // Every share that mClock gives is off by the same factor; half or twice is another disk, or a bench in a bad moment.
        ratio: 2,
        // The median of a class of fewer is no norm.
        minimumOsds: 3,
      },
    },
  },
}
