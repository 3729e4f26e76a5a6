// Disks: which one is slower than its peers or than it was, and which will not last?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local t = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = import '../queries/disks.libsonnet';

  local outlier = config.alerts.PlumblineDiskLatencyOutlier;
  local regressed = config.alerts.PlumblineDiskLatencyRegressed;
  local wearOut = config.alerts.PlumblineDiskWearOut;
  local daySeconds = 86400;

  local endurance = [[null, p.colour.bad], [wearOut.days * daySeconds, p.colour.good]];
  local beyond(ratio) = [[null, p.colour.good], [ratio, p.colour.bad]];

  local disk = links.fromRow('disk', ['cluster', 'instance', 'device']);
  local node = links.fromRow('node', ['cluster', 'instance']);
  local osd = links.to('osd', { cluster: '${__data.fields.cluster:percentencode}', ceph_daemon: '${__data.fields.osd:percentencode}' });
  local line = links.fromSeries('disk', ['cluster', 'instance', 'device']);
  local diskLabels = [['device', 'disk', [disk]], ['instance', 'node', [node]], ['cluster', 'cluster', null]];
  local what = [['device_class', 'class', null], ['model', 'model', null], ['osd', 'OSD', [osd]]];

  local stat(title, description, unit, query, steps, noValue) = [
    p.stat(title, description, unit, p.target(query, title, instant=true), steps, noValue, decimals=0),
    3,
    4,
  ];

  local stats = [
    stat('Disks', 'Disks of the chosen clusters and class. Bad looks like: fewer than you have.', 'none', q.stats.disks, t.neutral, 'no disk is read'),
    stat('Busy disks', 'Disks with at least %g operations a second now, enough to judge a tail. Bad looks like: 0 while clients work.' % config.disk.minimumOperationsPerSecond, 'none', q.stats.busy, t.neutral, 'idle or not read'),
    stat('Slow disks', 'Disks for which an alert fires: the tail is %g times that of their peers, or %g times what was usual at this hour. Bad looks like: more than 0; the first table names them.' % [outlier.ratio, regressed.ratio], 'none', q.stats.outliers, t.none, 'rules not loaded'),
    stat('Hung disks', 'Disks with operations in flight that completed none for %s. Bad looks like: more than 0: everything that waits for them hangs.' % config.disk.hungWindow, 'none', q.stats.hung, t.none, 'rules not loaded'),
    stat('Missing disks', 'Disks that were present in the last days and are gone. Bad looks like: more than were removed on purpose.', 'none', q.stats.missing, t.few, 'no disk is read'),
    stat('First worn', 'Forecast until the first disk has used up its rated writes, at its own pace so far or in the last two weeks, whichever is faster. Bad looks like: less than %d days.' % wearOut.days, 's', q.stats.endurance, endurance, noValue='not reported'),
    stat('Slow PCIe', 'Links of disks, adapters and network cards below what both of their ends can do. Bad looks like: more than 0.', 'none', q.stats.pcie, t.few, 'rules not loaded'),
    stat('Open findings', 'Documented advice on disks, links, health and arrays that is not followed, except at level info. Bad looks like: more than 0; the table at the end says which.', 'none', q.stats.findings, t.few, 'no daemon is scraped'),
  ];

  local slow = [
    [
      p.figures(
        'Slowest disks',
        'The worst disks by each measure: the p99 of their operations against the median of their peers (same class and transport on the same node, as busy) and against what was usual at this hour in the last days. The figures are the kernel\'s histograms over %s; buckets double, so ratios below %g can be chance. Bad looks like: %g and more to peers, or %g and more to its past; a click on the disk leads to it.' % [config.disk.window, outlier.ratio, outlier.ratio, regressed.ratio],
        diskLabels + [['operation', 'operation', null]] + what,
        [
          { expr: q.outliers.toPeers, name: 'to peers', unit: 'none', steps: beyond(outlier.ratio) },
          { expr: q.outliers.toPast, name: 'to past', unit: 'none', steps: beyond(regressed.ratio) },
          { expr: q.outliers.p99, name: 'p99', unit: 's' },
          { expr: q.outliers.peers, name: 'peers\' p99', unit: 's' },
          { expr: q.outliers.operations, name: 'operations', unit: 'iops' },
          { expr: q.outliers.info, name: null },
        ],
        sort='to peers'
      ),
      24,
      9,
    ],
  ];

  local latency = [
    [
      p.heatmap(
        'Latency of all disks',
        'How many operations a second took how long, over all disks of the chosen clusters, class and operation: the kernel\'s histograms, added up. Choose a class: hard disks and NVMe in one picture always give two bands. Bad looks like: a second band above the first, or the band moving up.',
        's', p.target(q.heatmap, '{{le}}')
      ),
      12,
      9,
    ],
    [
      p.timeSeries(
        'p99 of the worst disks',
        'The disks that are worst at the end of the range, drawn over all of it. Dashed: the highest median of their peers, and the p99 of the disk baselines in force (canary and fio, one operation at a time on an idle disk: a bound for orientation, not comparable with a loaded disk). Bad looks like: a line a decade above the peers\'.',
        's', [
          p.target(q.latency.p99, '{{instance}} {{device}} {{operation}}'),
          p.target(q.latency.peers, 'baseline: peers {{operation}}'),
          p.target(q.latency.baseline, 'baseline {{device_class}} {{operation}} {{workload}} ({{source}})'),
        ], logarithmic=true
      ) + p.linked([line]) + p.points(500),
      12,
      9,
    ],
    [
      p.timeSeries(
        'Worst disks to their peers',
        'The p99 of the same disks divided by the median of their peers: 1 is the same as the others, whatever the load of all. Nothing is drawn where a disk has other work than its peers. Bad looks like: %g and more, where an alert fires after %s.' % [outlier.ratio, outlier['for']],
        'none', [p.target(q.latency.toPeers, '{{instance}} {{device}} {{operation}}')], logarithmic=true
      ) + p.linked([line]) + p.points(500),
      6,
      8,
    ],
    [
      p.timeSeries(
        'Worst disks to their equals, by the mean',
        'The mean of %s divided by the median of disks of one model, on the host or in the cluster, of the eight that are worst at the end of the range. Dashed red: the highest limit among them, by class and place; it grows with the load of a disk that serves more than its equals. Bad looks like: above the limit, where an alert fires after %s.' % [config.disk.mean.window, outlier['for']],
        'none', [
          p.target(q.latency.mean, '{{instance}} {{device}} {{operation}}'),
          p.target(q.latency.meanLimit, 'limit {{device_class}} ({{among}})'),
        ], logarithmic=true
      ) + p.linked([line]) + p.points(500),
      6,
      8,
    ],
    [
      p.timeSeries(
        'Percentiles by class',
        'Median and p99 over all operations of all disks of a class. Dashed: the median of the disk baselines in force for the class (one operation at a time, for orientation). Bad looks like: a class that rises while its operations do not.',
        's', [
          p.target(q.class.p50, '{{device_class}} {{operation}} p50'),
          p.target(q.class.p99, '{{device_class}} {{operation}} p99'),
          p.target(q.class.baseline, 'baseline {{device_class}} {{operation}} {{workload}} ({{source}})'),
        ], logarithmic=true
      ),
      6,
      8,
    ],
    [
      p.timeSeries(
        'Operations by class',
        'Completed operations a second of all disks of a class: the load that explains the latencies in the next panel. Bad looks like: latencies up while this is not.',
        'iops', [p.target(q.class.operations, '{{device_class}} {{operation}}')]
      ),
      6,
      8,
    ],
  ];

  local health = [
    [
      p.figures(
        'Wear and health',
        'In each column the 20 worst disks, as reported by NVMe or SMART; empty: not among them, or the disk does not report it. Endurance is the forecast until the rated writes are used up; passed, answers and warnings name every disk that says it fails, stopped answering, or warns. Bad looks like: passed or answers "no", less than %d days left, errors or sectors that grow.' % wearOut.days,
        diskLabels + what + [['serial', 'serial', null]],
        [
          { expr: q.health.wear, name: 'wear', unit: 'percentunit' },
          { expr: q.health.enduranceLeft, name: 'endurance left', unit: 's', steps: endurance },
          { expr: q.health.spare, name: 'spare', unit: 'percentunit' },
          { expr: q.health.passed, name: 'passed', unit: 'none', steps: t.yes },
          { expr: q.health.available, name: 'answers', unit: 'none', steps: t.yes },
          { expr: q.health.warnings, name: 'warnings', unit: 'none', steps: t.none },
          { expr: q.health.mediaErrors, name: 'media errors', unit: 'none', steps: t.few },
          { expr: q.health.pending, name: 'pending', unit: 'none', steps: t.few },
          { expr: q.health.reallocated, name: 'reallocated', unit: 'none' },
          { expr: q.health.interfaceErrors, name: 'interface errors', unit: 'none' },
        ],
        sort='wear'
      ) + p.words('passed', { '0': 'no', '1': 'yes' }) + p.words('answers', { '0': 'no', '1': 'yes' }),
      24,
      9,
    ],
    [
      p.timeSeries(
        'Errors',
        'Media errors, interface (CRC) errors and PCIe errors of all chosen disks in each interval, and the sectors that wait for being rewritten. Bad looks like: any rise; the table above names the disks.',
        'none', [
          p.target(q.errors.media, 'media errors'),
          p.target(q.errors.interface, 'interface errors'),
          p.target(q.errors.pcie, 'PCIe errors'),
          p.target(q.errors.pending, 'sectors pending'),
        ]
      ),
      12,
      8,
    ],
    [
      p.figures(
        'Models and firmware',
        'How many disks there are of each model and firmware, and how far the most worn of them is. Disks of one model with different firmware are not peers. Bad looks like: one model with two firmwares, or all of a model worn alike.',
        [['device_class', 'class', null], ['model', 'model', null], ['firmware', 'firmware', null], ['cluster', 'cluster', null]],
        [
          { expr: q.models.disks, name: 'disks', unit: 'none' },
          { expr: q.models.wear, name: 'most worn', unit: 'percentunit' },
        ],
        sort='disks'
      ),
      12,
      8,
    ],
  ];

  local settings = [
    [
      p.figures(
        'Hung disks now',
        'Disks with operations in flight that have completed none for %s. Bad looks like: any row; a device on top of a hung disk is listed with it.' % config.disk.hungWindow,
        diskLabels + what,
        [
          { expr: q.hung.inFlight, name: 'in flight', unit: 'none', steps: t.none },
          { expr: q.hung.info, name: null },
        ],
        sort='in flight'
      ),
      8,
      7,
    ],
    [
      p.figures(
        'PCIe links below their best',
        'Links that have trained to less bandwidth than both of their ends can do: a bad contact, a wrong slot, power management. An adapter slows all of its disks alike. Bad looks like: any row that stays under load.',
        [['instance', 'node', [node]], ['device', 'disk', [disk]], ['pci_address', 'address', null], ['device_type', 'type', null], ['product', 'product', null], ['cluster', 'cluster', null]],
        [
          { expr: q.pcie.ratio, name: 'of its best', unit: 'percentunit' },
          { expr: q.pcie.info, name: null },
        ]
      ),
      8,
      7,
    ],
    [
      p.figures(
        'Settings and findings',
        'How often each documented advice on queues, links, health and arrays is not followed, and on how many nodes. "plumbline check" on a node says what is, what it should be, and the command that fixes it. Bad looks like: a critical row, or one finding on a few of many identical nodes.',
        [['check', 'check', [links.to('tuning', { cluster: '${__data.fields.cluster:percentencode}' })]], ['urgency', 'severity', null], ['cluster', 'cluster', null]],
        [
          { expr: q.findings.count, name: 'open', unit: 'none' },
          { expr: q.findings.nodes, name: 'nodes', unit: 'none' },
        ],
        sort='open'
      ),
      8,
      7,
    ],
  ];

  dashboard.new(
    'disks',
    [variables.datasource, variables.cluster, variables.diskClass, variables.operation],
    [
      { title: null, panels: stats + slow },
      { title: 'Latency', panels: latency },
      { title: 'Wear and health', panels: health, closed: true },
      { title: 'Hung, links and settings', panels: settings, closed: true },
    ],
    shown='layer="disk"'
  )
