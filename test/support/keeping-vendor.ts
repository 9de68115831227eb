/** A Responses vendor that stores its answers: it continues, returns, deletes and cancels them by id. */

import { isObject, type JsonObject } from '../../src/lib/json/json.ts';

export interface KeepingVendor {
  readonly origin: string;
  /** Method, path with query, and body of every request. */
  readonly requests: readonly { readonly line: string; readonly body: JsonObject }[];
  /** Stored responses, by id. */
  readonly stored: ReadonlyMap<string, JsonObject>;
  /** Settles when the reader of a job's stream has left; such a stream says that it is queued, and no more. */
  readonly left: Promise<void>;
  /** Closes streams of jobs after their first events. */
  breakJobs(on: boolean): void;
  /** Refuses every request about a stored response with this status, and repeats the key that came; undefined: no more. */
  refuseById(status: number | undefined): void;
  clear(): void;
  stop(): Promise<void>;
}

const refused = (status: number, message: string, code: string | null = null) =>
  Response.json(
    { error: { message, type: 'invalid_request_error', param: null, code } },
    { status },
  );

/** @param name appears in its ids and texts */
export function startKeepingVendor(name = 'v'): KeepingVendor {
  const requests: { line: string; body: JsonObject }[] = [];
  const stored = new Map<string, JsonObject>();
  const histories = new Map<string, string>();
  const items = new Set<string>();
  let count = 0;
  let breaks = false;
  let refusal: number | undefined;
  const { promise: left, resolve: onLeft } = Promise.withResolvers<void>();

  const frameOf = (type: string, more: JsonObject) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;

  const jobStream = (response: JsonObject, signal: AbortSignal) => {
    signal.addEventListener('abort', () => onLeft());
    const queued = { ...response, status: 'queued', output: [] };
    const text =
      frameOf('response.created', { sequence_number: 0, response: queued }) +
      frameOf('response.queued', { sequence_number: 1, response: queued });
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from(text));
        if (breaks) controller.close();
      },
    });
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
  };

  const sse = (response: JsonObject) => {
    const output = response.output as readonly JsonObject[];
    const running = { ...response, status: 'in_progress', output: [] };
    let text = frameOf('response.created', { response: running });
    output.forEach((item, output_index) => {
      const place = { item_id: item.id ?? null, output_index, content_index: 0 };
      const part = (item.content as readonly JsonObject[])[0]!;
      text += frameOf('response.output_item.added', {
        output_index,
        item: { ...item, content: [] },
      });
      text += frameOf('response.content_part.added', { ...place, part: { ...part, text: '' } });
      text += frameOf('response.output_text.delta', { ...place, delta: part.text ?? '' });
      text += frameOf('response.output_text.done', { ...place, text: part.text ?? '' });
      text += frameOf('response.content_part.done', { ...place, part });
      text += frameOf('response.output_item.done', { output_index, item });
    });
    text += frameOf('response.completed', { response });
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } });
  };

  function create(body: JsonObject, signal: AbortSignal): Response {
    const previous = body.previous_response_id;
    if (typeof previous === 'string' && !stored.has(previous)) {
      return refused(
        400,
        `Previous response with id '${previous}' not found.`,
        'previous_response_not_found',
      );
    }
    for (const item of Array.isArray(body.input) ? body.input : []) {
      if (!isObject(item) || item.type !== 'item_reference') continue;
      if (!items.has(String(item.id))) return refused(404, `Item with id '${item.id}' not found.`);
    }
    const id = `resp_${name}${++count}`;
    const message = `${histories.get(String(previous)) ?? ''}${JSON.stringify(body.input)};`;
    histories.set(id, message);
    const item = {
      id: `msg_${name}${count}`,
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: `${name} heard ${message}`, annotations: [] }],
    };
    items.add(item.id);
    const done = {
      id,
      object: 'response',
      created_at: 1_790_000_000,
      model: String(body.model),
      status: 'completed',
      previous_response_id: previous ?? null,
      output: [item],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    };
    if (body.store !== false) stored.set(id, done);
    if (body.background === true && body.stream === true) return jobStream(done, signal);
    if (body.background === true) return Response.json({ ...done, status: 'queued', output: [] });
    return body.stream === true ? sse(done) : Response.json(done);
  }

  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const url = new URL(request.url);
      const path = url.pathname.replace(/^\/v1/, '');
      const value: unknown =
        request.method === 'POST' ? await request.json().catch(() => ({})) : {};
      const body = isObject(value) ? value : {};
      requests.push({ line: `${request.method} ${path}${url.search}`, body });
      if (path === '/responses') return create(body, request.signal);
      const [, , id = '', more = ''] = path.split('/');
      if (refusal !== undefined) {
        const key = request.headers.get('authorization') ?? '';
        const answer = refused(refusal, `What was wrong: ${key}`, 'some_code');
        answer.headers.set('x-seen', key);
        return answer;
      }
      const response = stored.get(id);
      if (response === undefined) return refused(404, `Response with id '${id}' not found.`);
      if (more === 'cancel') return Response.json({ ...response, status: 'cancelled' });
      if (more === 'input_items') return Response.json({ object: 'list', data: [], from: name });
      if (request.method === 'DELETE') {
        stored.delete(id);
        return Response.json({ id, object: 'response', deleted: true });
      }
      return url.searchParams.get('stream') === 'true' ? sse(response) : Response.json(response);
    },
  });
  return {
    origin: `http://127.0.0.1:${server.port}`,
    requests: requests,
    stored: stored,
    left,
    breakJobs: (on) => {
      breaks = on;
    },
    refuseById: (status) => {
      refusal = status;
    },
    clear: () => {
      requests.length = 0;
    },
    stop: () => server.stop(true),
  };
}
