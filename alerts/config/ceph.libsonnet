// Ceph's own metrics.
local lists = {
  // Something is refused now: writes to a pool or an OSD that is full, a monitor that ends itself without disk space.
  full: ['OSD_FULL', 'POOL_FULL', 'MON_DISK_CRIT'],

  // The same, ahead. Where data can't be copied for want of space, redundancy stays lost.
  nearlyFull: [
    'OSD_NEARFULL',
    'OSD_BACKFILLFULL',
    'POOL_NEARFULL',
    'POOL_NEAR_FULL',
    'POOL_BACKFILLFULL',
    'PG_BACKFILL_FULL',
    'PG_RECOVERY_FULL',
    'MON_DISK_LOW',
  ],

  // Nobody serves the file system, or it is damaged or read only. FS_DEGRADED is not one of them: each fail-over of an
  // MDS begins with it.
  filesystem: ['MDS_ALL_DOWN', 'MDS_DAMAGE', 'FS_WITH_FAILED_MDS', 'MDS_HEALTH_READ_ONLY'],

  // Told by an alert of their own, from figures: what Ceph says in words about OSDs that are down, placement groups,
  // monitors and slow operations.
  figures: [
    'OSD_DOWN',
    'OSD_.+_DOWN',
    'PG_AVAILABILITY',
    'PG_DEGRADED',
    'PG_DAMAGED',
    'OSD_SCRUB_ERRORS',
    'PG_NOT_SCRUBBED',
    'PG_NOT_DEEP_SCRUBBED',
    'OBJECT_UNFOUND',
    'OBJECT_MISPLACED',
    'MON_DOWN',
    'SLOW_OPS',
  ],

  // Keys, tickets and settings of cephx from before CVE-2025-30156; raised from 19.2.6 and 20.2.4 on. Not among them:
  // AUTH_INSECURE_GLOBAL_ID_RECLAIM…, another matter, raised by every fresh cluster since 2021.
  keys: ['AUTH_INSECURE_.*KEY.*', 'AUTH_INSECURE_SERVICE_TICKETS', 'AUTH_EMERGENCY_CIPHERS_SET'],

  // HEALTH_WARN that is broken all the same. The rest of HEALTH_WARN is advice, or stays for a day after the event
  // (BLUESTORE_SLOW_OP_ALERT), or is somebody's wish (flags, muted pools).
  broken: [
    'MON_CLOCK_SKEW',
    // Monitors that do not see each other (20): the quorum holds by those that do, and one more fault may end it.
    'MON_NETSPLIT',
    'RECENT_CRASH',
    'RECENT_MGR_MODULE_CRASH',
    'MGR_MODULE_.+',
    'CEPHADM_.+',
    'UPGRADE_.+',
    'DEVICE_HEALTH.*',
    'HARDWARE_.+',
    'BLUESTORE_SPURIOUS_READ_ERRORS',
    'BLUESTORE_DISK_SIZE_MISMATCH',
    // RocksDB on the slow device, until somebody compacts or enlarges: each look-up may be one of a hard disk.
    'BLUEFS_SPILLOVER',
    // A read took more than seconds on the device for data, DB or log (20). It stays for a day, as slow operations do, but a
    // healthy device has none.
    '[A-Z]+_DEVICE_STALLED_READ_ALERT',
    'OSD_TOO_MANY_REPAIRS',
    'OSD_SLOW_PING_TIME_.+',
    'OSD_UNREACHABLE',
    'FS_DEGRADED',
    // Clients wait half a minute for metadata; mostly because of OSDs, which have alerts of their own.
    'MDS_SLOW_REQUEST',
    'MDS_SLOW_METADATA_IO',
    // Whoever wants a file that this client does not give back waits.
    'MDS_CLIENT_LATE_RELEASE',
    // Another gateway serves, or none (20).
    'NVMEOF_GATEWAY_DOWN',
    'MDS_UP_LESS_THAN_MAX',
    'MDS_INSUFFICIENT_STANDBY',
    'TOO_MANY_PGS',
  ],

  // What a check is about, where that is not RADOS. A check that two layers name is the lower one's.
  layers: {
    network: ['OSD_SLOW_PING_TIME_.+', 'MON_NETSPLIT'],
    disk: ['DEVICE_HEALTH.*'],
    osd: ['BLUEFS_.+', 'BLUESTORE_.+', '[A-Z]+_DEVICE_STALLED_READ_ALERT', 'OSD_.+'],
    filesystem: ['FS_.+', 'MDS_.+'],
    client: ['NVMEOF_.+'],
  },
};

{
  _config+:: {
    ceph: {
      // Four scrapes at 60 s, the slowest in use; the rules' names say 5m.
      window: '5m',
    },

    alerts+: {
      PlumblineCephPgUnavailable: {
        // A page: every client that touches one of these placement groups hangs.
        severity: 'critical',
        // Ceph itself says so when one group has not been active for a minute (mon_pg_stuck_threshold). After a manager's
        // failover all states are unknown for up to half a minute.
        'for': '1m',
      },

      PlumblineCephDataDamaged: {
        // A repair that Ceph starts by itself ends within minutes; so does the look for objects after a restart.
        'for': '5m',
        severities: [
          // No good copy is left or found: clients that ask for it hang or get an error.
          { severity: 'critical', served: false, pgStates: ['recovery_unfound', 'backfill_unfound', 'failed_repair'] },
          // Another copy is good and is served.
          { severity: 'warning', served: true, pgStates: ['inconsistent'] },
        ],
      },

      // Clients feel nothing while there is a majority: a ticket, as for any other lost redundancy, also where one more
      // would do it: with three monitors that is each host that is down. An update restarts each within a minute or two.
      PlumblineCephMonitorDown: { severity: 'warning', 'for': '5m' },

      // A page: writes fail. Ceph's own limits (full_ratio, quotas, mon_data_avail_crit) hold: only they say when.
      PlumblineCephFull: { severity: 'critical', 'for': '1m', names: lists.full },

      // Time to delete, to add or to balance. An hour: a backfill passes a limit on one OSD and goes back below it.
      PlumblineCephNearlyFull: { severity: 'warning', 'for': '1h', names: lists.nearlyFull },

      // A page: operations hang or fail. A standby takes over within a minute or two, one with a big journal later.
      PlumblineCephFilesystemDown: { severity: 'critical', 'for': '5m', names: lists.filesystem },

      PlumblineCephOsdDown: {
        // Redundancy covers it: a ticket.
        severity: 'warning',
        // A host reboots within this; then Ceph has marked the OSD out (after 10 m) and copies its data.
        'for': '15m',
      },

      PlumblineCephOsdFlapping: {
        severity: 'warning',
        'for': '0m',
        // The longest in which its host was not in maintenance.
        windows: ['1h', '10m'],
        // Three times down and up. An update restarts an OSD once, a repair twice.
        changes: 6,
      },

      PlumblineCephScrubLate: {
        severity: 'warning',
        // A whole day and night are behind the pace: many sites scrub at night alone.
        'for': '1d',
        // Ceph's osd_deep_scrub_interval. Who needs longer to catch up is never done: others are late by then.
        longest: '7d',
      },

      PlumblineCephRecoveryStalled: {
        severity: 'warning',
        // Ceph waits 10 m before it copies anything; the next hour is patience.
        'for': '1h',
      },

      // Ceph speaks of an operation when it is 30 s old (osd_op_complaint_time): long enough. 2 m for its statistics.
      PlumblineCephSlowOperations: { severity: 'warning', 'for': '2m' },

      // An upgrade raises these checks at once, and no key is rotated within the hour. Clients are served all the same: a
      // ticket, one for all of them.
      PlumblineCephKeysInsecure: { severity: 'warning', 'for': '1h', names: lists.keys },

      PlumblineCephHealth: {
        told: lists.full + lists.nearlyFull + lists.filesystem + lists.figures + lists.keys,
        broken: lists.broken,
        layers: lists.layers,
        severities: [
          // A restart, an election, a fail-over of an MDS: over within this.
          { kind: 'broken', severity: 'warning', 'for': '15m' },
          // Nobody is sent a ticket for maintenance of a day.
          { kind: 'other', severity: 'info', 'for': '1d' },
        ],
      },

      // An OSD that starts shows its counters within a minute. Blind for latency, not for faults: a ticket.
      PlumblineCephPerfCountersMissing: { severity: 'warning', 'for': '15m' },

      PlumblineCephLabelsWrong: {
        severity: 'warning',
        // A daemon that moves to another address is told by two managers for a scrape or two, a disk that moves to another
        // host is there before its OSD starts.
        'for': '15m',
      },

      PlumblineCephManagerStale: {
        severity: 'warning',
        // One slow collection is none: the window above has passed already.
        'for': '5m',
        // The module collects every 15 s (mgr/prometheus/scrape_interval): longer, and what is served is older than that.
        collectSeconds: 15,
        // An OSD that we see do this many operations a second for as long as the window can't have done none. The manager asks
        // its daemons every mgr_stats_period: 5 s, and at most 60 s where it lengthens that itself (20.2.3): below the window.
        // PlumblineCephExporterStale uses the same figure.
        operationsPerSecond: 1,
      },

      // An exporter that waits for one daemon recovers when that daemon does.
      PlumblineCephExporterStale: { severity: 'warning', 'for': '10m' },

      // A restart takes a minute or two.
      PlumblineCephExporterDown: { severity: 'warning', 'for': '10m' },

      // A failover takes half a minute, and an update restarts one manager after the other. Longer, and nobody would hear of an
      // OSD that is down or of a placement group that is inactive.
      PlumblineCephMetricsAbsent: { severity: 'warning', 'for': '4m' },
    },
  },
}
