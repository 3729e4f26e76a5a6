// Capacity: how full, how fast, what survives losing a host, what is left of what the hardware can do. docs/capacity.md
// says how each figure is computed.
//
// Nobody is woken. What is told here was true yesterday and takes days to mend, by buying, deleting or balancing; a host
// that is lost while its loss is unsafe has alerts of its own (PlumblineDown, PlumblineCephOsdDown), and what Ceph then
// refuses wakes somebody (PlumblineCephFull, PlumblineCephPgUnavailable). A site that thinks otherwise sets
// alerts+: { PlumblineCapacityHostLossUnsafe+: { severity: 'critical' } }.
{
  _config+:: {
    capacity: {
      // Older than this the cluster's map is another cluster's: hosts have come and gone. It is read every few minutes.
      staleMap: '1h',

      // After a failover a manager serves no OSDs, and zeros for pools, for half a minute: so long the last answer holds.
      bridge: $._config.ceph.window,

      // Ceph's own defaults, for clusters of which only the manager's metrics are known.
      limits: { nearfull: 0.85, backfillfull: 0.9, full: 0.95 },

      // Ceph's default number of copies, likewise: with no more hosts than that nothing is known of what is copied again.
      assumedCopies: 3,

      // Where the manager alone tells, and each of more OSDs than this has a hostname of its own, the names may be pods'
      // (ceph#66757): nothing is said of hosts. Chosen by hand: larger clusters of one OSD a host lose that verdict.
      loneOsds: 5,

      // What can be said of losing the largest host, the worst last. safe: the others take all of it. full: they can't.
      // copies: a pool has no failure domain left for its copies, so nothing is copied. data: a pool may have all copies
      // on that host (its failure domain is the OSD, or there is one host).
      verdict: { safe: 0, full: 1, copies: 2, data: 3 },

      // Three slopes make a range; where they agree, the growth is no event. A slope needs most of its span: two thirds
      // of it tell a weekly rhythm from growth. Prometheus keeps 15 d by default: with that there is no slope of 30 d.
      slopes: [
        { slope: '3d', history: '2d' },
        { slope: '14d', history: '10d' },
        { slope: '30d', history: '20d' },
      ],
      // The two that alerts ask: the longest that Prometheus's default retention has, and one that notices this week.
      judgedSlopes: ['3d', '14d'],
      // What takes longer than so many days is told if this one agrees, where it is known: snapshots that are kept for two
      // weeks grow for two weeks, and an import is in the slopes of 3 and of 14 d for three days.
      longestSlope: '30d',
      urgentDays: 30,

      // How far back it is looked whether there was history then: longer than Prometheus is down for an update.
      historyWindow: '2h',

      headroom: {
        // Live rates, as Ceph's are taken.
        window: $._config.ceph.window,
        // A working week with its weekend.
        span: '7d',
        // Left out are 2.5 %, four hours of the week: a job that runs once a week is no peak, an hour that comes on each
        // of five working days is (3.0 %). The 95th percentile would not see an hour of every day (4.2 %).
        quantile: 0.975,
        // Before that a week's figure would be one bench or one import.
        history: '1d',
        // Reads begin and end at multiples of this: a page of memory, and what block devices and file systems read.
        readBlock: 4096,
        // What an OSD is measured by: single small writes for operations, large ones for bytes.
        iops: 'osd-bench-4k.*',
        throughput: 'osd-bench-4m.*',
        // What a port is measured by.
        network: 'tcp-throughput.*',
      },

      recovery: {
        // A rebuild of this time and more ago was another cluster's: other disks, other load, another release. Within
        // Prometheus's default retention.
        span: '14d',
        // Of the data of one host. What catches up after a restart is too little to measure a rate by.
        minimumShare: 0.01,
      },
    },

    alerts+: {
      PlumblineCapacityHostLossUnsafe: {
        severity: 'warning',
        // An OSD is replaced and refilled within hours, and a figure near its limit wavers while data moves.
        'for': '6h',
        keepFiringFor: '6h',
        // Of backfillfull: from there on Ceph refuses to copy.
        ratio: 1,
      },

      PlumblineCapacityHostLossSoon: {
        severity: 'warning',
        'for': '6h',
        // The short slope wavers around its limit over a week: one ticket, not one for each weekend.
        keepFiringFor: '7d',
        // Order, delivery, racking and rebalancing of a server.
        days: 90,
        // Below half nothing is decided yet: growth of a cluster that fills for the first time is no trend.
        minimumUsed: 0.5,
      },

      PlumblineCapacityNoSelfHealing: {
        // By design in every cluster of three hosts with three copies, and for as long as it stands: read once, no ticket.
        severity: 'info',
        // A host that is reinstalled.
        'for': '1d',
      },

      PlumblineCapacityGrowthFast: {
        severity: 'warning',
        'for': '6h',
        keepFiringFor: '7d',
        // The plan: a device class lasts at least so many days from any day on. Half a year is how often budgets are
        // looked at. By class: days+: { hdd: 365 }.
        days: { default: 180 },
        // The first filling is a migration with a plan of its own.
        minimumUsed: 0.3,
      },

      PlumblineCapacityHeadroomLow: {
        severity: 'warning',
        // A week's figure moves slowly.
        'for': '6h',
        keepFiringFor: '1d',
        // At 70 % busy an operation waits twice its own time for others (M/M/1: 0.7 ÷ 0.3), and after losing one of five
        // hosts the others are at 88 %.
        ratio: 0.7,
      },
    },
  },
}
