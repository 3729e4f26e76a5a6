// Where things are, and what a node is.
{
  _config+:: {
    // Selects Plumbline's targets in `up`, the one metric we don't name ourselves. Nothing else looks at `job`.
    plumblineSelector: 'job="plumbline"',

    // What identifies a node. `cluster` may be absent: PromQL takes a missing label as empty on both sides.
    instanceLabels: ['cluster', 'instance'],

    // How Prometheus stores our histograms: 'classic', or 'native' where the scrape job says
    // `convert_classic_histograms_to_nhcb` (Prometheus 3.5 and later; docs/scale.md). Rules of both are rendered: alerts/out
    // and alerts/out-native.
    histograms: 'classic',

    // The slowest scrape that all rules work with: two of it are in the shortest window of a rate (60 s). Where figures come
    // more slowly PlumblineCanaryUnjudged says so.
    scrapeInterval: '30s',

    // What is said of a whole span needs samples from all of it.
    seen: {
      // Of the slots of a span. One missed scrape leaves out a minute, a quarter of the shortest span (4 m).
      share: 0.7,

      // One sample at least in each, for scrapes and evaluations of 15 and 30 s; for scrapes of 60 s, as other exporters are
      // scraped; and for what is recorded at the `paces` below.
      slots: { fast: '30s', scraped: '60s', compared: '2m', slow: '4m' },
    },

    // How often groups are evaluated that look at every disk and OSD; all others as Prometheus' evaluation_interval says.
    // With 2,000 of each they are nearly all of the work that rules make: `make bench-queries`.
    paces: {
      // What compares disks and OSDs with others, and capacity: tickets that wait for ten minutes and more. Windows are
      // 5 m, so every operation is in two of them at least. Half of Prometheus's lookback at most: one evaluation that is
      // left out makes no gap.
      compared: '2m',

      // What is drawn alone. Less than the lookback, so that graphs have no gaps.
      drawn: '4m',

      // What a disk says of its health, which the daemon asks every five minutes, and alerts that look back for a day and
      // more: reading a day of thousands of series every 30 s would be a third of all that rules cost.
      daily: '4m',

      // What is only remembered: where an OSD was last seen.
      remembered: '10m',
    },
  },
}
