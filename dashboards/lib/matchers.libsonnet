// Label matchers as text: those that are empty leave no comma behind.
local join(matchers) = std.join(', ', std.filter(function(each) each != '', matchers));

{
  join: join,

  // `always` → a function of `more` → a selector's braces: what a page asks of every series, and what one query adds.
  selector(always):: function(more='') '{%s}' % join([always, more]),
}
