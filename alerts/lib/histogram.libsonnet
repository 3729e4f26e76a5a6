// Expressions over histograms of ours, in one place for the two forms in which a Prometheus stores them
// (`_config.histograms`): a classic one is a series for each `le` with a _sum and a _count, a native one is one series.
// `range` is what stands in brackets or behind the name: a selector and a window, such as '{operation="read"}[5m]'.
//
// A native one with our own bucket limits interpolates as the classic one does: the same quantile from the same buckets.
local forms = {
  classic: {
    // Labels of a sum that keeps the buckets apart.
    by(labels):: labels + ['le'],
    buckets(of, metric, range):: '%s(%s_bucket%s)' % [of, metric, range],
    count(of, metric, range):: '%s(%s_count%s)' % [of, metric, range],
    sum(of, metric, range):: '%s(%s_sum%s)' % [of, metric, range],
    // More than 0 where anything was counted within the range.
    counted(metric, range):: 'increase(%s_count%s)' % [metric, range],
    // Was there a histogram at all? For `and` and `unless`, which ask for no value.
    present(metric, range):: '%s_count%s' % [metric, range],
  },

  native: {
    by(labels):: labels,
    buckets(of, metric, range):: '%s(%s%s)' % [of, metric, range],
    count(of, metric, range):: 'histogram_count(%s(%s%s))' % [of, metric, range],
    sum(of, metric, range):: 'histogram_sum(%s(%s%s))' % [of, metric, range],
    // Not `increase`: where a new baseline moved a limit, Prometheus 3.5 gives no difference of two histograms.
    counted(metric, range):: 'changes(%s%s)' % [metric, range],
    present(metric, range):: metric + range,
  },
};

function(config)
  if std.objectHas(forms, config.histograms) then forms[config.histograms]
  else error "_config.histograms: 'classic' or 'native', not '%s'" % config.histograms
