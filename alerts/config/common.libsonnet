// Where things are, and what a node is.
{
  _config+:: {
    // Selects Plumbline's targets in `up`, the one metric we don't name ourselves. Nothing else looks at `job`.
    plumblineSelector: 'job="plumbline"',

    // What identifies a node. `cluster` may be absent: PromQL takes a missing label as empty on both sides.
    instanceLabels: ['cluster', 'instance'],

    // Reserved names, so that an unconfigured link leads nowhere instead of to somebody else's pages.
    runbookBaseUrl: 'https://plumbline.example/runbooks',

    dashboardBaseUrl: 'http://localhost:3000',  // Grafana's own default

    dashboardUid: 'plumbline-node',
    // Alert → another page than that.
    dashboardUids: {},
  },
}
