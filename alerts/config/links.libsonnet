// Where an alert's links lead.
{
  _config+:: {
    // Runbooks: by default each alert links the page that its own node's daemon serves (`/runbooks/<Alert>`). A site with
    // TLS on its daemons says https. A URL here points all alerts at `<URL>/<Alert>.md` instead: a wiki, one node.
    runbookScheme: 'http',
    runbookBaseUrl: null,

    // For targets whose `instance` is a name without a port, as in Kubernetes.
    runbookPort: 10047,

    // Grafana: 'https://grafana.example.org'. There is no default that is right anywhere, so without it alerts have no
    // `dashboard_url`.
    dashboardBaseUrl: null,

    // The page begins this long before the alert was sent.
    dashboardSpan: '3h',

    // The beginning of an alert's name → the page (dashboards/lib/pages.libsonnet) that shows its figure; the longest
    // that fits holds. The page gets its own variables (below) from the alert's labels.
    dashboardPages: {
      // One thing, or one node.
      PlumblineBondSlaveDown: 'nic',
      PlumblineCephOsd: 'osd',
      PlumblineDisk: 'disk',
      PlumblineNic: 'nic',
      PlumblineOsd: 'osd',
      PlumblineBaseline: 'probes',
      PlumblineCanary: 'probes',
      PlumblineProbe: 'probes',
      PlumblineDaemonHeavy: 'probes',
      Plumbline: 'node',

      // Figures that stand on the page of all disks or OSDs alone.
      PlumblineCanaryReplicaSlow: 'osds',
      PlumblineLatencyExplained: 'overview',
      PlumblineCephExporter: 'osds',
      PlumblineCephLabelsWrong: 'osds',
      PlumblineCephManagerStale: 'osds',
      PlumblineCephPerfCountersMissing: 'osds',
      PlumblineCephSlowOperations: 'osds',
      PlumblineDiskFailing: 'disks',
      PlumblineDiskMissing: 'disks',
      PlumblineOsdCapacityMisjudged: 'osds',
      PlumblineOsdConnectionSlow: 'osds',
      PlumblineOsdHeartbeatSlow: 'osds',
      PlumblineOsdSocketHung: 'osds',

      // Figures that a node's page has beside others of their kind.
      PlumblineDiskHealthUnavailable: 'node',
      PlumblineDiskQueueSettings: 'node',
      PlumblineMaintenance: 'node',
      PlumblineProbeTargetDown: 'node',
      PlumblineCanaryFailing: 'node',

      // Between nodes, of a role, or of a device that has no page.
      PlumblineBondMisaggregated: 'network',
      PlumblineInfiniband: 'network',
      PlumblineLustre: 'rbd',
      PlumblineNetwork: 'network',
      PlumblineNicMtuMismatch: 'network',
      PlumblinePathMtuBelowInterface: 'network',
      PlumblineTcpListenOverflow: 'network',

      // The cluster.
      PlumblineCapacity: 'capacity',
      PlumblineCeph: 'pools',
      PlumblineRecoveryUnderWay: 'pools',
      PlumblineCephUnreachable: 'node',
      PlumblineDown: 'overview',
      PlumblineFleetLatencyHigh: 'overview',
      PlumblineGateway: 'gateways',
      PlumblineGluster: 'gateways',
      PlumblineMoosefs: 'gateways',
      PlumblineLayerSettling: 'overview',
      PlumblineTargetsAbsent: 'overview',

      // Of Prometheus and Alertmanager, whose `instance` is no node: the overview lists all that fires.
      PlumblineAlertsDropped: 'overview',
      PlumblineNotificationsFailing: 'overview',
      PlumblineRule: 'overview',
      PlumblineScrapeRejected: 'overview',
      PlumblineWatchdog: 'overview',
    },

    // Which of its variables each page gets, besides `cluster`, from the labels of these names.
    dashboardVariables: {
      capacity: [],
      disk: ['instance', 'device'],
      disks: [],
      gateways: [],
      network: [],
      nic: ['instance', 'device'],
      node: ['instance'],
      osd: ['ceph_daemon'],
      osds: [],
      overview: [],
      pools: ['pool'],
      probes: ['instance', 'probe'],
      rbd: [],
    },
  },
}
