/** A fake AWS: Bedrock in front of the fake vendor, and STS; both check signatures and refuse in AWS' words. */

import type { FakeUpstream } from '../fake-upstream/index.ts';
import { chunkMessage, exceptionMessage } from './event-stream.ts';
import { type AwsRefusal, type AwsSecret, awsRefusal } from './signature.ts';

export interface FakeAwsOptions {
  /** Speaks Messages; sees the requests as Anthropic would. */
  readonly vendor: FakeUpstream;
  readonly region: string;
  /** Access keys that are known. */
  readonly keys?: Record<string, AwsSecret>;
  /** Keys of Bedrock's own. */
  readonly bearer?: readonly string[];
  /** Roles that may be assumed, with what they give. */
  readonly roles?: Record<string, { readonly id: string } & AwsSecret>;
  /** Tokens of web identities. */
  readonly identities?: readonly string[];
  /** Its clock over this machine's, in milliseconds. */
  readonly clockMs?: number;
}

export interface FakeAws {
  readonly origin: string;
  readonly requests: {
    readonly path: string;
    readonly headers: Record<string, string>;
    readonly body: Record<string, unknown>;
  }[];
  readonly sts: URLSearchParams[];
  readonly refusals: string[];
  /** Known from now on. */
  readonly keys: Record<string, AwsSecret>;
  /** Ends the next stream with this exception, after so many events. */
  fail(type: string, message: string, after: number): void;
  stop(): Promise<void>;
}

const BETAS = new Set([
  'computer-use-2025-01-24',
  'token-efficient-tools-2025-02-19',
  'interleaved-thinking-2025-05-14',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'effort-2025-11-24',
  'tool-search-tool-2025-10-19',
  'tool-examples-2025-10-29',
]);

const MODEL = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream|count-tokens)$/;

const TYPES: Readonly<Record<number, string>> = {
  400: 'ValidationException',
  401: 'UnrecognizedClientException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
};

export function startFakeAws(options: FakeAwsOptions): FakeAws {
  const { vendor, region, bearer = [], roles = {}, identities = [], clockMs = 0 } = options;
  const keys: Record<string, AwsSecret> = { ...options.keys };
  const requests: FakeAws['requests'] = [];
  const sts: URLSearchParams[] = [];
  const refusals: string[] = [];
  let failing: { type: string; message: string; after: number } | undefined;
  const now = () => Date.now() + clockMs;

  const refuse = ({ status, type, message }: AwsRefusal) => {
    refusals.push(message);
    return new Response(JSON.stringify({ message }), {
      status,
      headers: {
        'content-type': 'application/json',
        'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/com.amazon.coral.service/`,
        date: new Date(now()).toUTCString(),
      },
    });
  };

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      const bytes = new Uint8Array(await request.arrayBuffer());
      const raw = { method: request.method, url: request.url, headers, body: bytes };
      if (url.pathname === '/') return answerSts(raw);
      const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
      const wrong =
        token === undefined
          ? awsRefusal(raw, keys, region, 'bedrock', now())
          : bearer.includes(token)
            ? undefined
            : {
                status: 403,
                type: 'AccessDeniedException',
                message: 'Authentication failed: Please make sure your API Key is valid.',
              };
      if (wrong !== undefined) return refuse(wrong);
      return invoke(url.pathname, headers, bytes);
    },
  });

  async function invoke(path: string, headers: Record<string, string>, bytes: Uint8Array) {
    const invalid = (message: string) =>
      refuse({ status: 400, type: 'ValidationException', message });
    const [, id, method] = MODEL.exec(path) ?? [];
    if (id === undefined) {
      return refuse({ status: 404, type: 'UnknownOperationException', message: 'not found' });
    }
    const model = decodeURIComponent(id);
    let text = new TextDecoder().decode(bytes);
    if (method === 'count-tokens') {
      const { input } = JSON.parse(text) as { input: { invokeModel: { body: string } } };
      text = Buffer.from(input.invokeModel.body, 'base64').toString();
      if (/^[a-z-]+\.anthropic/.test(model)) {
        return invalid('The provided model identifier is invalid.');
      }
    }
    const body = JSON.parse(text) as Record<string, unknown>;
    requests.push({ path, headers, body });
    if (!/anthropic\.claude|^arn:aws:bedrock:/.test(model)) {
      return invalid('The provided model identifier is invalid.');
    }
    if ('model' in body || 'stream' in body) {
      const name = 'model' in body ? 'model' : 'stream';
      return invalid(`${name}: Extra inputs are not permitted`);
    }
    if (body.anthropic_version !== 'bedrock-2023-05-31') {
      return invalid('anthropic_version: Field required');
    }
    const { anthropic_version: _, anthropic_beta: betas, ...rest } = body;
    if (betas !== undefined && !(Array.isArray(betas) && betas.every((beta) => BETAS.has(beta)))) {
      return invalid('The model returned the following errors: invalid beta flag');
    }
    const stream = method === 'invoke-with-response-stream';
    const path1 = method === 'count-tokens' ? '/v1/messages/count_tokens' : '/v1/messages';
    if (method === 'count-tokens') delete (rest as Record<string, unknown>).max_tokens;
    const answer = await fetch(vendor.origin + path1, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': 'sk-inside',
        'anthropic-version': '2023-06-01',
        ...(Array.isArray(betas) && { 'anthropic-beta': betas.join(',') }),
      },
      body: JSON.stringify({ model, ...rest, ...(stream && { stream }) }),
    });
    if (!answer.ok) {
      const failed = (await answer.json()) as { error: { message: string } };
      const type = TYPES[answer.status] ?? 'InternalServerException';
      return refuse({ status: answer.status, type, message: failed.error.message });
    }
    if (method === 'count-tokens') {
      const { input_tokens } = (await answer.json()) as { input_tokens: number };
      return Response.json({ inputTokens: input_tokens });
    }
    if (!stream)
      return new Response(await answer.text(), { headers: { 'content-type': 'application/json' } });
    const exception = failing;
    failing = undefined;
    return new Response(binary(answer.body!, exception), {
      headers: { 'content-type': 'application/vnd.amazon.eventstream' },
    });
  }

  /** Server-sent events as messages; pings stay away, as at Bedrock. */
  async function* binary(
    body: ReadableStream<Uint8Array>,
    exception: typeof failing,
  ): AsyncGenerator<Uint8Array> {
    let text = '';
    let sent = 0;
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      const frames = text.split('\n\n');
      text = frames.pop()!;
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        if (data === undefined || data.includes('"type":"ping"')) continue;
        if (exception !== undefined && sent >= exception.after) {
          yield exceptionMessage(exception.type, exception.message);
          return;
        }
        sent++;
        yield chunkMessage(data);
      }
    }
  }

  function answerSts(raw: Parameters<typeof awsRefusal>[0]): Response {
    const asked = new URLSearchParams(new TextDecoder().decode(raw.body));
    sts.push(asked);
    const fail = (status: number, code: string, message: string) => {
      refusals.push(message);
      return new Response(
        `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>r1</RequestId></ErrorResponse>`,
        { status, headers: { 'content-type': 'text/xml' } },
      );
    };
    const action = asked.get('Action');
    const role = roles[asked.get('RoleArn') ?? ''];
    if (action === 'AssumeRole') {
      const wrong = awsRefusal(raw, keys, region, 'sts', now());
      if (wrong !== undefined) return fail(403, 'SignatureDoesNotMatch', wrong.message);
    } else if (!identities.includes(asked.get('WebIdentityToken') ?? '')) {
      return fail(
        400,
        'InvalidIdentityToken',
        "Couldn't retrieve verification key from your identity provider",
      );
    }
    if (role === undefined) {
      return fail(403, 'AccessDenied', `User is not authorized to perform: sts:${action}`);
    }
    keys[role.id] = role;
    const expires = new Date(role.expires ?? now() + 3_600_000).toISOString();
    return new Response(
      `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><AssumedRoleUser><AssumedRoleId>A:s</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/r/s</Arn></AssumedRoleUser><Credentials><AccessKeyId>${role.id}</AccessKeyId><SecretAccessKey>${role.secretAccessKey}</SecretAccessKey><SessionToken>${role.sessionToken ?? ''}</SessionToken><Expiration>${expires}</Expiration></Credentials></${action}Result><ResponseMetadata><RequestId>r1</RequestId></ResponseMetadata></${action}Response>`,
      { headers: { 'content-type': 'text/xml' } },
    );
  }

  return {
    origin: `http://127.0.0.1:${server.port}`,
    requests,
    sts,
    refusals,
    keys,
    fail: (type, message, after) => {
      failing = { type, message, after };
    },
    stop: () => server.stop(true),
  };
}
