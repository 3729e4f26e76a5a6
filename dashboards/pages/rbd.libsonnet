// RBD and clients: what do clients get, from each vantage point, compared with what was accepted?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = import '../queries/rbd.libsonnet';

  local tolerance = config.minimumTolerance;
  local toProbe = [links.fromSeries('probes', ['cluster', 'probe']), links.fromSeries('node', ['cluster', 'instance'])];
  local figure = ' {{operation}} {{workload}}';
  local drawn(title, what, unit, queries, kind) = p.timeSeries(
    title, what, unit, [
      p.target(queries[kind], '{{vantage}} {{instance}}' + figure),
      p.target(queries[kind + 'Baseline'], 'baseline' + figure + ' ({{source}})'),
      p.target(queries[kind + 'Documented'], 'documented' + figure + ' ({{profile}} {{device_class}})'),
    ], logarithmic=true
  ) + p.linked(toProbe);
  local lines = 'Dashed: the baseline in force; dotted: documented profiles, another site\'s hardware. ';
  local rbd = q.layer('rbd'), filesystem = q.layer('filesystem'), object = q.layer('object');

  local state = [
    [p.stat('Attainment', 'Share of the chosen time range in which what clients got was within the tolerance of its baseline, mean over all probes above RADOS. Moments without a figure or a baseline do not count. Bad looks like: below what was promised.', 'percentunit', p.target(q.state.attainment, 'within tolerance', instant=true), thresholds.neutral, decimals=2, noValue='no baseline'), 4, 4],
    [p.stat('Worst ratio now', 'The worst ratio to the baseline in force of all probes above RADOS: 1 is as accepted, 2 is twice as bad. Bad looks like: above %g and staying there.' % tolerance, 'none', p.target(q.state.degradation, 'degradation', instant=true), thresholds.degradation, decimals=2, noValue='no baseline'), 4, 4],
    [p.stat('Beyond tolerance', 'How many figures are beyond their baseline\'s tolerance in the latest run. One run proves little. Bad looks like: more than 0 in several runs.', 'none', p.target(q.state.beyond, 'beyond', instant=true), thresholds.few, decimals=0, noValue='no baseline'), 4, 4],
    [p.stat('Without a baseline', 'Figures of probes above RADOS without a baseline. Record one with "plumbline baseline record". Bad looks like: more than 0 on a cluster in service.', 'none', p.target(q.state.missing, 'without', instant=true), thresholds.few, decimals=0, noValue='no such probe'), 4, 4],
    [p.stat('Failing probes', 'Probes above RADOS whose latest run failed: what a client would have met as well. Bad looks like: more than 0.', 'none', p.target(q.state.failing, 'failing', instant=true), thresholds.none, decimals=0, noValue='no such probe'), 4, 4],
    [p.stat('Image write in OSDs', 'Mean write of the slowest image of each pool, measured in the OSDs: no network to the client and no client software is in it. Bad looks like: low, while the probes above are slow: then it is the client or its network.', 's', p.target(q.state.writeNow, '{{pool}}', instant=true), thresholds.neutral, noValue='no image statistics'), 4, 4],
    [p.figures(
      'Clients, the worst on top',
      'Each probe above RADOS: where it looks from, its latest figures, the ratio to its baseline, and the share of the chosen range within the tolerance. Empty ratio: no baseline in force. Bad looks like: a ratio above %g with little attainment.' % tolerance,
      [
        ['vantage', 'vantage', null],
        ['instance', 'node', [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]],
        ['probe', 'probe', [links.to('probes', { cluster: '${__data.fields.cluster}', probe: '${__data.fields.probe}' })]],
        ['layer', 'layer', [links.to('gateways')]],
        ['workload', 'workload', null],
        ['operation', 'operation', null],
        ['cluster', 'cluster', null],
      ],
      [
        { expr: q.table.place, name: null, unit: 'none' },
        { expr: q.table.latency, name: 'latency', unit: 's' },
        { expr: q.table.throughput, name: 'throughput', unit: 'Bps' },
        { expr: q.table.ratio, name: 'ratio', unit: 'none', steps: thresholds.degradation },
        { expr: q.table.attainment, name: 'attainment', unit: 'percentunit' },
      ],
      sort='ratio'
    ), 24, 9],
  ];

  local block = [
    [drawn('RBD latency by vantage', 'The latest run of each probe on an image of ours through librbd, held until the next: what a virtual machine\'s disk would get from there. ' + lines + 'Bad looks like: several runs above the dashed line; one vantage alone is that client or its network.', 's', rbd, 'latency'), 12, 9],
    [p.heatmap('RBD latency distribution', 'How many operations of the RBD probes took how long, a column where a run was. Bad looks like: a second band far above the first, or the band moving up from run to run.', 's', p.target(q.heatmap, '{{le}}')), 12, 9],
    [drawn('RBD operations by vantage', 'Operations a second of the latest run of each RBD probe. ' + lines + 'Bad looks like: several runs below the dashed line.', 'iops', rbd, 'iops'), 6, 8],
    [drawn('RBD throughput by vantage', 'Bytes a second of the latest run of each RBD probe. ' + lines + 'Bad looks like: several runs below the dashed line.', 'Bps', rbd, 'throughput'), 6, 8],
    [p.timeSeries(
      'Slowest images, measured in the OSDs',
      'Mean latency of the slowest images as the OSDs see it, without client and network; only of pools for which the manager keeps statistics (rbd_stats_pools). Bad looks like: one image away from the others: its work differs; all of them: RADOS.',
      's', [p.target(q.images.write, 'write {{pool}}/{{image}}'), p.target(q.images.read, 'read {{pool}}/{{image}}')], logarithmic=true, overrides=p.operationColours
    ) + p.linked([links.fromSeries('pools', ['cluster', 'pool'])]), 6, 8],
    [p.timeSeries(
      'Images with the most operations',
      'Operations a second of the images with the most, as the OSDs count them; only of pools for which the manager keeps statistics (rbd_stats_pools). Bad looks like: one image away from the others when the OSDs are busy: it is the load.',
      'iops', [p.target(q.images.writes, 'write {{pool}}/{{image}}'), p.target(q.images.reads, 'read {{pool}}/{{image}}')], overrides=p.operationColours
    ) + p.linked([links.fromSeries('pools', ['cluster', 'pool'])]), 6, 8],
    [p.timeSeries('Slowest images, as their clients see them', 'Mean latency of the slowest images of librbd\'s clients that let this host\'s daemon ask, QEMU above all: with librbd, its cache and the network. A write that the cache takes is no write of the cluster; a flush is. Bad looks like: one host away from the others: it is that client or its network; all of them: RADOS.', 's', [p.target(q.clients, '{{instance}} {{operation}} {{pool}}/{{image}}')], logarithmic=true, overrides=p.operationColours) + p.linked([links.fromSeries('node', ['cluster', 'instance'])]), 24, 8],
  ];

  local others = [
    [drawn('File systems, latency', 'In a mounted file system, CephFS and others alike: the canary\'s writes (with their fsync) and reads of the last minutes, and the latest run of each periodic probe. ' + lines + 'Bad looks like: several runs above the dashed line.', 's', filesystem, 'latency'), 8, 8],
    [drawn('File systems, operations', 'Operations a second in a mounted file system, creating, looking at and removing files among them. ' + lines + 'Bad looks like: several runs below the dashed line.', 'iops', filesystem, 'iops'), 8, 8],
    [drawn('Objects, latency', 'Put, get, list and delete at an S3 endpoint: the canary\'s of the last minutes, and the latest run of each periodic probe. ' + lines + 'Bad looks like: several runs above the dashed line.', 's', object, 'latency'), 8, 8],
    [p.timeSeries('Lustre, hosts without a target', 'How many hosts are not connected to a target of Lustre, and servers that say they are not healthy. Bad looks like: any line; one target on most hosts is its server, all targets on one host is that host.', 'none', [p.target(q.lustre.lost, '{{target}}'), p.target(q.lustre.unhealthy, '{{instance}} is not healthy')]), 12, 7],
    [p.timeSeries('Lustre, requests without an answer', 'Requests a second to a target that got no answer in time, and errors of LNet, Lustre\'s network, the ten highest. Bad looks like: any line that stays.', 'ops', [p.target(q.lustre.timeouts, '{{instance}} {{target}}'), p.target(q.lustre.errors, '{{instance}} LNet')]), 12, 7],
  ];

  local judged = [
    [p.timeSeries('Degradation of the ten worst', 'Measured divided by the baseline in force for latency, the inverse for what comes per second: 1 is as accepted. Nothing is drawn where no baseline is in force. Bad looks like: above %g and staying.' % tolerance, 'none', [p.target(q.ratio, '{{instance}} {{probe}} {{operation}} {{statistic}}')], logarithmic=true) + p.linked(toProbe), 12, 8],
    [p.timeSeries('Worst degradation by vantage', 'The worst ratio of each layer, by where the probes run: host, VM, container. Nothing is drawn where no baseline is in force. Bad looks like: one vantage leaving the others: it is what lies between it and the cluster.', 'none', [p.target(q.vantage, '{{vantage}} {{layer}}')], logarithmic=true), 12, 8],
    [p.alerts('Alerts of clients that fire', 'What fires in the layers above RADOS, the longest on top. Alertmanager inhibits what a lower layer explains; here it is shown. Bad looks like: any row.', q.firing, [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]), 24, 6],
  ];

  dashboard.new(
    'rbd',
    [variables.datasource, variables.cluster, variables.vantage, variables.statistic],
    [
      { title: null, panels: state },
      { title: 'Block devices', panels: block },
      { title: 'Files and objects', panels: others, closed: true },
      { title: 'Against the baseline', panels: judged },
    ],
    shown='layer=~"rbd|filesystem|object|client"',
    from='now-24h'
  )
