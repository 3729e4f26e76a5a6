// One disk: what it does, who uses it, and whether it is slower than its peers or its past.
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local t = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = import '../queries/disk.libsonnet';

  local outlier = config.alerts.PlumblineDiskLatencyOutlier;
  local regressed = config.alerts.PlumblineDiskLatencyRegressed;
  local wearOut = config.alerts.PlumblineDiskWearOut;
  local daySeconds = 86400;
  local window = config.disk.window;

  local endurance = [[null, p.colour.bad], [wearOut.days * daySeconds, p.colour.good]];
  local beyond(ratio) = [[null, p.colour.good], [ratio, p.colour.bad]];
  // Of names that come from rows: the page's own cluster goes along.
  local osdOf(field) = links.to('osd', { ceph_daemon: '${__data.fields.%s:percentencode}' % field });
  local osdLine = links.to('osd', { ceph_daemon: '${__field.labels.ceph_daemon:percentencode}' });

  local stat(title, description, unit, query, steps, noValue, decimals=0) = [
    p.stat(title, description, unit, p.target(query, title, instant=true), steps, noValue, decimals=decimals),
    3,
    4,
  ];

  local stats = [
    stat('To its peers', 'The worst p99 of an operation divided by the median of the disks of its class and transport on this node. Nothing: it is idle, has fewer than %d peers, or has other work than they. Bad looks like: %g and more.' % [config.disk.minimumPeers, outlier.ratio], 'none', q.stats.toPeers, beyond(outlier.ratio), decimals=1, noValue='no peers'),
    stat('To its past', 'The last hour\'s p99 divided by what was usual at this hour of the last days. Nothing: fewer than %d days are known. Bad looks like: %g and more.' % [config.disk.minimumPastDays, regressed.ratio], 'none', q.stats.toPast, beyond(regressed.ratio), decimals=1, noValue='no past'),
    stat('p99', 'The slowest hundredth of its operations over %s, the worst operation. Nothing: fewer than %g operations a second. Bad looks like: far above its peers.' % [window, config.disk.minimumOperationsPerSecond], 's', q.stats.p99, t.neutral, decimals=null, noValue='idle'),
    stat('Degradation', 'The probes of this disk against the baseline in force, the worst: 1 is as accepted. Bad looks like: above %g.' % config.minimumTolerance, 'none', q.stats.degradation, t.degradation, decimals=2, noValue='not judged'),
    stat('Alerts', 'Alerts that fire for this disk, its OSDs or its probes. Bad looks like: more than 0.', 'none', q.stats.alerts, t.none, 'rules not loaded'),
    stat('Findings', 'Documented advice that this disk does not follow, except at level info. Bad looks like: more than 0; a table below names it.', 'none', q.stats.findings, t.few, 'no daemon is scraped'),
    stat('Life left', 'Forecast until its rated writes are used up, at its pace so far or in the last two weeks. Bad looks like: less than %d days.' % wearOut.days, 's', q.stats.enduranceLeft, endurance, noValue='not reported'),
    stat('Hung', '1 where operations are in flight and none has completed for %s. Bad looks like: 1: everything that waits for this disk hangs.' % config.disk.hungWindow, 'none', q.stats.hung, t.none, 'rules not loaded'),
  ];

  local identity = [
    [
      p.figures(
        'This disk',
        'What is behind the name: model, serial, firmware, and the class that decides which baselines and which peers it is compared with. Bad looks like: another serial than yesterday under the same name.',
        [
          ['device', 'disk', null],
          ['instance', 'node', [links.fromRow('node', ['cluster', 'instance'])]],
          ['model', 'model', null],
          ['serial', 'serial', null],
          ['firmware', 'firmware', null],
          ['device_class', 'class', null],
          ['transport', 'transport', null],
          ['osd', 'OSD', [osdOf('osd')]],
          ['cluster', 'cluster', null],
        ],
        [{ expr: q.identity.info, name: null }, { expr: q.identity.size, name: 'size', unit: 'bytes' }]
      ),
      16,
      4,
    ],
    [
      p.figures(
        'Its users',
        'Who uses the disk, its partitions or what is built on them: an OSD\'s data, DB or log, volumes, arrays, file systems, swap. Bad looks like: an OSD\'s disk that something else uses, too.',
        [['use', 'use', null], ['user', 'user', [osdOf('user')]], ['device', 'disk', null], ['instance', 'node', null], ['cluster', 'cluster', null]],
        [{ expr: q.users, name: null }]
      ),
      8,
      4,
    ],
  ];

  local latency = [
    [
      p.timeSeries(
        'p99 against peers, past and canary',
        'The slowest hundredth of its operations over %s, from the kernel\'s histograms; an idle disk has none. Dashed: the median of its peers, what was usual at this hour, the same disk a week ago, and the canary\'s p99 in the baseline in force (single operations, for orientation). Bad looks like: the line a decade above the dashed ones.' % window,
        's', [
          p.target(q.p99.disk, '{{operation}}'),
          p.target(q.p99.peers, 'baseline: peers {{operation}}'),
          p.target(q.p99.usual, 'baseline: usual at this hour {{operation}}'),
          p.target(q.p99.weekAgo, 'baseline: a week ago {{operation}}'),
          p.target(q.p99.canary, 'baseline canary {{operation}} {{workload}} ({{source}})'),
        ], logarithmic=true, overrides=p.operationColours
      ),
      12,
      9,
    ],
    [
      p.timeSeries(
        'Median against its past and canary',
        'Half of its operations take less. Dashed: the same disk a week ago, and the canary\'s median in the baseline in force. Bad looks like: above the dashed lines for hours; with a slow tail alone the median looks well.',
        's', [
          p.target(q.p50.disk, '{{operation}}'),
          p.target(q.p50.weekAgo, 'baseline: a week ago {{operation}}'),
          p.target(q.p50.canary, 'baseline canary {{operation}} {{workload}} ({{source}})'),
        ], logarithmic=true, overrides=p.operationColours
      ),
      12,
      9,
    ],
    [
      p.heatmap('Latency of reads', 'How many reads took how long, from issue to completion in the kernel\'s histogram. Bad looks like: a second band above the first, which no mean shows: retries, a sleeping or failing part.', 's', p.target(q.heatmap('read'), '{{le}}')),
      8,
      8,
    ],
    [
      p.heatmap('Latency of writes', 'How many writes took how long, from issue to completion in the kernel\'s histogram. Bad looks like: a second band above the first: garbage collection, a cache that is full or off.', 's', p.target(q.heatmap('write'), '{{le}}')),
      8,
      8,
    ],
    [
      p.heatmap('Latency of flushes', 'How many flushes took how long: what an OSD\'s log waits for. Bad looks like: milliseconds on a disk with power-loss protection.', 's', p.target(q.heatmap('flush'), '{{le}}')),
      8,
      8,
    ],
    [
      p.timeSeries(
        'Tail to peers and past',
        'p99 divided by the peers\' median and by what is usual at this hour: 1 is the same as the others, or as usual. Nothing is drawn where it has other work than its peers. Bad looks like: %g and more.' % outlier.ratio,
        'none', [p.target(q.ratios.peers, '{{operation}} to peers'), p.target(q.ratios.past, '{{operation}} to past')], logarithmic=true
      ),
      6,
      8,
    ],
    [
      p.timeSeries(
        'Mean to equals',
        'The mean of %s divided by the median of disks of its model, on its host or in the cluster: 1 is the same as the others. Dashed red: the limit, higher where it serves more than they. Nothing is drawn where it has other work. Bad looks like: above the limit, where an alert fires.' % config.disk.mean.window,
        'none', [p.target(q.ratios.mean, '{{operation}}'), p.target(q.ratios.meanLimit, 'limit {{operation}}')], logarithmic=true, overrides=p.operationColours
      ),
      6,
      8,
    ],
    [
      p.timeSeries(
        'Probes of this disk',
        'The median of the canary and of each fio run on this disk: single operations of ours, whatever clients do. Dashed: the canary\'s baseline in force, in red its limit. Bad looks like: above the limit and staying there.',
        's', [
          p.target(q.probes.latency, '{{operation}} {{workload}} ({{probe}})'),
          p.target(q.probes.runs, '{{operation}} {{workload}} ({{probe}})'),
          p.target(q.p50.canary, 'baseline canary {{operation}} {{workload}} ({{source}})'),
          p.target(q.probes.limit, 'limit {{operation}} ({{probe}})'),
        ], logarithmic=true, overrides=p.operationColours
      ),
      6,
      8,
    ],
    [
      p.timeSeries(
        'Time in the queue and at the device',
        'Mean time of an operation before it is issued, and from there to its completion. Bad looks like: queue above device, which is too much load or a scheduler; device alone is the disk, its link or its controller.',
        's', [p.target(q.times.queue, '{{operation}} in the queue'), p.target(q.times.device, '{{operation}} at the device')], logarithmic=true
      ),
      6,
      8,
    ],
  ];

  local load = [
    [
      p.timeSeries('Operations', 'Completed operations a second. The load that explains the latency above. Bad looks like: latency up while this is not.', 'iops', [p.target(q.load.operations, '{{operation}}')], overrides=p.operationColours),
      6,
      7,
    ],
    [
      p.timeSeries('Throughput', 'Bytes a second by operation. Bad looks like: a plateau at what the disk or its link can do.', 'Bps', [p.target(q.load.bytes, '{{operation}}')], overrides=p.operationColours),
      6,
      7,
    ],
    [
      p.timeSeries('Size of operations', 'Mean bytes of an operation; large ones always take longer. Bad looks like: a change at the moment the latency changed: the work is different.', 'bytes', [p.target(q.load.size, '{{operation}}')], overrides=p.operationColours),
      6,
      7,
    ],
    [
      p.timeSeries(
        'In flight and busy',
        'Operations in flight, on average and at the moment of the scrape, and the share of time with at least one. Bad looks like: more in flight while operations a second do not rise.',
        'none', [p.target(q.load.inFlight, 'in flight (mean)'), p.target(q.load.inFlightNow, 'in flight (now)'), p.target(q.load.busy, 'busy share')]
      ),
      6,
      7,
    ],
  ];

  local osd = [
    [
      p.timeSeries(
        'Latency of its OSD',
        'What clients of the OSDs on this disk get: mean of their operations, their p99 where the OSD reports it, and how long a commit to the store takes. Nothing is drawn where no OSD uses the disk. Bad looks like: commit follows the disk\'s own latency above: then it is the disk.',
        's', [
          p.target(q.osd.total, '{{ceph_daemon}} {{operation}} mean'),
          p.target(q.osd.p99, '{{ceph_daemon}} {{operation}} p99'),
          p.target(q.osd.commit, '{{ceph_daemon}} commit'),
        ], logarithmic=true
      ) + p.linked([osdLine]),
      12,
      8,
    ],
    [
      p.timeSeries(
        'Its OSD to its class',
        'Figures of the OSDs on this disk divided by the median of their device class in the cluster: 1 is the same as the others. Bad looks like: commit, read or block at %g and more.' % config.osd.ratio,
        'none', [p.target(q.osd.toClass, '{{ceph_daemon}} {{figure}}')], logarithmic=true
      ) + p.linked([osdLine]),
      12,
      8,
    ],
  ];

  local judged = [
    [
      p.figures(
        'Its alerts, and since when',
        'Alerts that fire for this disk, for an OSD on it or for a probe of it. "since" is when the condition began, before its alert waited to be sure. Bad looks like: any row; the lowest layer first.',
        [['severity', 'severity', null], ['layer', 'layer', null], ['alertname', 'alert', null], ['operation', 'operation', null], ['ceph_daemon', 'OSD', [osdOf('ceph_daemon')]], ['probe', 'probe', null]],
        [{ expr: q.alerts.age, name: 'for', unit: 's' }, { expr: q.alerts.since, name: 'since', unit: 'dateTimeAsIso' }],
        sort='for', wide={ alert: 250, since: 160 }
      ),
      24,
      6,
    ],
    [
      p.figures(
        'Its findings',
        'Documented advice on its queue, link and health that is not followed. "plumbline check" on the node says what is, what it should be, and the command that fixes it. Bad looks like: a critical or warning row.',
        [['urgency', 'severity', null], ['check', 'check', [links.to('tuning')]], ['subject', 'of', null]],
        [{ expr: q.findings, name: null }]
      ),
      24,
      6,
    ],
    [
      p.figures(
        'Queue settings',
        'How the kernel runs its queue: scheduler, cache, requests that may wait, and how far it reads ahead. The findings in the next panel judge them. Bad looks like: another scheduler or cache than its peers have.',
        [['scheduler', 'scheduler', null], ['write_cache', 'write cache', null], ['zoned', 'zoned', null], ['device', 'disk', null]],
        [
          { expr: q.settings.info, name: null },
          { expr: q.settings.requests, name: 'requests', unit: 'none' },
          { expr: q.settings.depth, name: 'depth', unit: 'none' },
          { expr: q.settings.readAhead, name: 'read-ahead', unit: 'bytes' },
          { expr: q.settings.maxIo, name: 'largest I/O', unit: 'bytes' },
          { expr: q.settings.affinity, name: 'rq_affinity', unit: 'none' },
          { expr: q.settings.merges, name: 'nomerges', unit: 'none' },
          { expr: q.settings.throttle, name: 'writeback throttling', unit: 's' },
        ]
      ),
      16,
      4,
    ],
    [
      p.figures(
        'Its PCIe link',
        'Of a disk with a link of its own (NVMe): bandwidth of what both ends can do, and errors since boot. Bad looks like: less than 100 %, or errors that grow.',
        [['pci_address', 'address', null]],
        [
          { expr: q.pcie.ratio, name: 'of its best', unit: 'percentunit' },
          { expr: q.pcie.speed, name: 'transfers per second', unit: 'none' },
          { expr: q.pcie.lanes, name: 'lanes', unit: 'none' },
          { expr: q.pcie.maxLanes, name: 'lanes at most', unit: 'none' },
          { expr: q.pcie.errors, name: 'errors', unit: 'none', steps: t.few },
        ]
      ),
      8,
      4,
    ],
    [
      p.timeSeries('Wear and spare', 'Share of the rated writes used up, and of spare blocks left, as the disk itself estimates. Bad looks like: wear that rises faster than its age, or spare that falls.', 'percentunit', [p.target(q.health.wear, 'wear'), p.target(q.health.spare, 'spare')]),
      8,
      7,
    ],
    [
      p.timeSeries(
        'Errors since its beginning',
        'What the disk counts over its life: media errors, replaced and pending sectors, errors on the way to the host. Bad looks like: any step upwards.',
        'none', [
          p.target(q.health.mediaErrors, 'media errors'),
          p.target(q.health.reallocated, 'reallocated sectors'),
          p.target(q.health.pending, 'pending sectors'),
          p.target(q.health.interfaceErrors, 'interface errors'),
        ]
      ),
      8,
      7,
    ],
    [
      p.timeSeries('Temperature', 'The disk\'s own sensor. Dotted: the limits it documents itself; above the warning it throttles itself. Bad looks like: near the limit.', 'celsius', [p.target(q.health.temperature, 'temperature'), p.target(q.health.limit, 'documented limit ({{limit}})')]),
      8,
      7,
    ],
  ];

  dashboard.new(
    'disk',
    [variables.datasource, variables.cluster, variables.instance, variables.disk],
    [
      { title: '$device', panels: stats + identity, of: 'device' },
      { title: 'Latency of $device', panels: latency, of: 'device' },
      { title: 'Load of $device', panels: load, of: 'device' },
      { title: 'What stands on $device', panels: osd, of: 'device', closed: true },
      { title: 'Alerts, findings, settings and health of $device', panels: judged, of: 'device', closed: true },
    ],
    shown='instance="$instance", layer="disk"'
  )
