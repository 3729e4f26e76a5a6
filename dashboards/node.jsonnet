// Node overview: does this node still perform as accepted, and what on it stands out?
local dashboard = import 'lib/dashboard.libsonnet';
local g = import 'g.libsonnet';
local p = import 'lib/panels.libsonnet';
local variables = import 'lib/variables.libsonnet';
local q = import 'queries/node.libsonnet';

local config = (import '../alerts/config.libsonnet')._config;
local tolerance = config.minimumTolerance;
// From here on a canary without history pages.
local bad = config.minimumTolerance * config.canary.beyond;

local operationColours = [
  p.fixedColour('/(^| )read/', p.colour.read),
  p.fixedColour('/(^| )write/', p.colour.write),
];
local sized(panel, w, h) = [panel, w, h];

local verdict = [
  sized(p.stat(
    'Worst degradation',
    'Measured against the baseline in force, worst of all layers and statistics: 1 is as accepted, 2 is twice as bad. Source: this node\'s recorded baseline, else the site file, else a documented profile the site chose. No data: nothing may be judged here, because no baseline is in force. Bad looks like: above %g and staying there.' % tolerance,
    'none', p.target(q.verdict.degradation, 'degradation', instant=true),
    [[null, p.colour.good], [tolerance, p.colour.warning], [bad, p.colour.bad]], decimals=2, noValue='no baseline'
  ), 5, 4),
  sized(p.stat(
    'Firing alerts',
    'Plumbline\'s alerts firing for this node now; the red marks in the graphs below say since when. Bad looks like: more than 0.',
    'none', p.target(q.verdict.alerts, 'firing', instant=true),
    [[null, p.colour.good], [1, p.colour.bad]], decimals=0
  ), 3, 4),
  sized(p.stat(
    'Figures without a baseline',
    'How many of this node\'s measurements no baseline may judge. They are drawn but never alert: record one with "plumbline baseline record". Bad looks like: more than 0 on a node in service.',
    'none', p.target(q.verdict.baselineMissing, 'without a baseline', instant=true),
    [[null, p.colour.good], [1, p.colour.warning]], decimals=0
  ), 4, 4),
  sized(p.stat(
    'Oldest probe success',
    'Age of the last success of the probe that succeeded longest ago. The canary succeeds every few seconds, fio every few hours. Bad looks like: older than three of that probe\'s intervals (an alert says so).',
    's', p.target(q.verdict.probeAge, 'age', instant=true),
    [[null, p.colour.good]], decimals=0, noValue='no success yet'
  ), 4, 4),
  sized(p.stat(
    'Failing collectors',
    'Collectors whose last reading failed: their series are missing from everything below. Bad looks like: more than 0; the daemon\'s log and status page say why.',
    'none', p.target(q.verdict.collectorsFailing, 'failing', instant=true),
    [[null, p.colour.good], [1, p.colour.bad]], decimals=0
  ), 4, 4),
  sized(p.stat(
    'Open findings',
    'Documented advice on network, disks, PCIe links, health and arrays that this node does not follow, besides mere information. "plumbline check" on the node, and its status page, say what is, what it should be and the command that mends it. Bad looks like: more than 0.',
    'none', p.target(q.verdict.findings, 'open', instant=true),
    [[null, p.colour.good], [1, p.colour.warning]], decimals=0
  ), 4, 4),
];

local latency = [
  sized(p.timeSeries(
    'Canary latency against its baseline',
    'Single 4 KiB operations at random moments, one at a time: what an unloaded client would feel. Dashed: the baseline in force. Dotted: documented profiles, another site\'s hardware, for orientation. Bad looks like: the line leaving the dashed one and staying away.',
    's', [
      p.target(q.canary.latency, '{{operation}} {{workload}}'),
      p.target(q.canary.baseline, 'baseline {{operation}} ({{source}})'),
      p.target(q.canary.documented, 'documented {{operation}} {{workload}} ({{profile}} {{device_class}})'),
    ], logarithmic=true, overrides=operationColours
  ), 12, 9),
  sized(p.heatmap(
    'Canary latency distribution',
    'How many canary operations took how long; the whole distribution, where a percentile is one number. Bad looks like: a second band above the first (a retrying or garbage-collecting disk), or the band moving up.',
    's', p.target(q.canary.heatmap, '{{le}}')
  ), 12, 9),
  sized(p.timeSeries(
    'Degradation ratio',
    'Measured divided by baseline for latency, baseline divided by measured for IOPS and throughput: 1 is as accepted, 2 is twice as bad, whatever the layer. Nothing is drawn where no baseline is in force or its parameters differ from the probe\'s.',
    'none', [p.target(q.canary.degradation, '{{layer}} {{operation}} {{statistic}} ({{probe}}, {{source}})')], logarithmic=true
  ), 12, 8),
  sized(p.timeSeries(
    'Periodic probe latency against its baseline',
    'The latest result of each fio run, held until the next one. Dashed: the baseline in force. Bad looks like: several runs in a row above the dashed line; one run alone proves little.',
    's', [
      p.target(q.probe.latency, '{{operation}} {{workload}} ({{probe}})'),
      p.target(q.probe.baseline, 'baseline {{operation}} {{workload}} ({{source}})'),
    ], logarithmic=true, overrides=operationColours
  ), 12, 8),
];

local network = [
  sized(p.timeSeries(
    'Frames lost, by cause',
    'Receive and transmit drops: "ring" is the host too slow to give descriptors, "fifo" the NIC\'s own buffer or bus, "filter" is benign (unhandled protocol, inactive slave, wrong VLAN), "other" is what the driver does not explain. Bad looks like: ring or fifo above 0.',
    'pps', [p.target(q.network.allDrops, '{{cause}}')], overrides=[
      p.fixedColour('/^ring$/', p.colour.bad),
      p.fixedColour('/^fifo$/', p.colour.write),
      p.fixedColour('/^filter$/', p.colour.good),
      p.fixedColour('/^other$/', p.colour.warning),
    ]
  ), 8, 8),
  sized(p.timeSeries(
    'Ring entries in use against the maximum',
    'Descriptors configured, divided by the most the driver accepts (ethtool -g). Bad looks like: below 1 on a storage interface while ring drops grow; "ethtool -G" mends it.',
    'percentunit', [p.target(q.network.ring, '{{device}} {{ring}}')], overrides=[]
  ) + { fieldConfig+: { defaults+: { max: 1 } } }, 8, 8),
  sized(p.timeSeries(
    'Pause frames',
    'IEEE 802.3x pause frames: the other side asked to stop (receive) or this node asked (transmit). Loss without a drop counter. Bad looks like: a steady rate under load.',
    'pps', [p.target(q.network.pause, '{{device}} {{direction}}')]
  ), 8, 8),
  sized(p.timeSeries(
    'Softnet time squeeze per CPU',
    'How often the receive softirq left with work undone because budget or time ran out. Not a loss by itself. Bad looks like: growing with load on one CPU while others rest.',
    'ops', [p.target(q.network.squeeze, 'cpu {{cpu}}')]
  ), 8, 8),
  sized(p.timeSeries(
    'Backlog overflow per CPU',
    'Packets dropped because the per-CPU backlog exceeded net.core.netdev_max_backlog. Bad looks like: anything above 0.',
    'pps', [p.target(q.network.backlogDrops, 'cpu {{cpu}}')]
  ), 8, 8),
  sized(p.timeSeries(
    'Network throughput',
    'Bits per second through each interface; the context for the losses beside it. Bad looks like: a plateau at the link\'s speed.',
    'bps', [p.target(q.network.throughput, '{{device}} {{direction}}')]
  ), 8, 8),
];

local disk = [
  sized(p.timeSeries(
    'Mean disk latency',
    'Kernel time per completed operation, queueing in the block layer included, over all clients of the disk (diskstats). A mean hides the slow tail: the canary above shows it. Bad looks like: one disk apart from its twins.',
    's', [p.target(q.disk.latency, '{{device}} {{operation}}')], logarithmic=true
  ), 8, 8),
  sized(p.timeSeries(
    'Disk operations',
    'Completed operations per second by kind. The load that explains the latency beside it. Bad looks like: latency up while this is not.',
    'iops', [p.target(q.disk.operations, '{{device}} {{operation}}')]
  ), 8, 8),
  sized(p.timeSeries(
    'Disk busy share and queue',
    'Share of time with at least one operation in flight, and operations in flight on average. On SSD and NVMe a busy share of 100 % is not saturation. Bad looks like: the queue growing while throughput does not.',
    'none', [
      p.target(q.disk.busy, '{{device}} busy share'),
      p.target(q.disk.queue, '{{device}} in flight'),
    ]
  ), 8, 8),
  sized(p.heatmap(
    'Disk latency distribution',
    'How many operations of the chosen disk took how long, timed by the kernel from issue to completion. Bad looks like: a second band above the first, which no mean shows.',
    's', p.target(q.disk.heatmap, '{{le}}')
  ), 12, 9),
  sized(p.timeSeries(
    'Disk p99 against its peers',
    'The slowest hundredth of each disk\'s operations over 5 minutes; grey and dashed the median over the disks of its class and transport here. Idle disks have none. Bad looks like: one disk a decade above the dashed line.',
    's', [
      p.target(q.disk.p99, '{{device}} {{operation}}'),
      p.target(q.disk.peerP99, 'baseline: peers {{operation}}'),
    ], logarithmic=true
  ), 12, 9),
  sized(p.timeSeries(
    'Disk median latency',
    'Half of each disk\'s operations take less. Bad looks like: one disk apart from its twins, though with a slow tail the median may look well.',
    's', [p.target(q.disk.p50, '{{device}} {{operation}}')], logarithmic=true
  ), 8, 8),
  sized(p.timeSeries(
    'Disk tail against peers and past',
    'p99 divided by the peers\' median and by what is usual at this hour: 1 is as the others, or as ever. Disks with other work than their peers are left out. Bad looks like: %g and more, where an alert is told.' % config.alerts.PlumblineDiskLatencyOutlier.ratio,
    'none', [
      p.target(q.disk.peerRatio, '{{device}} {{operation}} to peers'),
      p.target(q.disk.pastRatio, '{{device}} {{operation}} to past'),
    ], logarithmic=true
  ), 8, 8),
  sized(p.timeSeries(
    'Time in the queue and at the device',
    'Mean time of an operation before it is issued and from there to its completion. Bad looks like: queue above device, which is too much load or a scheduler; device alone is the disk, its link or its controller.',
    's', [
      p.target(q.disk.queueTime, '{{device}} queue'),
      p.target(q.disk.deviceTime, '{{device}} device'),
    ], logarithmic=true
  ), 8, 8),
  sized(p.table(
    'Disks',
    'What stands behind each device name: model, serial, firmware, and the class that decides which baselines and which peers it is compared with. Bad looks like: twins with different firmware.',
    'none', [p.tableTarget(q.disk.info, 'A')], [
      {
        id: 'organize',
        options: {
          excludeByName: { Time: true, Value: true, __name__: true, instance: true, job: true, cluster: true },
          indexByName: { device: 0, device_class: 1, model: 2, serial: 3, firmware: 4, transport: 5, rotational: 6, osd: 7 },
        },
      },
    ]
  ), 24, 6),
  sized(p.joinedTable(
    'Disk health',
    'What each disk says of itself, by NVMe or SMART; empty where it does not say. Endurance is the time until its rated writes are used up. Bad looks like: answers 0, spare below 20 %, errors or sectors that grow, less than a quarter of a year left.',
    'device', [
      [q.health.info, '', 'none'],
      [q.health.available, 'answers', 'none'],
      [q.health.wear, 'wear', 'percentunit'],
      [q.health.enduranceLeft, 'endurance left', 's'],
      [q.health.spare, 'spare', 'percentunit'],
      [q.health.mediaErrors, 'media errors', 'none'],
      [q.health.reallocated, 'reallocated sectors', 'none'],
      [q.health.pending, 'pending sectors', 'none'],
      [q.health.interfaceErrors, 'interface errors', 'none'],
      [q.health.temperature, 'temperature', 'celsius'],
    ]
  ), 24, 7),
  sized(p.joinedTable(
    'PCIe links',
    'The links of disks, host adapters and network cards: bandwidth against what both ends can do, errors since boot (AER). Bad looks like: a share below 100 %, or errors that grow.',
    'address', [
      [q.pcie.info, '', 'none'],
      [q.pcie.ratio, 'of maximum', 'percentunit'],
      [q.pcie.speed, 'transfers per second', 'none'],
      [q.pcie.lanes, 'lanes', 'none'],
      [q.pcie.errors, 'errors', 'none'],
      [q.pcie.numaNode, 'NUMA node', 'none'],
    ]
  ), 14, 7),
  sized(p.timeSeries(
    'Arrays, pools and paths',
    'Disks that md arrays lack, vdevs of ZFS pools that are not healthy, multipath paths that are not usable. Bad looks like: anything above 0.',
    'none', [
      p.target(q.array.degraded, '{{device}} disks lacking'),
      p.target(q.array.vdevs, '{{pool}} vdevs'),
      p.target(q.array.paths, '{{device}} paths lost'),
      p.target(q.array.sync, '{{device}} rebuilt'),
    ]
  ), 10, 7),
];

local watcher = [
  sized(p.timeSeries(
    'Collector duration',
    'Time each collector took in the last scrape. No collector waits for a command, a disk or a cluster. Bad looks like: one above a tenth of a second.',
    's', [p.target(q.watcher.duration, '{{collector}}')], logarithmic=true
  ), 8, 7),
  sized(p.timeSeries(
    'Probes skipped, by reason',
    'Runs that did not happen and why: the disk was busy, the load too high, fio not installed. Production comes first, so a few are normal. Bad looks like: one probe always skipped.',
    'none', [p.target(q.probe.skipped, '{{probe}}: {{reason}}')]
  ), 8, 7),
  sized(p.timeSeries(
    'Time in flight',
    'How long the operation or run now under way has lasted. Bad looks like: a line that only rises (a hung disk).',
    's', [p.target(q.probe.inFlight, '{{probe}}')]
  ), 8, 7),
];

dashboard.new(
  'node',
  [variables.datasource, variables.cluster, variables.instance, variables.statistic, variables.device, variables.operation],
  [
    { title: 'Verdict', panels: verdict },
    { title: 'Probes against their baseline', panels: latency },
    { title: 'Network', panels: network },
    { title: 'Disks', panels: disk },
    { title: 'The watcher itself', panels: watcher },
  ],
  shown='instance="$instance"'
)
