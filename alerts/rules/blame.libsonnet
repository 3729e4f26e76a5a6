// Blame: the layers that are out of line, and the lowest of them, for each host and for each cluster. The alerts
// themselves are the source, so that blame and pages can't tell two stories.
local layers = import '../lib/layers.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local blame = config.blame,
  local clusters = promql.clusterLabels(config),
  local everywhere = [blame.cluster, blame.woken, blame.hung],

  local labels = config.instanceLabels + ['layer', 'device', 'ceph_daemon', 'probe', 'alertname', 'alertstate'],
  local suspects(kinds, names, state) = std.rstripChars(layers.alerts(kinds, names, labels, [state]), '\n'),
  local weighted(kinds, names) =
    '(\n  %s\n  or\n  %g * %s\n)' % [
      promql.nested(suspects(kinds, names, 'firing')),
      blame.pending,
      promql.nested(suspects(kinds, names, 'pending')),
    ],

  local explaining(expr) = layers.explaining(config.instanceLabels, expr),

  // The seconds of its lateness, negative: sorted, what explains most comes first. What nobody measured waits for as long as
  // such a fault makes operations wait.
  local late(layer, part) =
    '-1 * plumbline:suspect:info{layer="%(layer)s"}\n* on (%(part)s) group_left ()\nmax by (%(part)s) (plumbline:part_excess:seconds{layer="%(layer)s"})'
    % { layer: layer, part: promql.join(part) },
  local unmeasured(matchers, seconds) = '-%g * plumbline:suspect:info%s' % [seconds, matchers],
  local named(names) = '{alertname=~"%s"}' % std.join('|', names),
  local bySeconds = std.join('\nor\n', [
    unmeasured(named(blame.seconds.hung.names), blame.seconds.hung.seconds),
    unmeasured(named(blame.seconds.down.names), blame.seconds.down.seconds),
    late('disk', config.instanceLabels + ['device']),
    late('osd', clusters + ['ceph_daemon']),
    late('network', clusters + ['ceph_daemon']),
    unmeasured('', blame.seconds.other),
  ]),

  // The alert is about all interfaces of a role. Suspected are those whose MTU is not that of most, before what follows
  // from it on others.
  local wrongMtus = std.rstripChars(|||
    max by (%(part)s) (
      %(alert)s
      * on (%(role)s) group_right (layer, alertname, alertstate)
      (
        plumbline:nic_role_mtu:bytes
        != on (%(role)s) group_left ()
        quantile by (%(role)s) (0.5, plumbline:nic_role_mtu:bytes)
      )
    ) * 0 - %(seconds)g
  ||| % {
    local role = clusters + ['role'],
    local known = ['layer', 'alertname', 'alertstate'],
    part: promql.join(config.instanceLabels + ['device'] + known),
    role: promql.join(role),
    alert: promql.nested(std.rstripChars(layers.alerts([blame.mtu], ['network'], role + known), '\n')),
    seconds: blame.seconds.hung.seconds,
  }, '\n'),

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-blame.rules',
      rules: [
        {
          record: 'plumbline:layer_out_of_line:bool',
          expr: layers.outOfLine([blame.host, blame.woken], config.instanceLabels),
        },
        {
          // RADOS and what stands on it is served by all hosts: a probe here waits for a disk there.
          record: 'plumbline:layer_out_of_line_cluster:bool',
          expr: layers.outOfLine(everywhere, clusters, explaining),
        },
        {
          // An alert about the cluster as such is on no host.
          record: 'plumbline:blamed_layer:info',
          expr: layers.lowest(
            blame.order, 'plumbline:layer_out_of_line:bool', config.instanceLabels, ['instance!=""']
          ),
        },
        {
          record: 'plumbline:blamed_layer_cluster:info',
          expr: layers.lowest(blame.order, 'plumbline:layer_out_of_line_cluster:bool', clusters),
        },
        {
          // What may be slow or lost below a client's layer, and by enough to be what clients wait for.
          record: 'plumbline:suspect:info',
          expr: explaining(weighted([blame.cluster, blame.suspected], ['network', 'disk', 'osd'])),
        },
        {
          // What a page about a client's layer may follow from. A host that is gone stands for all on it, a disk for its OSD.
          record: 'plumbline:suspected:info',
          expr: |||
            -%(gone)g * %(hosts)s
            or
            (
              %(parts)s
            )
            unless on (%(instance)s)
            %(hosts)s
            unless on (%(osd)s)
            (
              plumbline:osd_disk:info
              and on (%(device)s)
              plumbline:suspect:info{layer="disk"}
            )
          ||| % {
            instance: promql.join(config.instanceLabels),
            osd: promql.join(clusters + ['ceph_daemon']),
            device: promql.join(config.instanceLabels + ['device']),
            hosts: weighted([blame.gone], ['self']),
            gone: blame.seconds.gone,
            parts: promql.nested(wrongMtus + '\nor\n' + bySeconds),
          },
        },
      ],
    }],
  },
}
