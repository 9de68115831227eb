/** Routes and aliases of the file: texts to ranges and windows, and every name checked against what exists. */

import { globTest, isGlob } from '../../lib/text/glob.ts';
import type { NumberRange, RouteConfig, RouteTo, TimeWindow, WhenConfig } from '../config.ts';
import type { Path } from '../file/document.ts';
import { MOST_TOLD } from '../file/problem.ts';
import { suggest } from '../file/suggest.ts';
import type { FileConfig } from './index.ts';
import { type Findings, listOf } from './resolve-providers.ts';
import { DAYS } from './routes.ts';

type FileRoute = FileConfig['routes'][number];
type FileWhen = NonNullable<FileRoute['when']>;
/** The names of the file's providers, those with a problem of their own included. */
export type Names = ReadonlySet<string>;
/** What each provider lists. */
type Lists = Readonly<Record<string, { readonly models: readonly string[] }>>;

const UNITS: Readonly<Record<string, number>> = { k: 1000, m: 1_000_000 };

/**
 * `>60000`, `<=1000`, `1k..5k`, `3`, and for counts `true` (1 and more) and `false` (none).
 * Undefined when it is empty (`5..3`, `<0`) or not a range.
 */
export function parseRange(written: string | number | boolean): NumberRange | undefined {
  if (typeof written === 'boolean') {
    return written ? { min: 1, max: Number.POSITIVE_INFINITY } : { min: 0, max: 0 };
  }
  if (typeof written === 'number') return { min: written, max: written };
  const parts =
    /^\s*(?:([<>]=?|=)\s*)?(\d+(?:\.\d+)?)([km]?)\s*(?:(\.\.)\s*(\d+(?:\.\d+)?)([km]?)\s*)?$/i.exec(
      written,
    );
  if (parts === null) return undefined;
  const size = (digits: string, unit = '') => Number(digits) * (UNITS[unit.toLowerCase()] ?? 1);
  const [, sign, digits, unit, dots, endDigits, endUnit] = parts;
  const number = size(digits!, unit);
  if (dots !== undefined) {
    const max = size(endDigits!, endUnit);
    return sign === undefined && max >= number ? { min: number, max } : undefined;
  }
  switch (sign) {
    case '>':
      return { min: Math.floor(number) + 1, max: Number.POSITIVE_INFINITY };
    case '>=':
      return { min: number, max: Number.POSITIVE_INFINITY };
    case '<':
      return number > 0 ? { min: 0, max: Math.ceil(number) - 1 } : undefined;
    case '<=':
      return { min: 0, max: number };
    default:
      return { min: number, max: number };
  }
}

/** The routes, with every problem of theirs found. */
export function resolveRoutes(
  file: FileConfig,
  providers: Names,
  findings: Findings,
  lists: Lists = {},
): readonly RouteConfig[] {
  let open: string | undefined;
  return file.routes.map((route, index) => {
    const path: Path = ['routes', index];
    const name = route.name ?? `route ${index + 1}`;
    if (open !== undefined) {
      findings.warnings.push({ path, message: `is never reached: ${open} takes everything` });
    }
    const when = route.when === undefined ? undefined : resolveWhen(route.when, path, findings);
    if (when === undefined || Object.keys(when).length === 0) open ??= name;
    const to = (listOf(route.to) ?? []).map((one, at): RouteTo => {
      const target = typeof one === 'string' ? { target: one } : one;
      const place: Path = Array.isArray(route.to) ? [...path, 'to', at] : [...path, 'to'];
      const within: Path = typeof one === 'string' ? place : [...place, 'target'];
      checkTarget(target.target, within, providers, findings);
      doubtTarget(target.target, within, lists, findings);
      return target;
    });
    if (to.length > 0 && to.every((one) => one.weight === 0)) {
      findings.problems.push({ path: [...path, 'to'], message: 'needs one weight above 0' });
    }
    const { samples } = route;
    return {
      name,
      ...(when !== undefined && { when }),
      to,
      ...(samples !== undefined && { samples }),
    };
  });
}

const digits = (text: string) => text.replace(/\D/g, '');

/** Warns of a target that is legal and hardly meant. */
function doubtTarget(target: string, path: Path, lists: Lists, { warnings }: Findings): void {
  const slash = target.indexOf('/');
  const [provider, model] = [target.slice(0, slash), target.slice(slash + 1)];
  const [before = '', behind] = model.split('*');
  if (behind !== undefined) {
    // A path before the star ("anthropic/*") is how some vendors name things.
    if (before === '' || before.endsWith('/')) return;
    const message = `the * stands for the whole name that was asked for: "${before}x" becomes "${before}${before}x"`;
    warnings.push({ path, message, suggestion: `${provider}/*` });
    return;
  }
  const names = (
    Object.hasOwn(lists, provider) ? lists[provider]!.models : []
  ) as readonly string[];
  const known = names.some((name) =>
    isGlob(name) ? name !== '*' && globTest(name)(model) : name === model,
  );
  if (known || warnings.length >= MOST_TOLD) return;
  const near = suggest(
    model,
    names.filter((name) => !isGlob(name)),
  );
  // Another version is another model, not a slip.
  if (near === undefined || digits(near) !== digits(model)) return;
  const message = `${provider} does not list the model "${model}"`;
  warnings.push({ path, message, suggestion: `${provider}/${near}` });
}

/** Says so when `provider/model` names no provider. */
export function checkTarget(
  target: string,
  path: Path,
  providers: Names,
  findings: Findings,
): void {
  const slash = target.indexOf('/');
  const provider = slash < 0 ? target : target.slice(0, slash);
  if (slash > 0 && slash < target.length - 1 && providers.has(provider)) return;
  // Only so many are told.
  const near = findings.problems.length < MOST_TOLD ? suggest(provider, providers) : undefined;
  findings.problems.push({
    path,
    message:
      slash <= 0 || slash === target.length - 1
        ? 'must be provider/model'
        : `there is no provider "${provider}"`,
    suggestion: near === undefined ? undefined : `${near}${slash < 0 ? '/*' : target.slice(slash)}`,
  });
}

function resolveWhen(when: FileWhen, route: Path, findings: Findings): WhenConfig {
  const path: Path = [...route, 'when'];
  const range = (key: 'tokens' | 'images' | 'documents' | 'tools') => {
    const written = when[key];
    if (written === undefined) return undefined;
    const parsed = parseRange(written);
    if (parsed === undefined) {
      findings.problems.push({
        path: [...path, key],
        message: 'is a range that nothing can be in',
      });
    }
    return parsed;
  };
  const model = listOf(when.model);
  for (const [index, pattern] of (model ?? []).entries()) {
    if (pattern.startsWith('/') && compileRegex(pattern) === undefined) {
      findings.problems.push({
        path: Array.isArray(when.model) ? [...path, 'model', index] : [...path, 'model'],
        message: 'is not a regular expression',
      });
    }
  }
  return present({
    model,
    protocol: listOf(when.protocol),
    category: listOf(when.category),
    tokens: range('tokens'),
    stream: when.stream,
    images: range('images'),
    documents: range('documents'),
    tools: range('tools'),
    toolNames: listOf(when.tool_names),
    hostedTools: listOf(when.hosted_tools),
    thinking: when.thinking,
    effort: listOf(when.effort),
    background: when.background,
    headers: when.headers === undefined ? undefined : resolveHeaders(when.headers),
    text: listOf(when.text),
    time: when.time === undefined ? undefined : resolveTime(when.time, path, findings),
  });
}

function present(when: WhenConfig): WhenConfig {
  return Object.fromEntries(Object.entries(when).filter(([, value]) => value !== undefined));
}

/** `/pattern/flags` compiled; undefined when it is not one. */
export function compileRegex(text: string): RegExp | undefined {
  const end = text.lastIndexOf('/');
  if (!text.startsWith('/') || end === 0) return undefined;
  const flags = text.slice(end + 1);
  // `g` and `y` keep state between tests.
  if (/[^imsuv]/.test(flags)) return undefined;
  try {
    return new RegExp(text.slice(1, end), flags);
  } catch {
    return undefined;
  }
}

function resolveHeaders(headers: NonNullable<FileWhen['headers']>): WhenConfig['headers'] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      value === false ? false : value === true ? ['*'] : (listOf(value) ?? []),
    ]),
  );
}

function resolveTime(
  written: NonNullable<FileWhen['time']>,
  route: Path,
  findings: Findings,
): TimeWindow | undefined {
  const path: Path = [...route, 'time'];
  const window = typeof written === 'string' ? { hours: written } : written;
  const [from, to] = window.hours.split('-').map(minutes);
  if (from === undefined || to === undefined || from === to) {
    findings.problems.push({
      path: typeof written === 'string' ? path : [...path, 'hours'],
      message: 'is not a window of time such as "22:00-06:00"',
    });
    return undefined;
  }
  const days = 'days' in window ? listOf(window.days) : undefined;
  const zone = 'zone' in window ? window.zone : undefined;
  if (zone !== undefined && !isZone(zone)) {
    findings.problems.push({
      path: [...path, 'zone'],
      message: 'is not a time zone',
      suggestion: suggest(zone, Intl.supportedValuesOf('timeZone')),
    });
    return undefined;
  }
  return {
    from,
    to,
    ...(days === undefined ? {} : { days: days.map((day) => DAYS.indexOf(day)) }),
    ...(zone === undefined ? {} : { zone }),
  };
}

function minutes(text: string): number | undefined {
  const [hour, minute] = text.trim().split(':').map(Number);
  if (hour === undefined || minute === undefined || minute > 59) return undefined;
  const total = hour * 60 + minute;
  return total <= 24 * 60 ? total : undefined;
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

/** The names that lead into a circle; each name is walked over once. */
function namesInCircles(aliases: Readonly<Record<string, string>>): ReadonlySet<string> {
  const circular = new Set<string>();
  const known = new Set<string>();
  for (const name of Object.keys(aliases)) {
    const way = new Set<string>();
    let next: string | undefined = name;
    while (next !== undefined && Object.hasOwn(aliases, next) && !known.has(next)) {
      if (way.has(next)) break;
      way.add(next);
      next = aliases[next];
    }
    const inCircle = next !== undefined && (way.has(next) || circular.has(next));
    for (const one of way) {
      known.add(one);
      if (inCircle) circular.add(one);
    }
  }
  return circular;
}

/** The aliases, with circles found. */
export function resolveAliases(
  file: FileConfig,
  providers: Names,
  findings: Findings,
): Readonly<Record<string, string>> {
  const circular = namesInCircles(file.aliases);
  for (const name of Object.keys(file.aliases)) {
    const path: Path = ['aliases', name];
    if (circular.has(name)) {
      findings.problems.push({ path, message: 'goes round in a circle' });
    } else if (name.includes('/') && providers.has(name.slice(0, name.indexOf('/')))) {
      findings.warnings.push({
        path,
        key: true,
        message: 'has no effect: provider/model always addresses the provider',
      });
    }
  }
  return { ...file.aliases };
}
