// Probes: do they run, what do they cost, and what did they measure over time?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = (import '../queries/probes.libsonnet')(config);

  local toNode = links.fromRow('node', ['cluster', 'instance']);
  local nodeOfSeries = p.linked([links.fromSeries('node', ['cluster', 'instance'])]);
  // One kind of figure, on this page.
  local ofWorkload = p.linked([links.to('probes', { layer: '${__field.labels.layer:percentencode}', workload: '${__field.labels.workload:percentencode}', statistic: '${statistic}' })]);
  // A row knows its layer, but no page of Grafana's can choose by it: the reader does.
  local toLayer = [links.fromRow(page, ['cluster']) for page in ['network', 'disks', 'osds', 'pools', 'rbd']];
  local toProbe = links.fromRow('probes', ['cluster', 'probe']);
  local stale = config.probe.staleIntervals;

  local stat(title, description, expr, steps, decimals=0, noValue='no daemon is scraped') =
    [p.stat(title, description, 'none', p.target(expr, title, instant=true), steps, noValue, decimals=decimals), 3, 4];

  local verdict = [
    stat('Probes', 'Probes and canaries that the chosen nodes have. Bad looks like: fewer than nodes: some measure nothing on purpose.', q.verdict.probes, thresholds.neutral),
    stat('Failed', 'Probes whose latest run or operation failed; the status page of the node says why. Bad looks like: more than 0 for longer than one run.', q.verdict.failed, thresholds.few),
    stat('Overdue', 'Periodic probes without a success for more than %g of their intervals: their last figure is not compared any more. Bad looks like: more than 0.' % stale, q.verdict.overdue, thresholds.few),
    stat('Stuck', 'Canaries whose operation, and runs whose processes, hang beyond all their time limits: what they use hangs too. Bad looks like: more than 0.', q.verdict.stuck, thresholds.none),
    stat('Worst ratio', 'Measured against the baseline in force, worst of what is chosen: 1 is as accepted, 2 is twice as bad. Bad looks like: above %g and staying there.' % config.minimumTolerance, q.verdict.degradation, thresholds.degradation, decimals=2, noValue='no baseline'),
    stat('No baseline', 'Figures without a baseline to judge them; they are drawn and never alert. "plumbline baseline record" makes one. Bad looks like: more than 0 on nodes in service.', q.verdict.missing, thresholds.few),
    stat('Mismatched', 'Figures whose baseline was measured with other parameters (another configuration hash), so that they are not compared. Bad looks like: more than 0: record again, or restore the parameters of the probe.', q.verdict.mismatched, thresholds.few),
    stat('Outdated', 'Baselines recorded before the node changed: its kernel, Ceph, fio, disks, ports or tuning. Bad looks like: more than 0: a verdict may reflect the change and not a fault.', q.verdict.outdated, thresholds.few),
    [p.figures(
      'Schedule and age',
      'Every probe chosen above: when it last ran and last succeeded, the latter in its own intervals; whether the last run succeeded, how long it took and how long one now under way has lasted; its worst figure against the baseline. Canaries run all the time and have no interval. Bad looks like: %g intervals without a success (yellow: two runs in a row did not start), %g and more (red), or a run that never ends.' % [config.probe.missedIntervals, stale],
      [
        ['cluster', 'cluster', null],
        ['instance', 'node', [toNode]],
        ['probe', 'probe', [toProbe]],
        ['layer', 'layer', toLayer],
        ['device_class', 'class', null],
        ['probe_type', 'kind', null],
      ],
      [
        { expr: q.schedule.info, name: null, unit: 'none' },
        { expr: q.schedule.intervals, name: 'intervals since success', unit: 'none', steps: [[null, p.colour.good], [config.probe.missedIntervals, p.colour.warning], [stale, p.colour.bad]] },
        { expr: q.schedule.lastSuccess, name: 'last success', unit: 's' },
        { expr: q.schedule.lastRun, name: 'last run', unit: 's' },
        { expr: q.schedule.success, name: 'result', unit: 'none', steps: thresholds.yes },
        { expr: q.schedule.duration, name: 'took', unit: 's' },
        { expr: q.schedule.inFlight, name: 'in flight', unit: 's' },
        { expr: q.schedule.interval, name: 'every', unit: 's' },
        { expr: q.schedule.degradation, name: 'degradation', unit: 'none', steps: thresholds.degradation },
      ],
      sort='intervals since success'
    ) + p.words('result', { '0': 'failed', '1': 'success' }), 24, 11],
  ];

  // Worst, median, baseline and documented of one kind of figure.
  local history(title, description, unit, of, worst, statistic='') = p.timeSeries(
    title, description, unit, [
      p.target(of.worst(worst), 'worst {{workload}} {{operation}} {{device_class}}'),
      p.target(of.median, 'median {{workload}} {{operation}} {{device_class}}'),
      p.target(of.baseline, 'baseline {{workload}} {{operation}} {{device_class}} ({{source}})'),
      p.target(of.documented, 'documented {{workload}} {{operation}}%s ({{profile}} {{device_class}})' % statistic),
    ], logarithmic=true
  ) + ofWorkload;

  local told = 'The worst node and the median node of each kind of figure, held between runs. Dashed: the median of the nodes\' baselines in force (recorded, else of the site, else a chosen profile). Dotted: documented profiles, another site\'s hardware.';
  local measured = [
    [history(
      'Latency against its baseline', told + ' By the statistic chosen above. Bad looks like: the median leaving the dashed line (all of them), or the worst leaving the median (one of them).',
      's', q.history.latency, 'max', ' {{statistic}}'
    ), 12, 9],
    [p.timeSeries(
      'Latency percentiles',
      'Every statistic that the probes and canaries have, as the median over the nodes; choose a probe or workload above to see one distribution. Bad looks like: p99 and p999 rising while p50 stays: a tail, as from a disk that retries.',
      's', [p.target(q.history.percentiles, '{{workload}} {{operation}} {{device_class}} {{statistic}}')], logarithmic=true
    ) + ofWorkload, 12, 9],
    [history(
      'Operations per second against their baseline', told + ' Bad looks like: the worst or the median below the dashed line for several runs.',
      'iops', q.history.iops, 'min'
    ), 12, 9],
    [history(
      'Throughput against its baseline', told + ' Bad looks like: the worst or the median below the dashed line for several runs.',
      'Bps', q.history.throughput, 'min'
    ), 12, 9],
    [p.timeSeries(
      'Degradation ratio',
      'The worst node of each kind of figure: measured ÷ baseline for latency, baseline ÷ measured for operations and bytes per second. 1 is as accepted, 2 twice as bad; nothing is drawn where no baseline is in force. Dashed red: the lowest limit of a canary\'s median among the nodes; other probes are judged from %g on. Bad looks like: above the limit and staying there.' % config.minimumTolerance,
      'none', [
        p.target(q.history.degradation, '{{layer}} {{workload}} {{operation}} {{device_class}} {{statistic}}'),
        p.target(q.history.limit, 'limit {{layer}} {{workload}} {{operation}} {{device_class}}'),
      ], logarithmic=true
    ) + ofWorkload, 24, 8],
    [p.figures(
      'Latest run and median of the last three',
      'Periodic probes alone: the latest figure and the median of the last three runs, which is what alerts use, and that median against the baseline. Latencies are medians (p50) of a run. Fewer than three runs with the same parameters have no median. Bad looks like: both beyond the baseline.',
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['probe', 'probe', [toProbe]], ['workload', 'workload', null], ['operation', 'operation', null]],
      [
        { expr: q.recent.degradation, name: 'of three against baseline', unit: 'none', steps: thresholds.degradation },
        { expr: q.recent.latency, name: 'latency', unit: 's' },
        { expr: q.recent.recentLatency, name: 'latency of three', unit: 's' },
        { expr: q.recent.iops, name: 'operations', unit: 'iops' },
        { expr: q.recent.recentIops, name: 'operations of three', unit: 'iops' },
        { expr: q.recent.throughput, name: 'throughput', unit: 'Bps' },
        { expr: q.recent.recentThroughput, name: 'throughput of three', unit: 'Bps' },
      ],
      sort='of three against baseline'
    ), 24, 9],
  ];

  local schedule = [
    [p.timeSeries(
      'Runs skipped, by reason',
      'Runs that did not start, and why: production comes first (load, busy device, recovery, another probe), or something is missing. Empty if there are none. Bad looks like: one reason all the time: the probe measures nothing.',
      'none', [p.target(q.runs.skipped, '{{reason}}')]
    ), 8, 8],
    [p.timeSeries(
      'Runs, by result',
      'Runs of periodic probes that ended, by result. A timeout is a run that was ended for taking too long. Bad looks like: failures or timeouts that continue.',
      'none', [p.target(q.runs.results, '{{result}}')], overrides=[
        p.fixedColour('/^success$/', p.colour.good),
        p.fixedColour('/^failure$/', p.colour.bad),
        p.fixedColour('/^timeout$/', p.colour.warning),
      ]
    ), 8, 8],
    [p.timeSeries(
      'Intervals since the last success',
      'In the probe\'s own intervals, the ten that wait longest: 1 is on time whatever the interval. Bad looks like: beyond %g, where its figures are no longer compared and an alert fires.' % stale,
      'none', [p.target(q.runs.since, '{{instance}} {{probe}}')]
    ) + nodeOfSeries, 8, 8],
    [p.timeSeries(
      'Time in flight',
      'How long the run or operation now under way has lasted, the ten longest; empty while there is none. Bad looks like: a line that only rises: a disk, mount or cluster that hangs.',
      's', [p.target(q.runs.inFlight, '{{instance}} {{probe}}')]
    ) + nodeOfSeries, 8, 8],
    [p.timeSeries(
      'Share of time spent in runs',
      'Duration of the latest run divided by its interval, all periodic probes of a node together, the ten nodes with most. What the probes cost the device below: within it, each keeps to its own cap. Bad looks like: more than a few percent.',
      'percentunit', [p.target(q.cost.share, '{{instance}}')]
    ) + nodeOfSeries, 8, 8],
    [p.timeSeries(
      'Duration of runs',
      'How long the latest run took, the longest of each kind of probe. Bad looks like: a kind that takes longer and longer, or comes near its time limit.',
      's', [p.target(q.cost.duration, '{{probe_type}}')]
    ), 8, 8],
    [p.timeSeries(
      'Canary operations per second',
      'What the canaries ask of the disks or the cluster, by kind of device: constant by design, single small operations. Bad looks like: a fall: a canary has stopped.',
      'iops', [p.target(q.cost.canary, '{{layer}} {{device_class}} {{operation}}')]
    ), 12, 8],
    [p.timeSeries(
      'CPU of the daemons',
      'CPUs used by the daemon of a node, the ten with most; programs that a run starts are not in it. Bad looks like: above %g for a quarter of an hour, where an alert fires.' % q.cost.allowed,
      'none', [p.target(q.cost.cpu, '{{instance}}')]
    ) + nodeOfSeries, 12, 8],
  ];

  local entry = [['cluster', 'cluster', null], ['instance', 'node', [toNode]]];
  local what = entry + [['probe', 'probe', [toProbe]], ['layer', 'layer', null], ['device_class', 'class', null], ['workload', 'workload', null], ['operation', 'operation', null]];
  // What a baseline's environment is made of, as the daemon names it.
  local parts = ['kernel', 'ceph', 'fio', 'disks', 'nics', 'tuning'];
  local baselines = [
    [p.figures(
      'Figures that nothing judges',
      'No baseline in force: none was recorded, written or chosen, or the one that would judge was measured with other parameters. "plumbline baseline record" on the node makes one. Empty is good. Bad looks like: any row on a node in service.',
      what,
      [
        { expr: q.baselines.missing, name: 'no baseline', unit: 'none' },
        { expr: q.baselines.mismatched, name: 'other parameters', unit: 'none' },
      ],
      sort='other parameters'
    ), 24, 7],
    [std.foldl(function(panel, part) panel + p.words(part, { '0': 'same', '1': 'changed' }), parts, p.figures(
      'Baselines and what has changed since',
      'The baselines of each node: age of the oldest figure in force, and which parts of the node differ from what it was measured on. Documented profiles and site files don\'t say what they were measured on. Bad looks like: older than %s, or any change: record again.' % config.alerts.PlumblineBaselineOutdated.age,
      entry + [['source', 'source', null], ['profile', 'profile', null]],
      [{ expr: q.baselines.age, name: 'age', unit: 's' }] + [
        { expr: q.baselines.changed(part), name: part, unit: 'none', steps: thresholds.few }
        for part in parts
      ],
      sort='age'
    )), 24, 7],
  ];

  dashboard.new(
    'probes',
    [variables.datasource, variables.cluster, variables.anyInstance, variables.layer, variables.probeClass, variables.probe, variables.workload, variables.statistic],
    [
      { title: null, panels: verdict },
      { title: 'Measured, against the baseline', panels: measured },
      { title: 'Schedule and cost', panels: schedule, closed: true },
      { title: 'Baselines', panels: baselines, closed: true },
    ],
    shown='layer=~"$layer"',
    from='now-2d'
  )
