// The pages as a mixin's `grafanaDashboards`: file name → dashboard. Each is a function of the mixin's `_config`, so that
// a site's numbers are in its colours, texts and queries. Evaluating one needs Grafonnet (jsonnetfile.json).
local pages = import 'lib/pages.libsonnet';

local content = {
  budget: import 'pages/budget.libsonnet',
  capacity: import 'pages/capacity.libsonnet',
  disk: import 'pages/disk.libsonnet',
  disks: import 'pages/disks.libsonnet',
  gateways: import 'pages/gateways.libsonnet',
  network: import 'pages/network.libsonnet',
  nic: import 'pages/nic.libsonnet',
  node: import 'pages/node.libsonnet',
  osd: import 'pages/osd.libsonnet',
  osds: import 'pages/osds.libsonnet',
  overview: import 'pages/overview.libsonnet',
  pools: import 'pages/pools.libsonnet',
  probes: import 'pages/probes.libsonnet',
  rbd: import 'pages/rbd.libsonnet',
  tuning: import 'pages/tuning.libsonnet',
};

{
  grafanaDashboards+:: {
    [pages[page].uid + '.json']: content[page]($._config)
    for page in std.objectFields(content)
  },
}
