// The layers from the bottom up, as rules need them: what is out of line, and the lowest of it.
local promql = import 'promql.libsonnet';

local anyOf(words) = std.join('|', words);
local among(label, words) =
  if std.length(words) == 1 then '%s="%s"' % [label, words[0]] else '%s=~"%s"' % [label, anyOf(words)];

// Only our own alerts: another's labels may mean something else.
local ours(matchers, names=null, states=['firing']) =
  'ALERTS{%s}' % std.join(',', [
    if names == null then 'alertname=~"Plumbline.+"' else among('alertname', names),
    among('alertstate', states),
  ] + matchers);

local ofKind(which, layers='layer!=""', states=['firing']) =
  ours(
    [layers]
    + (if 'severities' in which then [among('severity', which.severities)] else [])
    + (if 'signals' in which then [among('signal', which.signals)] else []),
    std.get(which, 'names'),
    states
  );

{
  // Not what is late by too little to explain anything (plumbline:negligible:info).
  explaining(instance, expr):: '%s\nunless on (%s)\nplumbline:negligible:info\n' % [
    std.rstripChars(expr, '\n'),
    promql.join(instance + ['layer', 'device', 'ceph_daemon', 'probe', 'alertname']),
  ],

  // 1 for each layer that some alert of these kinds names now, `by` these labels and `layer`. Absent: none does.
  // An alert that is pending has not been confirmed; one kept firing still is what people were told.
  outOfLine(kinds, by, only=function(expr) expr):: |||
    max by (%(labels)s) (
      %(alerts)s
    )
  ||| % {
    labels: promql.join(by + ['layer']),
    alerts: promql.nested(only('(\n  %s\n)' % promql.nested(std.join('\nor\n', [ofKind(kind) for kind in kinds])))),
  },

  // 1 for each of these layers that somebody is woken for now because it is slow or broken, `by` these labels and
  // `layer`. Below the clients' layers only what meets most hosts: a page about one part, raised by a site, explains
  // nothing on others.
  paged(names, clients, by):: |||
    max by (%(labels)s) (
      %(clients)s
      or
      %(fleet)s
    )
  ||| % {
    local page = ['severity="critical"', 'signal=~"latency|error"'],
    labels: promql.join(by + ['layer']),
    clients: ours([among('layer', [name for name in names if std.member(clients, name)])] + page),
    fleet: ours([among('layer', [name for name in names if !std.member(clients, name)]), 'instance=""'] + page),
  },

  // Alerts of these kinds in these layers, firing or pending, one for each set of these labels. A page is sent within
  // minutes, a ticket about its cause often later: so pending ones too.
  alerts(kinds, layers, labels, states=['firing', 'pending']):: |||
    max by (%(labels)s) (
      %(alerts)s
    )
  ||| % {
    labels: promql.join(labels),
    local within = among('layer', layers),
    alerts: promql.nested(std.join('\nor\n', [ofKind(kind, within, states) for kind in kinds])),
  },

  // The lowest of the layers that `metric` holds 1 for, for each set of the labels `by`; siblings are all named.
  lowest(order, metric, by, matchers=[])::
    local select(layers) =
      '%s{%s}' % [metric, std.join(',', ['layer=~"%s"' % anyOf(layers)] + matchers)];
    local below(index) = std.flattenArrays(order[:index]);
    local one(index) =
      select(order[index])
      + if index == 0 then '' else '\nunless on (%s)\n%s' % [promql.join(by), select(below(index))];
    std.join('\nor\n', ['(\n  %s\n)' % promql.nested(one(index)) for index in std.range(0, std.length(order) - 1)]) + '\n',
}
