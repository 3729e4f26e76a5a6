// Every tunable of the rules and alerts, each with its reason; no number stands anywhere else.
//
// A site changes values without editing this file: `alerts/render.py --site site.libsonnet --out DIR`, where
// site.libsonnet is for example
//   { _config+:: { dashboardBaseUrl: 'https://grafana.example.org', alerts+: { PlumblineDown+: { 'for': '2m' } } } }
//
// Durations are PromQL durations. Windows assume a scrape at least every 30 s (a rate needs four samples).
// The groups carry no interval of their own: Prometheus's `evaluation_interval` holds; keep it at 1 m or less.
{
  _config+:: {
    // --- where things are -------------------------------------------------------------------------------------

    // Selects Plumbline's targets in `up`, the one metric we don't name ourselves. Nothing else looks at `job`.
    plumblineSelector: 'job="plumbline"',

    // What identifies a node. `cluster` may be absent: PromQL takes a missing label as empty on both sides.
    instanceLabels: ['cluster', 'instance'],

    // Reserved names, so that an unconfigured link leads nowhere instead of to somebody else's pages.
    runbookBaseUrl: 'https://plumbline.example/runbooks',
    dashboardBaseUrl: 'http://localhost:3000',  // Grafana's own default
    dashboardUid: 'plumbline-node',

    // --- baselines --------------------------------------------------------------------------------------------

    // Strongest first: what this node measured itself beats what the site wrote down beats another site's hardware.
    baselineSources: ['measured', 'site', 'documented'],

    // A run may be this much worse than its baseline before it counts against it, also where the baseline's own
    // spread is smaller: five runs of a minute don't show a day's spread. Benchmark suites use 10 to 25 %.
    minimumTolerance: 1.25,

    // For baselines that don't say how far they stray; the daemon assumes the same for the canary's bound.
    defaultTolerance: 1.5,

    // --- the canary -------------------------------------------------------------------------------------------

    canary: {
      // Window of the figures that are shown and judged. A median over it flips after half of it, which a hiccup
      // of up to 4 minutes can cause; that is why the long window has to agree.
      shortWindow: '5m',

      // A 4-minute hiccup is 13 % of half an hour: the median doesn't see it, a lasting step shows after 15 min.
      longWindow: '30m',

      // A mean follows every hiccup: 4 minutes at 8 times the latency move a mean over 30 m to 1.9, over 2 h to
      // 1.2. Only used where the baseline has no median (documented profiles often print a mean alone).
      meanLongWindow: '2h',

      // For catastrophes only, where minutes count; four scrapes at 30 s.
      fastWindow: '2m',

      // Fewer operations than this in the window and nothing is judged: at 30 the median's own error is about
      // 25 % of the spread. A rotational disk's canary (1 operation a second over two operations) gives 150 in
      // the short window and 60 in the fast one.
      minimumOperations: { short: 30, long: 100, fast: 20 },

      // Share of operations that may be slower than the baseline's bound: the bound is a high percentile, so
      // about this many are slower by definition.
      slowOperationsBudget: 0.01,

      // The share is sampled at the width of its own window, so that every operation counts once.
      burnStep: '5m',

      // A burn window with holes is judged when this part of it has data; with less, ten minutes after a start
      // one hiccup would be the whole history.
      burnCoverage: 0.8,
    },

    // --- periodic probes --------------------------------------------------------------------------------------

    probe: {
      // A result older than this many intervals is stale: no longer compared, and the probe is overdue.
      staleIntervals: 3,

      // Two starts in a row came to nothing: one interval is normal, the next start comes at two (+ slack for
      // the splay and the run itself).
      missedIntervals: 2.1,

      // Votes: the last runs, and how many samples of each run's reign are taken. The share of time a bad result
      // stood in the last `runs` intervals must exceed one half; one bad run of three can't reach that.
      votes: { runs: 3, samplesPerRun: 6 },

      // PromQL can't take a window from a label, so probes are judged with the smallest class that holds their
      // interval. Exact at the class's own interval, stricter (more runs must agree) below it. Longer intervals
      // than the last class are not judged: three of their runs don't fit Prometheus's default retention of 15 d.
      intervalClasses: ['10m', '1h', '6h', '1d', '3d'],
    },

    // --- networks ---------------------------------------------------------------------------------------------

    // The networks whose interfaces must agree on an MTU across a cluster: Ceph's two, as the daemon names them.
    networkRoles: ['ceph_public', 'ceph_cluster'],

    // --- disks ------------------------------------------------------------------------------------------------

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

      // Wear comes in whole percents: two steps within this window (half of Prometheus's default retention and a
      // multiple of a week) make a rate, one is chance. A little less than two, because 0.30 - 0.28 is.
      wearWindow: '14d',
      minimumWearSteps: 0.015,
    },

    // --- alerts: severity, `for` and thresholds ---------------------------------------------------------------
    //
    // critical: somebody is woken. warning: a ticket. info: read when convenient.
    alerts: {
      // Always firing; the receiver alarms when it stops.
      PlumblineWatchdog: { severity: 'info' },

      // Blind everywhere. 10 m outlasts a Prometheus restart with service discovery.
      PlumblineTargetsAbsent: { severity: 'critical', 'for': '10m' },

      // Blind on one node, and the node may be dead. Critical because it silences all other alerts of the node:
      // an inhibitor must not be quieter than what it silences. 5 m outlasts a reboot of the daemon, not of the node.
      PlumblineDown: { severity: 'critical', 'for': '5m' },

      // One subject is blind, the rest works.
      PlumblineCollectorFailing: { severity: 'warning', 'for': '10m' },

      // The old configuration stays in force, so nothing burns; but whoever wrote the new one believes it is active.
      PlumblineConfigReloadFailed: { severity: 'warning', 'for': '5m' },

      // 15 m: a start may be splayed, and a running probe is not overdue.
      PlumblineProbeOverdue: { severity: 'warning', 'for': '15m' },

      // The slowest canary (one operation a second) completes hundreds in this window.
      PlumblineCanaryOverdue: { severity: 'warning', window: '10m', 'for': '2m' },

      PlumblineProbeStuck: {
        // I/O hangs: whatever lives on this disk hangs too.
        severity: 'critical',
        'for': '1m',
        // A disk with error-recovery control gives up after 7 s; 30 s is beyond every healthy stall.
        canarySeconds: 30,
        // A run that outlives its own `timeout` could not even be killed, which means uninterruptible sleep in the
        // kernel. The grace holds what comes before (locks, two looks at the disk) and after (SIGTERM, SIGKILL).
        graceSeconds: 60,
        // Without a timeout in the metrics, as older daemons are: longer than the longest.
        periodicSeconds: 900,
      },

      // The last run failed; a first run that never succeeded tells at once, others after two failures.
      PlumblineProbeFailing: { severity: 'warning', 'for': '5m' },

      // One I/O error is one too many; the window keeps the alert visible long enough to be seen.
      PlumblineCanaryFailing: { severity: 'warning', window: '10m', 'for': '0m' },

      // The gates did their work; but a probe that never runs measures nothing. The window holds the reason of
      // probes that run once a week, splay included.
      PlumblineProbeSkipped: { severity: 'warning', window: '8d', 'for': '5m' },

      // Nothing is judged without a baseline: a to-do, not a fault. 15 m leaves time to record one.
      PlumblineBaselineMissing: { severity: 'info', 'for': '15m' },

      PlumblineCanaryLatencyHigh: {
        severity: 'warning',
        'for': '5m',
        // Two windows have to agree (simulated over 1,160 series-days with six hiccups a day: no false alert,
        // a doubled latency found in 14 minutes).
        shortRatio: 1.75,
        longRatio: 1.5,
        // The short window wavers around its threshold while a disk recovers; one ticket, not five.
        keepFiringFor: '10m',
      },

      PlumblineCanaryLatencyExtreme: {
        severity: 'critical',
        // Fast on purpose: benign hiccups reach 8 times, a throttled or dying disk 10 and far more.
        'for': '1m',
        ratio: 10,
      },

      // The tail: tuned by the same simulation. `page` 0.04 false a series-month, finds a tail of 15 % in 37 min;
      // `ticket` 0.09, finds smaller tails in hours.
      PlumblineCanaryBudgetBurn: {
        'for': '2m',
        keepFiringFor: '10m',
        windows: [
          { severity: 'critical', long: '2h', short: '15m', burn: 5 },
          { severity: 'warning', long: '6h', short: '1h', burn: 2.5 },
        ],
      },

      // Never on one run; the votes take more than an interval, so `for` only bridges evaluation jitter.
      PlumblineProbeLatencyHigh: { severity: 'warning', 'for': '5m' },
      PlumblineProbeThroughputLow: { severity: 'warning', 'for': '5m' },

      PlumblineNicRingDrops: {
        severity: 'warning',
        window: '5m',
        // Twice the window: one burst, however big, has left it by then.
        'for': '10m',
        // Below this many in the window a share means nothing.
        minimumDrops: 10,
        // Mathis: a TCP flow can't exceed MSS/RTT * 1.22/sqrt(loss). At 1460 B, 0.16 ms and this share that is
        // 28 Gb/s: from here on loss itself limits a fast link. Measured on a storage node with too small rings: 8e-5.
        share: 1e-5,
      },
      // The card's own buffer: as above.
      PlumblineNicFifoDrops: self.PlumblineNicRingDrops,

      // The same loss, where the first remedy is at hand. Some drivers round what is set: 90 % of the maximum is the maximum.
      PlumblineNicRingSmall: self.PlumblineNicRingDrops { belowShare: 0.9 },

      PlumblineNicErrors: {
        severity: 'warning',
        // Cables fail in fits.
        window: '15m',
        'for': '20m',
        // Ethernet allows one bad bit in 1e12, for frames of 1518 B one in 8e7. This is 80 times that.
        share: 1e-6,
        minimumErrors: 10,
      },

      PlumblineNicIrqsOnOneCpu: {
        severity: 'warning',
        window: '5m',
        // A few big flows may meet on one queue for a while.
        'for': '30m',
        // Leaves at most 1.23 effective CPUs (inverse Simpson index) however the rest is spread.
        share: 0.9,
        // At a microsecond or two a packet, this is a hundredth of a CPU: below it one CPU is enough.
        packetsPerSecond: 10000,
      },

      PlumblineTcpRetransmits: {
        severity: 'warning',
        window: '5m',
        'for': '15m',
        // A storage network loses next to nothing. At 1 % a flow with 0.16 ms of round trip is held to about 0.9 Gb/s (Mathis).
        share: 0.01,
        minimumSegments: 100,
      },

      PlumblineTcpListenOverflow: {
        severity: 'warning',
        window: '5m',
        // One storm of reconnects has left the window by then.
        'for': '10m',
        minimumOverflows: 10,
      },

      // Autonegotiation takes seconds. Ports that are slower by design (a 25 Gb/s card on a 10 Gb/s switch):
      // lower the share.
      PlumblineNicLinkSlow: { severity: 'warning', 'for': '15m', belowShare: 1 },

      // 5 m outlasts the reboot of a port, not of a switch: a switch that reboots is worth knowing.
      PlumblineBondSlaveDown: { severity: 'warning', 'for': '5m' },

      // LACP settles within seconds, with slow LACPDUs in 90.
      PlumblineBondMisaggregated: { severity: 'warning', 'for': '5m' },

      PlumblineNicMtuMismatch: {
        severity: 'warning',
        // Somebody who changes all hosts needs some minutes.
        'for': '15m',
        // The description names up to this many interfaces of each MTU; of the others it gives the number.
        namedInterfaces: 5,
      },

      PlumblinePathMtuBelowInterface: {
        severity: 'warning',
        // One run is enough: the size above the one that passes has had six packets, and the one below an answer.
        // 15 m for somebody who changes hosts and switches one after the other.
        'for': '15m',
      },

      // A run is 100 packets: one of them is 1 %, at which TCP is held to about 0.9 Gb/s (see PlumblineTcpRetransmits).
      // Single ones happen, so most of the last runs have to have lost some.
      PlumblineNetworkLoss: { severity: 'warning', 'for': '5m', share: 0 },

      // Asked every 15 s; an election of the monitors takes half a minute, a change of their addresses some.
      PlumblineCephUnreachable: { severity: 'warning', 'for': '5m' },

      PlumblineMountDead: {
        // Every program that touches it hangs, and with it logins, backups, the node's own services.
        severity: 'critical',
        // Asked every 30 s: four questions without an answer; the fail-over of an NFS server or an MDS takes a minute.
        'for': '2m',
      },
      PlumblineInfinibandPortDown: {
        severity: 'warning',
        'for': '5m',
        // The kernel's ib_port_state ACTIVE and physical state LinkUp.
        activeState: 4,
        linkUpState: 5,
        // Whoever unplugs a cable for good is reminded for this long.
        window: '1d',
      },

      PlumblineInfinibandErrors: {
        severity: 'warning',
        window: '1h',
        'for': '5m',
        // InfiniBand allows one bad bit in 1e12: at 40 Gb/s 144 in an hour of full load.
        minimumErrors: 100,
        // Dropped management packets, and packets a switch had no way for: no fault of this link.
        benign: 'VL15_dropped|port_rcv_switch_relay_errors',
      },

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

      // Everything on this disk waits, and every placement group with it. The window above has passed already.
      PlumblineDiskHung: { severity: 'critical', 'for': '1m' },

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
      PlumblineArrayDegraded: { severity: 'warning', 'for': '5m' },

      PlumblineZfsPoolUnhealthy: {
        'for': '5m',
        severities: [
          // These serve nothing any more.
          { severity: 'critical', down: true },
          { severity: 'warning', down: false },
        ],
        down: 'FAULTED|UNAVAIL|SUSPENDED|REMOVED|OFFLINE',
      },

      PlumblineMultipathPathLost: {
        severity: 'warning',
        'for': '5m',
        // A path that is gone for good lowers the number of paths: so long the higher one is remembered.
        window: '1d',
      },

      // Advice that costs every operation. An hour: udev rules and tuning scripts run after a boot.
      PlumblineDiskQueueSettings: {
        severity: 'warning',
        'for': '1h',
        checks: ['disk.scheduler', 'disk.flushes-omitted'],
      },

      // A to-do for each node. Findings of severity info stay with `plumbline check` and the status page, and those
      // that have an alert of their own are left to it.
      PlumblineFindingOpen: {
        notThese: $._config.alerts.PlumblineDiskQueueSettings.checks,
        severities: [
          { finding: 'critical', severity: 'warning', 'for': '1h' },
          { finding: 'warning', severity: 'info', 'for': '1d' },
        ],
      },

      PlumblineNicPauseStorm: {
        severity: 'warning',
        window: '5m',
        'for': '10m',
        // One pause frame holds a 10 Gb/s link for at most 3.4 ms: 100 a second stop it for up to a third of the time.
        framesPerSecond: 100,
      },

      PlumblineSoftnetTimeSqueeze: {
        severity: 'warning',
        window: '5m',
        'for': '15m',
        // The floor; below it others found nothing but noise.
        squeezesPerSecond: 10,
        // Growing with load: squeezes per packet. A round that uses up netdev_budget (300 packets) squeezes
        // once in 300 packets (3.3e-3); at a third of that, a third of the packets sat in cut-off rounds.
        perPacket: 1e-3,
      },

      PlumblineSoftnetBacklogOverflow: {
        severity: 'warning',
        window: '5m',
        // One burst has left the window by then.
        'for': '10m',
        minimumDrops: 10,
      },
    },
  },
}
