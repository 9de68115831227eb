/** A gateway that records and replays samples: every feature on, scripted vendors. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SampleMeta } from '../../src/samples/sample.ts';
import { type Gateway, startGateway } from '../support/binary.ts';
import {
  type FakeUpstream,
  type Raw,
  type Step,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { startToolServers, type ToolServers } from '../support/tool-servers.ts';

export const ROOT = join(import.meta.dir, '../../samples');
export const ENTRIES: readonly ProtocolName[] = [
  'anthropic-messages',
  'openai-chat',
  'openai-responses',
];
const PATHS: Readonly<Record<ProtocolName, string>> = {
  'anthropic-messages': '/v1/messages',
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
};

export interface Stage {
  readonly gateway: Gateway;
  readonly upstream: FakeUpstream;
  readonly world: ToolServers;
  stop(): Promise<void>;
}

/** One request as the client, the vendor and the recorder saw it. */
export interface Played {
  readonly id: string;
  readonly status: number;
  readonly text: string;
  readonly reset: boolean;
  /** Bodies of the vendor's requests, hop by hop. */
  readonly sent: readonly string[];
  readonly meta: SampleMeta;
}

/** Models named claude-… go to a Messages vendor, `glm/…` to one with the glm profile, all others to a Chat vendor. */
export async function startStage(): Promise<Stage> {
  const upstream = await startFakeUpstream({ keys: ['sk-upstream'] });
  const toolServers = await startToolServers();
  const vendor = (protocol: ProtocolName, profile: string) => ({
    protocol,
    profile,
    base_url: upstream.baseUrl(protocol),
    keys: ['sk-upstream'],
    models: ['*'],
  });
  const gateway = await startGateway({
    providers: {
      chat: vendor('openai-chat', 'none'),
      messages: vendor('anthropic-messages', 'none'),
      glm: vendor('openai-chat', 'glm'),
    },
    routes: [
      { when: { model: 'claude-*' }, to: ['messages/*'] },
      { when: { model: '*' }, to: ['chat/*'] },
    ],
    server_tools: {
      web_search: {
        inject: 'declared',
        engines: [{ type: 'searxng', base_url: toolServers.origin }],
      },
    },
    retry: { attempts: 1 },
    samples: { mode: 'all' },
  });
  return {
    gateway,
    upstream,
    world: toolServers,
    stop: async () => {
      await gateway.stop();
      await upstream.stop();
      await toolServers.stop();
    },
  };
}

/** Sends one request while the vendor answers with `steps`, in order. */
export async function play(
  { gateway, upstream }: Stage,
  entry: ProtocolName,
  body: string,
  steps: readonly Step[],
): Promise<Played> {
  upstream.clear();
  upstream.enqueue(...steps);
  const response = await fetch(gateway.url + PATHS[entry], {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  let text = '';
  let reset = false;
  const decoder = new TextDecoder();
  try {
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
  } catch {
    reset = true;
  }
  if (upstream.refusals.length > 0) throw new Error(`refused: ${upstream.refusals.join('\n')}`);
  const id = response.headers.get('x-hopgate-request-id') ?? '';
  const sent = upstream.modelRequests.map(({ bytes }) => new TextDecoder().decode(bytes));
  return { id, status: response.status, text, reset, sent, meta: await metaOf(gateway, entry, id) };
}

/** The recorded exchange, once it is complete. */
async function metaOf(gateway: Gateway, entry: ProtocolName, id: string): Promise<SampleMeta> {
  const file = join(gateway.home, 'state/samples', entry, `${id}_meta.json`);
  const until = performance.now() + 20_000;
  for (;;) {
    const text = await Bun.file(file)
      .text()
      .catch(() => '{}');
    const meta = JSON.parse(text) as SampleMeta;
    if (meta.state === 'done') return meta;
    if (performance.now() > until) throw new Error(`no complete sample ${id}`);
    await Bun.sleep(20);
  }
}

/** A sample of this repository. */
export interface Sample {
  readonly entry: ProtocolName;
  readonly id: string;
  readonly meta: SampleMeta & { readonly about: string };
  /** The text of a stage; undefined if the sample has none. */
  read(stage: string): string | undefined;
}

export function allSamples(): readonly Sample[] {
  return ENTRIES.flatMap((entry) => {
    const names = readdirSync(join(ROOT, entry)).sort();
    return names
      .filter((name) => name.endsWith('_meta.json'))
      .map((name): Sample => {
        const id = name.slice(0, -'_meta.json'.length);
        const file = (stage: string) => names.find((one) => one.startsWith(`${id}_${stage}.`));
        const read = (stage: string) => {
          const found = file(stage);
          return found === undefined ? undefined : readFileSync(join(ROOT, entry, found), 'utf8');
        };
        return { entry, id, meta: JSON.parse(read('meta')!) as Sample['meta'], read };
      });
  });
}

/** The vendor's stages: `hop2-provider-request` and similar ones, hop by hop. */
export function providerStages({ meta, read }: Sample, what: 'request' | 'response') {
  const hops = Array.from({ length: meta.hops ?? 1 }, (_, i) => (i === 0 ? '' : `hop${i + 1}-`));
  return hops.map((hop) => {
    const stages = [
      `${hop}provider-${what}`,
      ...(what === 'response' ? [`${hop}provider-error`] : []),
    ];
    return stages.map(read).find((text) => text !== undefined) ?? '';
  });
}

/** The vendor's answers in a sample, byte for byte, with status and ending. */
export function recordedSteps(sample: Sample): readonly Raw[] {
  const answers = sample.meta.edges.filter(({ stage }) => /provider-(response|error)$/.test(stage));
  return answers.map(({ stage, status, file, error }): Raw => {
    const raw = sample.read(stage) ?? '';
    const bytes = Buffer.byteLength(raw);
    return {
      raw,
      status: status ?? 200,
      contentType: file.endsWith('.sse') ? 'text/event-stream' : 'application/json',
      ...(file.endsWith('.sse') && error !== undefined
        ? { delivery: { cut: { at: bytes, by: 'reset' } } }
        : {}),
    };
  });
}

// The gateway's generated ids differ on every run, and their relations do not.
const MADE_UP = /\b(?:(?:srv)?toolu|call|msg|resp|ws|fc|ctc|rs|req)_[0-9A-Za-z_]{12,}/g;

/** The text with generated ids numbered in order, and without clocks. */
export function timeless(text: string): string {
  const ids = new Map<string, string>();
  return text
    .replace(MADE_UP, (id) => {
      if (!ids.has(id)) ids.set(id, `${id.slice(0, id.indexOf('_'))}_${ids.size}`);
      return ids.get(id)!;
    })
    .replace(/"(created|completed_at|created_at)":\d+/g, '"$1":0');
}
