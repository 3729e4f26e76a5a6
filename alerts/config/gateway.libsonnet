// What stands between clients and RADOS: gateways of RGW and NVMe-oF, metadata servers of CephFS.
{
  _config+:: {
    gateway: {
      // Fewer is chance: 300 operations in the window at this rate.
      minimumOperationsPerSecond: 1,

      // Gateways of one kind and cluster do the same work, behind one address. Of three the median is a healthy one.
      // Not so metadata servers: each has other directories.
      compared: ['object', 'client'],
      minimumGateways: 3,

      // Bytes of an operation above this many times what they are compared with explain a longer one.
      comparableSize: 2,

      // As with disks: the median of the last hour, and what it was at this hour of the past days.
      longWindow: $._config.disk.longWindow,
      pastDays: $._config.disk.pastDays,
      minimumPastDays: $._config.disk.minimumPastDays,
    },

    alerts+: {
      PlumblineGatewayLatencyHigh: {
        // A mean of what clients ask for, not of one and the same operation: a ticket. Pages come from the canaries and
        // probes of these layers.
        severity: 'warning',
        // The hour's median needs half an hour to follow already; neighbours differ for as long as one of them starts.
        'for': '15m',
        keepFiringFor: '30m',
        // Means move with what clients ask for (lists, large directories), by a factor of two or three within a day.
        pastRatio: 4,
        // Neighbours get the same requests.
        peersRatio: 3,
        // The mean itself: as with disks, what takes less is nothing that a client waits for.
        floorSeconds: $._config.alerts.PlumblineDiskLatencyOutlier.floorSeconds,
      },

      PlumblineGatewayErrors: {
        // RGW counts what its clients ask wrongly as well (no such key, not allowed): a ticket.
        severity: 'warning',
        'for': '30m',
        keepFiringFor: '30m',
        // The share of failed requests against the highest hour of this span, as it was a day ago: what lasts longer than
        // a day has become usual.
        span: '7d',
        before: '1d',
        ratio: 2,
        // More by this share of all requests: an empty night makes any ratio.
        share: 0.01,
      },
    },
  },
}
