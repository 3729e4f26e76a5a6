// What happened, drawn over every graph: alerts, recovery, new baselines, upgrades. Off until asked for where it is rare.
local g = import '../g.libsonnet';
local queries = import '../queries/annotations.libsonnet';

local one(name, colour, expr, title, text, enabled=true, more={}) =
  g.dashboard.annotation.withName(name)
  + g.dashboard.annotation.withEnable(enabled)
  + g.dashboard.annotation.withIconColor(colour)
  + {
    datasource: { type: 'prometheus', uid: '${datasource}' },
    expr: expr,
    titleFormat: title,
    textFormat: text,
    step: '60s',
    useValueForTime: false,
  } + more;

// `more` and `ofBaselines`: matchers that narrow alerts and baselines to what the page shows.
function(more='', ofBaselines=more)
  local q = queries(more, ofBaselines);
  [
    one('Alerts', 'red', q.alerts, '{{alertname}}', '{{severity}} {{layer}} {{instance}} {{device}}{{ceph_daemon}}{{probe}}'),
    one('Recovery', 'blue', q.recovery, 'Recovery or backfill', '{{cluster}}'),
    one('Maintenance', 'yellow', q.maintenance, 'Maintenance of {{host}}', '{{why}} ({{who}})'),
    one('Baseline recorded', 'purple', q.baselines, 'Baseline recorded', '{{instance}} {{layer}} {{device_class}} ({{source}})', more={ useValueForTime: true }),
    one('Upgrades', 'orange', q.upgrades, '{{what}} {{version}}', '{{cluster}}'),
  ]
