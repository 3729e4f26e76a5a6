// One OSD: where its time goes, and who else is affected.
function(config)
  local clients = import '../lib/clients.libsonnet';
  local dashboard = import '../lib/dashboard.libsonnet';
  local g = import '../g.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = import '../queries/osd.libsonnet';

  local osd = config.osd;
  local colours(names) = [p.fixedColour('/^%s$/' % name, p.colour.stage[name]) for name in names];
  local whole(name, colour) = {
    matcher: { id: 'byName', options: name },
    properties: [
      { id: 'custom.stacking', value: { mode: 'none', group: 'A' } },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'color', value: { mode: 'fixed', fixedColor: colour } },
    ],
  };
  local toDisk = links.fromSeries('disk', ['cluster', 'instance', 'device']);
  local stat(title, description, unit, target, steps, decimals=null, noValue='no data from Ceph', label='') =
    p.stat(title, description, unit, target, steps, noValue, decimals=decimals, label=label);

  local state = [
    [stat('Up', 'Whether the monitors consider this OSD up (1) or down (0). Bad looks like: 0.', 'none', p.target(q.state.up, 'up', instant=true), thresholds.yes, decimals=0), 3, 4],
    [stat('In', 'Whether it holds data (1) or was taken out (0). Bad looks like: 0 that nobody intended.', 'none', p.target(q.state['in'], 'in', instant=true), [[null, p.colour.warning], [1, p.colour.good]], decimals=0), 3, 4],
    [stat('Suspected of', 'The verdict of the rules: disk (its own), host, network, queue, or peer (it only waits for another). Bad looks like: anything but none; docs/osd-verdicts.md names the two signals behind each.', 'none', p.target(q.state.verdict, '{{verdict}}', instant=true), thresholds.neutral, noValue='OSD not known', label='verdict'), 4, 4],
    [stat('Against its class', 'Its worst figure divided by the median of its device class: 1 is the same as the others. It needs %d busy OSDs of a class. Bad looks like: %g and above (yellow), %g and above (red).' % [osd.minimumOsds, osd.agreeRatio, osd.ratio], 'none', p.target(q.state.ratio, 'to class', instant=true), [[null, p.colour.good], [osd.agreeRatio, p.colour.warning], [osd.ratio, p.colour.bad]], decimals=2, noValue='class too small'), 4, 4],
    // one kind below the other: side by side their names would be too small to read
    [stat('p99 now', 'The slowest hundredth of its client operations over the last minutes, by kind. Bad looks like: a multiple of what the graphs below show for its past.', 's', p.target(q.state.p99, '{{operation}}', instant=true), thresholds.neutral, noValue='idle, or not asked') + { options+: { orientation: 'horizontal', text: { titleSize: 12 } } }, 4, 4],
    [stat('Blocked ops', 'Operations that have waited for 30 s and more. Bad looks like: more than 0.', 'none', p.target(q.state.blocked, 'blocked', instant=true), thresholds.none, decimals=0, noValue='not asked'), 3, 4],
    [stat('Accused by', 'OSDs that report it as the worst of their peers. Bad looks like: most of the others.', 'none', p.target(q.state.accused, 'accusers', instant=true), thresholds.few, decimals=0), 3, 4],
    [p.figures(
      'What and where it is',
      'The OSD\'s class, host and version as Ceph reports them, the node whose daemon asks it, and the disks with its data, DB and log as that daemon sees them. No disk: the daemon on its host does not see whose data a disk carries. Bad looks like: a version other than its peers\'.',
      [
        ['ceph_daemon', 'OSD', null],
        ['device_class', 'class', null],
        ['hostname', 'host', null],
        ['instance', 'node', [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]],
        ['device', 'disk', [links.to('disk', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}', device: '${__data.fields.disk}' })]],
        ['ceph_version', 'version', null],
        ['cluster', 'cluster', null],
      ],
      [
        { expr: q.identity.place, name: null, unit: 'none' },
        { expr: q.identity.told, name: null, unit: 'none' },
        { expr: q.identity.disk, name: null, unit: 'none' },
        { expr: q.identity.version, name: null, unit: 'none' },
        { expr: q.identity.capacity, name: 'mClock assumes', unit: 'iops' },
        { expr: q.identity.fragmentation, name: 'fragmentation', unit: 'percentunit' },
      ]
    ), 24, 5],
  ];

  local latency = [
    [p.timeSeries(
      'Percentiles and the median of its class',
      'p99 and median of its client operations, from its own histograms; dashed the median p99 of its device class, where that has %d busy OSDs. Bad looks like: p99 leaving the dashed line and staying away.' % osd.minimumOsds,
      's', [
        p.target(q.latency.p99, '{{operation}} p99'),
        p.target(q.latency.p50, '{{operation}} median'),
        p.target(q.latency.classP99, 'baseline: class {{figure}}'),
      ], logarithmic=true, overrides=p.operationColours
    ), 12, 9],
    [p.heatmap(
      'Distribution of its operations',
      'How many client operations took how long, the kind chosen above. Buckets double. Bad looks like: a second band above the first: some operations meet a delay that others do not.',
      's', p.target(q.latency.heatmap, '{{le}}')
    ), 12, 9],
    [p.stacked(
      'Where the time of its writes goes',
      'The mean write in its stages, one after the other: queue, prepare, this OSD\'s own store, and the wait for replicas beyond that. The line is the total as the OSD counts it. Bad looks like: store growing (its disk), peers growing (another OSD, or the network), queue growing (too much to do).',
      's', [p.target(q.parts.write, '{{part}}'), p.target(q.parts.wholeWrite, 'whole write')],
      overrides=colours(['queue', 'prepare', 'store', 'peers']) + [whole('whole write', p.colour.write)]
    ), 8, 9],
    [p.stacked(
      'Where the time of its reads goes',
      'The mean read in its parts: queue, prepare, store, and the rest until the reply. The line is the total as the OSD counts it. Bad looks like: store growing: a slow disk or cold metadata.',
      's', [p.target(q.parts.read, '{{part}}'), p.target(q.parts.wholeRead, 'whole read')],
      overrides=colours(['queue', 'prepare', 'store', 'other']) + [whole('whole read', p.colour.read)]
    ), 8, 9],
    [p.timeSeries(
      'Stages of its store',
      'BlueStore\'s own means. They overlap (a commit holds the device\'s write and the key-value store\'s sync) and are not stacked. Dashed: the commit of its class. Bad looks like: commit away from the dashed line together with kv or device: the disk.',
      's', [p.target(q.parts.store, '{{part}}'), p.target(q.parts.classStore, 'baseline: class {{figure}}')], logarithmic=true, overrides=colours(['commit', 'device', 'kv'])
    ), 8, 9],
    [p.timeSeries(
      'Slow operations of its store',
      'Operations a second that took more than %g s in BlueStore (bluestore_log_op_age), by the step, as Ceph counts them. Ceph\'s own health check about them stays for a day; this is now. Bad looks like: anything above 0.' % osd.storeSlowSeconds,
      'ops', [p.target(q.parts.slow, '{{part}}')]
    ), 8, 8],
    [p.timeSeries(
      'Mean latency and the median of its class',
      'Mean of its client operations over five minutes; dashed the median of its class. A slow disk also raises the mean of its peers: compare the store above. Bad looks like: away from the dashed line.',
      's', [p.target(q.latency.mean, '{{operation}}'), p.target(q.latency.classMean, 'baseline: class {{figure}}')], logarithmic=true, overrides=p.operationColours
    ), 8, 8],
    [p.timeSeries(
      'Figures divided by its class',
      'Each figure that is compared, divided by the median of the class: 1 is the same as the others. Nothing is drawn where the class is too small or this OSD has much more work than it. Also against OSDs of its class on its host, if there are %d; dashed red the limit of that, higher where it serves more than they. Bad looks like: %g and above, or to its equals above the limit for a quarter of an hour.' % [osd.equals.minimumOsds, osd.ratio],
      'none', [
        p.target(q.parts.ratio, '{{figure}}'),
        p.target(q.parts.equals, '{{figure}} to its equals'),
        p.target(q.parts.equalsLimit, 'limit ({{among}})'),
      ], logarithmic=true
    ), 8, 8],
    [p.timeSeries(
      'Its operations',
      'What clients request, and what it writes as a replica of others. The load that explains the latency. Bad looks like: latency up while this is not.',
      'ops', [p.target(q.work.operations, '{{operation}}'), p.target(q.work.subop, 'for others')], overrides=p.operationColours
    ), 8, 8],
    [p.timeSeries(
      'Its database',
      'Used bytes of the device with the database (RocksDB), where that is not the device with the data, and what has spilled over to the latter. Dashed: the size of the device. Nothing is drawn for an OSD with one device. Bad looks like: near the dashed line, or anything spilled that grows.',
      'bytes', [p.target(q.parts.database, 'used'), p.target(q.parts.spilled, 'spilled over'), p.target(q.parts.databaseSize, 'baseline: size')]
    ), 8, 8],
    [p.timeSeries(
      'Compactions of its database',
      'Mean duration of the compactions of BlueFS\'s log, which hold up commits, and of the last compaction of RocksDB that somebody requested (Ceph 18 and later). Ceph does not count those that RocksDB starts by itself. Bad looks like: a log compaction as long as a commit above.',
      's', [p.target(q.parts.logCompaction, 'log of BlueFS'), p.target(q.parts.compaction, 'RocksDB, requested')], logarithmic=true
    ) + p.ofFullPage, 8, 8],
    [p.timeSeries(
      'Waiting in its mClock queues',
      'Operations that wait for their turn now, by class: clients, recovery, best effort (scrubs, trimming, deletion), and immediate, which pass by the scheduler: writes as a replica, peering. Ceph 16 does not tell. Bad looks like: clients that wait while recovery hardly does.',
      'none', [p.target(q.work.queued, '{{op_class}}')]
    ) + p.ofFullPage, 12, 8],
    [p.timeSeries(
      'What mClock grants each class',
      'The share of the OSD\'s capacity that its profile reserves for a class, and the limit where there is one. What is reserved and not used goes to the others. Ceph 16 has operations a second instead, which are not shown. Bad looks like: another profile than on other OSDs.',
      'percentunit', [p.target(q.work.shares, '{{op_class}} {{share}} ({{mclock_profile}})')]
    ) + p.ofFullPage, 12, 8],
  ];

  local beside = [
    [p.timeSeries(
      'Its disks, mean',
      'Mean latency of the disks with its data, DB and log, as the kernel measures it, from issue to completion. Bad looks like: rising with the store above: then it is the disk, its link or its controller.',
      's', [p.target(q.disk.mean, '{{device}} {{operation}}')], logarithmic=true, overrides=p.operationColours
    ) + p.linked([toDisk]), 8, 8],
    [p.timeSeries(
      'Its disks: p99 and the median of their peers',
      'The slowest hundredth on each of its disks; dashed the median of disks of the same class and transport on the host. Bad looks like: a decade above the dashed line.',
      's', [p.target(q.disk.p99, '{{device}} {{operation}}'), p.target(q.disk.peerP99, 'baseline: peers of {{device}} {{operation}}')], logarithmic=true, overrides=p.operationColours
    ) + p.linked([toDisk]), 8, 8],
    [p.timeSeries(
      'Its disks, busy share',
      'Share of the time in which a disk had something to do. One that works in parallel is not full at 100 %%, but from %g on it counts as a second signal against a slow OSD. Bad looks like: at 100 %% with a queue.' % osd.busyRatio,
      'percentunit', [p.target(q.disk.busy, '{{device}}')]
    ) + p.linked([toDisk]), 8, 8],
    [p.timeSeries(
      'Pings to its peers',
      'Its pings to the worst and to the median peer, averages of a minute, over the public (front) and cluster (back) network; dashed the median of all OSDs. No disk is in them. Bad looks like: its median above the dashed line: this OSD\'s host or port; only its worst: the peer\'s.',
      's', [p.target(q.peers.worst, 'worst {{interface}}'), p.target(q.peers.median, 'median {{interface}}'), p.target(q.peers.everybody, 'baseline: all OSDs {{interface}}')], logarithmic=true
    ), 6, 8],
    [p.timeSeries(
      'TCP round trips to its peers',
      'TCP\'s round-trip time to other OSDs without its deviation, on the worst connection and the median one; dashed the median OSD. The kernel acknowledges, so neither a slow disk nor a busy OSD is in it. From %g s on it can explain that writes wait. Bad looks like: only the worst is high: the path to that peer; the median, too: this OSD\'s host or port.' % osd.connection.floorSeconds,
      's', [p.target(q.connections.worst, 'worst'), p.target(q.connections.median, 'median'), p.target(q.connections.everybody, 'baseline: all OSDs')]
    ), 6, 8],
    [p.timeSeries(
      'TCP segments sent again',
      'Segments a second that this OSD sent to other OSDs again. Each costs up to %g s. Bad looks like: %g and more, for minutes.' % [osd.connection.timeoutSeconds, osd.connection.lossPerSecond],
      'ops', [p.target(q.connections.retransmits, 'sent again')]
    ), 6, 8],
    [p.timeSeries(
      'What it takes for others',
      'Mean time of a write that it receives as a replica, until its own commit: how long its peers wait for it, without the network. Dashed: the median of its class. Bad looks like: above the dashed line: it slows others down.',
      's', [p.target(q.work.subopLatency, 'for others'), p.target(q.work.classSubop, 'baseline: class {{figure}}')], logarithmic=true
    ), 6, 8],
    [p.timeSeries(
      'Blocked and slow operations of this OSD',
      'Operations blocked for 30 s and more, and those of the last ten minutes over 10 s, by what they wait for; and the share of look-ups of objects\' metadata that missed the cache. Bad looks like: any of the first two.',
      'none', [p.target(q.work.blocked, 'blocked: {{stage}}'), p.target(q.work.slow, 'slow: {{stage}}'), p.target(q.work.misses, 'share of cache misses')]
    ), 8, 8],
    [p.timeSeries(
      'The canary on this OSD',
      'Single 4 KiB operations in RADOS on objects whose primary it is: the latency of an unloaded client. Dashed: the baseline in force for its class, in red the limit of the median; dotted: documented. Reads are its own; writes also wait for its replicas. Bad looks like: reads above their limit.',
      's', [
        p.target(q.canary.latency, '{{operation}}'),
        p.target(q.canary.baseline, 'baseline {{operation}} ({{source}})'),
        p.target(q.canary.limit, 'limit {{operation}} p50'),
        p.target(q.canary.documented, 'documented {{operation}} {{device_class}} ({{profile}})'),
      ], logarithmic=true, overrides=p.operationColours
    ) + p.linked([links.fromSeries('probes', ['probe'])]), 8, 8],
    [p.timeSeries(
      'Its bench',
      'Operations a second of the latest osd-bench of this OSD, held until the next; dashed the baseline in force for its class. Nothing is drawn where no bench is configured.',
      'iops', [p.target(q.canary.bench, '{{workload}}'), p.target(q.canary.baselineBench, 'baseline {{workload}} ({{source}})')], logarithmic=true
    ), 8, 8],
    [clients.table('Who loads the OSDs of its host', 'the OSDs of its host', q.clients), 24, 8],
    [p.alerts('Alerts of this OSD that fire', 'What fires for this OSD, the longest on top. Bad looks like: any row.', q.firing, [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]), 12, 6],
    [p.figures(
      'Findings on its disks',
      'Documented advice that is not followed on the disks below it. "plumbline check" on the node has the commands that fix it. Bad looks like: a row above level info.',
      [['urgency', 'severity', null], ['check', 'check', null], ['subject', 'disk', null], ['instance', 'node', [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]], ['cluster', 'cluster', null]],
      [{ expr: q.disk.findings, name: 'open', unit: 'none' }]
    ), 12, 6],
  ];

  dashboard.new(
    'osd',
    [variables.datasource, variables.cluster, variables.ceph_daemon, variables.operation, variables.statistic],
    [
      { title: '$ceph_daemon', panels: state, of: 'ceph_daemon' },
      { title: 'Where the time of $ceph_daemon goes', panels: latency, of: 'ceph_daemon' },
      { title: 'Beside $ceph_daemon: disks, peers, probes, alerts', panels: beside, of: 'ceph_daemon', closed: true },
    ],
    shown='ceph_daemon=~"$ceph_daemon"', baselines='layer="osd"',
    empty='not measured here, or no data from Ceph'
  )
