/** The vendors, and where to find one: by the name of a preset or a profile, or by its address. */

import { memberOf } from '../lib/json/json-members.ts';
import { globTest } from '../lib/text/glob.ts';
import { HOSTS } from './hosts/index.ts';
import { MAKERS } from './makers/index.ts';
import { SERVERS } from './servers/index.ts';
import type { Host, Preset, ProfileFacts, Vendor } from './vendor.ts';

export { AUTH_STYLES, type AuthStyle, type PlatformName, type Preset } from './vendor.ts';

/**
 * In the order of the manual. The first one whose key is set takes the model names that no other takes. Those that
 * make models come first: a model that others serve, too, has the facts of its maker where their own are unknown.
 */
export const VENDORS: readonly Vendor[] = [...MAKERS, ...HOSTS, ...SERVERS];

export const PRESETS: Readonly<Record<string, Preset>> = Object.assign(
  {},
  ...VENDORS.map(({ presets }) => presets),
);

/** Presets by the other names that people give them. */
export const PRESET_ALIASES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(PRESETS).flatMap(([name, { aliases = [] }]) =>
    aliases.map((alias) => [alias, name]),
  ),
);

/** The preset of a name, aliases followed; undefined when there is none. */
export const presetOf = (name: string): Preset | undefined =>
  memberOf(PRESETS, memberOf(PRESET_ALIASES, name) ?? name);

/** Every name that {@link presetOf} knows. */
export const presetNames = (): readonly string[] => [
  ...Object.keys(PRESETS),
  ...Object.keys(PRESET_ALIASES),
];

/** The built-in profiles by name; `none` has no facts. */
export const PROFILES: Readonly<Record<string, ProfileFacts>> = Object.fromEntries(
  [{ none: {} }, ...VENDORS.map(({ profiles = {} }) => profiles)]
    .flatMap((profiles) => Object.entries(profiles))
    .map(([name, facts]) => [name, { ...facts, name }]),
);

/** What holds for the Responses of a vendor whose Chat has this profile, at the same address; undefined: it has none. */
export function responsesProfileOf(chatProfile: string): ProfileFacts | undefined {
  for (const { endpoints } of Object.values(PRESETS)) {
    const { 'openai-chat': chat, 'openai-responses': responses } = endpoints;
    if (chat?.profile === chatProfile && chat.baseUrl === responses?.baseUrl) {
      return PROFILES[responses.profile];
    }
  }
  return undefined;
}

/** The vendors of the model catalogue, by their names at models.dev. */
export const CATALOGUE_VENDORS: readonly string[] = [
  ...new Set(
    VENDORS.flatMap(({ presets = {}, hosts = [] }) =>
      [...Object.values(presets), ...hosts].flatMap(({ catalogue }) => catalogue ?? []),
    ),
  ),
];

/** The vendor in the catalogue that a provider is, by its preset or else by its address; undefined: it is none. */
export function catalogueVendor(preset: string | undefined, baseUrl: string): string | undefined {
  const named = preset === undefined ? undefined : presetOf(preset)?.catalogue;
  if (named !== undefined) return named;
  if (!URL.canParse(baseUrl)) return undefined;
  const { hostname, pathname } = new URL(baseUrl);
  return (
    presetAt(hostname, pathname)?.catalogue ??
    hostOf(hostname, ({ catalogue }) => catalogue !== undefined)?.catalogue
  );
}

/** The preset on this host whose path is most like this one: plans of one vendor differ in their paths. */
function presetAt(host: string, path: string): Preset | undefined {
  const segments = path.split('/');
  let found: Preset | undefined;
  let most = -1;
  for (const preset of Object.values(PRESETS)) {
    for (const { baseUrl } of Object.values(preset.endpoints)) {
      const own = new URL(baseUrl);
      if (own.hostname !== host || preset.catalogue === undefined) continue;
      const differs = own.pathname.split('/').findIndex((part, at) => part !== segments[at]);
      const equal = differs < 0 ? Number.POSITIVE_INFINITY : differs;
      if (equal <= most) continue;
      most = equal;
      found = preset;
    }
  }
  return found;
}

const hostOf = (name: string, has: (host: Host) => boolean): Host | undefined =>
  VENDORS.flatMap(({ hosts = [] }) => hosts).find((one) => has(one) && globTest(one.host)(name));

/** Where requests to an address are processed; undefined: it does not tell. */
export const regionAt = (baseUrl: string): string | undefined =>
  URL.canParse(baseUrl)
    ? hostOf(new URL(baseUrl).hostname, ({ region }) => region !== undefined)?.region
    : undefined;

/** The header by which the vendor at an address knows a conversation; undefined: it has none. */
export const sessionHeaderAt = (baseUrl: string): string | undefined =>
  URL.canParse(baseUrl)
    ? hostOf(new URL(baseUrl).hostname, ({ sessionHeader }) => sessionHeader !== undefined)
        ?.sessionHeader
    : undefined;

/** The vendor's name in OpenTelemetry's conventions, by the host of its base URL; undefined: it has none. */
export function telemetryVendor(host: string): string | undefined {
  const own = VENDORS.find(
    ({ telemetry, presets = {} }) =>
      telemetry !== undefined &&
      Object.values(presets).some(({ endpoints }) =>
        Object.values(endpoints).some(({ baseUrl }) => new URL(baseUrl).hostname === host),
      ),
  );
  return own?.telemetry ?? hostOf(host, ({ telemetry }) => telemetry !== undefined)?.telemetry;
}
