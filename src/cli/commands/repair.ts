import { GatewayError } from '../../conversation/errors.ts';
import { Notes } from '../../conversation/notes.ts';
import type { Profile } from '../../conversation/profile-facts.ts';
import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import type { Target } from '../../conversation/target.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject, parseJson } from '../../lib/json/json.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { profileFor } from '../../routing/index.ts';
import { PROFILES } from '../../vendors/index.ts';
import { bodyProtocol } from '../body-protocol.ts';
import { type CommandServices, type CommandSpec, type Invocation, UsageError } from '../command.ts';

/** The same for all lines of one run. */
export interface RepairOptions {
  readonly to: ProtocolName;
  readonly profile: string | undefined;
  /** The vendor that wrote the histories: no other vendor accepts the seals in them. */
  readonly from: string | undefined;
  readonly services: Pick<CommandServices, 'protocols' | 'pairing'>;
}

export const REPAIR: CommandSpec = {
  name: 'repair',
  group: 'debug',
  summary: 'repair tool-call histories so that an API accepts them, offline',
  description: [
    'Reads request bodies from stdin, one per line, and writes {"body":…,"notes":[…]} for each: what the gateway would send, and what it changed. A body that needs no repair is returned unchanged; a line that is not a request becomes {"error":…}.',
    'Bodies are assumed to use the protocol of --to. A body that can only be in another protocol is converted.',
  ],
  options: {
    to: { value: 'PROTOCOL', summary: 'the API to repair for', choices: PROTOCOL_NAMES },
    profile: { value: 'NAME', summary: 'the vendor to repair for', default: 'none' },
    from: {
      value: 'PROFILE',
      summary: 'the vendor whose answers are in the history; other vendors refuse its signatures',
      default: 'recognised by the signatures',
    },
    jsonl: { summary: 'one JSON body per line (the only format)' },
  },
  examples: {
    'hopgate repair --to anthropic-messages --jsonl < bodies.jsonl':
      'Repairs what Anthropic would refuse.',
  },
  exits: { 0: 'every line was processed' },
  run: runRepair,
};

/**
 * Reads stdin to its end. A line that cannot be repaired is answered with `{"error": …}` in its
 * place; the exit code is 0 whatever the lines were.
 */
async function runRepair({ text, io, services }: Invocation): Promise<number> {
  const to = text('to');
  if (to === undefined) throw new UsageError('repair needs --to PROTOCOL.');
  const options: RepairOptions = {
    to: to as ProtocolName,
    profile: knownProfile(text('profile')),
    from: knownProfile(text('from')),
    services: await services(),
  };
  // One write for each chunk of input: one for each line would be slow.
  for await (const lines of linesOf(io.stdin)) {
    io.stdout.write(lines.map((line) => `${repairLine(line, options)}\n`).join(''));
  }
  return 0;
}

/** @throws UsageError for one that is not there */
export function knownProfile(profile: string | undefined): string | undefined {
  if (profile === undefined || Object.hasOwn(PROFILES, profile)) return profile;
  const names = Object.keys(PROFILES).join(', ');
  throw new UsageError(`There is no profile "${profile}". There are: ${names}.`);
}

/** Complete lines, as many at a time as a chunk completes; the last line needs no line feed. */
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
    // An unchanged body keeps its exact text, including numbers, escapes and spaces.
    const text = repaired === undefined ? body : JSON.stringify(repaired);
    return `{"body":${text},"notes":${JSON.stringify(notes.all)}}`;
  } catch (thrown) {
    const message = messageOf(thrown);
    const param = thrown instanceof GatewayError ? thrown.param : undefined;
    return JSON.stringify({ error: param === undefined ? { message } : { message, param } });
  }
}

/**
 * The body as the target accepts it, or undefined when it needs no change.
 * @throws GatewayError for a body that is no request
 */
function repairBody(body: Json, options: RepairOptions, notes: Notes): JsonObject | undefined {
  const { to, services } = options;
  const from = bodyProtocol(body) ?? to;
  const mended = services.pairing.mend(body, from, notes);
  const { whole, added } = addRequired(mended, from);
  const conversation = services.protocols[from].decodeRequest(whole);
  const target = targetOf(conversation.model, options);
  const paired = services.pairing.repair(conversation, target, notes, options.from);
  const repaired = services.pairing.fitTurns(paired, target, notes);
  const protocol = services.protocols[to];
  const same = from === to && mended === body && repaired === conversation;
  const encoded = same ? (whole as JsonObject) : protocol.encodeRequest(repaired, target, notes);
  const known = protocol.withoutUnknownFields?.(encoded, 'all', notes) ?? encoded;
  if (same && known === encoded) return undefined;
  return from === to && added.length > 0 ? withoutMembers(known, added) : known;
}

/**
 * Profile facts for what only some models refuse, or perhaps no longer refuse. A server would learn that from a
 * refusal; here no vendor can be asked, so the strictest case is assumed.
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

/** Adds required parameters that stored histories often lack; they are removed again afterwards. */
function addRequired(
  body: Json,
  protocol: ProtocolName,
): { whole: Json; added: readonly string[] } {
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

function withoutMembers(body: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)));
}
