// Plumbline's monitoring mixin: configuration, recording rules, alerts and dashboards.
// `alerts/render.py` writes the rules to alerts/out/, so that nobody needs jsonnet to use them.
(import 'alerts/config.libsonnet')
+ (import 'alerts/rules/baseline.libsonnet')
+ (import 'alerts/rules/canary.libsonnet')
+ (import 'alerts/rules/probe.libsonnet')
+ (import 'alerts/rules/degradation.libsonnet')
+ (import 'alerts/alerts/self.libsonnet')
+ (import 'alerts/alerts/probe.libsonnet')
+ (import 'alerts/alerts/canary.libsonnet')
+ (import 'alerts/alerts/degradation.libsonnet')
+ (import 'alerts/alerts/network.libsonnet')
+ (import 'alerts/lib/links.libsonnet')
