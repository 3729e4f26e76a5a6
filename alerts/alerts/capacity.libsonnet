// How long it lasts, and what survives a loss. Each by cluster, most by device class too.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local clusters = promql.clusterLabels(config),
  local class = promql.join(clusters + ['device_class']),
  local slopes = config.capacity.judgedSlopes,
  local rados = { layer: 'rados', signal: 'capacity' },

  local of = 'class {{ $labels.device_class }}{{ with $labels.cluster }} of cluster {{ . }}{{ end }}',
  // What a template asks of this alert's cluster and class.
  local selected = promql.format(clusters + ['device_class']),
  local arguments = promql.arguments(clusters + ['device_class']),
  local query(expr) = '(printf `%s` %s)' % [expr % selected, arguments],

  local unsafe = alerts.PlumblineCapacityHostLossUnsafe,
  local soon = alerts.PlumblineCapacityHostLossSoon,
  local growth = alerts.PlumblineCapacityGrowthFast,
  local headroom = alerts.PlumblineCapacityHeadroomLow,

  // By all judged slopes; the latest of their days. What is not urgent by the longest slope as well, where there is one.
  local agreed(metric, below) = |||
    max by (%(class)s) (%(metric)s{%(select)sslope=~"%(slopes)s"}) < %(days)g
    and on (%(class)s)
    count by (%(class)s) (%(metric)s{%(select)sslope=~"%(slopes)s"}) == %(count)d
    unless on (%(class)s)
    (
      group by (%(class)s) (plumbline:capacity_growth:bytes_per_second{slope="%(longest)s"})
      unless on (%(class)s)
      max by (%(class)s) (%(metric)s{slope="%(longest)s"}) < %(days)g
      unless on (%(class)s)
      max by (%(class)s) (%(metric)s{slope=~"%(slopes)s"}) < %(urgent)g
    )
  ||| % (below {
           class: class,
           metric: metric,
           slopes: std.join('|', slopes),
           count: std.length(slopes),
           longest: config.capacity.longestSlope,
           urgent: config.capacity.urgentDays,
         }),

  local fuller(minimumUsed) = 'and on (%s)\nplumbline:capacity_used:ratio > %g\n' % [class, minimumUsed],

  local planned = [name for name in std.objectFields(growth.days) if name != 'default'],

  _firstSteps+:: {
    PlumblineCapacityHostLossUnsafe: '`ceph osd df tree`: is it balance or space that is missing?',
    PlumblineCapacityHostLossSoon: '`ceph df`: which pool grows? Order hardware now',
    PlumblineCapacityNoSelfHealing: '`ceph osd tree`; plan one host more than there are copies',
    PlumblineCapacityGrowthFast: '`ceph df detail`: which pool grows?',
    PlumblineCapacityHeadroomLow: '`ceph osd pool stats`: which pool, and is it always or at peaks?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-capacity',
      rules: [
        alert.new(
          config,
          'PlumblineCapacityHostLossUnsafe',
          'plumbline:capacity_host_loss:ratio > %g' % unsafe.ratio,
          rados,
          'If a host is lost, the others lack the space to restore its data.',
          'Losing the largest host of ' + of
          + '{{ with query ' + query('topk(1, plumbline:capacity_after_loss:ratio{%s})') + ' }}{{ with (first .).Labels }} ({{ .domain }} {{ .name }}){{ end }}{{ end }}'
          + ' would fill the fullest remaining OSD to {{ $value | humanizePercentage }} of backfillfull'
          + '{{ with query ' + query('-plumbline:capacity_host_loss_left:bytes{%s}') + ' }}: {{ . | first | value | humanize1024 }}B of raw data do not fit{{ end }}'
          + '. Ceph would stop copying before every copy is restored.',
        ),
        alert.new(
          config,
          'PlumblineCapacityHostLossSoon',
          agreed('plumbline:capacity_time_to_host_loss_unsafe:days', soon { select: '' }) + fuller(soon.minimumUsed),
          rados,
          'Losing a host will soon be unsafe.',
          'In {{ printf "%%.0f" $value }} days at the latest, at the growth rates of the last %s, ' % std.join(' and ', slopes) + of + ' will be too full to restore the data of its largest host on the others.',
        ),
        alert.new(
          config,
          'PlumblineCapacityNoSelfHealing',
          'count by (%s) (plumbline:capacity_self_healing:bool == 0)' % promql.join(clusters),
          rados,
          'Pools cannot restore their copies after a host is lost.',
          'Pools{{ with $labels.cluster }} of cluster {{ . }}{{ end }} that have a copy in every failure domain: {{ $value }}. After a host is lost they have one copy fewer until it is back, and the next fault may stop them.',
        ),
        alert.new(
          config,
          'PlumblineCapacityGrowthFast',
          std.join('or\n', [
            agreed('plumbline:capacity_time_to_full:days', {
              days: growth.days[name],
              select: if name == 'default' then
                if planned == [] then '' else 'device_class!~"%s",' % std.join('|', planned)
              else 'device_class="%s",' % name,
            }) + fuller(growth.minimumUsed)
            for name in planned + ['default']
          ]),
          rados,
          'A device class fills faster than planned.',
          'In {{ printf "%%.0f" $value }} days at the latest, at the growth rates of the last %s, the first OSD of ' % std.join(' and ', slopes) + of + ' will be full, which is earlier than planned.',
        ),
        alert.new(
          config,
          'PlumblineCapacityHeadroomLow',
          'plumbline:capacity_headroom:ratio > %g' % headroom.ratio,
          { signal: 'capacity' },
          'Most of the measured hardware capacity is in use.',
          'In its busiest hours of the last %s the {{ $labels.layer }} layer of ' % config.capacity.headroom.span + of + ' reached {{ $value | humanizePercentage }} of the measured {{ $labels.figure }}.',
        ),
      ],
    }],
  },
}
