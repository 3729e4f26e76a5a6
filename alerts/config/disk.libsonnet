// Disks: latency, health, PCI Express, arrays.
{
  _config+:: {
    disk: {
      // Window of the latency figures: 600 operations at the floor below, of which the p99 stands on six.
      window: '5m',

      // A disk that does less is idle, and its p99 is its unluckiest operation: no figure at all.
      minimumOperationsPerSecond: 2,

      // A discard of a gigabyte and one of 4 KiB are both one operation: their latencies don't compare.
      judgedOperations: 'read|write|flush',

      // Disks of one class and transport on one host, the judged one included, that are busy with the same
      // operation. Of three, the median is a healthy one as long as one is slow; of two it is a mean with the slow one.
      minimumPeers: 3,

      // A disk with this many times its peers' operations, or with operations this many times as big, does other
      // work than they (a DB beside data): its own queue and its transfers make it slower, and it is not compared.
      comparableLoad: 4,

      // The exact mean, beside the tail. Tuned on cluster A of the public fail-slow data (docs/disk-latency.md).
      mean: {
        // A mean needs no rank, so its window can hold three times the operations of the tail's.
        window: '15m',
        // Operations this many times as big are other work. More of them are not: with the load the limit grows.
        comparableSize: 2,
      },

      // The figure that is held against the past: the median of the last hour's p99, which no burst moves.
      longWindow: '1h',

      // The past is the same hour of these days: nightly scrubs and backups meet themselves. Of a week, the last
      // day counts on its own as well: what happens each Sunday is nothing new on a Sunday.
      pastDays: ['1d', '2d', '3d', '4d', '5d', '6d', '7d'],
      // With fewer of them there is no past to speak of.
      minimumPastDays: 3,

      // Requests in flight and none completed for this long: four scrapes, and four times the 30 s after which the
      // kernel's SCSI and NVMe drivers abort a command; a disk that spins up needs 20 s.
      hungWindow: '2m',

      // What a disk counts for its whole life and no healthy one counts further, in words.
      damage: {
        plumbline_disk_media_errors_total: 'uncorrected errors',
        plumbline_disk_reallocated_sectors: 'reallocated sectors',
      },

      // Wear comes in whole percents: two steps within this window (half of Prometheus's default retention and a
      // multiple of a week) make a rate, one is chance. A little less than two, because 0.30 - 0.28 is.
      wearWindow: '14d',
      minimumWearSteps: 0.015,
    },

    alerts+: {
      PlumblineDiskLatencyOutlier: {
        severity: 'warning',
        // Three windows: one burst has left the first by then.
        'for': '15m',
        // The p99 wavers around its threshold while the load does; one ticket, not five.
        keepFiringFor: '15m',
        // Buckets double, so a figure may be off by nearly 2: two that read 4 apart lie two buckets apart and are
        // truly more than 2 apart. Below that a ratio can be the grid alone.
        ratio: 4,
        // A replicated write takes about this long for its networks and daemons alone: a faster tail hurts nobody.
        floorSeconds: 1e-3,
        // Mean against that of its equals, by where they are; so many times more as the disk serves more than they. Flash
        // on one host, each for a quarter of an hour: of the data's part A, which chose the limit, no healthy disk
        // reached 1.26 and the slow ones 2.2 each day; of part B, which only checked it, 1.23 and 177. Between hosts, whose
        // work differs: 1.7 and 2.3.
        // Hard disks seek, and two may differ by where their data lie: what the OSDs' verdict asks of them.
        mean: {
          nvme: { host: 1.7, cluster: 2 },
          ssd: { host: 1.7, cluster: 2 },
          hdd: { host: 3, cluster: 3 },
        },
        // Of its model's median in the cluster: on a host with little to do a disk may be behind the others, and as fast
        // as any.
        floorShare: 1,
      },

      PlumblineDiskLatencyRegressed: {
        severity: 'warning',
        // The hour's median needs half an hour to follow already; this bridges a rebuild's beginning and end.
        'for': '30m',
        keepFiringFor: '1h',
        // As above: less can be the grid.
        ratio: 4,
        floorSeconds: 1e-3,
      },

      // A ticket: its OSD is marked down within a minute, and the others serve. The window above has passed already.
      PlumblineDiskHung: { severity: 'warning', 'for': '1m' },

      // A controller that resets takes its disks away for a minute or two. A ticket: redundancy covers one disk.
      PlumblineDiskMissing: {
        severity: 'warning',
        'for': '5m',
        // How far back the description looks for the model; the daemon forgets a disk after as many days.
        window: '7d',
      },

      PlumblineDiskHealthUnavailable: {
        severity: 'warning',
        // Health is read every few minutes at most; three readings in a row can fail while a disk is busy.
        'for': '1h',
        // The kernel gives an admin command 60 s, smartctl retries: a reading of this age hangs.
        stuckSeconds: 300,
      },

      PlumblineDiskMediaErrors: {
        severity: 'warning',
        // One is one too many; the window keeps it visible until somebody has looked.
        window: '1d',
        'for': '0m',
      },

      // The disk's own verdict. A ticket: redundancy covers one disk, and the verdict comes before the end.
      PlumblineDiskFailing: {
        severity: 'warning',
        'for': '5m',
        // Has an alert of its own.
        notFailing: '.*temperature.*',
      },

      // A rewrite may turn a pending sector good; an hour gives Ceph's repair the chance.
      PlumblineDiskPendingSectors: { severity: 'warning', 'for': '1h' },

      // Time to buy and to swap. The forecast moves by steps of a percent, so it is no matter of hours.
      PlumblineDiskWearOut: { severity: 'warning', 'for': '6h', days: 90 },

      PlumblineDiskSpareLow: {
        severity: 'warning',
        'for': '1h',
        // At its threshold (10 % as a rule) the disk itself raises a critical warning: too late to order one.
        thresholds: 2,
      },

      PlumblineDiskHot: {
        severity: 'warning',
        // A heavy job may warm a disk for minutes.
        'for': '15m',
        // Below the disk's own warning limit: from there on it throttles itself.
        marginCelsius: 2,
        // For disks that state no limit: the operating limit of most hard disks.
        otherwiseCelsius: 60,
      },

      // A link trains within a second; where power management lowers an idle link, it comes back with load.
      PlumblinePcieLinkDegraded: { severity: 'warning', 'for': '1h' },

      PlumblinePcieErrors: {
        severity: 'warning',
        window: '1h',
        'for': '5m',
        // Corrected ones cost a retry each: PCIe allows one bad bit in 1e12, at 4 lanes of 16 GT/s 230 an hour of
        // full load in either direction. Uncorrected ones count from the first.
        minimum: [['correctable', 1000], ['nonfatal|fatal', 1]],
      },

      // Outlasts the swap of a disk in a maintenance script; the next failure may be one too many.
      PlumblineArrayDegraded: {
        severity: 'warning',
        'for': '5m',
        // Such an array serves nothing, and the kernel's count of missing disks does not exist for it (md.rst).
        dead: 'broken|inactive',
        // Holds disks of arrays with external metadata and no data; it is always inactive.
        container: 'container',
      },

      PlumblineZfsPoolUnhealthy: {
        'for': '5m',
        severities: [
          // A page: these serve nothing any more, and no other host has their data.
          { severity: 'critical', down: true },
          { severity: 'warning', down: false },
        ],
        down: 'FAULTED|UNAVAIL|SUSPENDED|REMOVED|OFFLINE',
      },

      PlumblineMultipathPathLost: {
        severity: 'warning',
        'for': '5m',
      },

      // Advice that costs every operation. An hour: udev rules and tuning scripts run after a boot.
      PlumblineDiskQueueSettings: {
        severity: 'warning',
        'for': '1h',
        checks: ['disk.scheduler', 'disk.flushes-omitted'],
      },
    },
  },
}
