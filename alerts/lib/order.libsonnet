// Every description answers in one order: what is wrong and for whom, how long it has lasted, what is suspected, what to do
// first. The alerts say the first (and, in a rule without `for`, the span that it looks at); the others are added here.
{
  local firstSteps = $._firstSteps,
  local suspected = '\nSuspected: ',

  local ordered(rule) =
    local parts = std.splitLimit(rule.annotations.description, suspected, 1);
    local first =
      if std.objectHas(firstSteps, rule.alert) then firstSteps[rule.alert]
      else error '%s has no first step: add one to _firstSteps beside the alert' % rule.alert;
    rule {
      annotations+: {
        description:
          parts[0]
          + (if 'for' in rule then '\nThis has lasted for at least %s.' % rule['for'] else '')
          + (if std.length(parts) > 1 then suspected + parts[1] else '')
          + '\nFirst: %s%s' % [
            first,
            if std.endsWith(first, '?') then '' else '.',
          ],
      },
    },

  prometheusAlerts+:: {
    groups: [group { rules: std.map(ordered, group.rules) } for group in super.groups],
  },
}
