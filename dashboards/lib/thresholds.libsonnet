// When a figure turns yellow and red: from the alerts' configuration, so that a colour and an alert tell one story.
// Steps are [[from, colour], …]; the first `from` is null.
local colour = import 'colours.libsonnet';

function(config) {
  // Degradation ratio: 1 is as accepted. Yellow beyond the least tolerance, red where a canary without history pages.
  degradation: [
    [null, colour.good],
    [config.minimumTolerance, colour.warning],
    [config.minimumTolerance * config.canary.beyond, colour.bad],
  ],

  // Anything at all is bad, or at least worth a look.
  none: [[null, colour.good], [1, colour.bad]],
  few: [[null, colour.good], [1, colour.warning]],

  // 1 is as it should be, 0 is not.
  yes: [[null, colour.bad], [1, colour.good]],

  // A figure that is neither good nor bad by itself.
  neutral: [[null, colour.neutral]],
}
