/** The facts of a vendor, as data: where it is, how its API differs, what its errors mean. */

import type { Facts, Profile, VendorError } from '../conversation/profile-facts.ts';
import type { ProtocolName } from '../conversation/protocol-names.ts';

/** How a provider wants its key: which header carries it. */
export const AUTH_STYLES = ['bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'none'] as const;
export type AuthStyle = (typeof AUTH_STYLES)[number];

/** Clouds that serve the models of several vendors, each with credentials and addresses of its own. */
export const PLATFORM_NAMES = ['vertex', 'bedrock', 'azure'] as const;
export type PlatformName = (typeof PLATFORM_NAMES)[number];

export interface Vendor {
  /** For readers of the code. */
  readonly name: string;
  /** Its name in OpenTelemetry's conventions; left out: the provider's name in the configuration. */
  readonly telemetry?: string;
  /** Queries of the manual, separated by commas, that lead to a section (by default to the list of presets). */
  readonly topic?: { readonly section?: string; readonly words: string };
  /** Ways to reach it, by the names that the file uses. */
  readonly presets?: Readonly<Record<string, Preset>>;
  /** How its APIs differ from that of an unknown vendor, by the names that the file uses. */
  readonly profiles?: Readonly<Record<string, VendorFacts>>;
  /** Further hosts than those of the presets. */
  readonly hosts?: readonly Host[];
  /** Words of its errors that tell their kind, whatever profile is configured. */
  readonly words?: readonly Words[];
  /** Codes that no other vendor has with another meaning: they count through relays, too. */
  readonly codes?: Codes;
  /** Codes in the member `base_resp` of an answer. */
  readonly baseRespCodes?: Codes;
}

export interface Endpoint {
  readonly baseUrl: string;
  readonly profile: string;
}

export interface Preset {
  /** The protocol when the file names none: one of `endpoints`, except for vendors without a fixed address. */
  readonly protocol: ProtocolName;
  readonly endpoints: Readonly<Partial<Record<ProtocolName, Endpoint>>>;
  /** The profile where `endpoints` has none for the protocol. */
  readonly profile: string;
  /** The same for single protocols. */
  readonly profileOf?: Readonly<Partial<Record<ProtocolName, string>>>;
  /** Addresses that hold this text speak Chat and nothing else. */
  readonly chatOnlyAt?: string;
  /** The first of these that is set holds the key. Empty for local servers. */
  readonly variables: readonly string[];
  /** Names and globs of this vendor's models. */
  readonly models: readonly string[];
  /** Other names that people give it. */
  readonly aliases?: readonly string[];
  /** Its name in the model catalogue, that of models.dev. Left out: its models have facts, and no price. */
  readonly catalogue?: string;
  readonly auth?: AuthStyle;
  /** Its address follows from the platform's own keys. */
  readonly platform?: PlatformName;
  /** A server on this machine. */
  readonly local?: boolean;
  /** Used without a configuration where its key is set or, for a local server, where it answers. */
  readonly discovered?: boolean;
  /** Further ports on which releases of a local server listen by default. */
  readonly otherPorts?: readonly number[];
  /** The preset of the same key for Chat, found together with this one, so that Chat clients need no conversion. */
  readonly forChat?: string;
}

export interface Host {
  /** A glob. */
  readonly host: string;
  readonly catalogue?: string;
  readonly telemetry?: string;
  /** Where it processes requests, as prices of models name it; `global`: anywhere. Left out: it does not tell. */
  readonly region?: string;
  /** The header that names a conversation, by which its requests find the same cache; some refuse requests without it. */
  readonly sessionHeader?: string;
}

/**
 * Facts about a vendor, and by glob what is its own about some models, later ones over earlier ones. A key is dropped only
 * if the vendor refuses it, not if it ignores it. What a model is
 * wherever it is served stands in the file of models (`config/models/`).
 */
export type VendorFacts = Facts & {
  readonly models?: Readonly<Record<string, Facts>>;
  /** The built-in profile that it starts from; the rules of the file of models name that. Left out: its own name. */
  readonly builtIn?: string;
};

export type ProfileFacts = Profile & VendorFacts;

/** The meaning of a vendor's own error codes. */
export type Codes = Readonly<Record<string, VendorError>>;

/** Words of errors, by what they tell; `errors/kind-of-words.ts` says at which statuses they count. */
export type Words = {
  /** Where they are written. */
  readonly source: string;
} & { readonly [Group in WordGroup]?: readonly RegExp[] };

export type WordGroup =
  | 'too_large'
  | 'content_filter'
  | 'context_overflow'
  | 'invalid_request'
  | 'authentication'
  | 'not_found'
  | 'permission'
  | 'quota'
  | 'billing'
  | 'capacity'
  | 'overloaded'
  | 'rate_limit';

type ChatPreset = Omit<Preset, 'protocol' | 'endpoints'> & {
  readonly baseUrl: string;
  /** Its address for the Messages protocol, whose profile is called `PROFILE-anthropic`. */
  readonly messagesUrl?: string;
};

/** A vendor that speaks Chat Completions. */
export function chat({ baseUrl, messagesUrl, ...preset }: ChatPreset): Preset {
  const { profile } = preset;
  return {
    protocol: 'openai-chat',
    endpoints: {
      'openai-chat': { baseUrl, profile },
      ...(messagesUrl !== undefined && {
        'anthropic-messages': { baseUrl: messagesUrl, profile: `${profile}-anthropic` },
      }),
    },
    ...preset,
  };
}

/** A server on this machine: speaks Chat Completions, needs no key, and serves whatever model it has loaded. */
export const local = (
  port: number,
  profile: string,
  more: Pick<Preset, 'aliases' | 'discovered' | 'otherPorts'> = {},
): Preset => ({
  ...chat({ baseUrl: `http://127.0.0.1:${port}/v1`, profile, variables: [], models: ['*'] }),
  local: true,
  ...more,
});
