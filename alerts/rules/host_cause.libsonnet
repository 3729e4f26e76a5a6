// What sets a host with slow OSDs apart from the other OSD hosts of its cluster: the suspected cause of the verdict `host`.
local osds = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local host = config.host,
  local labels = host + osds.labels(config) {
    instance: promql.join(config.instanceLabels),
    state: promql.join(config.instanceLabels + ['idle_state']),
    causes: promql.join(promql.clusterLabels(config) + ['cause']),
    caused: promql.join(config.instanceLabels + ['cause']),
    throttledShare: config.osd.throttledShare,
  },

  local waiting(resource) =
    'max by (%s) (rate(plumbline_pressure_waiting_seconds_total{resource="%s"}[%s]))' % [labels.instance, resource, host.window],
  // The series that match as they are, the others as 0.
  local only(metric, matchers) = '(%s{%s} or 0 * %s)' % [metric, matchers, metric],
  local governors(matchers) = only('plumbline_cpu_governor_cpus', matchers),

  // Each the larger, the worse; the floors in the configuration say their units.
  local figures = {
    cpu_governor: |||
      sum by (%(instance)s) (%(slower)s + %(slowest)s)
      / on (%(instance)s)
      sum by (%(instance)s) (plumbline_cpu_governor_cpus)
    ||| % (labels { slower: governors('governor!="performance"'), slowest: governors('governor="powersave"') }),
    // Entered, not only allowed: a program may hold a latency limit.
    cpu_idle: |||
      max by (%(instance)s) (
        plumbline_cpu_idle_exit_latency_seconds
        and on (%(state)s)
        rate(plumbline_cpu_idle_entries_total[%(window)s]) > 0
      )
    ||| % labels,
    cpu_pressure: waiting('cpu'),
    io_pressure: waiting('io'),
    memory_pressure: waiting('memory'),
    cpu_quota: |||
      (
        count by (%(instance)s) (
          plumbline:osd_node:info
          and on (%(osd)s)
          plumbline:osd_cpu_throttled:ratio >= %(throttledShare)g
        )
        or
        0 * count by (%(instance)s) (plumbline:osd_node:info)
      )
      / on (%(instance)s)
      count by (%(instance)s) (plumbline:osd_node:info)
    ||| % labels,
    numa_balancing: 'max by (%s) (plumbline_sysctl_value{sysctl="kernel.numa_balancing"}) > bool 0' % labels.instance,
    huge_pages: 'max by (%s) (%s)' % [labels.instance, only('plumbline_hugepages_info', 'enabled="always"')],
    nvme_power_state: 'max by (%(instance)s) (plumbline_disk_power_state_number and on (%(disk)s) plumbline:osd_disk:info)' % labels,
  },
  local names = std.objectFields(figures),

  local ofSuspect = |||
    (
      group by (%(osd)s) (plumbline:osd_suspect:info{verdict="host"})
      * on (%(osd)s) group_left (instance)
      plumbline:osd_node:info
    )
  ||| % labels,

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-host-causes.rules',
      interval: config.paces.compared,
      rules: [
        {
          // Of hosts with OSDs: others have other work.
          record: 'plumbline:host_compared:figure',
          expr: |||
            (
              %(figures)s
            )
            and on (%(instance)s)
            plumbline:osd_node:info
          ||| % (labels {
                   figures: promql.nested(std.join('\nor\n', [promql.labelled(figures[name], 'cause', name) for name in names])),
                 }),
        },
        {
          // Far beyond the median of its cluster's hosts, itself included.
          record: 'plumbline:host_cause:info',
          expr: |||
            group by (%(caused)s) (
              (
                %(floors)s
              )
              >= on (%(causes)s) group_left ()
              (
                %(ratio)g * quantile by (%(causes)s) (0.5, plumbline:host_compared:figure)
                and on (%(causes)s)
                count by (%(causes)s) (plumbline:host_compared:figure) >= %(minimumHosts)d
              )
            )
          ||| % (labels {
                   floors: promql.nested(promql.nested(std.join('\nor\n', [
                     'plumbline:host_compared:figure{cause="%s"} >= %g' % [name, host.floor[name]]
                     for name in names
                   ]))),
                 }),
        },
        {
          // Of the OSDs with the verdict: a host has several of them and may have several causes.
          record: 'plumbline:osd_host_cause:info',
          expr: std.join('or\n', [
            |||
              %(suspect)s
              * on (%(instance)s) group_left (cause)
              plumbline:host_cause:info{cause="%(cause)s"}
            ||| % (labels { suspect: std.rstripChars(ofSuspect, '\n'), cause: name })
            for name in names
          ]),
        },
      ],
    }],
  },
}
