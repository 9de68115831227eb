/** The section `providers`: upstreams, with what a preset, a profile and the top level fill in. */

import { PROTOCOL_NAMES, type ProtocolName } from '../../conversation/protocol-names.ts';
import { checkAuthorities, readKeyPair } from '../../lib/http/key-pair.ts';
import { isLocalNetwork } from '../../lib/http/local-address.ts';
import { suggest } from '../../lib/text/did-you-mean.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import {
  AUTH_STYLES,
  type AuthStyle,
  type Preset,
  presetNames,
  presetOf,
} from '../../vendors/index.ts';
import type { Environment } from '../environment.ts';
import type { Findings, Issue, Path } from '../file/problem.ts';
import {
  choice,
  closed,
  count,
  credential,
  flag,
  headerMap,
  keyFromEnvironment,
  list,
  named,
  oneOrMore,
  type ProgramForm,
  path,
  string,
  text,
} from '../file/schema.ts';
import type { Secret } from '../secret.ts';
import type { LimitsConfig } from './limits.ts';
import {
  baseUrlOf,
  type PlatformConfig,
  platformKeys,
  presetOfPlatform,
  resolvePlatform,
} from './platform/index.ts';
import { type Profiles, profileNamed } from './profiles.ts';
import {
  modelPrices,
  models,
  PROMPT_CACHES,
  type ProviderModels,
  resolveModels,
} from './provider-models.ts';
import { providerRetry, type RetryConfig, resolveRetry, type retry } from './retry.ts';
import {
  providerTimeouts,
  resolveTimeouts,
  type TimeoutsConfig,
  type timeouts,
} from './timeouts.ts';

/** Legal provider names: they stand before a slash in model ids and never look like a number. */
const PROVIDER_NAME = '^[A-Za-z][A-Za-z0-9_.-]*$';

const forwardHeaders = list(
  string(undefined, {
    pattern: "^[A-Za-z0-9!#$%&'+.^_`|~-]+\\*?$",
    'x-mismatch': 'must be the name of a header, or its beginning and a *',
  }),
  'Further headers of clients, such as x-team or x-team-*, that go on to this upstream where it speaks their protocol.',
).reads((names, { path, findings }) =>
  names.map((written, index) => {
    const name = written.toLowerCase();
    if (NEVER_FORWARDED.test(name)) {
      const message = 'belongs to one connection or to this gateway and cannot go on';
      findings.problems.push({ path: [...path, index], message });
    }
    return name;
  }),
);

const provider = closed('An upstream: one base URL, one protocol, one set of keys.', {
  preset: text('A vendor that hopgate knows; fills in the missing keys below.').optional(
    'that of the same name, without base_url',
  ),
  protocol: choice(PROTOCOL_NAMES, 'The protocol that the upstream speaks.').optional(
    "the preset's; needed without one",
  ),
  ...platformKeys,
  base_url: string(
    "As the vendor's own SDK takes it: the part before /chat/completions, /responses, /v1/messages or /models/ (google-gemini; without a path, /v1beta is added); of a platform before /projects/ (vertex), /model/ (bedrock) or /responses (azure; without a path, /openai/v1 is added).",
    {
      pattern: '^(https?://.+|demo:)$',
      'x-mismatch': 'must begin with https:// or http://',
      'x-meant': 'https://{}',
      'x-url': 'base',
    },
  ).optional("the preset's; needed without one"),
  keys: oneOrMore(
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
    credential('A key, usually "${SOME_VARIABLE}" or "${file:/path}".'),
    'Keys, used in turn.',
  ).optional("the preset's environment variables"),
  auth: choice(AUTH_STYLES, 'The header that carries the key.').optional(
    'x-api-key for anthropic-messages, x-goog-api-key for google-gemini, else bearer',
  ),
  profile: text('Vendor quirks by name; none = an unknown vendor.').optional(
    "the preset's, else none",
  ),
  models,
  prices: modelPrices,
  prompt_cache: choice(
    PROMPT_CACHES,
    'Whether the gateway adds cache marks or keys that the client cannot send; 1h: for an hour, where the vendor offers that.',
  ).byDefault('auto'),
  headers: headerMap(
    'Header name → value, sent with every request.',
    "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
  ).byDefault({}),
  forward_headers: forwardHeaders.byDefault([]),
  query: named(string().secret(), 'Parameter → value, appended to the URL.').byDefault({}),
  trace_headers: flag('Send traceparent, tracestate and baggage to this upstream.').optional(
    'true on this machine or in its network, else false',
  ),
  timeouts: providerTimeouts.byDefault({}),
  retry: providerRetry.byDefault({}),
  proxy: string(
    'An HTTP proxy for this upstream. The no_proxy of the environment applies to it, too.',
    { pattern: '^https?://.+$' },
  )
    .secret()
    .optional('a direct connection'),
  http2: flag('Speak HTTP/2 to this upstream.').byDefault(false),
  websocket: flag(
    "Use the upstream's WebSocket for streams (openai-responses), or HTTP, with a note, if its handshake fails.",
  ).byDefault(false),
  concurrency: count(
    'Requests at the same time; 0 = no limit. Further ones go to another target of their route that has room, or wait.',
  ).byDefault(0),
  tls: closed('TLS towards this upstream.', {
    verify: flag("Check the upstream's certificate.").byDefault(true),
    ca_file: path('PEM file with the certificate authorities to trust.').optional("the system's"),
    cert_file: path('PEM file with a client certificate.').optional('none'),
    key_file: path("PEM file with the client certificate's key.").optional('none'),
  }).byDefault({}),
});

export const providers = named(provider, 'Upstreams by name.', PROVIDER_NAME);

type Own = ProgramForm<typeof provider>;

export interface ProviderConfig
  extends ProviderModels,
    Pick<Own, 'headers' | 'query' | 'promptCache' | 'forwardHeaders'> {
  readonly name: string;
  readonly protocol: ProtocolName;
  /** Undefined: the vendor itself, or a server that is reached as one. */
  readonly platform?: PlatformConfig;
  /** Without a trailing slash. `demo:` is the built-in provider. */
  readonly baseUrl: string;
  /** May be empty (local servers). */
  readonly keys: readonly Secret[];
  readonly auth: AuthStyle;
  /** `name: 'none'` when there is none. */
  readonly profile: Profiles[string];
  /** The context of the trace goes to this upstream. */
  readonly traceHeaders: boolean;
  readonly timeouts: TimeoutsConfig;
  readonly retry: RetryConfig;
  readonly answers: AnswerLimits;
  readonly transport: TransportConfig;
}

/** How large an upstream's response may be: `limits.answer_bytes`, `frame_bytes`, `header_bytes` and `headers`. */
interface AnswerLimits extends Pick<LimitsConfig, 'frameBytes' | 'headerBytes' | 'headers'> {
  readonly bytes: number;
}

export type TransportConfig = Pick<Own, 'proxy' | 'http2' | 'websocket' | 'concurrency' | 'tls'>;

/** The sections of the file that providers are made of. */
interface ProviderSections {
  readonly providers: Readonly<Record<string, Own>>;
  readonly timeouts: ProgramForm<typeof timeouts>;
  readonly retry: ProgramForm<typeof retry>;
  readonly limits: LimitsConfig;
}

/** The providers by name, without those that lack something needed (each of these is a problem). */
export function resolveProviders(
  file: ProviderSections,
  profiles: Profiles,
  environment: Environment,
  findings: Findings,
): Readonly<Record<string, ProviderConfig>> {
  const resolved: Record<string, ProviderConfig> = {};
  for (const [name, own] of Object.entries(file.providers)) {
    const one = resolveProvider(name, own, file, profiles, environment, findings);
    if (one !== undefined) resolved[name] = one;
  }
  return resolved;
}

function resolveProvider(
  name: string,
  own: Own,
  file: ProviderSections,
  profiles: Profiles,
  environment: Environment,
  findings: Findings,
): ProviderConfig | undefined {
  const path: Path = ['providers', name];
  const presetName = presetNameOf(name, own);
  const preset = presetName === undefined ? undefined : presetOf(presetName);
  if (own.preset !== undefined && preset === undefined) {
    findings.problems.push({
      path: [...path, 'preset'],
      message: `there is no preset "${own.preset}"`,
      suggestion: suggest(own.preset, presetNames()),
    });
    return undefined;
  }
  const protocol = own.protocol ?? protocolAt(own.baseUrl, preset);
  const endpoint = protocol === undefined ? undefined : preset?.endpoints[protocol];
  if (protocol === undefined) findings.problems.push(missing(path, 'protocol', name));
  const keys = resolveKeys(own, preset, environment, path, findings);
  const platformName = own.platform ?? preset?.platform;
  const platform = resolvePlatform(
    own,
    platformName,
    protocol,
    keys.length > 0,
    path,
    environment,
    findings,
  );
  // What it lacks has been reported.
  if (platformName !== undefined && platform === undefined) return undefined;
  const baseUrl = baseUrlOf(own.baseUrl ?? endpoint?.baseUrl, protocol, platform);
  if (baseUrl === undefined) findings.problems.push(missing(path, 'base_url', name, preset));
  const base = baseOf(own.baseUrl);
  if (base !== undefined) {
    findings.warnings.push({
      path: [...path, 'base_url'],
      message: 'is the address of an endpoint: requests would go to a path behind it',
      suggestion: base,
    });
  }
  const profileName = own.profile ?? endpoint?.profile ?? profileOf(preset, protocol) ?? 'none';
  const profile = profileNamed(profileName, profiles, [...path, 'profile'], findings);
  if (protocol === undefined || baseUrl === undefined) return undefined;
  if (own.websocket && protocol !== 'openai-responses') {
    findings.problems.push({
      path: [...path, 'websocket'],
      message: 'is only for providers that speak openai-responses',
    });
  }
  if (own.proxy !== undefined && environment.noProxy(URL.parse(baseUrl)?.hostname ?? '')) {
    findings.warnings.push({
      path: [...path, 'proxy'],
      message: 'is not used: no_proxy in the environment excepts this host',
    });
  }
  const auth =
    own.auth ?? preset?.auth ?? (platform === undefined ? USUAL_AUTH[protocol] : 'bearer');
  const sendsOwn =
    Object.keys(own.headers).length + Object.keys(own.query).length > 0 || platform !== undefined;
  if (keys.length === 0 && auth !== 'none' && !sendsOwn && !isLocalServer(baseUrl)) {
    findings.warnings.push(withoutKey(own, preset, path));
  }
  const { proxy, http2, websocket, concurrency, tls } = own;
  findings.warnings.push(...unusablePems(tls, [...path, 'tls']));
  const { answerBytes, frameBytes, headerBytes, headers } = file.limits;
  return {
    name,
    protocol,
    ...(platform === undefined ? {} : { platform }),
    baseUrl,
    keys,
    auth,
    profile,
    promptCache: own.promptCache,
    ...resolveModels(own, presetName, preset, baseUrl),
    headers: own.headers,
    forwardHeaders: own.forwardHeaders,
    query: own.query,
    traceHeaders: own.traceHeaders ?? isLocalServer(baseUrl),
    timeouts: resolveTimeouts(own.timeouts, file.timeouts),
    retry: resolveRetry(own.retry, file.retry),
    answers: { bytes: answerBytes, frameBytes, headerBytes, headers },
    transport: { proxy, http2, websocket, concurrency, tls },
  };
}

/** Files that cannot be used now are warnings: each connection reads them. */
function unusablePems({ caFile, certFile, keyFile }: Own['tls'], path: Path): readonly Issue[] {
  const issues: Issue[] = [];
  const use = (key: string, work: () => void) => {
    try {
      work();
    } catch (thrown) {
      issues.push({ path: [...path, key], message: messageOf(thrown) });
    }
  };
  if (caFile !== undefined) use('ca_file', () => checkAuthorities(caFile));
  if (certFile !== undefined && keyFile !== undefined) {
    use('cert_file', () => {
      const { until } = readKeyPair(certFile, keyFile);
      if (until > Date.now()) return;
      throw new Error(`the certificate in ${certFile} ended on ${new Date(until).toISOString()}`);
    });
  } else if (certFile !== undefined) {
    issues.push({ path: [...path, 'cert_file'], message: 'is not sent without key_file' });
  } else if (keyFile !== undefined) {
    issues.push({ path: [...path, 'key_file'], message: 'is not used without cert_file' });
  }
  return issues;
}

/** Of this hop, of the body as it is sent again, or the client's credentials for this gateway: no list lets them through. */
export const NEVER_FORWARDED =
  /^(?:accept-encoding|api-key|authorization|baggage|cdn-loop|connection|content-(?:encoding|length|type)|cookie2?|expect|forwarded|hopgate-loop|host|keep-alive|origin|proxy-.*|referer|te|traceparent|tracestate|trailer|transfer-encoding|upgrade|via|x-api-key|x-forwarded-.*|x-goog-api-key|x-hopgate-.*|x-real-ip)$/;

/** The default protocol of a vendor. */
function protocolAt(
  address: string | undefined,
  preset: Preset | undefined,
): ProtocolName | undefined {
  const { chatOnlyAt } = preset ?? {};
  if (chatOnlyAt !== undefined && address?.includes(chatOnlyAt) === true) return 'openai-chat';
  return preset?.protocol;
}

const profileOf = (preset: Preset | undefined, protocol: ProtocolName | undefined) =>
  (protocol === undefined ? undefined : preset?.profileOf?.[protocol]) ?? preset?.profile;

/** The preset that is meant; a provider without an address has the preset of its name. */
function presetNameOf(name: string, own: Own): string | undefined {
  if (own.preset !== undefined) return own.preset;
  if (own.platform !== undefined) return presetOfPlatform(own.platform, own.protocol);
  return own.baseUrl === undefined ? name : undefined;
}

function withoutKey(own: Own, preset: Preset | undefined, path: Path): Issue {
  const isMissing = own.keys === undefined;
  const wanted = preset?.variables.join(' or ');
  return {
    path: isMissing ? path : [...path, 'keys'],
    message: `has no key${isMissing && wanted ? ` (${wanted} is not set)` : ''}`,
    key: isMissing,
  };
}

/** The header that carries the key where the file does not say. */
export const USUAL_AUTH: Readonly<Record<ProtocolName, AuthStyle>> = {
  'openai-chat': 'bearer',
  'openai-responses': 'bearer',
  'anthropic-messages': 'x-api-key',
  'google-gemini': 'x-goog-api-key',
};

/** What stands before the path of an endpoint, which the gateway itself adds; undefined: no such path is there. */
function baseOf(written: string | undefined): string | undefined {
  const endpoint = /\/(?:chat\/completions|responses|v1\/messages|models\/[^/]{1,99}:\w{1,40})\/?$/;
  const found = written === undefined ? null : endpoint.exec(written);
  return found === null ? undefined : found.input.slice(0, found.index);
}

function missing(path: Path, key: string, name: string, preset?: Preset): Issue {
  // With an address of its own, a provider's name chooses no preset.
  const named = preset === undefined && presetOf(name) !== undefined;
  const near = preset === undefined ? suggest(name, presetNames()) : undefined;
  const protocols = Object.keys(preset?.endpoints ?? {}).join(', ');
  const why =
    preset === undefined
      ? named
        ? `; the name "${name}" does not choose its preset where base_url is set`
        : ' (or a preset, or the name of one)'
      : protocols === ''
        ? ': this vendor has no common address'
        : `: the preset has addresses for ${protocols} only`;
  return {
    path,
    key: true,
    message: `needs the key "${key}"${why}`,
    suggestion: near === undefined ? undefined : `preset: ${near}`,
  };
}

function resolveKeys(
  own: Own,
  preset: Preset | undefined,
  environment: Environment,
  path: Path,
  findings: Findings,
): readonly Secret[] {
  const keysFromEnvironment = () => {
    const key = keyFromEnvironment(preset?.variables ?? [], { path, environment, findings });
    return key === undefined ? [] : [key];
  };
  const keys = own.keys ?? keysFromEnvironment();
  for (const [index, key] of keys.entries()) {
    const why = oddEnds(key.reveal());
    if (why === undefined) continue;
    const message = `a key ${why}, which is sent with it`;
    findings.warnings.push(
      own.keys === undefined
        ? { path, message, key: true }
        : { path: [...path, 'keys', index], message },
    );
  }
  return keys;
}

/** `docker run --env-file` keeps the quotation marks and blanks around a value. */
function oddEnds(key: string): string | undefined {
  if (key.trim() !== key) return 'begins or ends with a blank';
  if (/^bearer /i.test(key)) return 'begins with "Bearer"';
  const isQuoted = key.length > 1 && key[0] === key.at(-1) && /["']/.test(key[0]!);
  return isQuoted ? 'stands in quotation marks' : undefined;
}

/** Whether a server is on this machine or in its network, where servers usually want no key. */
const isLocalServer = (baseUrl: string): boolean =>
  baseUrl === 'demo:' || (URL.canParse(baseUrl) && isLocalNetwork(new URL(baseUrl).hostname));
