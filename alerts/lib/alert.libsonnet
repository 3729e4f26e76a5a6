// One alert rule: `for`, severity and keep_firing_for come from the configuration under the alert's name.
{
  // `labels` holds at least `signal`; `layer` too unless the expression's own series carry it.
  // signal: latency | loss | saturation | error | health; inhibition tells them apart.
  new(config, name, expr, labels, summary, description)::
    local tunables =
      if 'severity' in std.get(config.alerts, name, {}) then config.alerts[name]
      else error '%s has no severity: add it to the alerts of alerts/config/<room>.libsonnet' % name;
    self.fromTunables(tunables, name, expr, labels, summary, description),

  fromTunables(tunables, name, expr, labels, summary, description):: {
    alert: name,
    expr: expr,
    [if 'for' in tunables && tunables['for'] != '0m' then 'for']: tunables['for'],
    [if 'keepFiringFor' in tunables then 'keep_firing_for']: tunables.keepFiringFor,
    labels: { severity: tunables.severity } + labels,
    annotations: { summary: summary, description: description },
  },
}
