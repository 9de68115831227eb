/** Settings to compare in a replay: `profile.shortToolResults=true`, `to=glm/glm-4.6`, `body.temperature=0`. */

import type { Config } from '../../config/config.ts';
import { check } from '../../config/file/check.ts';
import { NO_AUTH } from '../../config/sections/auth.ts';
import { profileFacts } from '../../config/sections/profiles.ts';
import type { ProviderConfig } from '../../config/sections/providers.ts';
import { invalid } from '../../conversation/errors.ts';
import { type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { withValueAt } from '../../lib/json/pointer.ts';
import { checkTarget } from './known-target.ts';

/** What a run sends, and with which configuration. */
export interface ReplaySetup {
  /** As written on the command line; '' for the configuration as it is. */
  readonly name: string;
  readonly config: Config;
  readonly repair: boolean;
  /** `provider/model`. */
  readonly to: string | undefined;
  /** Changes the request. */
  readonly edit: (body: JsonObject) => JsonObject;
}

/**
 * The setup with one setting changed. Keys: `to`, `repair` (on, off), `body.<member>` of the request,
 * `profile` (a name) and `profile.<fact>` of all providers, or a member of the configuration.
 * A value that is valid JSON is read as JSON.
 * @throws GatewayError invalid_request
 */
export function withSetting(base: ReplaySetup, written: string): ReplaySetup {
  const equals = written.indexOf('=');
  if (equals < 1) throw invalid(`"${written}" is not a setting: write KEY=VALUE.`);
  const key = written.slice(0, equals).trim();
  const text = written.slice(equals + 1);
  const value: Json = tryParse(text) ?? text;
  const name = base.name === '' ? written : `${base.name} ${written}`;
  const [first, ...rest] = key.split('.');
  if (key === 'to') {
    checkTarget(text, base.config);
    return { ...base, name, to: text };
  }
  if (key === 'repair') return { ...base, name, repair: onOff(text) };
  if (first === 'body' && rest.length > 0) {
    return {
      ...base,
      name,
      edit: (body) => withValueAt(base.edit(body), rest, value) as JsonObject,
    };
  }
  if (key === 'profile') {
    const profile = base.config.profiles[text];
    if (profile === undefined) throw invalid(`There is no profile "${text}".`);
    return { ...base, name, config: eachProvider(base.config, (one) => ({ ...one, profile })) };
  }
  if (first === 'profile') {
    const config = eachProvider(base.config, (one) => {
      const profile = withValueAt(one.profile as unknown as Json, rest, value) as JsonObject;
      checkFact(profile, rest[0]!, written);
      return { ...one, profile: profile as unknown as typeof one.profile };
    });
    return { ...base, name, config };
  }
  const path = key.split('.').map(camel);
  if (!(path[0]! in base.config)) {
    throw invalid(
      `There is no setting "${key}": profile.…, body.…, to, repair, or a key of the configuration.`,
    );
  }
  const config = withValueAt(base.config as unknown as Json, path, value) as unknown as Config;
  return { ...base, name, config };
}

/** @throws GatewayError invalid_request for a fact that a file could not state either */
function checkFact(profile: JsonObject, fact: string, written: string): void {
  if (!Object.hasOwn(profileFacts, fact)) throw invalid(`There is no fact "${fact}" of a profile.`);
  const value = profile[fact];
  const schema = profileFacts[fact as keyof typeof profileFacts];
  if (value === undefined || check(schema, value, new Set()).problems.length === 0) return;
  throw invalid(`"${written}": this is no value of ${fact}.`);
}

const onOff = (text: string) => !/^(off|false|no|0)$/i.test(text);

const camel = (key: string) =>
  key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

export function eachProvider(
  config: Config,
  change: (provider: ProviderConfig) => ProviderConfig,
): Config {
  const entries = Object.entries(config.providers).map(([name, one]) => [name, change(one)]);
  return { ...config, providers: Object.fromEntries(entries) };
}

/**
 * A configuration for a gateway that only this process uses: no keys, no retries, and recording as `samples`
 * says.
 */
export function probeConfig(config: Config, samples?: Config['samples']): Config {
  const once = <T extends { readonly retry: Config['retry'] }>(one: T): T => ({
    ...one,
    retry: { ...one.retry, attempts: 1 },
  });
  return {
    ...once(eachProvider(config, once)),
    auth: NO_AUTH,
    listen: { host: '127.0.0.1', port: 0 },
    samples: samples ?? { ...config.samples, mode: 'off' },
    routes: config.routes.map(({ samples: _, ...route }) => route),
  };
}
