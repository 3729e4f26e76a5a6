// Capacity review: when is it full, what survives losing the largest host, how much headroom is left?
function(config)
  local g = import '../g.libsonnet';
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local variables = import '../lib/variables.libsonnet';
  local q = (import '../queries/capacity.libsonnet')(config);

  local alerts = config.alerts;
  local limits = config.capacity.limits;
  local verdict = config.capacity.verdict;
  local day = 86400;
  local days(count) = count * day;

  local good = p.colour.good, warning = p.colour.warning, bad = p.colour.bad;
  local fullness = [[null, good], [limits.nearfull, warning], [limits.backfillfull, bad]];
  local share = [[null, good], [1, bad]];
  local left = [[null, bad], [0, warning], [1, good]];
  local lossDays = [[null, bad], [days(alerts.PlumblineCapacityHostLossSoon.days), good]];
  local planDays = [[null, warning], [days(alerts.PlumblineCapacityGrowthFast.days.default), good]];
  local headroom = [[null, good], [alerts.PlumblineCapacityHeadroomLow.ratio, bad]];
  local wearDays = [[null, bad], [days(alerts.PlumblineDiskWearOut.days), warning], [days(4 * alerts.PlumblineDiskWearOut.days), good]];

  local databaseFull = alerts.PlumblineOsdDatabaseFull.fullRatio;
  local full = '%g %%' % (100 * databaseFull);

  local slopes = std.join(', ', [each.slope for each in config.capacity.slopes]);
  // The longest slope, and five days in which nobody notices that Prometheus was down.
  local retention = '35d';
  local proportional = 'Assumed: what is lost spreads over the others as their data is spread now.';
  local range = 'A least squares slope each over the last %s: the range between them is the forecast. A slope appears with most of its span recorded.' % slopes;

  // A tile holds one class: the worst. Good and bad side by side in one colour would hide each other; the table has all.
  local worstOf = 'Of the chosen clusters\' device classes the worst, which the tile names; the table below has all. ';
  local named = g.panel.stat.options.withTextMode('value_and_name') + g.panel.stat.options.withGraphMode('none');
  local words(mapping) = { fieldConfig+: { defaults+: { mappings+: [{
    type: 'value',
    options: { [std.toString(each[0])]: { text: each[1], color: each[2], index: each[0] } for each in mapping },
  }] } } };
  local ofClass = '{{cluster}} {{device_class}}';
  local toOsds = p.linked([links.fromSeries('osds', ['cluster', 'device_class'])]);
  local column(expr, name, unit, steps=null) = { expr: expr, name: name, unit: unit, steps: steps, links: null };
  local soonestFirst(heading) = { options+: { sortBy: [{ displayName: heading, desc: false }] } };

  local loss = [
    [p.stat(
      'If the largest host dies now',
      worstOf + 'In words: can what the host (or the rack, where that is the failure domain) holds be restored on the others? Judged by fullness, by copies and failure domains of the pools (the cluster\'s map; without it by fullness alone), the worst of all pools. Bad looks like: anything but "the others take it".',
      'none', p.target(q.loss.verdict, ofClass, instant=true), [[null, p.colour.neutral]], 'no data from Ceph'
    ) + named + words([
      [verdict.safe, 'SAFE: the others take it', good],
      [verdict.full, 'UNSAFE: the others get too full', bad],
      [verdict.copies, 'NO SELF-HEALING: a pool lacks hosts for its copies', warning],
      [verdict.data, 'DATA AT RISK: a pool may have all copies there', bad],
      // the words under the name: beside it both would be too small to read
    ]) + { options+: { wideLayout: false } } + toOsds, 8, 5],
    [p.stat(
      'Fullest OSD after that',
      worstOf + 'How full the fullest OSD of the others gets once it holds its part of what was lost: its fullness × all used ÷ what is used on the others, the worst host. %s Absent where nothing would be copied. Bad looks like: above backfillfull, where Ceph stops copying.' % proportional,
      'percentunit', p.target(q.loss.after, ofClass, instant=true), fullness, 'no figure', decimals=1
    ) + named + toOsds, 5, 5],
    [p.stat(
      'Room until unsafe',
      'Of the class in the tile beside it: raw bytes that fit until the loss of the largest host could not be restored any more; below zero: bytes to delete, or to add as OSDs. Divide by the pool\'s raw ratio (3 with three copies) for client data. Bad looks like: below 0, or less than a few months\' growth.',
      'bytes', p.target(q.loss.left, ofClass, instant=true), left, 'no figure', decimals=1
    ) + named + toOsds, 5, 5],
    [p.stat(
      'Unsafe at the soonest in',
      worstOf + 'Time until losing the largest host becomes unsafe, by the fastest of the slopes over %s; the table has the latest, too. No value: it does not grow, or is unsafe already. Bad looks like: less than the %d days in which hardware can be had.' % [slopes, alerts.PlumblineCapacityHostLossSoon.days],
      's', p.target(q.loss.soonest, ofClass, instant=true), lossDays, 'no forecast', decimals=1
    ) + named + toOsds, 6, 5],
    [p.figures(
      'How long it lasts',
      'Each device class, whether losing its largest host is safe, how many raw bytes fit until it is not, and its forecasts from the soonest to the latest. %s "latest" is empty where a slope sees no growth. Bad looks like: full sooner than the %d days of the plan, or the soonest far below the latest (an event, not a trend).' % [range, alerts.PlumblineCapacityGrowthFast.days.default],
      [['cluster', 'cluster', null], ['device_class', 'class', [links.fromRow('osds', ['cluster', 'device_class'])]]],
      [
        column(q.loss.verdicts, 'if the largest host dies', 'none'),
        column(q.class.ratio, 'used', 'percentunit', fullness),
        column(q.class.fullest, 'fullest OSD', 'percentunit', fullness),
        column(q.loss.lefts, 'until unsafe', 'bytes', left),
        column(q.class.soonest, 'full, soonest', 's', planDays),
        column(q.class.latest, 'full, latest', 's'),
        column(q.loss.unsafeSoonest, 'host loss unsafe, soonest', 's', lossDays),
        column(q.loss.latest, 'host loss unsafe, latest', 's'),
      ],
      sort='if the largest host dies', empty='no data from Ceph'
    ) + p.words('if the largest host dies', {
      [std.toString(verdict.safe)]: 'safe',
      [std.toString(verdict.full)]: 'unsafe: too full',
      [std.toString(verdict.copies)]: 'no self-healing',
      [std.toString(verdict.data)]: 'data at risk',
    }, {
      [std.toString(verdict.safe)]: good,
      [std.toString(verdict.full)]: bad,
      [std.toString(verdict.copies)]: warning,
      [std.toString(verdict.data)]: bad,
    }), 24, 6],
    [p.figures(
      'The largest host',
      'The host (or rack) whose loss leaves the others fullest: as a rule the one with most data. "scope" is the rack inside which its data would go, where every rack has a copy already. Bad looks like: a fullness above nearfull (%g unless the cluster says otherwise), or above backfillfull (%g).' % [limits.nearfull, limits.backfillfull],
      [['cluster', 'cluster', null], ['device_class', 'class', [links.fromRow('osds', ['cluster', 'device_class'])]], ['domain', 'lost', null], ['name', 'name', null], ['scope', 'scope', null]],
      [column(q.loss.worstData, 'data on it', 'bytes'), column(q.loss.worst, 'fullest OSD after it', 'percentunit', fullness)],
      sort='fullest OSD after it', empty='no data from Ceph'
    ), 12, 5],
    [p.figures(
      'Is there enough history for a forecast?',
      'How far back each slope needs the used bytes of a class, and whether Prometheus has them. A forecast without enough history is missing from this page, not guessed. Prometheus keeps 15 days unless --storage.tsdb.retention.time says more, and the slope of %s then never appears: %s is enough for all. Bad looks like: "no" on a Prometheus that has run for longer than that.' % [config.capacity.slopes[std.length(config.capacity.slopes) - 1].slope, retention],
      [['slope', 'forecast by', null]],
      [
        column(q.history.needed, 'needs', 's'),
        column(q.history.there, 'is there', 'none'),
      ],
      wide={ 'is there': 420 }
    ) + p.words('is there', { '0': 'no: less is kept, or it is new; retention: %s or more' % retention, '1': 'yes' }, { '0': warning, '1': good })
    + { options+: { sortBy: [{ displayName: 'needs', desc: false }] } }, 12, 5],
  ];

  local growth = [
    [p.timeSeries(
      'Used share',
      'Raw bytes used ÷ size of the OSDs that are in, by device class, and the fullest OSD of each, which is what fills first. Dashed: the cluster\'s own limits. Bad looks like: the fullest far above the class (balance), or either near nearfull.',
      'percentunit', [
        p.target(q.class.ratio, ofClass),
        p.target(q.class.fullest, ofClass + ' fullest OSD'),
        p.target(q.class.limits, 'baseline: {{limit}}'),
      ]
    ) + toOsds, 12, 8],
    [p.timeSeries(
      'Time to full, by slope',
      'When the first OSD of the class is full, were growth what it was over the last %s: room until then ÷ slope. The lines between them are the range; where they diverge, growth changes. Bad looks like: all of them falling faster than time passes, or below the dashed plan.' % slopes,
      's', [
        p.target(q.class.days, ofClass + ' {{slope}}'),
        p.target('vector(%d)' % days(alerts.PlumblineCapacityGrowthFast.days.default), 'baseline: plan'),
      ], logarithmic=true
    ) + toOsds, 12, 8],
    [p.timeSeries(
      'Growth a day, by slope',
      'Raw bytes a day by least squares over each span; below zero it shrinks. The short slope moves first, the long one follows. Bad looks like: the short one above the long ones for weeks.',
      'bytes', [p.target(q.class.growth, ofClass + ' {{slope}}')], min=null
    ) + toOsds, 12, 8],
    [p.timeSeries(
      'Time until host loss is unsafe, by slope',
      'The same for the day from which the loss of the largest host could not be restored: always before the class is full. %s Bad looks like: below the dashed line, the days in which hardware can be had.' % proportional,
      's', [
        p.target(q.class.unsafeDays, ofClass + ' {{slope}}'),
        p.target('vector(%d)' % days(alerts.PlumblineCapacityHostLossSoon.days), 'baseline: lead time'),
      ], logarithmic=true
    ) + toOsds, 12, 8],
  ];

  local pools = [
    [p.figures(
      'Pools',
      'What is stored before replication, what still fits (max avail: Ceph\'s own figure, until the pool\'s fullest OSD is full), and for how long at the pool\'s own growth, as if the other pools of its class did not grow: the class\'s forecast above is the binding one. Self-healing: after losing a failure domain enough others are left for all copies. Bad looks like: no self-healing that nobody decided on, or full within the plan.',
      [['cluster', 'cluster', null], ['pool', 'pool', [links.fromRow('pools', ['cluster', 'pool'])]], ['pool_id', 'id', null], ['pool_type', 'kind', null], ['failure_domain', 'failure domain', null]],
      [
        column(q.pool.info, null, 'none'),
        column(q.pool.stored, 'stored', 'bytes'),
        column(q.pool.maxAvail, 'max avail', 'bytes'),
        column(q.pool.used, 'used', 'percentunit', fullness),
        column(q.pool.heals, 'self-healing', 'none', [[null, warning], [1, good]]),
        column(q.pool.slowest, 'least growth a day', 'bytes'),
        column(q.pool.fastest, 'most growth a day', 'bytes'),
        column(q.pool.soonest, 'full, soonest', 's', planDays),
        column(q.pool.latest, 'full, latest', 's'),
      ],
      sort='used', empty='no data from Ceph'
    ) + p.words('self-healing', { '0': 'no', '1': 'yes' }), 24, 8],
    [p.timeSeries(
      'Stored in pools',
      'Client data by pool, before replication, as one line through changes of the manager. What grows here, times its copies, is what fills the classes above. Bad looks like: one pool whose line bends upwards.',
      'bytes', [p.target(q.pool.stored, '{{cluster}} {{pool}}')]
    ) + p.linked([links.fromSeries('pools', ['cluster', 'pool'])]), 24, 7],
  ];

  local load = [
    [p.bars(
      'Used of what was measured',
      'The week\'s busy hours (the %g quantile of its rates over %s) ÷ what the baseline in force says the hardware can do: OSD bench × OSDs, with copies counted as work; iperf3 for ports, the busiest of each class. No bar: no such baseline, or less than a day of history. Bad looks like: above %g.' % [config.capacity.headroom.quantile, config.capacity.headroom.window, alerts.PlumblineCapacityHeadroomLow.ratio],
      'percentunit', p.target(q.load.headroom, '{{cluster}} {{layer}} {{device_class}} {{figure}}', instant=true), headroom, max=1
    ) + p.linked([links.fromSeries('probes', ['cluster', 'layer'])]), 8, 8],
    [p.timeSeries(
      'Demand against capability',
      'What is asked of OSDs and ports at each moment, as a share of what was measured of them. Dashed at 100 %: the baseline in force. OSD benches write, so for reads of rotating disks the share is a lower bound. Bad looks like: plateaus near the dashed line.',
      'percentunit', [
        p.target(q.load.demand, '{{cluster}} {{layer}} {{device_class}} {{figure}}'),
        p.target(q.load.capability, 'baseline {{layer}} {{device_class}} {{figure}}'),
      ]
    ) + p.linked([links.fromSeries('probes', ['cluster', 'layer'])]), 16, 8],
    [p.stat(
      'Rebuild after losing the largest host',
      worstOf + 'What the fullest host holds ÷ the rate at which this cluster restored data in the last %s (mean over bytes). Assumed: as much parallel work as then, and as much client load. No value: nothing worth measuring was restored in that time. Bad looks like: days, in which a second fault meets data with a copy less.' % config.capacity.recovery.span,
      's', p.target(q.loss.rebuild, ofClass, instant=true), [[null, good], [day, warning], [days(7), bad]], 'no recovery seen', decimals=1
    ) + named + toOsds, 8, 6],
    [p.timeSeries(
      'Recovery seen',
      'Bytes a second that recovery and backfill wrote, by device class; dashed: the rate used for the rebuild time. Bad looks like: a rate far below what the disks and the network can do: limits of mClock or osd_max_backfills.',
      'Bps', [
        p.target(q.load.recovery, ofClass),
        p.target(q.load.recoveryRate, 'baseline: typical ' + ofClass),
      ]
    ) + toOsds, 16, 6],
  ];

  local hardware = [
    [p.figures(
      'Hosts',
      'CRUSH hosts with what they hold, the most first, and how full the fullest OSD of the others gets without each. %s Bad looks like: one host with far more data than the others: it alone decides what must stay free.' % proportional,
      [['cluster', 'cluster', null], ['device_class', 'class', [links.fromRow('osds', ['cluster', 'device_class'])]], ['host', 'host', null]],
      [
        column(q.host.used, 'used', 'bytes'),
        column(q.host.size, 'size', 'bytes'),
        column(q.host.ratio, 'of it used', 'percentunit', fullness),
        column(q.host.fullest, 'its fullest OSD', 'percentunit', fullness),
        column(q.host.after, 'fullest OSD without it', 'percentunit', fullness),
      ],
      sort='used', empty='no data from Ceph'
    ), 12, 9],
    [p.figures(
      'Wear-out calendar',
      'Disks by the time left until their rated writes are used up, by their life so far or the last %s where those wore them faster. Hard disks, and disks that do not report it, are missing. Bad looks like: red within %d days; several disks of one age together.' % [config.disk.wearWindow, alerts.PlumblineDiskWearOut.days],
      [['instance', 'node', [links.fromRow('node', ['cluster', 'instance'])]], ['device', 'device', [links.fromRow('disk', ['cluster', 'instance', 'device'])]], ['osd', 'OSD', null], ['device_class', 'class', null], ['model', 'model', null], ['serial', 'serial', null], ['cluster', 'cluster', null]],
      [column(q.wear, 'endurance left', 's', wearDays)]
    ) + soonestFirst('endurance left'), 12, 9],
    [p.figures(
      'Disks with databases',
      'Disks that hold the database or log of OSDs whose data is elsewhere: the OSDs that are lost together with each, the data on them, and how full the fullest database on it is. "plumbline capacity what-if --lose db" says what follows from the loss. Known on hosts whose daemon sees who uses its disks. Bad looks like: one disk with half of a host\'s OSDs; a database near %s.' % full,
      [['instance', 'node', [links.fromRow('node', ['cluster', 'instance'])]], ['device', 'device', [links.fromRow('disk', ['cluster', 'instance', 'device'])]], ['cluster', 'cluster', null]],
      [
        column(q.database.osds, 'OSDs', 'none'),
        column(q.database.data, 'data on them', 'bytes'),
        column(q.database.fullest, 'fullest database', 'percentunit', [[null, good], [databaseFull, warning]]),
      ],
      sort='data on them'
    ), 24, 7],
  ];

  dashboard.new(
    'capacity',
    [variables.datasource, variables.cluster],
    [
      { title: 'What if the largest host dies?', panels: loss },
      { title: 'Growth', panels: growth },
      { title: 'Pools', panels: pools },
      { title: 'Performance headroom and rebuild', panels: load, closed: true },
      { title: 'Hosts and wear', panels: hardware, closed: true },
    ],
    shown='signal="capacity"', baselines='',
    from='now-30d',
    refresh='5m',
    empty='not measured here, or no data from Ceph'
  )
