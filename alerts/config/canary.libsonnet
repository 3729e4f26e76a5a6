// The canary: windows, operations needed, alerts. Rates of false alerts and delays: `make bench-detection`.
{
  _config+:: {
    canary: {
      // Window of the figures that are shown. A median over it flips after half of it.
      shortWindow: '5m',

      // A mean follows every hiccup: 4 minutes at 8 times the latency move a mean over 30 m to 1.9, over 2 h to
      // 1.2. Only used where the baseline has no median (documented profiles often print a mean alone).
      meanLongWindow: '2h',

      // Window of the figures that are judged by how long they stay: what lies between two scrapes, every 30 s. Each
      // moment is in one figure then, so nothing lasts longer in the figures than it did. A missed scrape is a gap of
      // a minute, over which a verdict stands.
      fastWindow: '60s',

      // How often it is judged, whatever Prometheus's evaluation_interval: a page within five minutes of a step needs
      // four minutes of agreement, half of a scrape, and has 30 s left for its way through the rules.
      interval: '15s',

      // How often it is asked whether vantage points agree: nothing but a comparison of what was recorded.
      agreementInterval: '5s',

      // Fewer operations than this in the window and nothing is judged: at 30 the median's own error is about
      // 25 % of the spread. A rotational disk's canary (1 operation a second over two operations) gives 150 in
      // the short window and 30 in the fast one.
      minimumOperations: { short: 30, long: 100, fast: 13 },

      // What this hour is like: the median of the days before, so that one bad day, or one with a recovery, does not
      // count. Half an hour less than days, so that the hour's middle is now.
      seasonWindow: '1h',
      seasonDelay: '30m',
      seasonOffsets: ['23h30m', '47h30m', '71h30m', '95h30m', '119h30m', '143h30m', '167h30m'],
      // From half an hour before to half an hour after this moment of last week: a job begins and ends within minutes.
      weekOffset: '167h',
      dayWindow: '1d',

      // A job is known by what it did: the slowest fifth of an hour is this high within an hour and a half of this moment
      // of yesterday, of last week or of the week before. Counted where it is above the season by so much, and by more than
      // a limit is. Of yesterday: where the median hour since is not.
      job: { quantile: 0.8, window: '3h', yesterday: '22h', offsets: ['166h', '334h'], least: 1.3 },

      // A quiet hour makes nobody's measure: below this part of the baseline a rise is none.
      leastSeason: 0.75,

      // How restless a series is: half the distance between these quantiles of what is left when the season is taken
      // out, over a week, as soon as there is a day of it. Both ends, because hiccups only show in the upper one.
      spreadQuantiles: { low: 0.1, high: 0.9 },
      spreadWindow: '7d',
      // That of the baseline, until then: of medians as long as the fast window.
      baselineSpan: '1m',

      // The limit: this many times what is expected at least (above the noise of a median, below the smallest step that
      // must wake somebody), or what is expected times the spread to this power, which keeps false alerts below the bar
      // of `make bench-detection`. A power, because latency wavers by factors: a sum of spreads is passed more often the
      // more restless a series is. A page's spread is that of the median host; its least is above what a scrape that a
      // blip only touches comes to.
      beyond: 1.45,
      ticketBeyond: 1.3,
      spreads: 2.9,

      // Out of line in any weather.
      cap: 3,

      // A ticket's span is explained by load that lasts for this part of it: one busy minute of a day explains nothing.
      busyShare: 0.5,

      // Vantage points (hosts) that can agree: two at a client's layer, where all look at the same thing. Of devices
      // three, so that the majority is not all there is.
      minimumHosts: { client: 2, other: 3 },

      // Added to every span of results that have to agree: Prometheus 3 leaves out the window's oldest instant,
      // Prometheus 2 does not. Less than an evaluation interval, so the number of results is the same for both.
      slackSeconds: 7,

      // Share of operations that may be slower than the baseline's bound: the bound is a high percentile, so
      // about this many are slower by definition.
      slowOperationsBudget: 0.01,

      // The share that a canary's slowest hour of a week has: so the worst hour of a weekly job is usual, and an incident
      // that ends sooner is not.
      usualQuantile: 0.995,

      // How long a recovery holds back the pages about latency after it has ended: the longest span they look at.
      recoveryWindow: '15m',
      // And the tickets about the median, which look back further. Drifts and burnt budgets wait as long as their window
      // holds it.
      recoveryLongWindow: '2h',
      recoveryDriftWindow: '6h',
    },

    alerts+: {
      // The slowest canary (one operation a second) completes hundreds in this window.
      PlumblineCanaryOverdue: { severity: 'warning', window: '10m', 'for': '2m' },

      // Of a window in which a figure comes at every `canary.interval`. A new canary and a restarted Prometheus fill it in the
      // meantime. Scrapes count as slow from `slack` times `scrapeInterval` on: there figures begin to be missing.
      PlumblineCanaryUnjudged: { severity: 'warning', window: '5m', 'for': '10m', slack: 1.1 },

      // One I/O error is one too many; the window keeps the alert visible long enough to be seen. It waits longer than
      // PlumblineCephFull, the page that explains a cluster's ENOSPC.
      PlumblineCanaryFailing: { severity: 'warning', window: '10m', 'for': '2m' },

      // A ticket, however sure: one canary alone. The spans stand in for `for`: they are what has to agree.
      PlumblineCanaryLatencyHigh: {
        severity: 'warning',
        'for': '0m',
        // Beyond the ticket's limit for three quarters of it: longer than hiccups that follow each other.
        span: '25m',
        quantile: 0.25,
        // Beyond the cap all the time: the same, sooner.
        capSpan: '9m',
        // Too small a rise for the fast figures: the mean of the hours' medians. A power of its own spread over a week, as
        // in the limit: days differ more than the minutes of one tell. Until there is a day of that, of theirs.
        driftSpan: '5h',
        driftRatio: 1.08,
        driftSpreads: 2.9,
        driftFirstSpreads: 1.4,
        // What was better for a week, as in a quiet one, and is as two weeks ago, has not become worse.
        driftReturns: '14d',
        // What has lasted for a day is its own season: the day's median beyond the baseline's own tolerance. The daily
        // cycle has gone from it, the last hours' say that it has not ended.
        hoursWindow: '6h',
        hoursRatio: 1.15,
        // For baselines with a mean alone: both windows of the mean.
        meanRatio: 1.75,
        meanLongRatio: 1.5,
        keepFiringFor: '30m',
      },

      // A page: vantage points agree.
      PlumblineFleetLatencyHigh: {
        severity: 'critical',
        'for': '0m',
        // A strict majority of the hosts at every moment of the span, and nearly all of them half of the way to their
        // limits. What meets all of them at once, a failover or a blip of the network, lasts for four minutes at most.
        share: 0.5,
        nearShare: 0.89,
        span: '4m',
        // The majority alone: longer than restless canaries of two hosts coincide.
        mostSpan: '20m',
        keepFiringFor: '10m',
      },

      PlumblineCanaryLatencyExtreme: {
        // Fast on purpose. Benign hiccups reach 8 times, and two that overlap more than 10; a throttled or dying disk
        // is hundreds of times slower.
        ratio: 20,
        // And seconds above it: as with disks, less is nothing that a client waits for.
        floorSeconds: $._config.alerts.PlumblineDiskLatencyOutlier.floorSeconds,
        // The load of so long explains it: the latency's own window (60 s), the wait (1 m), and the pace of the load's figures.
        loadWindow: '3m',
        // And so much more than most nights at this hour is news.
        usual: $._config.canary.beyond,
        // Clients of two hosts at once, or one for longer than a shingled disk tidies up. Until then one host gets no ticket: the
        // ticket of the OSD or of the network names the cause.
        page: { severity: 'critical', 'for': '1m', span: '5m' },
        // A canary that no client waits for (a disk's) gets a ticket after the same time: a disk that tidies up stalls for one to
        // five minutes.
        ticket: { severity: 'warning', 'for': '6m' },
      },

      // Information: no limit below the cap can be kept.
      PlumblineCanaryRestless: {
        severity: 'info',
        'for': '1h',
      },

      PlumblineCanaryReplicaSlow: {
        // Holds back. At once: the tickets it holds back are sent 45 s after they fire.
        severity: 'info',
        'for': '0m',
        // As long as the slow OSD's own alert: a moment without figures sends nothing.
        keepFiringFor: '10m',
      },

      // The tail. Steady: the share stays up for the whole span (page), or its median does (ticket): a hiccup makes
      // everything slow for minutes, but not for so long. Burnt: the mean share, for what comes in bursts.
      PlumblineCanaryBudgetBurn: {
        // Where the baseline does not describe the load: as soon as it is known for a day what is usual.
        knownFor: '1d',
        // And as many times the share that is usual for the canary's slowest hours (`usual`).
        page: { severity: 'critical', 'for': '0m', keepFiringFor: '10m', span: '10m', burn: 5, usual: 3 },
        ticket: {
          severity: 'warning',
          // Its figures come every 4 m (`paces.drawn`): two of them.
          'for': '5m',
          keepFiringFor: '10m',
          span: '1h',
          burn: 2.5,
          // The share of a restless canary is a multiple in its slow hours.
          usual: 4,
          // Bursts: hiccups alone make 2 % of six hours (12 a day, 2 minutes each), and now and then 6 %.
          burstBurn: 8,
          burstUsual: 2,
          long: '6h',
          short: '1h',
        },
      },
    },
  },
}
