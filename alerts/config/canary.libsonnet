// The canary: windows, operations needed, alerts. Rates of false alerts and delays: `make bench-detection`.
{
  _config+:: {
    canary: {
      // Window of the figures that are shown. A median over it flips after half of it.
      shortWindow: '5m',

      // A mean follows every hiccup: 4 minutes at 8 times the latency move a mean over 30 m to 1.9, over 2 h to
      // 1.2. Only used where the baseline has no median (documented profiles often print a mean alone).
      meanLongWindow: '2h',

      // Window of the figures that are judged by how long they stay: as short as scrapes every 30 s allow (three of
      // them, of which one may be missed).
      fastWindow: '90s',

      // How often it is judged, whatever Prometheus's evaluation_interval: as often as there are new scrapes. At 1 m each
      // page came a minute later.
      interval: '30s',

      // Fewer operations than this in the window and nothing is judged: at 30 the median's own error is about
      // 25 % of the spread. A rotational disk's canary (1 operation a second over two operations) gives 150 in
      // the short window and 45 in the fast one.
      minimumOperations: { short: 30, long: 100, fast: 20 },

      // What this hour is like: its median a day and a week before. Half an hour less, so that the hour's middle is now.
      seasonWindow: '1h',
      seasonOffsets: ['23h30m', '167h30m'],

      // A quiet hour makes nobody's measure: below this part of the baseline a rise is none.
      leastSeason: 0.9,

      // Beyond this many times what is expected a canary is out of line. Above the noise of a median (some 4 % in the
      // simulated histories), below the smallest step that must wake somebody (1.5 times).
      beyond: 1.3,

      // Fewer hosts than this agree about nothing: of two, one is half.
      minimumHosts: 3,

      // Added to every span of results that have to agree: Prometheus 3 leaves out the window's oldest instant,
      // Prometheus 2 does not. Less than an evaluation interval, so the number of results is the same for both.
      slackSeconds: 15,

      // Share of operations that may be slower than the baseline's bound: the bound is a high percentile, so
      // about this many are slower by definition.
      slowOperationsBudget: 0.01,

      // A burn window with holes is judged when this part of it has data; with less, ten minutes after a start
      // one hiccup would be the whole history.
      burnCoverage: 0.8,

      // How long a recovery holds back the pages about latency after it has ended: the longest span they look at.
      recoveryWindow: '15m',
      // And the tickets about the median, which look back further. Burnt budgets wait as long as their window holds it.
      recoveryLongWindow: '2h',
    },

    alerts+: {
      // The slowest canary (one operation a second) completes hundreds in this window.
      PlumblineCanaryOverdue: { severity: 'warning', window: '10m', 'for': '2m' },

      // One I/O error is one too many; the window keeps the alert visible long enough to be seen.
      PlumblineCanaryFailing: { severity: 'warning', window: '10m', 'for': '0m' },

      // The spans below stand in for `for`: they are what has to agree.
      PlumblineCanaryLatencyHigh: {
        page: {
          severity: 'critical',
          'for': '0m',
          // Beyond for this long, at one level: the highest result at most `level` times the lowest. A hiccup lasts
          // 4 minutes at most, and two that overlap seldom have one height. Steady spans of 4.5, 5, 6 and 7 minutes
          // cost 2, 1, 1 and 0 false pages in 1,344 simulated series-days; without the level it would be 31 at five minutes.
          steadySpan: '7m',
          level: 1.1,
          // At any level: longer than hiccups that follow each other.
          anySpan: '10m',
          // A recovered disk wavers around the threshold; one page, not five.
          keepFiringFor: '10m',
        },
        ticket: {
          severity: 'warning',
          'for': '10m',
          // Medians of both spans beyond what is expected: below the page, above the noise.
          shortSpan: '30m',
          shortExcess: 1.18,
          longSpan: '2h',
          longExcess: 1.15,
          // What has lasted for a day is its own season: then the day's mean against the baseline alone. The daily
          // cycle has gone from it, the last hours' say that it has not ended.
          dayWindow: '1d',
          dayRatio: 1.15,
          hoursWindow: '6h',
          hoursRatio: 1.1,
          // For baselines with a mean alone: both windows of the mean.
          meanRatio: 1.75,
          meanLongRatio: 1.5,
          keepFiringFor: '30m',
        },
      },

      PlumblineFleetLatencyHigh: {
        severity: 'critical',
        'for': '0m',
        // A strict majority of the hosts. Their own hiccups don't coincide, so a span as long as the longest of them
        // is enough: only what meets all hosts at once could last as long.
        share: 0.5,
        span: '4m',
        keepFiringFor: '10m',
      },

      PlumblineCanaryLatencyExtreme: {
        severity: 'critical',
        // Fast on purpose. Benign hiccups reach 8 times, and two that overlap more than 10 (one false page in 180
        // simulated series-days at 10); a throttled or dying disk is hundreds of times slower.
        'for': '1m',
        ratio: 20,
      },

      PlumblineCanaryReplicaSlow: {
        // Holds back. At once: the page it holds back is sent 45 s after it fires.
        severity: 'info',
        'for': '0m',
      },

      // The tail. Steady: the share stays up for the whole span (page), or its median does (ticket): a hiccup makes
      // everything slow for minutes, but not for so long. Burnt: the mean share, for what comes in bursts.
      PlumblineCanaryBudgetBurn: {
        page: { severity: 'critical', 'for': '0m', keepFiringFor: '10m', span: '10m', burn: 5 },
        ticket: {
          severity: 'warning',
          'for': '2m',
          keepFiringFor: '10m',
          span: '1h',
          burn: 2.5,
          // Bursts: hiccups alone (6 a day, 2 minutes each) make 1 % of six hours.
          burstBurn: 6,
          long: '6h',
          short: '1h',
        },
      },
    },
  },
}
