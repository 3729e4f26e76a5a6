// What a notification's title says: the alert's own sentence ("what"), then whom it is about, where, and the figure. The
// title is all that PagerDuty, Opsgenie, Jira and the subject of a mail show first, so no title does without names.
local promql = import 'promql.libsonnet';
local suspects = import 'suspects.libsonnet';

local times(of) = '{{ printf "%.1f" $value }} times ' + of;
local share = '{{ $value | humanizePercentage }}';
local lasting = '{{ $value | humanizeDuration }}';
local count(noun) = '{{ $value }} ' + noun + promql.plural;

local host = '{{ $labels.instance | stripPort }}';
local at(part) = part + ' on ' + host;
// Of what may be placed on no host.
local anywhere(part) = part + '{{ with $labels.instance }} on {{ . | stripPort }}{{ end }}';
local prometheus = 'Prometheus {{ $labels.instance }}';

local device = at('{{ $labels.device }}');
local osd = anywhere('{{ $labels.ceph_daemon }}');
local probe = at('{{ $labels.probe }}');
local operation = at('{{ $labels.operation }} of {{ $labels.probe }}');
local pool = 'pool {{ with $labels.pool }}{{ . }}{{ else }}{{ $labels.pool_id }}{{ end }}';
local class = 'class {{ $labels.device_class }}';
local ofCluster(noun) = count(noun) + '{{ with $labels.cluster }} of {{ . }}{{ end }}';
local address = at('{{ $labels.pci_address }}{{ range query (printf `plumbline_pcie_device_info{pci_address=%q,cluster=%q,instance=%q}` $labels.pci_address $labels.cluster $labels.instance) | sortByLabel "device" }} {{ .Labels.device }}{{ end }}');

// Whom an alert is about, by its name or how it begins: the longest that fits.
local who(config) = {
  local disk = at(
    '{{ $labels.device }}{{ with query ' + promql.diskQuery(config) + ' }}{{ with (first .).Labels.osd }} of {{ . }}{{ end }}{{ end }}'
  ),
  local through = '{{ if eq $labels.layer "disk" }}{{ with query (printf `plumbline_probe_target_info{device!="",probe=%q,' + promql.instanceFormat(config)
                  + '}` $labels.probe ' + promql.instanceArguments(config) + ') }}, disk {{ (first .).Labels.device }}{{ end }}{{ end }}',
  local measured = operation + through,
  // The host of an OSD is a label where Plumbline runs there, else Ceph says its name, as of a monitor.
  local placed = '{{ $labels.ceph_daemon }}{{ with $labels.instance }} on {{ . | stripPort }}{{ else }}{{ with query (printf `plumbline:osd:info{cluster=%q,ceph_daemon=%q} or ceph_mon_metadata{cluster=%q,ceph_daemon=%q}` $labels.cluster $labels.ceph_daemon $labels.cluster $labels.ceph_daemon) }} on {{ (first .).Labels.hostname }}{{ end }}{{ end }}',

  Plumbline: host,
  PlumblineWatchdog: '',
  PlumblineTargetsAbsent: 'job {{ $labels.job }}',
  PlumblineCollector: at('{{ $labels.collector }}'),
  PlumblineThread: at('{{ $labels.thread }}'),
  PlumblineDaemonHeavy: at('{{ $labels.resource }}'),
  PlumblineScrapeRejected: prometheus + ', {{ $labels.limit }}',
  PlumblineRule: '{{ $labels.rule_group | reReplaceAll "^.*;" "" }} in ' + prometheus,
  PlumblineAlertsDropped: prometheus,
  PlumblineNotifications: '{{ $labels.integration }} of Alertmanager {{ $labels.instance }}',

  PlumblineProbe: probe,
  PlumblineProbeLatency: measured,
  PlumblineProbeThroughput: measured,
  PlumblineProbeTarget: probe + ', {{ $labels.target }}',
  PlumblineCanary: measured,
  PlumblineCanaryOverdue: probe,
  PlumblineCanaryReplica: probe + ', {{ $labels.target }}',
  PlumblineFleet: '{{ $labels.operation }} in layer {{ $labels.layer }}',
  PlumblineBaselineMissing: at('layer {{ $labels.layer }}'),
  PlumblineBaselineMismatch: probe,
  PlumblineBaselineOutgrown: '{{ with $labels.cluster }}cluster {{ . }}{{ else }}all clusters{{ end }}',

  PlumblineNic: device,
  PlumblineNicMtu: 'network {{ $labels.role }}',
  PlumblineBond: device,
  PlumblineBondSlave: at('{{ $labels.slave }} of {{ $labels.device }}'),
  PlumblineBondMis: at('{{ $labels.slave }} of {{ $labels.device }}'),
  PlumblineInfiniband: device,
  PlumblineNetwork: host + ' to {{ $labels.target }}',
  PlumblinePath: host + ' to {{ $labels.target }}',

  PlumblineDisk: disk,
  PlumblineDiskQueue: at('{{ $labels.check }}'),
  PlumblinePcie: address,
  PlumblineArray: at('{{ with $labels.member }}{{ . }} of {{ end }}{{ $labels.device }}') + '{{ with $labels.state }}, {{ . }}{{ else }}, ' + count('disk') + ' missing{{ end }}',
  PlumblineMultipath: device,
  PlumblineZfs: at('{{ $labels.pool }}'),
  PlumblineLustre: at('{{ with $labels.target }}{{ . }}{{ else }}Lustre{{ end }}'),
  PlumblineMount: at('{{ $labels.mountpoint }}'),
  PlumblineGluster: 'volume {{ $labels.volume }}',
  PlumblineGlusterBrick: anywhere('{{ with $labels.brick }}{{ . }}{{ else }}part {{ $labels.subvolume }}{{ end }} of volume {{ $labels.volume }}'),
  PlumblineGlusterPeer: '{{ with $labels.peer }}{{ . }}{{ else }}volume {{ $labels.volume }}{{ end }}',
  PlumblineMoosefs: host,
  PlumblineMoosefsRedundancy: '{{ with $labels.chunkserver }}{{ . }} of {{ end }}' + host,

  PlumblineOsd: osd,
  PlumblineOsdHeartbeat: anywhere('{{ with $labels.ceph_daemon }}{{ . }}{{ else }}all OSDs{{ end }}'),
  PlumblineCeph: '{{ $labels.name }}',
  PlumblineCephUnreachable: host,
  PlumblineCephPg: '{{ if $labels.pool_id }}' + pool + '{{ else }}{{ with $labels.cluster }}cluster {{ . }}{{ else }}all clusters{{ end }}{{ end }}',
  PlumblineCephData: pool,
  PlumblineCephMonitor: '{{ range query (printf `max by (ceph_daemon) (ceph_mon_quorum_status{cluster=%q}) == 0` $labels.cluster) | sortByLabel "ceph_daemon" }}{{ .Labels.ceph_daemon }} {{ end }}of {{ with $labels.cluster }}{{ . }}{{ else }}the cluster{{ end }}',
  PlumblineCephOsd: placed,
  PlumblineCephRecovery: ofCluster('placement group'),
  PlumblineCephScrub: 'at least ' + ofCluster('placement group') + ', {{ $labels.work }}',
  PlumblineCephSlow: placed,
  PlumblineCephLabels: '{{ with $labels.cluster }}cluster {{ . }}{{ else }}all clusters{{ end }}, {{ $labels.reason }}',
  PlumblineCephKeys: ofCluster('health check'),
  PlumblineCephPerf: ofCluster('OSD'),
  PlumblineCephMetrics: ofCluster('OSD'),
  PlumblineCephManager: 'the manager{{ with $labels.cluster }} of {{ . }}{{ end }}, {{ $labels.reason }}',
  PlumblineCephExporter: '{{ $labels.ceph_daemon }}{{ with $labels.hostname }} on {{ . }}{{ end }}',
  PlumblineCephExporterStale: host,
  PlumblineGateway: '{{ with $labels.gateway }}{{ . }}{{ else }}{{ $labels.layer }}{{ end }}{{ with $labels.operation }}, {{ . }}{{ end }}',
  PlumblineGatewayErrors: 'RGW',
  PlumblineCapacity: class,
  PlumblineCapacityNoSelf: ofCluster('pool'),
  PlumblineCapacityHeadroom: class + ', {{ $labels.layer }}, {{ $labels.figure }}',
  PlumblineRecovery: '{{ with $labels.cluster }}cluster {{ . }}{{ else }}all clusters{{ end }}',
  PlumblineLatencyExplained: 'layer {{ $labels.layer }}{{ with $labels.ceph_daemon }}, {{ . }}{{ end }}',
  PlumblineLayer: 'layer {{ $labels.layer }}',
};

// The figure, of alerts whose value a reader understands at once.
local figures = {
  PlumblineBaselineOutgrown: times('as slow'),
  PlumblineDaemonHeavy: times('its limit'),
  PlumblineScrapeSlow: lasting,
  PlumblineProbeStuck: 'for ' + lasting,
  PlumblineCanaryFailing: count('error'),
  PlumblineCanaryLatencyExtreme: times('as slow'),
  PlumblineCanaryLatencyHigh: times('as slow'),
  PlumblineCanaryBusy: times('as slow'),
  PlumblineCanaryBudgetBurn: share + ' of the operations',
  PlumblineFleetLatencyHigh: share + ' of the OSDs or hosts',
  PlumblineProbeLatencyHigh: times('as slow'),
  PlumblineProbeThroughputLow: times('as slow'),
  PlumblineNicRingDrops: share,
  PlumblineNicFifoDrops: share,
  PlumblineNicErrors: share,
  PlumblineNicIrqsOnOneCpu: share,
  PlumblineNicLinkSlow: promql.bitsPerSecond,
  PlumblineTcpRetransmits: share,
  PlumblineNetworkLoss: share,
  PlumblinePathMtuBelowInterface: '{{ printf "%.0f" $value }} bytes',
  PlumblineDiskLatencyOutlier: times('as slow'),
  PlumblineDiskLatencyRegressed: times('as slow'),
  PlumblineDiskSpareLow: share,
  PlumblineDiskHot: '{{ printf "%.0f" $value }} °C',
  PlumblinePcieLinkDegraded: share,
  PlumblineCephPgUnavailable: count('placement group'),
  PlumblineCephDataDamaged: count('placement group'),
  PlumblineCephSlowOperations: count('operation'),
  PlumblineMultipathPathLost: '{{ if $value }}' + count('usable path') + '{{ else }}no usable path{{ end }}',
  PlumblineRunQueueLong: count('CPU'),
  PlumblineOsdSlowDisk: lasting,
  PlumblineOsdSlowPeer: lasting,
  PlumblineOsdLimited: lasting,
  PlumblineOsdQueueing: lasting,
  PlumblineOsdOutlier: times('as slow'),
  PlumblineOsdHeartbeatSlow: lasting,
  PlumblineOsdOperationsBlocked: lasting,
  PlumblineGatewayLatencyHigh: times('as slow'),
  PlumblineGatewayErrors: share,
  PlumblineFindingOpen: count('finding'),
  PlumblineCapacityHostLossSoon: '{{ printf "%.0f" $value }} days',
  PlumblineCapacityGrowthFast: '{{ printf "%.0f" $value }} days',
  PlumblineCapacityHeadroomLow: share,
};

// Of several alerts in one notification the title is that of the lowest rank: the most severe; then what is lost or broken
// before what is slow; then what is about all of a cluster before what is about a part.
local severities = ['critical', 'warning', 'info'];
local signals = ['error', 'loss', 'latency', 'saturation', 'health', 'capacity'];
local rank(rule, subject) = '%d%d%d' % [
  std.find(rule.labels.severity, severities)[0],
  std.find(std.get(rule.labels, 'signal', error '%s has no signal: add one to its labels' % rule.alert), signals)[0],
  if promql.count(subject, 'instance') == 0 then 0 else 1,
];

{
  local config = $._config,
  local subjects = who(config),

  local subjectOf(name) =
    local fitting = [prefix for prefix in std.objectFields(subjects) if std.startsWith(name, prefix)];
    subjects[std.sort(fitting, keyF=std.length)[std.length(fitting) - 1]],

  // What the description of a page suspects. `differing` as in suspects.libsonnet.
  local suspect(rule) =
    if rule.labels.severity == 'critical' && promql.count(rule.annotations.description, '\nSuspected: {{ range') > 0 then
      suspects.short(config, if rule.alert == 'PlumblineFleetLatencyHigh' then ['layer'] else [])
    else '',

  local titled(rule) =
    local subject = subjectOf(rule.alert);
    local figure = std.get(figures, rule.alert);
    rule {
      annotations+: {
        rank: rank(rule, subject),
        summary:
          std.rstripChars(super.summary, '.')
          + (if subject == '' then '' else ': ' + subject)
          + (if figure == null then '' else ', ' + figure)
          + suspect(rule) + '.',
      },
    },

  prometheusAlerts+:: {
    groups: [group { rules: std.map(titled, group.rules) } for group in super.groups],
  },
}
