// The daemon itself, and what is none of the other components'.
{
  _config+:: {
    alerts+: {
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

      // Asked every 15 s; an election of the monitors takes half a minute, a change of their addresses some.
      PlumblineCephUnreachable: { severity: 'warning', 'for': '5m' },

      PlumblineMountDead: {
        // Every program that touches it hangs, and with it logins, backups, the node's own services.
        severity: 'critical',
        // Asked every 30 s: four questions without an answer; the fail-over of an NFS server or an MDS takes a minute.
        'for': '2m',
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
    },
  },
}
