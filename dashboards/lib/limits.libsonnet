// From where on a canary is a ticket: as a ratio to its baseline, and in seconds of its median.
local likeness = 'layer, device_class, workload, operation, source, profile';

{
  // `selector`: a function of more matchers, as in matchers.libsonnet. One for each canary.
  ratio(selector):: 'plumbline:canary_limit:ratio' + selector('verdict="ticket"'),

  seconds(selector):: |||
    %s
    * on (cluster, instance, %s) group_left ()
    max by (cluster, instance, %s) (plumbline:baseline_in_force:latency_seconds{statistic="p50"})
  ||| % [self.ratio(selector), likeness, likeness],
}
