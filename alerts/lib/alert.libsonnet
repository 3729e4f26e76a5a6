// One alert rule: `for`, severity and keep_firing_for come from the configuration under the alert's name.
{
  // `labels` holds at least `signal`; `layer` too unless the expression's own series carry it.
  // signal: latency | loss | saturation | error | health; inhibition tells them apart.
  new(config, name, expr, labels, summary, description)::
    local tunables =
      if std.objectHas(config.alerts, name) then config.alerts[name]
      else error '%s is not configured: add it, with a severity, to the alerts of alerts/config/<room>.libsonnet' % name;
    self.fromTunables(tunables, name, expr, labels, summary, description),

  fromTunables(tunables, name, expr, labels, summary, description):: {
    alert: name,
    expr: expr,
    [if 'for' in tunables && tunables['for'] != '0m' then 'for']: tunables['for'],
    [if 'keepFiringFor' in tunables then 'keep_firing_for']: tunables.keepFiringFor,
    labels: {
      severity:
        if 'severity' in tunables then tunables.severity
        else error '%s has no severity: give it one in alerts/config/<room>.libsonnet' % name,
    } + labels,
    annotations: { summary: summary, description: description },
  },
}
