// The daemon itself, and what is none of the other components'.
{
  _config+:: {
    alerts+: {
      // Always firing; the receiver alarms when it stops.
      PlumblineWatchdog: { severity: 'info' },

      // A page: blind everywhere, so nobody would hear of what clients feel. 10 m outlasts a Prometheus restart with service discovery.
      PlumblineTargetsAbsent: { severity: 'critical', 'for': '10m' },

      PlumblineDown: {
        // Outlasts a reboot of the daemon, not of the node.
        'for': '5m',
        severities: [
          // An OSD of the node is down or unheard of too, or most of the cluster's nodes are silent.
          { severity: 'critical', answers: false },
          // The daemon alone: its OSDs are up, or it has none and other nodes see what clients feel.
          // Five minutes as well: it begins when `noticed` is over.
          { severity: 'warning', answers: true, 'for': '2m' },
        ],
        // Until then nobody believes that the OSDs of a silent node are up: 20 s until their peers report them, 15 s until
        // the manager's page says so, a scrape and an evaluation of 60 s at most.
        noticed: '3m',
        // Of a cluster's nodes; fewer than this see too little of it.
        minimumUp: 0.5,
      },

      // One subject is blind, the rest works.
      PlumblineCollectorFailing: { severity: 'warning', 'for': '10m' },

      // The old configuration stays in force, so nothing burns; but whoever wrote the new one believes it is active.
      PlumblineConfigReloadFailed: { severity: 'warning', 'for': '5m' },

      // Results are in memory only and lost at the next restart. Each finished run tries again.
      PlumblineStateNotSaved: { severity: 'warning', 'for': '15m' },

      PlumblineDaemonHeavy: {
        severity: 'warning',
        'for': '15m',
        // A monitor must not be what it warns of. Idle it takes a hundredth of a CPU; 15 m leave out a probe's run.
        cpuWindow: '15m',
        cpus: 0.25,
        // The unit has MemoryHigh=384M for the daemon and its children together; usual are 60 to 100 MiB.
        residentBytes: 300 * 1024 * 1024,
        // Of the limit; at 1 no scrape is answered any more.
        descriptors: 0.8,
      },

      // Any is a mistake in Plumbline that should be reported, and none ends what the thread does for longer than a
      // minute: a to-do, told once it has stood for a quarter of an hour.
      PlumblineThreadFailing: { severity: 'warning', 'for': '15m', window: '1h' },

      // Somebody changes the file and reloads: 15 m leave time to see it and put the protection back.
      PlumblineWebGuardsLost: { severity: 'warning', 'for': '15m' },

      // Half of Prometheus's own default timeout of 10 s, beyond which the node is down to it.
      PlumblineScrapeSlow: { severity: 'warning', 'for': '15m', seconds: 5 },

      // Prometheus about itself, where it scrapes itself (job `prometheus` in its own example). Windows hold several
      // scrapes and evaluations, and `for` is as long: one failure, while something is reloaded, tells nobody.
      PlumblineScrapeRejected: { severity: 'warning', 'for': '15m', window: '15m' },

      // A page: a rule that fails gives no alert, and those that wake people are among them.
      PlumblineRuleFailing: { severity: 'critical', 'for': '10m', window: '10m', groups: '.*;plumbline-.*' },

      // An evaluation took longer than its interval: verdicts come late, and `for` counts wrong.
      PlumblineRulesLate: { severity: 'warning', 'for': '15m', window: '15m', groups: '.*;plumbline-.*' },

      // A page: those that wake people are lost as well. Whether this one arrives is the watchdog's matter.
      PlumblineAlertsDropped: { severity: 'critical', 'for': '10m', window: '10m' },

      // A receiver that is down for a minute is tried again; one that refuses for a quarter of an hour loses alerts.
      PlumblineNotificationsFailing: { severity: 'warning', 'for': '15m', window: '15m' },

      // Asked every 15 s; an election of the monitors takes half a minute, a change of their addresses some.
      PlumblineCephUnreachable: { severity: 'warning', 'for': '5m' },

      PlumblineMountDead: {
        // A page: this node is the client. Every program that touches it hangs, logins and backups too.
        severity: 'critical',
        // Asked every 30 s: four questions without an answer; the fail-over of an NFS server or an MDS takes a minute.
        'for': '2m',
      },

      // A server that restarts lets its clients recover for five minutes at most by default (recovery_time_soft); a fail-over
      // takes less. Programs wait meanwhile, and that the mount hangs is a page of its own.
      PlumblineLustreImportDown: { severity: 'warning', 'for': '5m' },
      PlumblineLustreUnhealthy: { severity: 'warning', 'for': '5m' },

      // A to-do for each node. Findings of severity info stay with `plumbline check` and the status page, and those
      // that have an alert of their own are left to it.
      PlumblineFindingOpen: {
        notThese: $._config.alerts.PlumblineDiskQueueSettings.checks,
        severities: [
          { finding: 'critical', severity: 'warning', 'for': '1h' },
          { finding: 'warning', severity: 'info', 'for': '1d' },
        ],
      },
    },
  },
}
