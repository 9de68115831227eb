import { resolve } from 'node:path';
import type { Finding, Linter } from '../../codecs/lint.ts';
import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { isObject, type Json, tryParse } from '../../lib/json/json.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { profileFor } from '../../routing/index.ts';
import { PROFILES } from '../../vendors/index.ts';
import { bodyProtocol } from '../body-protocol.ts';
import {
  type CommandSpec,
  type Invocation,
  JSON_OPTION,
  type Lint,
  UsageError,
} from '../command.ts';
import { plural, wrap } from '../terminal.ts';
import { readNamed } from '../whole-file.ts';
import { knownProfile } from './repair.ts';

export const SHORT_NAMES: Readonly<Record<string, ProtocolName>> = {
  messages: 'anthropic-messages',
  chat: 'openai-chat',
  responses: 'openai-responses',
  gemini: 'google-gemini',
};

export const LINT: CommandSpec = {
  name: 'lint',
  group: 'debug',
  summary: 'show what a vendor or client would refuse in a request or stream',
  description: [
    "Reads one request body (JSON) or one recorded stream (SSE) from FILE or stdin, and reports every place that breaks a rule, in the vendor's own words where they are known.",
    'A field of a request that no vendor is known to take is a warning, with the field that was probably meant.',
    "In a stream, a place begins with the event's number, counted from 0.",
  ],
  arguments: [{ name: 'file', summary: 'the file to read; stdin if left out or -' }],
  options: {
    as: {
      value: 'PROTOCOL',
      summary: 'the protocol',
      choices: [...PROTOCOL_NAMES, ...Object.keys(SHORT_NAMES)],
      default: 'recognised by its fields',
    },
    stream: { summary: 'the input is a stream' },
    vendor: { value: 'PROFILE', summary: 'also report what this vendor refuses' },
    model: {
      short: 'm',
      value: 'NAME',
      summary: 'with --vendor: the model',
      default: 'that of the body',
    },
    json: JSON_OPTION,
  },
  examples: {
    'hopgate lint request.json': 'Checks one request.',
    'hopgate lint answer.sse --as messages --stream --json':
      'Checks one recorded stream, for scripts.',
    'hopgate lint request.json --vendor glm': 'Would GLM accept it, too?',
  },
  exits: { 0: 'no findings, or only warnings', 1: 'there are findings' },
  run: runLint,
};

async function runLint(invocation: Invocation): Promise<number> {
  const { text, flag } = invocation;
  const { lint } = await invocation.services();
  const bytes = await read(invocation);
  const name = text('as');
  const as =
    name === undefined ? undefined : (memberOf(SHORT_NAMES, name) ?? (name as ProtocolName));
  const stream = flag('stream') || looksLikeStream(bytes);
  const { protocol, found } = stream
    ? lintStream(invocation, lint, bytes, as)
    : lintBody(invocation, lint, bytes, as);
  printFindings(invocation, protocol, stream, found);
  return found.every(({ warning }) => warning) ? 0 : 1;
}

interface LintResult {
  readonly protocol: ProtocolName;
  readonly found: readonly Finding[];
}

async function read({ arguments: [file], io }: Invocation): Promise<Uint8Array> {
  let bytes: Uint8Array;
  if (file === undefined || file === '-') {
    const chunks: Uint8Array[] = [];
    for await (const chunk of io.stdin) {
      chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Uint8Array));
    }
    bytes = Buffer.concat(chunks);
  } else {
    try {
      bytes = readNamed(resolve(io.cwd, file));
    } catch {
      throw new UsageError(`"${file}" cannot be read.`);
    }
  }
  if (bytes.every((byte) => byte <= 0x20)) throw new UsageError('There is nothing to read.');
  return bytes;
}

const looksLikeStream = (bytes: Uint8Array) =>
  /^\uFEFF?\s*(event:|data:|id:|retry:|:)/.test(new TextDecoder().decode(bytes.subarray(0, 64)));

function lintBody(
  { text }: Invocation,
  lint: Lint,
  bytes: Uint8Array,
  as: ProtocolName | undefined,
): LintResult {
  const body = tryParse(new TextDecoder().decode(bytes));
  if (body === undefined) throw new UsageError('This is not JSON. Pass --stream for a stream.');
  const protocol = as ?? protocolOf(body);
  const found = [...lint.linters[protocol].request(body)];
  const vendor = knownProfile(text('vendor'));
  if (vendor !== undefined) {
    const own = isObject(body) && typeof body.model === 'string' ? body.model : '';
    const model = text('model') ?? own;
    const profile = profileFor(PROFILES[vendor]!, model);
    found.push(...lint.vendor(body, { provider: vendor, model, protocol, profile }));
  }
  return { protocol, found };
}

/** A plain dialogue is the same in Chat and Messages; there the name of the model decides. */
function protocolOf(body: Json): ProtocolName {
  const certain = bodyProtocol(body);
  if (certain !== undefined) return certain;
  if (!isObject(body) || (body.messages === undefined && body.input === undefined)) {
    throw new UsageError('The protocol of this request cannot be recognised: name it with --as.');
  }
  return /claude/.test(String(body.model)) ? 'anthropic-messages' : 'openai-chat';
}

function lintStream(
  { text }: Invocation,
  lint: Lint,
  bytes: Uint8Array,
  as: ProtocolName | undefined,
): LintResult {
  if (text('vendor') !== undefined) throw new UsageError('--vendor is for requests.');
  const parser = new SseParser();
  const frames = [...parser.push(bytes), ...parser.end()];
  if (!frames.some(({ data }) => data !== undefined))
    throw new UsageError('This is not an event stream.');
  const protocol = as ?? frames.map(protocolOfFrame).find((name) => name !== undefined);
  if (protocol === undefined) {
    throw new UsageError('The protocol of this stream cannot be recognised: name it with --as.');
  }
  return { protocol, found: lintFrames(lint.linters[protocol], frames) };
}

function lintFrames(linter: Linter, frames: readonly SseFrame[]): readonly Finding[] {
  const machine = linter.stream();
  return [...frames.flatMap((frame) => machine.push(frame)), ...machine.end()];
}

function protocolOfFrame({ data }: SseFrame): ProtocolName | undefined {
  const event = data === undefined ? undefined : tryParse(data);
  if (!isObject(event)) return undefined;
  const type = String(event.type);
  if (type.startsWith('response.')) return 'openai-responses';
  if (/^(message_(start|delta|stop)|content_block_(start|delta|stop)|ping)$/.test(type)) {
    return 'anthropic-messages';
  }
  if (Array.isArray(event.candidates) || event.usageMetadata !== undefined) return 'google-gemini';
  return Array.isArray(event.choices) ? 'openai-chat' : undefined;
}

function printFindings(
  { out, flag }: Invocation,
  protocol: ProtocolName,
  stream: boolean,
  found: readonly Finding[],
): void {
  const refused = found.filter(({ warning }) => !warning);
  const warnings = found.filter(({ warning }) => warning);
  const ok = refused.length === 0;
  if (flag('json')) {
    const plain = ({ at, rule, message }: Finding) => ({ at, rule, message });
    const findings = refused.map(plain);
    out.line(JSON.stringify({ ok, findings, warnings: warnings.map(plain), as: protocol }));
    return;
  }
  for (const { at, rule, message, warning } of [...refused, ...warnings]) {
    const label = warning ? `${rule} [warning]` : rule;
    out.line(`${out.paint('yellow', at === '' ? '/' : at)}  ${out.paint('dim', label)}`);
    for (const line of wrap(message, out.width, 4)) out.line(line);
  }
  const what = `${protocol} ${stream ? 'stream' : 'request'}`;
  const warned = warnings.length === 0 ? '' : plural(warnings.length, 'warning');
  if (ok) {
    out.line(`${out.paint('green', 'ok')}  ${what}${warned && `, ${warned}`}`);
    return;
  }
  const counted = `${plural(refused.length, 'finding')}${warned && ` and ${warned}`}`;
  out.line(`${counted} in this ${what}.`);
}
