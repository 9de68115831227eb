import { summarize } from '../../conversation/notes.ts';
import { targetName } from '../../conversation/target.ts';
import { totalInput, totalOutput } from '../../conversation/usage.ts';
import { MetaMask, masksNothing } from '../mask/meta-mask.ts';
import type { Capture } from '../record/capture.ts';
import { round, type StageBody, sampleError } from '../record/stage-body.ts';
import {
  clientLeft,
  type SampleMeta,
  type SampleRow,
  type SampleStage,
  type SampleState,
  type SampleToolRun,
} from '../sample.ts';

function stageInfoOf(id: string, body: StageBody): SampleStage {
  return {
    stage: body.stage,
    file: body.name(id),
    bytes: body.finished ? body.written : body.bytes,
    ...(body.masked > 0 && { masked: body.masked }),
    ...body.facts,
  };
}

/** Tool texts are content: they are blanked like the bodies. */
function shown(run: SampleToolRun, { blanked }: Capture): SampleToolRun {
  if (!blanked.includes('texts')) return run;
  const blank = (text: string) => text.replace(/\p{L}/gu, 'x').replace(/\d/g, '1');
  return {
    ...run,
    ...(run.arguments !== undefined && { arguments: blank(run.arguments) }),
    ...(run.result !== undefined && { result: blank(run.result) }),
  };
}

/** The meta of a capture so far. Its texts are not masked yet: see {@link metaText}. */
export function metaOf(capture: Capture, state: SampleState, run: string): SampleMeta {
  const { outcome } = capture;
  const edges = capture.stages.map((body) => stageInfoOf(capture.id, body));
  const counted = capture.stages.findLast(
    ({ stage, facts }) => facts.target !== undefined && !/try\d+-/.test(stage),
  );
  const target = outcome?.target ?? undefined;
  const meta: SampleMeta = {
    id: capture.id,
    entry: capture.entry,
    state,
    ...(state === 'open' && { run }),
    time: capture.time,
    model: capture.model,
    target: target === undefined ? counted?.facts.target : targetName(target),
    provider_protocol: target?.protocol ?? counted?.facts.protocol,
    route: outcome?.route,
    status: outcome?.status,
    stream: outcome?.stream,
    error: outcome?.error === undefined ? undefined : sampleError(outcome.error),
    tries: outcome?.tries,
    hops: outcome?.hops,
    first_byte_ms: outcome?.firstByte === undefined ? undefined : round(outcome.firstByte),
    total_ms: outcome === undefined ? undefined : round(outcome.total),
    usage: outcome?.usage,
    notes: outcome?.notes ?? [],
    session: capture.session === '' ? undefined : capture.session,
    memory_space: capture.memorySpace,
    owner: capture.owner === '' ? undefined : capture.owner,
    address: capture.address !== undefined && capture.blanked.length > 0 ? '**' : capture.address,
    search: capture.search === '' ? undefined : capture.search,
    masked: capture.masked + edges.reduce((sum, stageInfo) => sum + (stageInfo.masked ?? 0), 0),
    edges,
    ...(capture.tools.length > 0 && { tools: capture.tools.map((run) => shown(run, capture)) }),
    ...(capture.blanked.length > 0 && { redacted: capture.blanked }),
  };
  return meta;
}

/**
 * The meta with credentials masked and counted, as the text of its file and as a value. Each text is masked
 * by itself, so that no match reaches from one text into the next.
 */
export function metaText(
  meta: SampleMeta,
  literals: readonly string[],
): { readonly text: string; readonly meta: SampleMeta } {
  const text = JSON.stringify(meta, null, 1);
  // Nearly always so, and a tenth of the price.
  if (masksNothing(text, literals)) return { text, meta };
  const mask = new MetaMask(literals);
  const shown = mask.whole(meta);
  const whole = mask.count === 0 ? shown : { ...shown, masked: meta.masked + mask.count };
  return { text: JSON.stringify(whole, null, 1), meta: whole };
}

/** The meta of a capture so far, as it may be shown. */
export function shownMeta(capture: Capture, state: SampleState, run: string): SampleMeta {
  capture.prepare();
  return metaText(metaOf(capture, state, run), capture.secrets.literals).meta;
}

/** The row of a sample. */
export function rowOf(meta: SampleMeta): SampleRow {
  const status = meta.status ?? 0;
  const left = clientLeft(status, meta.error);
  const error = left ? '' : (meta.error?.kind ?? '');
  const request = meta.edges.find(({ stage }) => stage === 'client-request');
  const tried = meta.edges.some(({ stage }) => /(?:^|-)try\d+-/.test(stage));
  return {
    id: meta.id,
    entry: meta.entry,
    state: meta.state,
    time: meta.time,
    model: meta.model ?? '',
    target: meta.target ?? '',
    status,
    error,
    failed: error !== '' || (status >= 400 && !left) || tried || meta.state === 'cut',
    stream: meta.stream ?? false,
    tries: meta.tries ?? 0,
    hops: meta.hops ?? 0,
    notes: summarize(meta.notes),
    input_tokens: meta.usage === undefined ? null : totalInput(meta.usage),
    output_tokens: meta.usage === undefined ? null : totalOutput(meta.usage),
    cached_tokens: meta.usage?.cacheRead ?? null,
    cache_write_tokens: meta.usage?.cacheWrite ?? null,
    cache_write_1h_tokens: meta.usage?.cacheWrite1h ?? null,
    reasoning_tokens: meta.usage?.reasoning ?? null,
    first_byte_ms: meta.first_byte_ms ?? null,
    total_ms: meta.total_ms ?? null,
    session: meta.session ?? '',
    owner: meta.owner ?? '',
    client: clientName(request?.headers?.['user-agent'] ?? ''),
    ...(meta.memory_space !== undefined && { memory_space: meta.memory_space }),
    made_by: meta.made_by ?? '',
    bytes: meta.edges.reduce((sum, stageInfo) => sum + stageInfo.bytes, 0),
  };
}

/** Beginnings of user agents, in lower case. The first that fits counts. */
const KNOWN: readonly (readonly [begins: string, name: string])[] = [
  ['claude-cli/', 'Claude Code'],
  ['claude-code/', 'Claude Code'],
  ['codex', 'Codex'],
  ['opencode', 'opencode'],
  ['openai/', 'OpenAI SDK'],
  ['asyncopenai/', 'OpenAI SDK'],
  ['anthropic/', 'Anthropic SDK'],
  ['asyncanthropic/', 'Anthropic SDK'],
  ['ai-sdk/', 'AI SDK'],
];

const MAX_CHARACTERS = 30;

/** `Claude Code`, `OpenAI SDK`, or the product that a user agent names first; '' for none. */
export function clientName(userAgent: string): string {
  const lower = userAgent.toLowerCase();
  const known = KNOWN.find(([begins]) => lower.startsWith(begins));
  if (known !== undefined) return known[1];
  return userAgent.split(/[/\s(]/, 1)[0]!.slice(0, MAX_CHARACTERS);
}
