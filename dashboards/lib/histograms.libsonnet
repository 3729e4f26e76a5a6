// Queries over histograms that answer in whichever form Prometheus stores them (alerts/lib/histogram.libsonnet): pages are
// the same for both, and a graph that spans the day of the change has both of its halves.
local histogram = import '../../alerts/lib/histogram.libsonnet';

local classic = histogram({ histograms: 'classic' });
local native = histogram({ histograms: 'native' });

{
  local either(one, other) = '%s or %s' % [one, other],

  count(of, metric, range):: either(classic.count(of, metric, range), native.count(of, metric, range)),
  sum(of, metric, range):: either(classic.sum(of, metric, range), native.sum(of, metric, range)),

  // What a heatmap draws. `on ()`: where a server keeps both forms for a while, they are not drawn over each other.
  heatmap(metric, range)::
    'sum by (le) (%s) or on () sum(%s)'
    % [classic.buckets('increase', metric, range), native.buckets('increase', metric, range)],
}
