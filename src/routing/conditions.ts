/** Compiles the conditions of a rule: each knows which facts it reads, whether it holds, and why. */

import type { Category } from '../config/sections/categories.ts';
import { compileRegex, type NumberRange, type WhenConfig } from '../config/sections/conditions.ts';
import { isWithin, type TimeWindow, weekTime } from '../config/sections/time-window.ts';
import { anyGlob, globTest } from '../lib/text/glob.ts';
import { CATEGORY_FACTS } from './category.ts';
import type { Fact, RouteRequest } from './request.ts';

export interface Condition {
  /** As the file spells it: `model`, `header x-app`. */
  readonly key: string;
  readonly facts: readonly Fact[];
  /** What the rule wants, as text. */
  readonly wanted: string;
  holds(request: RouteRequest): boolean;
  /** Set when the model's name alone decides. */
  readonly byName?: (model: string) => boolean;
  /** What the request has, as text. */
  got(request: RouteRequest): string;
}

export type Classify = (request: RouteRequest) => Category;

/** The context window of the first target of the rule for a model name; undefined where it is not known. */
export type WindowFor = (model: string) => number | undefined;

/** The conditions in the order of their cost: those that need the decoded body come last. */
export function compileWhen(
  when: WhenConfig,
  classify: Classify,
  windowFor: WindowFor,
): readonly Condition[] {
  const all: Condition[] = [];
  const add = (condition: Condition | undefined) => {
    if (condition !== undefined) all.push(condition);
  };
  if (when.model) add(models(when.model));
  if (when.protocol) add(oneOf('protocol', when.protocol, (request) => request.protocol));
  for (const [name, globs] of Object.entries(when.headers ?? {})) add(header(name, globs));
  if (when.time) add(timeOfDay(when.time));
  if (when.stream !== undefined) add(yesNo('stream', when.stream));
  if (when.tokens) add(range('tokens', ['tokens'], when.tokens, (request) => request.tokens));
  if (when.windowShare !== undefined) add(share(when.windowShare, windowFor));
  if (when.images) add(range('images', ['images'], when.images, (request) => request.images));
  if (when.documents) {
    add(range('documents', ['documents'], when.documents, (request) => request.documents));
  }
  if (when.tools) {
    const number = (request: RouteRequest) => request.toolNames.length + request.hostedTools.length;
    add(range('tools', ['toolNames', 'hostedTools'], when.tools, number));
  }
  if (when.toolNames) add(names('tool_names', 'toolNames', when.toolNames));
  if (when.hostedTools) add(names('hosted_tools', 'hostedTools', when.hostedTools));
  if (when.thinking !== undefined) add(yesNo('thinking', when.thinking));
  if (when.effort) add(oneOf('effort', when.effort, (request) => request.effort));
  if (when.background !== undefined) add(yesNo('background', when.background));
  if (when.text) add(lastText(when.text));
  if (when.category) add({ ...oneOf('category', when.category, classify), facts: CATEGORY_FACTS });
  return all;
}

function models(patterns: readonly string[]): Condition {
  const tests = patterns.map((pattern) => {
    const regex = compileRegex(pattern);
    return regex === undefined ? globTest(pattern) : (text: string) => regex.test(text);
  });
  const byName = (model: string) => tests.some((test) => test(model));
  return {
    key: 'model',
    facts: ['model'],
    wanted: patterns.join(' or '),
    holds: (request) => byName(request.model),
    byName,
    got: (request) => request.model,
  };
}

function oneOf(
  key: 'protocol' | 'effort' | 'category',
  values: readonly string[],
  read: (request: RouteRequest) => string | undefined,
): Condition {
  return {
    key,
    facts: key === 'category' ? [] : [key],
    wanted: values.join(' or '),
    holds: (request) => values.includes(read(request) ?? ''),
    got: (request) => read(request) ?? 'not given',
  };
}

function yesNo(key: 'stream' | 'thinking' | 'background', wanted: boolean): Condition {
  return {
    key,
    facts: [key],
    wanted: String(wanted),
    holds: (request) => request[key] === wanted,
    got: (request) => String(request[key]),
  };
}

function range(
  key: string,
  facts: readonly Fact[],
  { min, max }: NumberRange,
  read: (request: RouteRequest) => number,
): Condition {
  const wanted =
    max === Number.POSITIVE_INFINITY
      ? `${min} or more`
      : min === max
        ? String(min)
        : min === 0
          ? `${max} or less`
          : `${min} to ${max}`;
  return {
    key,
    facts,
    wanted,
    holds: (request) => read(request) >= min && read(request) <= max,
    got: (request) => String(read(request)),
  };
}

/** A prompt that fits into a share of a window; where the window is not known, every prompt does. */
function share(most: number, windowFor: WindowFor): Condition {
  return {
    key: 'tokens',
    facts: ['tokens'],
    wanted: `less than ${Math.round(most * 1000) / 10}% of the window`,
    holds: (request) => {
      const context = windowFor(request.model);
      return context === undefined || request.tokens < context * most;
    },
    got: (request) => `${request.tokens} of ${windowFor(request.model) ?? 'an unknown window'}`,
  };
}

function names(
  key: string,
  fact: 'toolNames' | 'hostedTools',
  patterns: readonly string[],
): Condition {
  const test = anyGlob(patterns);
  return {
    key,
    facts: [fact],
    wanted: patterns.join(' or '),
    holds: (request) => request[fact].some(test),
    got: (request) => shorten(request[fact].join(', ')) || 'none',
  };
}

function header(name: string, globs: readonly string[] | false): Condition {
  const test = globs === false ? () => false : anyGlob(globs);
  return {
    key: `header ${name}`,
    facts: ['headers'],
    wanted: globs === false ? 'absent' : globs.join(' or '),
    holds: (request) => {
      const value = request.headers.get(name);
      return value === null ? globs === false : test(value);
    },
    // Values may be credentials, so only their presence is shown.
    got: (request) => (request.headers.has(name) ? 'present' : 'absent'),
  };
}

function lastText(patterns: readonly string[]): Condition {
  const test = anyGlob(patterns);
  return {
    key: 'text',
    facts: ['lastUserText'],
    wanted: patterns.join(' or '),
    holds: (request) => test(request.lastUserText),
    got: (request) => `${request.lastUserText.length} characters`,
  };
}

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

function timeOfDay(window: TimeWindow): Condition {
  const { from, to, days, zone } = window;
  return {
    key: 'time',
    facts: ['time'],
    wanted: [`${hhmm(from)}-${hhmm(to)}`, days?.map((day) => WEEKDAYS[day]).join(', '), zone]
      .filter((part) => part !== undefined)
      .join(' '),
    holds: ({ time }) => isWithin(window, weekTime(time, zone)),
    got: ({ time }) => {
      const { day, minute } = weekTime(time, zone);
      return `${WEEKDAYS[day]} ${hhmm(minute)}`;
    },
  };
}

const hhmm = (minutes: number) =>
  `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;

const shorten = (text: string) => (text.length > 120 ? `${text.slice(0, 119)}…` : text);
