/** What a session costs at a vendor through the gateway, beside the least that it can cost. */

import { CODECS } from '../../../src/app/codecs.ts';
import { environmentFrom } from '../../../src/config/environment.ts';
import { parseConfig } from '../../../src/config/load.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { PromptCache, RequestTails } from '../../../src/features/prompt-cache/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { SHORT_RESULTS, toolResults } from '../../../src/features/tool-results/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import { ClientRequest } from '../../../src/gateway/client-request.ts';
import { prepare } from '../../../src/gateway/prepare.ts';
import type { Prepared } from '../../../src/gateway/types.ts';
import { ByteList, wholeBytes } from '../../../src/lib/bytes/byte-list.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { Abort } from '../../../src/lib/loop/abort.ts';
import type { RoutedTarget } from '../../../src/routing/index.ts';
import { splitTarget, targetOf } from '../../../src/routing/targets.ts';
import { memoryRoom } from '../entries.ts';
import {
  bestCost,
  claudeCache,
  costOf,
  implicitCache,
  keyedCache,
  type Prompt,
  type VendorCache,
} from './caches.ts';
import { PROMPTS } from './prompts.ts';
import { type Asked, REQUESTS } from './sessions.ts';

interface Vendor {
  readonly yaml: string;
  readonly model: string;
  readonly cache: () => VendorCache;
  readonly least: number;
  readonly seconds: number;
}

const claude = (yaml: string, model: string, least: number): Vendor => ({
  yaml,
  model,
  cache: () => claudeCache(least),
  least,
  seconds: 300,
});
const implicit = (yaml: string, model: string): Vendor => ({
  yaml,
  model,
  cache: () => implicitCache(),
  least: 1024,
  seconds: 300,
});
const keyed = (yaml: string, model: string): Vendor => ({
  yaml,
  model,
  cache: () => keyedCache(),
  least: 1024,
  seconds: 1800,
});

/** Vendors by how they keep prompts, each in the protocols that they speak. */
export const VENDORS: Readonly<Record<string, Vendor>> = {
  'Claude (Anthropic)': claude('preset: anthropic', 'claude-sonnet-4-5', 1024),
  'Claude Opus 5.5 (Anthropic)': claude('preset: anthropic', 'claude-opus-5-5', 512),
  'Claude (Bedrock)': claude(
    'platform: bedrock, region: us-east-1, keys: k',
    'us.anthropic.claude-haiku-4-5-20251001-v1:0',
    4096,
  ),
  'Claude (OpenRouter)': claude('preset: openrouter', 'anthropic/claude-sonnet-4.5', 1024),
  'GPT-5.6 and later (OpenAI)': keyed('preset: openai', 'gpt-5.6'),
  'GPT-6 on Chat (OpenAI)': keyed('preset: openai-chat', 'gpt-6-sol'),
  'GPT up to 5.5 (OpenAI)': implicit('preset: openai', 'gpt-5.1'),
  'GLM, which gets short results': implicit('preset: zai', 'glm-4.7'),
  DeepSeek: implicit('preset: deepseek', 'deepseek-v4-flash'),
  Gemini: implicit('preset: gemini', 'gemini-3-pro'),
};

/** Of a text in a tool result, where the vendor's profile has them shortened: shorter than those of the sessions. */
const MAX_RESULT = 2000;

export const CLIENTS = Object.keys(REQUESTS) as readonly ProtocolName[];

const OTHER = 'other/some-model';

function targets({ yaml, model }: Vendor): { usual: RoutedTarget; other: RoutedTarget } {
  const own = /\bkeys:/.test(yaml) ? yaml : `${yaml}, keys: k`;
  const loaded = parseConfig(
    `providers:\n  vendor: { ${own}, models: ["*"] }\n  other: { protocol: openai-chat, base_url: "http://other.test", models: ["*"] }\n`,
    'bill.yaml',
    environmentFrom({}, '/nowhere'),
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { providers } = loaded.config;
  const other = splitTarget(OTHER, providers)!;
  return {
    usual: targetOf(providers.vendor!, model),
    other: targetOf(other.provider, other.model),
  };
}

/** The bodies that a vendor gets in a session, with when they came. */
export function sentBodies(client: ProtocolName, vendor: Vendor, asked: readonly Asked[]) {
  const { usual, other } = targets(vendor);
  const tails = new RequestTails();
  const fitted = vendorFit();
  const short = toolResults({ limit: MAX_RESULT, ledger: memoryRoom(SHORT_RESULTS) });
  const sessionId = client === 'openai-responses' ? 'session-1' : '';
  const bodies: { readonly body: JsonObject; readonly at: number }[] = [];
  for (const one of asked) {
    const own = REQUESTS[client](one, vendor.model);
    // A client of OpenAI's own protocols sends its own key there, as Codex does.
    const key = client === usual.target.protocol && usual.target.profile.breakpointsAt && 'mine';
    const body = Buffer.from(JSON.stringify({ ...own, ...(key && { prompt_cache_key: key }) }));
    const request = new ClientRequest(CODECS[client], body);
    const cache = new PromptCache({ owner: 'me', sessionId }, tails);
    const features = [toolPairing, short, fitted, cache];
    for (const { target } of one.away ? [usual, other] : [usual]) {
      const prepared = prepare({
        request,
        target,
        protocol: CODECS[target.protocol],
        features,
        notes: new Notes(),
        hop: { number: 1 },
        abort: new Abort(),
      }) as Prepared;
      if (one.away) continue;
      const bytes = prepared.body instanceof ByteList ? wholeBytes(prepared.body) : prepared.body;
      bodies.push({ body: JSON.parse(Buffer.from(bytes as Uint8Array).toString()), at: one.at });
    }
  }
  return { bodies, protocol: usual.target.protocol };
}

const prompts = new WeakMap<readonly Asked[], Map<ProtocolName, OwnPrompts>>();
type OwnPrompts = readonly { readonly prompt: Prompt; readonly at: number }[];

/** What the client itself says to its usual target: the same for each vendor, so it is made once. */
function ownPrompts(client: ProtocolName, asked: readonly Asked[]): OwnPrompts {
  const known = prompts.get(asked) ?? new Map<ProtocolName, OwnPrompts>();
  prompts.set(asked, known);
  const made =
    known.get(client) ??
    asked
      .filter(({ away }) => away !== true)
      .map((one) => ({
        prompt: PROMPTS[client](REQUESTS[client](one, 'any-model') as JsonObject),
        at: one.at,
      }));
  known.set(client, made);
  return made;
}

/** The cost of a session by the best, and by what it would be without any cache. */
export function billOf(client: ProtocolName, vendor: Vendor, asked: readonly Asked[]) {
  const { bodies, protocol } = sentBodies(client, vendor, asked);
  const cache = vendor.cache();
  const { prices } = cache;
  let cost = 0;
  let all = 0;
  for (const { body, at } of bodies) {
    const counted = cache.ask(PROMPTS[protocol](body), at);
    cost += costOf(counted, prices);
    all += counted.read + counted.written + counted.writtenForAnHour + counted.fresh;
  }
  // The best is that of the client's own prompts: what a conversion makes of them must not change them from turn to turn.
  const own = ownPrompts(client, asked);
  const whole = own.reduce(
    (sum, { prompt }) => sum + prompt.pieces.reduce((tokens, piece) => tokens + piece.tokens, 0),
    0,
  );
  const best = bestCost(own, prices, vendor) / whole;
  return { best: cost / all / best, without: 1 / best };
}
