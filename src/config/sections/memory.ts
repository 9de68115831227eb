import { join } from 'node:path';
import { suggest } from '../../lib/text/did-you-mean.ts';
import type { Findings, Path } from '../file/problem.ts';
import {
  closed,
  count,
  credential,
  flag,
  httpUrl,
  integer,
  type ProgramForm,
  path,
  seconds,
  string,
  text,
} from '../file/schema.ts';

const embeddings = closed('Search by vectors in addition to words.', {
  provider: text(
    'A provider of this file with an OpenAI-style /embeddings endpoint; its address, keys and limits are used.',
  ),
  model: text('The embedding model, as the vendor spells it.'),
  dimensions: integer('Dimensions of the vectors that the model is asked for.', 8, 8192).optional(
    "the model's own",
  ),
  query_prefix: string(
    'Put before each question, for models that want it: "query: " (e5).',
  ).optional('none'),
  passage_prefix: string(
    'Put before each text that is stored: "passage: " (e5). A change makes all vectors again, in the background.',
  ).optional('none'),
  timeout: seconds(
    'Seconds that a recall waits for the vector of its query; after that it searches by words alone.',
  ).byDefault(2),
});

const memoryLimits = closed('How much may be stored.', {
  text: count("Characters of an event's text.", 1).byDefault(8000),
  tags: count('Tags of an event.').byDefault(32),
  events: count('Events of a space.', 1).byDefault(100_000),
  bytes: count('Bytes of all texts of all spaces together.', 1).byDefault(2 ** 30),
  key_bytes: count(
    'Bytes of all texts that one key has put in, over all spaces; 0 = no limit but "bytes".',
  ).byDefault(2 ** 28),
});

export const memory = closed('The memory, which stores events that conversations recall.', {
  enabled: flag('Whether the memory is on: its API, and recalls in conversations.').byDefault(true),
  path: path('The database file.').orElse('$HOPGATE_HOME/memory.db', ({ environment }) =>
    join(environment.home, 'memory.db'),
  ),
  dedupe: seconds(
    'Seconds within which the same text from the same source is stored once.',
  ).byDefault(86_400),
  max_tokens: count(
    'Tokens, estimated, that a conversation gets from one recall; long texts are cut to passages. 0 = no limit.',
  ).byDefault(1200),
  embeddings: embeddings.optional('words alone'),
  limits: memoryLimits.byDefault({}),
  url: httpUrl(
    'An external store instead of the database. It gets POST {space, query, limit} and answers {events: […]}.',
  ).optional('the database'),
  capture_url: httpUrl(
    'The address at which the external store takes POST {space, events: […]}.',
  ).optional('the same as url'),
  key: credential("The external store's key, sent as a bearer token.").optional('none'),
  timeout: seconds('Seconds that the external store may take.').byDefault(5),
});

type Own = ProgramForm<typeof memory>;

export interface MemoryConfig extends Omit<Own, 'url' | 'captureUrl' | 'key' | 'timeoutMs'> {
  /** A store elsewhere that takes the database's place. */
  readonly external?: Required<Pick<Own, 'url' | 'captureUrl' | 'timeoutMs'>> & Pick<Own, 'key'>;
}

/** The providers of the file, as far as the check of the embeddings needs them. */
type Providers = Readonly<Record<string, { readonly protocol?: string }>>;

export function resolveMemory(
  { url, key, captureUrl, timeoutMs, ...own }: Own,
  providers: Providers,
  findings: Findings,
): MemoryConfig {
  const { embeddings } = own;
  if (embeddings !== undefined) checkProvider(embeddings.provider, providers, findings);
  if (url === undefined) {
    for (const [name, value] of [
      ['capture_url', captureUrl],
      ['key', key],
    ] as const) {
      if (value === undefined) continue;
      findings.problems.push({ path: ['memory', name], message: 'needs the key "url" beside it' });
    }
    return own;
  }
  if (embeddings !== undefined) {
    findings.warnings.push({
      path: ['memory', 'embeddings'],
      message: 'has no effect with memory.url: the external store ranks by itself',
    });
  }
  return { ...own, external: { url, captureUrl: captureUrl ?? url, key, timeoutMs } };
}

function checkProvider(name: string, providers: Providers, { problems }: Findings): void {
  const path: Path = ['memory', 'embeddings', 'provider'];
  if (!Object.hasOwn(providers, name)) {
    const suggestion = suggest(name, Object.keys(providers));
    problems.push({ path, message: `there is no provider "${name}"`, suggestion });
  } else if (providers[name]?.protocol === 'anthropic-messages') {
    const message = 'must speak an OpenAI protocol: Messages has no /embeddings';
    problems.push({ path, message });
  }
}
