/** Lists of the headers and fields that may cross between clients and vendors of one protocol; nothing unknown does. */

import { NEVER_FORWARDED } from '../config/sections/providers.ts';

/*
 * Sources: requests of the agents and SDKs themselves, recorded; the vendors' pages on headers
 * (platform.openai.com/docs/api-reference/debugging-requests, platform.claude.com/docs/en/api/rate-limits,
 * console.groq.com/docs/rate-limits, openrouter.ai/docs/app-attribution, docs.x.ai prompt caching).
 */

interface Names {
  readonly names: ReadonlySet<string>;
  /** Open: agents and vendors add to them with each version. */
  readonly beginnings: readonly string[];
}

/** From a client to a vendor. */
const REQUEST: Names = {
  names: new Set([
    'accept',
    'accept-language',
    'idempotency-key',
    'user-agent',
    // Protocols and SDKs.
    'openai-beta',
    'x-goog-api-client',
    'x-request-id',
    'x-server-timeout',
    // Agents: which program, which conversation.
    'conversation_id',
    'http-referer',
    'openai-intent',
    'originator',
    'session-id',
    'session_id',
    'thread-id',
    'thread_id',
    'version',
    'x-app',
    'x-client-app',
    'x-client-request-id',
    'x-conversation-id',
    'x-initiator',
    'x-interaction-id',
    'x-interaction-type',
    'x-parent-session-id',
    'x-session-affinity',
    'x-session-id',
    'x-task-id',
    'x-title',
  ]),
  beginnings: [
    'anthropic-',
    'copilot-',
    'x-anthropic-',
    'x-claude-',
    'x-codex-',
    'x-dashscope-',
    'x-grok-',
    'x-openai-',
    'x-opencode-',
    'x-openrouter-',
    'x-responsesapi-',
    'x-stainless-',
  ],
};

/** From a vendor to a client. */
const ANSWER: Names = {
  names: new Set([
    'cache-control',
    'content-encoding',
    'content-language',
    'content-type',
    'openai-model',
    'openai-processing-ms',
    'openai-version',
    'request-id',
    'retry-after',
    'retry-after-ms',
    'server-timing',
    'x-reasoning-included',
    'x-request-id',
    'x-should-retry',
    // Ids of requests, by which a vendor's support finds them.
    'apim-request-id',
    'mistral-correlation-id',
    'msh-request-id',
    'x-amzn-requestid',
    'x-client-request-id',
    'x-correlation-id',
    'x-ds-trace-id',
    'x-generation-id',
    'x-log-id',
    'x-ms-client-request-id',
    'x-trace-id',
    'x-tt-logid',
    // What a vendor measured.
    'x-gemini-service-tier',
    'x-ms-region',
  ]),
  beginnings: [
    'anthropic-',
    'fireworks-',
    'msh-context-cache-',
    'ratelimit',
    'x-amzn-bedrock-',
    'x-codex-',
    'x-dashscope-',
    'x-grok-',
    'x-groq-',
    'x-openai-',
    'x-openrouter-',
    'x-ratelimit',
  ],
};

/** Names an account, a person, an address or a credential, whatever stands before it. */
const PRIVATE =
  /account|address|auth|billing|cookie|credential|customer|e-?mail|installation|organi[sz]ation|password|project|secret|subscription|tenant|workspace|api-?key|(?:^|[-_])(?:access|id|session|security|bearer)[-_]token|(?:^|[-_])(?:ip|key|org|team|uid|user|userid)(?:[-_]|$)/;

/** Limits count tokens and requests of many things; their names say nothing about whose they are. */
const LIMIT = /^(?:x-)?ratelimit/;

const isListed = ({ names, beginnings }: Names, name: string): boolean =>
  names.has(name) ||
  (beginnings.some((beginning) => name.startsWith(beginning)) &&
    (LIMIT.test(name) || !PRIVATE.test(name)));

// The same names come with every message; so many are remembered at most.
const MAX_KNOWN = 1000;

function remembered(decide: (name: string) => boolean): (name: string) => boolean {
  const known = new Map<string, boolean>();
  return (name) => {
    let decided = known.get(name);
    if (decided === undefined) {
      decided = decide(name);
      if (known.size >= MAX_KNOWN) known.clear();
      known.set(name, decided);
    }
    return decided;
  };
}

/**
 * Do requests to a vendor take this field (in lower case) of the client's along?
 * @param more further names, `x-team` or `x-team-*`, as `providers.NAME.forward_headers` has them
 */
export function requestFilter(more: readonly string[] = []): (name: string) => boolean {
  if (more.length === 0) return ofRequests;
  const beginnings = more.flatMap((name) => (name.endsWith('*') ? [name.slice(0, -1)] : []));
  const names = new Set(more);
  return remembered(
    (name) =>
      isListed(REQUEST, name) ||
      (!NEVER_FORWARDED.test(name) &&
        (names.has(name) ||
          (beginnings.some((beginning) => name.startsWith(beginning)) && !PRIVATE.test(name)))),
  );
}

const ofRequests = remembered((name) => isListed(REQUEST, name));

/** Do clients get this field (in lower case) of a vendor's answer? */
export const crossesToClient = remembered((name) => isListed(ANSWER, name));

/** Parameters of the protocols themselves; Gemini's `alt` is chosen for each hop. */
const PARAMETERS: ReadonlySet<string> = new Set([
  // Messages.
  'beta',
  // Gemini: a part of the answer, and its layout.
  '$fields',
  '$prettyPrint',
  'fields',
  'prettyPrint',
  // Responses: a stored response and its items.
  'after',
  'before',
  'include',
  'include[]',
  'include_obfuscation',
  'limit',
  'order',
  'starting_after',
  'stream',
]);

/**
 * The client's query as the vendor gets it: parameters of the protocol alone, and none that is configured.
 * @param search `''` or `?…`; @param configured names
 */
export function forwardedSearch(
  search: string,
  configured: Readonly<Record<string, unknown>>,
): string {
  // What Claude Code sends with each request, and what nearly all others do.
  if (search === '' || (search === '?beta=true' && !Object.hasOwn(configured, 'beta'))) {
    return search;
  }
  return protocolsOwn(search, configured);
}

function protocolsOwn(search: string, configured: Readonly<Record<string, unknown>>): string {
  const kept = search
    .slice(search.startsWith('?') ? 1 : 0)
    .split('&')
    .filter((part) => {
      // As a vendor reads it: `%62eta` is `beta`.
      const [name = ''] = [...new URLSearchParams(part).keys()];
      return PARAMETERS.has(name) && !Object.hasOwn(configured, name);
    });
  // Some servers still divide at a semicolon.
  return kept.length === 0 ? '' : `?${kept.join('&').replaceAll(';', '%3B')}`;
}
