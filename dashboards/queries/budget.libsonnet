// The queries of the latency budget. The live stack is made by rules (alerts/rules/budget.libsonnet), the documented one
// is plumbline_baseline_budget_seconds.
function(config)
  local matchers = import '../lib/matchers.libsonnet';

  local cluster = 'cluster=~"$cluster"';
  local sel = matchers.selector(cluster);
  local chosen = sel('device_class=~"$device_class"');
  local rados = sel('device_class=~"$device_class", workload=~"rados.+"');

  // The kind of link is the documented device class: another site's, so no variable chooses it.
  local documented(workload) = 'max by (profile, device_class, workload, stage) (plumbline_baseline_budget_seconds{workload=~"%s"})' % workload;
  // One bar a stack: `bar` says whose it is.
  local barred(expr, label) = 'label_join(label_replace(label_replace(%s, "part", "$1", "stage", "(.+)"), "whose", "%s", "", ""), "bar", " ", "whose", "device_class", "workload")' % [expr, label];
  // The latest of the range: of a periodic probe there is a stack only for a few minutes after each run.
  local latest(metric, labels) = 'max by (%s) (last_over_time(%s%s[$__range]))' % [labels, metric, chosen];
  local byStage = 'cluster, device_class, workload, stage';
  // Only while they add up to the latest whole: a part that has come or gone since the one before (a disk
  // that is seen now, a round trip that is not measured any more) would stand in another stage twice.
  local whole = 'cluster, device_class, workload';
  local stack = |||
    %(stages)s
    and on (%(whole)s)
    abs(
      sum by (%(whole)s) (%(stages)s)
      / on (%(whole)s)
      %(latest)s
      - 1
    ) < %(within)g
  ||| % { within: config.budget.addsUpWithin, whole: whole, stages: latest('plumbline:budget_stage:seconds', byStage), latest: latest('plumbline:budget_stack:seconds', whole) };

  {
    stacks: 'max by (bar, part) (%s or %s)' % [
      barred(std.rstripChars(stack, '\n'), 'here:'),
      barred(documented('.+-4k-.+'), 'documented:'),
    ],
    state: {
      whole: latest('plumbline:budget_whole:seconds', 'device_class, workload'),
      rest: 'min by (device_class, workload) (last_over_time(plumbline:budget_rest:seconds%s[$__range]))' % chosen,
      documented: 'min(sum by (profile, device_class) (%s))' % documented('.+-4k-.+'),
    },
    table: {
      seconds: stack,
      share: '(%s) / on (%s) group_left () %s' % [std.rstripChars(stack, '\n'), whole, latest('plumbline:budget_stack:seconds', whole)],
    },
    over: {
      stage: 'avg by (stage) (plumbline:budget_stage:seconds%s)' % rados,
      whole: 'avg(plumbline:budget_whole:seconds%s)' % rados,
      rest: 'max by (device_class, workload) (plumbline:budget_rest:seconds%s)' % chosen,
    },
    parts: {
      osd: 'avg by (part) (plumbline:budget_osd:seconds%s)' % chosen,
      device: 'max by (device_class) (plumbline:budget_device:seconds%s)' % chosen,
      documentedDevice: 'max by (workload, profile) (plumbline_baseline_budget_seconds{stage="device", workload=~".+-4k-.+"})',
      roundTrip: 'max by (cluster) (plumbline:budget_round_trip:seconds%s)' % sel(),
      roundTripBaseline: 'max by (cluster, device_class, workload, source) (plumbline:baseline_in_force:latency_seconds%s)' % sel('layer="network", statistic="mean"'),
      roundTripDocumented: 'max by (device_class, workload, profile) (plumbline_baseline_latency_seconds%s)' % sel('layer="network", source="documented", statistic="mean"'),
      whole: 'max by (device_class, workload) (plumbline:budget_whole:seconds%s)' % chosen,
      wholeDocumented: 'sum by (profile, device_class, workload) (%s)' % documented('.+-4k-.+'),
    },
    documented: {
      seconds: documented('.+'),
      share: '%(d)s / on (profile, device_class, workload) group_left () sum by (profile, device_class, workload) (%(d)s)' % { d: documented('.+') },
    },
  }
