// What the probes of one node measured against its baseline, whether they run, and the daemon itself.
function(config)
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local q = import '../queries/node.libsonnet';

  local toProbe = links.fromRow('probes', ['cluster', 'probe']);
  local probeOfSeries = p.linked([links.to('probes', { probe: '${__field.labels.probe:percentencode}' })]);

  {
    latency: [
      [p.timeSeries(
        'Degradation ratio',
        'Measured divided by baseline for latency, baseline divided by measured for IOPS and throughput: 1 is as accepted, 2 is twice as bad, whatever the layer. Nothing is drawn where no baseline is in force or its parameters differ from the probe\'s. Dashed red: the limit of each canary\'s median, from where on it is judged slow; other probes are judged from %g on. Bad looks like: above the limit and staying there.' % config.minimumTolerance,
        'none', [
          p.target(q.canary.degradation, '{{layer}} {{operation}} {{statistic}} ({{probe}}, {{source}})'),
          p.target(q.canary.limit, 'limit {{layer}} {{operation}} ({{probe}}, {{source}})'),
        ], logarithmic=true
      ) + probeOfSeries, 12, 9],
      [p.timeSeries(
        'Canary latency against its baseline',
        'Single 4 KiB operations at random moments, one at a time: the latency of an unloaded client. Dashed: the baseline in force; in red the limit of the median. Dotted: documented profiles, another site\'s hardware, for orientation. Bad looks like: the median above its limit and staying there.',
        's', [
          p.target(q.canary.latency, '{{operation}} {{workload}}'),
          p.target(q.canary.baseline, 'baseline {{operation}} ({{source}})'),
          p.target(q.canary.limitSeconds, 'limit {{operation}} p50 ({{source}})'),
          p.target(q.canary.documented, 'documented {{statistic}} {{operation}} {{workload}} ({{profile}} {{device_class}})'),
        ], logarithmic=true, overrides=p.operationColours
      ) + probeOfSeries, 12, 9],
      [p.heatmap(
        'Canary latency distribution',
        'How many canary operations took how long; the whole distribution, where a percentile is one number. Bad looks like: a second band above the first (a retrying or garbage-collecting disk), or the band moving up.',
        's', p.target(q.canary.heatmap, '{{le}}')
      ), 12, 8],
      [p.timeSeries(
        'Periodic probe latency against its baseline',
        'The latest result of each periodic probe, held until the next one. Dashed: the baseline in force. Dotted: documented profiles, another site\'s hardware, for orientation. Bad looks like: several runs in a row above the dashed line; one run alone proves little.',
        's', [
          p.target(q.probe.latency, '{{operation}} {{workload}} ({{probe}})'),
          p.target(q.probe.baseline, 'baseline {{operation}} {{workload}} ({{source}})'),
          p.target(q.probe.documented, 'documented {{statistic}} {{operation}} {{workload}} ({{profile}} {{device_class}})'),
        ], logarithmic=true, overrides=p.operationColours
      ) + probeOfSeries, 12, 8],
      [p.figures(
        'Probes of this node',
        'When each probe last succeeded, also in its own intervals, whether its last run did, how long it took, and its worst figure against the baseline. Bad looks like: %g intervals and more, where its figures are no longer compared.' % config.probe.staleIntervals,
        [['cluster', 'cluster', null], ['instance', 'instance', null], ['probe', 'probe', [toProbe]], ['layer', 'layer', null], ['probe_type', 'kind', null]],
        [
          { expr: q.probe.info, name: null, unit: 'none' },
          { expr: q.probe.success, name: 'result', unit: 'none', steps: thresholds.yes },
          { expr: q.probe.intervals, name: 'intervals since success', unit: 'none', steps: [[null, p.colour.good], [config.probe.missedIntervals, p.colour.warning], [config.probe.staleIntervals, p.colour.bad]] },
          { expr: q.probe.lastSuccess, name: 'last success', unit: 's' },
          { expr: q.probe.duration, name: 'took', unit: 's' },
          { expr: q.probe.degradation, name: 'degradation', unit: 'none', steps: thresholds.degradation },
        ],
        sort='intervals since success', words='probe'
      ) + p.hidden(['cluster', 'instance']) + p.words('result', { '0': 'failed', '1': 'success' }), 24, 7],
    ],

    watcher: [
      [p.timeSeries(
        'Collector duration',
        'Time each collector took in the last scrape. No collector waits for a command, a disk or a cluster. Bad looks like: one above a tenth of a second.',
        's', [p.target(q.watcher.duration, '{{collector}}')], logarithmic=true
      ) + p.ofFullPage, 8, 7],
      [p.timeSeries(
        'Probes skipped, by reason',
        'Runs that did not happen and why: the disk was busy, the load too high, fio not installed. Production comes first, so a few skips are normal. Bad looks like: one probe always skipped.',
        'none', [p.target(q.probe.skipped, '{{probe}}: {{reason}}')]
      ) + probeOfSeries, 8, 7],
      [p.timeSeries(
        'Time in flight',
        'How long the operation or run now under way has lasted. Bad looks like: a line that only rises (a hung disk).',
        's', [p.target(q.probe.inFlight, '{{probe}}')]
      ) + probeOfSeries, 8, 7],
    ],
  }
