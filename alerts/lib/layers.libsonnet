// The layers from the bottom up, as rules need them: what is out of line, and the lowest of it.
local promql = import 'promql.libsonnet';

local anyOf(words) = std.join('|', words);

// Only our own alerts: another's labels may mean something else.
local firing(matchers) =
  'ALERTS{%s}' % std.join(',', ['alertname=~"Plumbline.+"', 'alertstate="firing"'] + matchers);

local ofKind(which) =
  firing(['layer!=""', 'severity=~"%s"' % anyOf(which.severities), 'signal=~"%s"' % anyOf(which.signals)]);

{
  // 1 for each layer that some alert of these kinds names now, `by` these labels and `layer`. Absent: none does.
  // An alert that is pending has not been confirmed; one kept firing still is what people were told.
  outOfLine(kinds, by):: |||
    max by (%(labels)s) (
      %(alerts)s
    )
  ||| % {
    labels: promql.join(by + ['layer']),
    alerts: promql.nested(std.join('\nor\n', [ofKind(kind) for kind in kinds])),
  },

  // 1 for each of these layers that somebody is woken for now, `by` these labels and `layer`. A forecast wakes as well,
  // but slows nothing.
  paged(names, by):: |||
    max by (%(labels)s) (
      %(alerts)s
    )
  ||| % {
    labels: promql.join(by + ['layer']),
    alerts: firing(['layer=~"%s"' % anyOf(names), 'severity="critical"', 'signal!="capacity"']),
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
