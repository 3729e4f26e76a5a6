// What every dashboard has: variables, links that keep them, annotations, a tag, a stable uid.
local g = import '../g.libsonnet';

{
  new(uid, title, description, variables, panels)::
    g.dashboard.new(title)
    + g.dashboard.withUid(uid)
    + g.dashboard.withDescription(description)
    + g.dashboard.withTags(['plumbline'])
    + g.dashboard.withTimezone('browser')
    + g.dashboard.withEditable(false)
    + g.dashboard.graphTooltip.withSharedCrosshair()
    + g.dashboard.time.withFrom('now-3h')
    + g.dashboard.time.withTo('now')
    + g.dashboard.withRefresh('1m')
    + g.dashboard.withVariables(variables)
    + g.dashboard.withLinks([
      g.dashboard.link.dashboards.new('Plumbline', ['plumbline'])
      + g.dashboard.link.dashboards.options.withAsDropdown(true)
      + g.dashboard.link.dashboards.options.withIncludeVars(true)
      + g.dashboard.link.dashboards.options.withKeepTime(true),
    ])
    + g.dashboard.withAnnotations([
      g.dashboard.annotation.withName('Plumbline alerts')
      + g.dashboard.annotation.withEnable(true)
      + g.dashboard.annotation.withIconColor('red')
      + {
        datasource: { type: 'prometheus', uid: '${datasource}' },
        expr: 'ALERTS{alertname=~"Plumbline.+", alertstate="firing", cluster=~"$cluster", instance="$instance"}',
        titleFormat: '{{alertname}}',
        textFormat: '{{severity}} · {{layer}} {{device}}{{probe}}',
        step: '30s',
        useValueForTime: false,
      },
    ])
    + g.dashboard.withPanels(panels),
}
