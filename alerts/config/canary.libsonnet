// The canary: windows, operations needed, alerts.
{
  _config+:: {
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

    alerts+: {
      // The slowest canary (one operation a second) completes hundreds in this window.
      PlumblineCanaryOverdue: { severity: 'warning', window: '10m', 'for': '2m' },

      // One I/O error is one too many; the window keeps the alert visible long enough to be seen.
      PlumblineCanaryFailing: { severity: 'warning', window: '10m', 'for': '0m' },

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
    },
  },
}
