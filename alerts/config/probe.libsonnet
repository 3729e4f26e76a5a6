// Baselines and periodic probes.
{
  _config+:: {
    // Strongest first: what this node measured itself beats what the site wrote down beats another site's hardware.
    baselineSources: ['measured', 'class', 'site', 'documented'],

    // A run may be this much worse than its baseline before it counts against it, also where the baseline's own
    // spread is smaller: five runs of a minute don't show a day's spread. Benchmark suites use 10 to 25 %.
    minimumTolerance: 1.25,

    // For baselines that don't say how far they stray; the daemon assumes the same for the canary's bound.
    defaultTolerance: 1.5,

    // Seconds above the baseline that are nothing, whatever the ratio: what a host adds by itself. A ping wakes two hosts
    // (leaving a deep idle state and coalescing interrupts takes up to 0.1 ms each), a disk one (an interrupt and a switch), an
    // operation of the layers above several threads. A page cache answers within 5 us, and three times that is no fault.
    floorSeconds: {
      network: 200e-6,
      disk: 30e-6,
      osd: 100e-6,
      rados: 100e-6,
      rbd: 100e-6,
      filesystem: 100e-6,
      object: 100e-6,
      client: 100e-6,
    },

    probe: {
      // A result older than this many intervals is stale: no longer compared, and the probe is overdue.
      staleIntervals: 3,

      // Two starts in a row came to nothing: one interval is normal, the next start comes at two (+ slack for
      // the splay and the run itself).
      missedIntervals: 2.1,
    },

    alerts+: {
      // 15 m: a start may be splayed, and a running probe is not overdue.
      PlumblineProbeOverdue: { severity: 'warning', 'for': '15m' },

      PlumblineProbeStuck: {
        'for': '1m',
        severities: [
          // Operations of clients hang.
          { severity: 'critical', clients: true },
          // One disk, OSD or port of one host: redundancy covers it.
          { severity: 'warning', clients: false },
        ],
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

      // The gates did their work; but a probe that never runs measures nothing. The window holds the reason of
      // probes that run once a week, splay included.
      PlumblineProbeSkipped: { severity: 'warning', window: '8d', 'for': '5m' },

      // Nothing is judged without a baseline: a to-do, not a fault. 15 m leaves time to record one.
      PlumblineBaselineMissing: { severity: 'info', 'for': '15m' },

      // A to-do. Hardware ages, and nobody remembers after a year how a figure came about; a kernel, Ceph or firmware
      // that changed makes it another system. An hour outlasts a boot into another kernel by mistake.
      PlumblineBaselineOutdated: { severity: 'info', 'for': '1h', age: '365d' },

      // Nothing is broken, and until it is recorded again nothing worse than the whole cluster is noticed. An hour outlasts a
      // restart of the daemons.
      PlumblineBaselineOutgrown: { severity: 'warning', 'for': '1h', window: '7d' },

      // Somebody recorded or wrote it and believes it judges. 15 m leaves time to record it anew.
      PlumblineBaselineMismatch: { severity: 'info', 'for': '15m' },

      // Never on one run: the latest and the median of the last three. So `for` only bridges evaluation jitter.
      PlumblineProbeLatencyHigh: { severity: 'warning', 'for': '5m' },

      PlumblineProbeThroughputLow: { severity: 'warning', 'for': '5m' },
    },
  },
}
