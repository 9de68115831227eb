/** `hopgate repair`: the pairing repair of the gateway, offline: request bodies in, valid ones out, a line each. */

import { PROFILES } from '../../config/vendors/profiles.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { Notes } from '../../conversation/notes.ts';
import type { Profile, Target } from '../../conversation/target.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject, parseJson } from '../../lib/json/json.ts';
import { profileFor } from '../../routing/index.ts';
import { bodyProtocol } from '../body-protocol.ts';
import { type CommandServices, type Invocation, UsageError } from '../command.ts';

/** What all lines of one run share. */
export interface RepairOptions {
  readonly to: ProtocolName;
  readonly profile: string | undefined;
  /** Who wrote the histories: nobody else takes the seals in them. */
  readonly from: string | undefined;
  readonly deps: Pick<CommandServices, 'protocols' | 'pairing'>;
}

/**
 * Reads stdin to its end. A line that cannot be repaired is answered with `{"error": …}` in its
 * place; the exit code is 0 whatever the lines were.
 */
export async function runRepair({ text, io, deps }: Invocation): Promise<number> {
  const to = text('to');
  if (to === undefined) throw new UsageError('repair needs --to PROTOCOL.');
  const options: RepairOptions = {
    to: to as ProtocolName,
    profile: named(text('profile')),
    from: named(text('from')),
    deps,
  };
  // Chunks of output as large as those of the input: a write a line is slow.
  for await (const lines of linesOf(io.stdin)) {
    io.stdout.write(lines.map((line) => `${repairLine(line, options)}\n`).join(''));
  }
  return 0;
}

function named(profile: string | undefined): string | undefined {
  if (profile === undefined || Object.hasOwn(PROFILES, profile)) return profile;
  const names = Object.keys(PROFILES).join(', ');
  throw new UsageError(`There is no profile "${profile}". There are: ${names}.`);
}

/** Complete lines, as many at a time as came; the last needs no line feed. */
async function* linesOf(input: NodeJS.ReadableStream): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of input) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const end = rest.lastIndexOf('\n');
    if (end < 0) continue;
    yield rest.slice(0, end).split('\n');
    rest = rest.slice(end + 1);
  }
  rest += decoder.decode();
  if (rest !== '') yield [rest];
}

/** One line of output for one line of input. Never throws. */
export function repairLine(line: string, options: RepairOptions): string {
  const body = line.endsWith('\r') ? line.slice(0, -1) : line;
  try {
    const notes = new Notes();
    const repaired = repairBody(parseJson(body), options, notes);
    // What needs nothing keeps its very text: numbers, escapes and spaces included.
    const said = repaired === undefined ? body : JSON.stringify(repaired);
    return `{"body":${said},"notes":${JSON.stringify(notes.all)}}`;
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    const param = thrown instanceof GatewayError ? thrown.param : undefined;
    return JSON.stringify({ error: param === undefined ? { message } : { message, param } });
  }
}

/**
 * The body as the target takes it, or undefined when it needs nothing.
 * @throws GatewayError for what is no request at all
 */
function repairBody(body: Json, options: RepairOptions, notes: Notes): JsonObject | undefined {
  const { to, deps } = options;
  const came = bodyProtocol(body) ?? to;
  const mended = deps.pairing.mend(body, came, notes);
  const { whole, added } = complete(mended, came);
  const conversation = deps.protocols[came].decodeRequest(whole);
  const target = targetOf(conversation.model, options);
  const paired = deps.pairing.repair(conversation, target, notes, options.from);
  const repaired = deps.pairing.fitTurns(paired, target, notes);
  const protocol = deps.protocols[to];
  const same = came === to && mended === body && repaired === conversation;
  const encoded = same ? (whole as JsonObject) : protocol.encodeRequest(repaired, target, notes);
  const known = protocol.withoutUnknownFields?.(encoded, 'all', notes) ?? encoded;
  if (same && known === encoded) return undefined;
  return came === to && added.length > 0 ? without(known, added) : known;
}

/**
 * What is refused only by some models, or perhaps no longer: there is no vendor to ask here, so that
 * the answer to all such refusals is given at once.
 */
function strictest(
  model: string,
  { profile, to }: Pick<RepairOptions, 'profile' | 'to'>,
): Partial<Profile> {
  if (to !== 'anthropic-messages') return {};
  const maker = profile === undefined && /claude/i.test(model) ? 'anthropic' : profile;
  const { systemTurns = false, assistantLast } = profileFor(PROFILES[maker ?? 'none']!, model);
  return {
    systemTurns,
    userFirst: true,
    ...(assistantLast === undefined ? {} : { assistantLast }),
  };
}

function targetOf(model: string, { to, profile, from }: RepairOptions): Target {
  const facts = PROFILES[profile ?? 'none']!;
  const provider = profile ?? from ?? 'none';
  const strict = strictest(model, { to, profile });
  return { provider, model, protocol: to, profile: { ...profileFor(facts, model), ...strict } };
}

/** Histories are often kept without the parameters that a request needs; they are lent for the time being. */
function complete(body: Json, protocol: ProtocolName): { whole: Json; added: readonly string[] } {
  if (!isObject(body)) return { whole: body, added: [] };
  const lent: JsonObject = {
    ...(body.model === undefined ? { model: 'unknown' } : {}),
    ...(protocol === 'anthropic-messages' && body.max_tokens === undefined
      ? { max_tokens: 1024 }
      : {}),
  };
  const added = Object.keys(lent);
  return { whole: added.length === 0 ? body : { ...body, ...lent }, added };
}

function without(body: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)));
}
