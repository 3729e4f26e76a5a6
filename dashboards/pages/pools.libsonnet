// Pools and RADOS: is each pool served as accepted, and what is being repaired?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = import '../queries/pools.libsonnet';

  local toCapacity = links.fromSeries('capacity', ['cluster']);
  local toProbe = links.fromSeries('probes', ['cluster', 'probe']);
  local stat(title, description, unit, expr, steps, decimals=0, noValue='no data from Ceph') =
    p.stat(title, description, unit, p.target(expr, title, instant=true), steps, noValue, decimals=decimals);

  local state = [
    [stat('Ceph\'s health', 'Ceph\'s own health: 0 is HEALTH_OK, 1 HEALTH_WARN, 2 HEALTH_ERR. The checks behind it are listed below. Bad looks like: 2, or 1 for longer than you know why.', 'none', q.state.health, [[null, p.colour.good], [1, p.colour.warning], [2, p.colour.bad]]), 3, 4],
    [stat('PGs inactive', 'Placement groups that accept no operation: clients that read or write there wait. Bad looks like: more than 0.', 'none', q.state.unavailable, thresholds.none), 3, 4],
    [stat('PGs degraded', 'Placement groups with fewer copies than configured. Bad looks like: more than 0 that does not fall.', 'none', q.state.degraded, thresholds.few), 3, 4],
    [stat('PGs damaged', 'Placement groups with a wrong or missing copy that Ceph does not repair by itself. Bad looks like: more than 0.', 'none', q.state.damaged, thresholds.none), 3, 4],
    [stat('Recovery left', 'How long recovery and backfill still take at their pace of the last minutes, the slowest cluster\'s longest estimate. Alerts about latency wait meanwhile. Bad looks like: a day, or longer each time you look.', 's', q.state.recovery, [[null, p.colour.good], [1, p.colour.warning]], noValue='none, or no progress'), 3, 4],
    [stat('Slow ops', 'Operations that the OSDs reported to the monitors as slow, 30 s and more. Bad looks like: more than 0.', 'none', q.state.slow, thresholds.none), 3, 4],
    [stat('Fullest pool', 'Used share of the fullest pool: used ÷ (used + max avail). Bad looks like: near 100 %; the capacity page forecasts when it is full.', 'percentunit', q.state.fullest, thresholds.neutral, decimals=1), 3, 4],
    [stat('RADOS ratio', 'The worst degradation ratio of the RADOS probes: 1 is as accepted, 2 twice as bad, by the baseline in force. Bad looks like: above %g and staying.' % config.minimumTolerance, 'none', q.state.degradation, thresholds.degradation, decimals=2, noValue='no baseline'), 3, 4],
    [p.figures(
      'Pools',
      'Each pool: how full it is, what is stored and what still fits (as Ceph calculates it, by its fullest OSD), its placement groups, and what clients do there. Bad looks like: unavailable or damaged above 0, or used near 100 %.',
      [['pool', 'pool', [links.fromRow('capacity', ['cluster'])]], ['pool_id', 'id', null], ['cluster', 'cluster', null]],
      [
        { expr: q.table.used, name: 'used', unit: 'percentunit' },
        { expr: q.table.stored, name: 'stored', unit: 'bytes' },
        { expr: q.table.left, name: 'still fits', unit: 'bytes' },
        { expr: q.table.groups, name: 'PGs', unit: 'none' },
        { expr: q.table.unavailable, name: 'unavailable', unit: 'none', steps: thresholds.none },
        { expr: q.table.degraded, name: 'degraded', unit: 'none', steps: thresholds.few },
        { expr: q.table.damaged, name: 'damaged', unit: 'none', steps: thresholds.none },
        { expr: q.table.reads, name: 'reads', unit: 'iops' },
        { expr: q.table.writes, name: 'writes', unit: 'iops' },
      ],
      sort='used', empty='no data from Ceph'
    ), 24, 9],
  ];

  local availability = [
    [p.figures(
      'Availability of pools',
      'Share of the time shown in which some placement group of the pool accepted no operation, and in which some had fewer copies than configured. The rest is Ceph\'s own since it tracks the pool (Ceph 20, enable_availability_tracking): score (share of the time available), mean time between failures and to repair. Bad looks like: unavailable above what was agreed; fewer copies for a large share of the time.',
      [['pool', 'pool', [links.fromRow('capacity', ['cluster'])]], ['pool_id', 'id', null], ['cluster', 'cluster', null]],
      [
        { expr: q.service.unavailable, name: 'unavailable', unit: 'percentunit', steps: thresholds.none },
        { expr: q.service.reduced, name: 'fewer copies', unit: 'percentunit' },
        { expr: q.service.score, name: 'Ceph\'s score', unit: 'percentunit' },
        { expr: q.service.mtbf, name: 'between failures', unit: 's' },
        { expr: q.service.mttr, name: 'to repair', unit: 's' },
      ],
      sort='unavailable', empty='no data from Ceph'
    ), 24, 7],
  ];

  local service = [
    [p.timeSeries(
      'RADOS canary against its baseline',
      'Single 4 KiB operations in our pool, one at a time, mean over the OSDs of a class: the latency of an unloaded client in RADOS, replicas included in writes. Dashed: the baseline in force. Bad looks like: leaving the dashed line and staying away.',
      's', [
        p.target(q.rados.canary, '{{operation}} {{device_class}}'),
        p.target(q.rados.canaryBaseline, 'baseline {{operation}} {{device_class}} ({{source}})'),
      ], logarithmic=true, overrides=p.operationColours
    ) + p.linked([links.to('osds')]), 12, 9],
    [p.heatmap(
      'Distribution of the RADOS canary',
      'How many of the canary\'s operations took how long, over all OSDs. Bad looks like: a second band above the first: some OSDs, or some moments, are slow.',
      's', p.target(q.rados.heatmap, '{{le}}')
    ), 12, 9],
    [p.timeSeries(
      'rados bench, throughput',
      'The latest run of each rados bench, held until the next. Dashed: the baseline in force; dotted: documented profiles, other hardware. Bad looks like: several runs below the dashed line.',
      'Bps', [
        p.target(q.rados.throughput, '{{workload}} {{device_class}} ({{probe}})'),
        p.target(q.rados.throughputBaseline, 'baseline {{workload}} {{device_class}} ({{source}})'),
        p.target(q.rados.throughputDocumented, 'documented {{workload}} {{device_class}} ({{profile}})'),
      ], logarithmic=true
    ) + p.linked([toProbe]), 8, 8],
    [p.timeSeries(
      'rados bench, mean latency',
      'Mean time of one object in the latest run; many are in flight, so no single client sees this. Dashed: the baseline in force; dotted: documented. Bad looks like: several runs above the dashed line.',
      's', [
        p.target(q.rados.latency, '{{workload}} {{operation}} {{device_class}} ({{probe}})'),
        p.target(q.rados.latencyBaseline, 'baseline {{workload}} {{operation}} {{device_class}} ({{source}})'),
        p.target(q.rados.latencyDocumented, 'documented {{workload}} {{operation}} {{device_class}} ({{profile}})'),
      ], logarithmic=true
    ) + p.linked([toProbe]), 8, 8],
    [p.timeSeries(
      'RADOS degradation, the ten worst',
      'Measured divided by the baseline in force for latency, the inverse for throughput: 1 is as accepted. Nothing is drawn where no baseline is in force. Bad looks like: above %g and staying.' % config.minimumTolerance,
      'none', [p.target(q.rados.degradation, '{{probe}} {{operation}} {{statistic}} ({{source}})')], logarithmic=true
    ) + p.linked([toProbe]), 8, 8],
  ];

  local clients = [
    [p.timeSeries('Client operations by pool', 'Reads and writes a second that clients do in each pool, by the manager\'s counters. The load that explains the latency. Bad looks like: latency up while this is not.', 'iops', [p.target(q.work.reads, 'read {{pool}}'), p.target(q.work.writes, 'write {{pool}}')], overrides=p.operationColours), 8, 8],
    [p.timeSeries('Client throughput by pool', 'Bytes a second that clients read and write in each pool, before replication. Bad looks like: a plateau that the clients do not cause: a network or disks at their limit.', 'Bps', [p.target(q.work.readBytes, 'read {{pool}}'), p.target(q.work.writtenBytes, 'write {{pool}}')], overrides=p.operationColours), 8, 8],
    [p.timeSeries('Used share by pool', 'How full each pool is: what it holds divided by that and what still fits. It jumps when OSDs leave, because less fits then. Bad looks like: a steady rise; the capacity page extrapolates it.', 'percentunit', [p.target(q.work.used, '{{pool}}')]) + p.linked([toCapacity]), 8, 8],
  ];

  local repair = [
    [p.timeSeries(
      'Placement groups in trouble',
      'By pool: placement groups that accept no operation, that lack copies, and whose copies are wrong or missing. Bad looks like: unavailable or damaged above 0; degraded that does not fall.',
      'none', [
        p.target(q.groups.unavailable, '{{pool}} unavailable'),
        p.target(q.groups.degraded, '{{pool}} degraded'),
        p.target(q.groups.damaged, '{{pool}} {{state}}'),
      ]
    ) + p.linked([links.to('osds')]), 6, 8],
    [p.timeSeries(
      'Objects in trouble',
      'Copies of objects that are missing or misplaced, and objects without a known copy. Bad looks like: unfound above 0; degraded that does not fall.',
      'none', [
        p.target(q.groups.objectsDegraded, 'degraded'),
        p.target(q.groups.objectsMisplaced, 'misplaced'),
        p.target(q.groups.objectsUnfound, 'unfound'),
        p.target(q.groups.moving, 'PGs {{state}}'),
      ]
    ), 6, 8],
    [p.timeSeries('Recovery by pool', 'Bytes a second that recovery and backfill move in each pool. Bad looks like: 0 while objects are degraded; or so much that clients\' latency follows it.', 'Bps', [p.target(q.groups.bytes, '{{pool}}')]), 6, 8],
    [p.figures(
      'Background work that waits',
      'Placement groups whose scrub or deep scrub is overdue, and those whose deleted snapshots wait to be trimmed; how long that still takes at its pace, of the last day for scrubs. Bad looks like: no time left is shown, because they become no fewer, or a week and more.',
      [['work', 'work', null], ['cluster', 'cluster', null]],
      [
        { expr: q.background.left, name: 'waiting', unit: 'none' },
        { expr: q.background.time, name: 'time left', unit: 's' },
      ],
      sort='waiting', empty='no data from Ceph'
    ), 6, 8],
    [p.figures(
      'Health checks',
      'What Ceph says is wrong right now, by the names of its checks ("ceph health detail" explains them). Muted checks are not here. Bad looks like: HEALTH_ERR, or a row that nobody can explain.',
      [['severity', 'severity', null], ['name', 'check', null], ['cluster', 'cluster', null]],
      [{ expr: q.checks, name: 'raised', unit: 'none' }]
    ), 12, 7],
    [p.timeSeries(
      'Slow operations over time',
      'Operations that the monitors report as slow, those our daemons see blocked for 30 s and more, and those of the last ten minutes over 10 s. Bad looks like: anything above 0; the OSDs\' page says what they wait for.',
      'none', [p.target(q.slow.ceph, 'slow by the monitors'), p.target(q.slow.blocked, 'blocked'), p.target(q.slow.recent, 'slow lately')]
    ) + p.linked([links.to('osds')]), 12, 7],
    [p.alerts('Alerts of RADOS that fire', 'What fires in the layer rados, the longest on top. A page in a lower layer inhibits these notifications; here they are shown. Bad looks like: any row.', q.firing, [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]), 24, 6],
  ];

  dashboard.new(
    'pools',
    [variables.datasource, variables.cluster, variables.pool, variables.operation, variables.statistic],
    [
      { title: null, panels: state },
      { title: 'Is it available?', panels: availability },
      { title: 'Is it as accepted?', panels: service },
      { title: 'What clients do', panels: clients, closed: true },
      { title: 'What is being repaired', panels: repair },
    ],
    shown='layer="rados"',
    empty='not measured here, or no data from Ceph'
  )
