/** Providers of the file, with presets, profiles and inherited settings filled in. */

import { memberOf } from '../../lib/json/json-members.ts';
import { withoutTrailing } from '../../lib/text/trim-end.ts';
import type { ModelPrice, ProviderConfig, RetryConfig, TimeoutsConfig } from '../config.ts';
import type { Environment } from '../environment.ts';
import type { Path } from '../file/document.ts';
import type { Issue } from '../file/references.ts';
import { ONE_LINE } from '../file/schema-words.ts';
import { suggest } from '../file/suggest.ts';
import { Secret } from '../secret.ts';
import { type Preset, presetNames, presetOf } from '../vendors/presets.ts';
import type { ProfileFacts } from '../vendors/profile-schema.ts';
import { PROFILES } from '../vendors/profiles.ts';
import type { FileConfig } from './index.ts';

type FileProvider = FileConfig['providers'][string];

/** Where the resolver writes what it finds. */
export interface Findings {
  readonly problems: Issue[];
  readonly warnings: Issue[];
  /** As {@link Referenced} has them. */
  readonly origins?: ReadonlyMap<string, string>;
}

export const ms = (seconds: number) => Math.round(seconds * 1000);

export const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] | undefined =>
  value === undefined || Array.isArray(value) ? (value as readonly T[] | undefined) : [value as T];

/** Profiles on the way from one to the first of them. */
const MOST_PARENTS = 50;

/** The profiles of the program with those of the file laid over them. */
export function resolveProfiles(
  file: FileConfig,
  findings: Findings,
): Readonly<Record<string, ProfileFacts>> {
  const own = file.profiles;
  const done: Record<string, ProfileFacts> = { ...PROFILES };
  const known = new Map<string, ProfileFacts>();
  const resolve = (name: string, seen: readonly string[]): ProfileFacts => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const told = findings.problems.length;
    const facts = resolveAnew(name, seen);
    // A circle is told of for each profile in it.
    if (findings.problems.length === told) known.set(name, facts);
    return facts;
  };
  const resolveAnew = (name: string, seen: readonly string[]): ProfileFacts => {
    const written = Object.hasOwn(own, name) ? own[name] : undefined;
    if (written === undefined) return memberOf(PROFILES, name) ?? { name };
    const { extends: parent, models, ...facts } = written;
    const path: Path = ['profiles', name, 'extends'];
    let base: ProfileFacts = Object.hasOwn(PROFILES, name) ? PROFILES[name]! : { name };
    if (parent !== undefined && parent !== name) {
      if (seen.length > MOST_PARENTS) {
        findings.problems.push({ path, message: `extends more than ${MOST_PARENTS} others` });
      } else if (seen.includes(parent)) {
        findings.problems.push({ path, message: 'goes round in a circle' });
      } else if (!Object.hasOwn(own, parent) && !Object.hasOwn(PROFILES, parent)) {
        findings.problems.push(unknownProfile(path, parent, own));
      } else base = resolve(parent, [...seen, parent]);
    }
    const all = { ...base.models, ...models };
    return { ...base, ...facts, ...(Object.keys(all).length > 0 ? { models: all } : {}), name };
  };
  for (const name of Object.keys(own)) done[name] = resolve(name, [name]);
  return done;
}

function unknownProfile(path: Path, name: string, own: FileConfig['profiles']): Issue {
  const known = [...Object.keys(PROFILES), ...Object.keys(own)];
  return { path, message: `there is no profile "${name}"`, suggestion: suggest(name, known) };
}

export function resolveRetry(own: FileProvider['retry'] | undefined, base: FileConfig['retry']) {
  const retry: RetryConfig = {
    attempts: own?.attempts ?? base.attempts,
    baseDelayMs: ms(own?.base_delay ?? base.base_delay),
    maxDelayMs: ms(own?.max_delay ?? base.max_delay),
    maxCooldownMs: ms(own?.max_cooldown ?? base.max_cooldown),
  };
  return retry;
}

function resolveTimeouts(own: FileProvider['timeouts'], base: FileConfig['timeouts']) {
  const firstByteMs = ms(own.first_byte ?? base.first_byte);
  const idleMs = ms(own.idle ?? base.idle);
  const content = own.content ?? base.content;
  const unlimited = firstByteMs === 0 || idleMs === 0;
  const timeouts: TimeoutsConfig = {
    connectMs: ms(own.connect ?? base.connect),
    firstByteMs,
    idleMs,
    contentMs: content !== undefined ? ms(content) : unlimited ? 0 : firstByteMs + idleMs,
    totalMs: ms(own.total ?? base.total),
  };
  return timeouts;
}

/** One provider, or undefined when something it cannot do without is missing (then there is a problem). */
export function resolveProvider(
  name: string,
  own: FileProvider,
  file: FileConfig,
  profiles: Readonly<Record<string, ProfileFacts>>,
  environment: Environment,
  findings: Findings,
): ProviderConfig | undefined {
  const path: Path = ['providers', name];
  const presetName = own.preset ?? (own.base_url === undefined ? name : undefined);
  const preset = presetName === undefined ? undefined : presetOf(presetName);
  if (own.preset !== undefined && preset === undefined) {
    findings.problems.push({
      path: [...path, 'preset'],
      message: `there is no preset "${own.preset}"`,
      suggestion: suggest(own.preset, presetNames()),
    });
    return undefined;
  }
  const protocol = own.protocol ?? preset?.protocol;
  const endpoint = protocol === undefined ? undefined : preset?.endpoints[protocol];
  const baseUrl = own.base_url ?? endpoint?.baseUrl;
  if (protocol === undefined) findings.problems.push(missing(path, 'protocol', name));
  if (baseUrl === undefined) findings.problems.push(missing(path, 'base_url', name, preset));
  const profile = resolveProfile(own, preset, endpoint?.profile, profiles, path, findings);
  if (protocol === undefined || baseUrl === undefined) return undefined;
  const keys = resolveKeys(own, preset, environment, path, findings);
  const auth =
    own.auth ?? preset?.auth ?? (protocol === 'anthropic-messages' ? 'x-api-key' : 'bearer');
  const sendsOwn = Object.keys(own.headers).length + Object.keys(own.query).length > 0;
  if (keys.length === 0 && auth !== 'none' && !sendsOwn && !isLocal(baseUrl)) {
    const wanted = preset?.variables.join(' or ');
    findings.warnings.push({
      path: own.keys === undefined ? path : [...path, 'keys'],
      message: `has no key${own.keys === undefined && wanted ? ` (${wanted} is not set)` : ''}`,
      key: own.keys === undefined,
    });
  }
  return {
    name,
    protocol,
    baseUrl: baseUrl === 'demo:' ? baseUrl : withoutTrailing(baseUrl, '/'),
    keys,
    auth,
    profile,
    models: [...new Set(listOf(own.models) ?? preset?.models ?? [])],
    prices: resolvePrices(own.prices),
    headers: Object.fromEntries(
      Object.entries(own.headers).map(([key, value]) => [key.toLowerCase(), new Secret(value)]),
    ),
    query: Object.fromEntries(
      Object.entries(own.query).map(([key, value]) => [key, new Secret(value)]),
    ),
    timeouts: resolveTimeouts(own.timeouts, file.timeouts),
    retry: resolveRetry(own.retry, file.retry),
    answers: {
      bytes: file.limits.answer_bytes,
      frameBytes: file.limits.frame_bytes,
      headerBytes: file.limits.header_bytes,
      headers: file.limits.headers,
    },
    transport: {
      ...(own.proxy === undefined ? {} : { proxy: new Secret(own.proxy) }),
      http2: own.http2,
      concurrency: own.concurrency,
      tls: {
        verify: own.tls.verify,
        caFile: own.tls.ca_file,
        certFile: own.tls.cert_file,
        keyFile: own.tls.key_file,
      },
    },
  };
}

/** Exact names first; what is left out costs what an ordinary prompt token does. */
function resolvePrices(prices: FileProvider['prices']): readonly ModelPrice[] {
  const isGlob = (model: string) => /[*?]/.test(model);
  return Object.entries(prices)
    .map(([model, { input, output, cached = input, cache_write = input, cache_write_1h }]) => ({
      model,
      input,
      output,
      cached,
      cacheWrite: cache_write,
      cacheWrite1h: cache_write_1h ?? cache_write,
    }))
    .toSorted((a, b) => Number(isGlob(a.model)) - Number(isGlob(b.model)));
}

function missing(path: Path, key: string, name: string, preset?: Preset): Issue {
  const near = preset === undefined ? suggest(name, presetNames()) : undefined;
  const speaks = Object.keys(preset?.endpoints ?? {}).join(', ');
  const why =
    preset === undefined
      ? ' (or a preset, or the name of one)'
      : speaks === ''
        ? ': this vendor has no common address'
        : `: the preset has addresses for ${speaks} only`;
  return {
    path,
    key: true,
    message: `needs the key "${key}"${why}`,
    suggestion: near === undefined ? undefined : `preset: ${near}`,
  };
}

function resolveProfile(
  own: FileProvider,
  preset: Preset | undefined,
  ofEndpoint: string | undefined,
  profiles: Readonly<Record<string, ProfileFacts>>,
  path: Path,
  findings: Findings,
): ProfileFacts {
  const name = own.profile ?? ofEndpoint ?? preset?.profile ?? 'none';
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (found !== undefined) return found;
  findings.problems.push({
    path: [...path, 'profile'],
    message: `there is no profile "${name}"`,
    suggestion: suggest(name, Object.keys(profiles)),
  });
  return { name: 'none' };
}

function resolveKeys(
  own: FileProvider,
  preset: Preset | undefined,
  environment: Environment,
  path: Path,
  findings: Findings,
): readonly Secret[] {
  const written = listOf(own.keys);
  if (written !== undefined) {
    return written.map((key, index) => {
      const at = Array.isArray(own.keys) ? [...path, 'keys', index] : [...path, 'keys'];
      return new Secret(key, findings.origins?.get(JSON.stringify(at)));
    });
  }
  for (const variable of preset?.variables ?? []) {
    const value = environment.variable(variable);
    if (value === undefined) continue;
    checkVariable(variable, value, path, findings);
    return [new Secret(value, `$${variable}`)];
  }
  return [];
}

/** A key that no file names is held to what the schema asks of those that one does. */
export function checkVariable(name: string, value: string, path: Path, findings: Findings): void {
  if (new RegExp(ONE_LINE.pattern, 'u').test(value)) return;
  const message = `the environment variable ${name} ${ONE_LINE['x-mismatch']}`;
  findings.problems.push({ path, message, key: true });
}

/** Loopback and private addresses, where servers usually want no key. */
function isLocal(baseUrl: string): boolean {
  if (baseUrl === 'demo:') return true;
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : '';
  return (
    host === 'localhost' ||
    host === '[::1]' ||
    /\.(local|internal|lan)$/.test(host) ||
    /^(127|10)\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\./.test(host) ||
    (host !== '' && !host.includes('.'))
  );
}
