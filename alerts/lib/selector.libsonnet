// A site's selector for one alert, such as `cluster="north", device!~"loop.*"`, applied to what the alert found.
//
// PromQL can't filter the result of an expression by a label; what can look at a label is label_replace. It marks what
// a matcher meets, and `and on` keeps the marked. The filter is on the alert's own labels, after all comparisons: peers,
// medians and sums are what they were, and no expression has to be understood to be filtered. A label that the alert
// hasn't is empty, as everywhere in PromQL.
local promql = import 'promql.libsonnet';

local mark = 'plumbline_selected';

// What label_replace takes as a regular expression and means letter for letter.
local literally(text) = std.foldl(
  function(quoted, special) std.strReplace(quoted, special, '\\' + special),
  ['\\', '.', '+', '*', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$'],
  text
);

local isLabel(text) = std.length(text) > 0 && std.all([
  std.member('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_' + (if at > 0 then '0123456789' else ''), text[at])
  for at in std.range(0, std.length(text) - 1)
]);

// 'a="x", b!~"y|z"' → [{ label: 'a', operator: '=', value: 'x' }, …]: a small automaton, because a value may hold
// commas, braces and escaped quotes.
local parse(where, selector) =
  local wrong(why) = error '%s: selector %s: %s; write it as cluster="north", device!~"loop.*"' % [where, selector, why];
  local operatorOf(text) =
    local found = [op for op in ['!=', '=~', '!~', '='] if std.endsWith(text, op)];
    if found == [] then wrong('no =, !=, =~ or !~ before a value') else found[0];
  local matcher(name, value) =
    local operator = operatorOf(name);
    local label = std.stripChars(std.substr(name, 0, std.length(name) - std.length(operator)), ' ');
    if isLabel(label) then { label: label, operator: operator, value: value }
    else wrong('"%s" is no label' % label);
  local step(state, char) =
    if state.in_ == 'name' then
      if char == '"' then state { in_: 'value', value: '' } else state { name+: char }
    else if state.in_ == 'escape' then
      state { in_: 'value', value+: if char == '"' || char == '\\' then char else wrong('only \\" and \\\\ are escapes') }
    else if state.in_ == 'value' then
      if char == '\\' then state { in_: 'escape' }
      else if char == '"' then state { in_: 'end', found+: [matcher(std.stripChars(state.name, ' '), state.value)] }
      else state { value+: char }
    else if char == ',' then state { in_: 'name', name: '' }
    else if char == ' ' then state
    else wrong('a comma has to stand between two matchers');
  local last = std.foldl(step, std.stringChars(selector), { in_: 'name', name: '', value: '', found: [] });
  if last.in_ == 'end' then last.found else wrong('it ends too early');

// The text of a PromQL string literal.
local quoted(text) = '"%s"' % std.strReplace(std.strReplace(text, '\\', '\\\\'), '"', '\\"');

// The mark is taken off again: it is for the matcher alone, and an alert that kept it would be another alert.
local keep(expr, matcher) = |||
  label_replace(
    label_replace(
  %(expr)s,
      "%(mark)s", "yes", "%(label)s", %(regex)s
    )
    %(operator)s on (%(mark)s)
    label_replace(vector(1), "%(mark)s", "yes", "", ""),
    "%(mark)s", "", "", ""
  )
||| % {
  expr: promql.indented(promql.indented(expr)),
  mark: mark,
  label: matcher.label,
  regex: quoted(if std.endsWith(matcher.operator, '~') then matcher.value else literally(matcher.value)),
  operator: if matcher.operator[0] == '!' then 'unless' else 'and',
};

{
  // `expr` where `selector` holds; `where` names the alert in errors.
  apply(where, expr, selector)::
    std.foldl(keep, parse(where, selector), expr),

  parse:: parse,
}
