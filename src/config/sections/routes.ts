/** The schema of one entry under `routes`. */

import { Type } from '@sinclair/typebox';
import { CATEGORIES } from '../config.ts';
import {
  byDefault,
  choice,
  closed,
  flag,
  named,
  oneOrMore,
  optional,
  text,
} from '../file/schema-words.ts';
import { SAMPLE_MODES } from './features.ts';
import { PROTOCOL_NAMES } from './providers.ts';

const anything = 'not looked at';
const RANGE =
  '^\\s*(?:[<>]=?\\s*|=\\s*)?\\d+(\\.\\d+)?[kKmM]?\\s*(\\.\\.\\s*\\d+(\\.\\d+)?[kKmM]?\\s*)?$';

const range = (what: string) =>
  Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: RANGE })], {
    description: `${what}: ">60000", "<=1000", "1k..5k" or a number.`,
  });
const howMany = (what: string) =>
  Type.Union([Type.Boolean(), Type.Integer({ minimum: 0 }), Type.String({ pattern: RANGE })], {
    description: `${what}: true = some, false = none, or a range such as ">10".`,
  });
const HOURS = '^\\s*\\d{1,2}:\\d{2}\\s*-\\s*\\d{1,2}:\\d{2}\\s*$';
const hours = Type.String({
  pattern: HOURS,
  description: 'From-to, "22:00-06:00"; the end is not part of it.',
});

export const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;

export const when = closed(
  {
    model: optional(
      oneOrMore(
        text('A glob ("claude-*"; case does not matter) or a "/regular expression/".'),
        'The name that the client asked for, aliases followed.',
      ),
      anything,
    ),
    protocol: optional(
      oneOrMore(choice(PROTOCOL_NAMES, 'A protocol.'), 'What the client speaks.'),
      anything,
    ),
    category: optional(
      oneOrMore(
        choice(CATEGORIES, 'A category.'),
        'What the built-in classifier calls the request.',
      ),
      anything,
    ),
    tokens: optional(range('Size of the prompt, estimated'), anything),
    stream: optional(flag('Whether a stream was asked for.'), anything),
    images: optional(howMany('Images in the last user turn'), anything),
    documents: optional(howMany('PDFs and other files in the prompt'), anything),
    tools: optional(howMany('Tools of any kind'), anything),
    tool_names: optional(
      oneOrMore(text('A glob.'), "Names of the client's own tools; one that fits is enough."),
      anything,
    ),
    hosted_tools: optional(
      oneOrMore(
        text('A glob.'),
        'Names of hosted tools such as web_search; one that fits is enough.',
      ),
      anything,
    ),
    thinking: optional(flag('Whether the client wants reasoning.'), anything),
    effort: optional(
      oneOrMore(
        choice(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'], 'An effort.'),
        'The reasoning effort that was asked for.',
      ),
      anything,
    ),
    background: optional(
      flag('Whether this looks like a side job (a title, a summary).'),
      anything,
    ),
    headers: optional(
      named(
        Type.Union([Type.Boolean(), Type.String(), Type.Array(Type.String(), { minItems: 1 })]),
        'Header name → globs; true = present, false = absent.',
      ),
      anything,
    ),
    text: optional(
      oneOrMore(text('A glob.'), 'The text of the last user turn ("*urgent*").'),
      anything,
    ),
    time: optional(
      Type.Union(
        [
          hours,
          closed(
            {
              hours: byDefault(hours, '00:00-24:00'),
              days: optional(
                oneOrMore(choice(DAYS, 'A day.'), 'Days on which the window begins.'),
                'every day',
              ),
              zone: optional(text('IANA time zone, "Europe/Berlin".'), "the machine's"),
            },
            'A window of time.',
          ),
        ],
        { description: 'The time of day, "22:00-06:00", or hours, days and zone.' },
      ),
      anything,
    ),
  },
  'Conditions; all that are given must hold.',
);

const targetText = Type.String({
  pattern: '^[^/\\s]+/.+$',
  'x-mismatch': 'must be provider/model; provider/* keeps the name that was asked for',
  'x-meant': '{}/*',
  description: 'provider/model; provider/* keeps the name that was asked for.',
});

export const routeRule = closed(
  {
    name: optional(text('A name for logs and explanations.'), '"route N"'),
    when: optional(when, 'always'),
    to: oneOrMore(
      Type.Union([
        targetText,
        closed(
          {
            target: targetText,
            weight: optional(
              Type.Number({
                minimum: 0,
                maximum: 1_000_000,
                description: 'Share of the requests that begin here; the others are fallbacks.',
              }),
              '1 where another target of the route has a weight',
            ),
          },
          'A target with its weight.',
        ),
      ]),
      'Targets in fallback order.',
    ),
    samples: optional(
      choice(SAMPLE_MODES, 'Which of its exchanges are kept on disk.'),
      'as samples.mode says',
    ),
  },
  'A rule; the first one that matches decides.',
);
