// Every tunable of the rules and alerts, each with its reason; no number stands anywhere else.
//
// A site changes values without editing this file: `make site SITE=site.libsonnet OUT=DIR`, where
// site.libsonnet is for example
//   { _config+:: { dashboardBaseUrl: 'https://grafana.example.org', alerts+: { PlumblineDown+: { 'for': '2m' } } } }
//
// Durations are PromQL durations. Windows assume a scrape every `scrapeInterval` at least: two are in the shortest.
// Prometheus's `evaluation_interval` holds, keep it at 1 m or less; groups with an interval of their own (`paces`,
// `canary.interval`) have the reason there.
//
// critical: somebody is woken. warning: a ticket. info: read when convenient.
(import 'config/common.libsonnet')
+ (import 'config/links.libsonnet')
+ (import 'config/node.libsonnet')
+ (import 'config/probe.libsonnet')
+ (import 'config/canary.libsonnet')
+ (import 'config/load.libsonnet')
+ (import 'config/network.libsonnet')
+ (import 'config/disk.libsonnet')
+ (import 'config/ceph.libsonnet')
+ (import 'config/osd.libsonnet')
+ (import 'config/gateway.libsonnet')
+ (import 'config/fileserver.libsonnet')
+ (import 'config/host.libsonnet')
+ (import 'config/capacity.libsonnet')
+ (import 'config/budget.libsonnet')
+ (import 'config/blame.libsonnet')
+ (import 'config/maintenance.libsonnet')
