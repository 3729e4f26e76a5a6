// What a site may change of every alert, in this one place: `enabled: false` drops it, `selector` narrows what it tells
// of. A misspelt name or tunable would be a wish that nobody hears, so both are mistakes.
local selector = import 'selector.libsonnet';

{
  local tunables = $._config.alerts,
  local settings = (import '../config.libsonnet')._config,
  local defaults = settings.alerts,
  local everywhere = ['enabled', 'for', 'keepFiringFor', 'selector', 'severity'],

  local selected(rule) =
    local own = tunables[rule.alert];
    local fixed = [one.label for one in selector.parse(rule.alert, own.selector) if one.label in rule.labels];
    if !('selector' in own) then rule
    // What they judge is what is not there: such a result has no label to select by, and one that is never met would
    // switch the alert off unseen.
    else if std.startsWith(rule.expr, 'absent(') || std.startsWith(rule.expr, 'vector(') then
      error '%s has no labels of its own to select by; set enabled: false, or plumblineSelector' % rule.alert
    else if fixed != [] then
      error '%s: selector: %s is the same in all of this alert; set enabled: false, or its other tunables'
            % [rule.alert, fixed[0]]
    else rule { expr: selector.apply(rule.alert, rule.expr, own.selector) },

  // Where an alert has several severities, a site's `severity` is that of its tickets.
  local raised(rule) =
    local severity = std.get(tunables[rule.alert], 'severity');
    if severity == null || 'severity' in std.get(defaults, rule.alert, { severity: null }) || rule.labels.severity != 'warning' then rule
    else rule { labels+: { severity: severity } },

  prometheusAlerts+:: {
    local all = super.groups,
    local names = std.set([rule.alert for group in all for rule in group.rules]),
    local unknown = std.setDiff(std.set(std.objectFields(tunables)), names),
    local strange = [
      '%s: %s' % [name, field]
      for name in std.objectFields(tunables)
      if std.objectHas(defaults, name)
      for field in std.objectFields(tunables[name])
      if !std.member(everywhere, field) && !std.objectHas(defaults[name], field)
    ],
    local misspelt = std.setDiff(std.set(std.objectFields($._config)), std.set(std.objectFields(settings))),
    assert misspelt == [] : '_config: there is no setting %s; alerts/config.libsonnet has all' % misspelt[0],
    assert unknown == [] : '_config.alerts: there is no alert %s' % unknown[0],
    assert strange == [] : '_config.alerts: %s is no tunable of this alert' % strange[0],

    groups: std.filter(function(group) group.rules != [], [
      group {
        rules: [raised(selected(rule)) for rule in super.rules if std.get(tunables[rule.alert], 'enabled', true)],
      }
      for group in all
    ]),
  },
}
