/** What is to be sent again: an edge of a sample, an exported sample, or any request body in a file. */

import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { SampleBook, SampleMeta } from '../../conversation/sample.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type JsonObject, splice, topLevel, tryParse } from '../../lib/json.ts';
import { bodyProtocol } from '../body-protocol.ts';
import { type Invocation, UsageError } from '../command.ts';
import { readExported } from '../samples/carry.ts';
import { sampleOf } from '../samples/folder.ts';

export interface Source {
  /** The sample's id, or the file's name. */
  readonly name: string;
  /** How the body speaks. */
  readonly protocol: ProtocolName;
  readonly body: Uint8Array;
  readonly headers: Headers;
  readonly search: string;
  /** It went to a vendor in this form: it goes to one as it is. */
  readonly straight: boolean;
  /** `provider/model` it went to. */
  readonly target: string | undefined;
  /** What was answered then. */
  readonly answer:
    | {
        readonly status: number;
        readonly headers: Headers;
        readonly body: Uint8Array;
        readonly reset: boolean;
      }
    | undefined;
}

// What a client says of itself and of the protocol; nothing that is a credential or of a connection.
const CARRIED =
  /^(anthropic-(version|beta)|openai-beta|user-agent|x-app|x-claude-code-|session[-_]id|originator)/;

/** @throws UsageError when there is no such thing, or it is no request */
export function sourceOf(book: SampleBook, named: string, invocation: Invocation): Source {
  const { io, text } = invocation;
  const path = resolve(io.cwd, named);
  if (!existsSync(path)) return fromSample(book, sampleOf(book, named, 'replay'), text('edge'));
  const inFolder = /^(req_\d+_[0-9A-Za-z]+)_([a-z0-9-]+)\.json$/.exec(basename(path));
  if (inFolder !== null) {
    const beside = invocation.deps.samples(dirname(dirname(path)));
    const meta = beside.find(inFolder[1]!);
    beside.close();
    if (meta !== undefined) return fromSample(beside, meta, text('edge') ?? inFolder[2]!);
  }
  const value = tryParse(readFileSync(path, 'utf8'));
  if (!isObject(value)) throw new UsageError(`${named} is no JSON object.`);
  if (value.hopgate_sample === 1) return fromExported(path, text('edge'));
  return {
    name: basename(path),
    protocol:
      (text('protocol') as ProtocolName | undefined) ?? bodyProtocol(value) ?? 'openai-chat',
    body: readFileSync(path),
    headers: new Headers(),
    search: '',
    straight: false,
    target: undefined,
    answer: undefined,
  };
}

function fromExported(path: string, edge: string | undefined): Source {
  const { meta, files } = readExported(path);
  const read = (_: SampleMeta, stage: string) => {
    const file = files.find((one) => one.stage === stage);
    if (file === undefined) return undefined;
    return Buffer.from(file.text ?? file.base64 ?? '', file.text === undefined ? 'base64' : 'utf8');
  };
  return fromSample({ read }, meta, edge);
}

/** The request of a sample: what the client sent, unless another edge is named. */
export function fromSample(
  book: Pick<SampleBook, 'read'>,
  meta: SampleMeta,
  stage = 'client-request',
): Source {
  const body = book.read(meta, stage);
  if (body === undefined || !stage.endsWith('request')) {
    const names = meta.edges.map((edge) => edge.stage).filter((name) => name.endsWith('request'));
    throw new UsageError(`${meta.id} has no request "${stage}". It has: ${names.join(', ')}.`);
  }
  const edge = meta.edges.find((one) => one.stage === stage);
  const straight = stage !== 'client-request';
  const answers = straight
    ? [stage.replace(/request$/, 'response'), stage.replace(/request$/, 'error')]
    : ['client-response'];
  const answer = meta.edges.find((one) => answers.includes(one.stage));
  const answered = answer === undefined ? undefined : book.read(meta, answer.stage);
  const headers = new Headers();
  for (const [name, value] of Object.entries(edge?.headers ?? {})) {
    if (CARRIED.test(name) && !value.includes('**')) headers.set(name, value);
  }
  return {
    name: meta.id,
    protocol: straight ? (edge?.protocol ?? meta.provider_protocol ?? meta.entry) : meta.entry,
    body,
    headers,
    search: straight || meta.search?.includes('**') === true ? '' : (meta.search ?? ''),
    straight,
    target: edge?.target ?? meta.target,
    answer:
      answer === undefined || answered === undefined || answer.made === true
        ? undefined
        : {
            status: answer.status ?? meta.status ?? 0,
            headers: new Headers({
              'content-type': answer.file.endsWith('.sse')
                ? 'text/event-stream'
                : 'application/json',
            }),
            body: answered,
            reset: answer.cut === true || (meta.error !== undefined && (meta.status ?? 0) < 400),
          },
  };
}

/** The body as a value. @throws UsageError */
export function bodyOf({ name, body }: Source): JsonObject {
  const value = tryParse(new TextDecoder().decode(body));
  if (!isObject(value)) throw new UsageError(`The request of ${name} is no JSON object.`);
  return value;
}

/** The bytes with another model name, everything else as it was. */
export function withModel(body: Uint8Array, model: string): Uint8Array {
  const member = topLevel(body)?.get('model');
  if (member === undefined) return body;
  return splice(body, member.valueStart, member.valueEnd, JSON.stringify(model));
}
