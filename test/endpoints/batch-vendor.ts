/** A vendor of files and batches for tests, as the documents of both APIs have it: each of its keys sees its own objects alone. */

interface Kept {
  readonly account: string;
  readonly object: Record<string, unknown>;
  readonly content: string;
}

export interface BatchVendor {
  readonly url: string;
  /** Method, path and key of each request. */
  readonly asked: string[];
  /** The requests of each batch, as they came. */
  readonly requests: Record<string, unknown>[][];
  /** All batches end. `answer`: of one request; undefined: it fails. */
  end(answer: (params: { readonly model: string }) => object | undefined): void;
  /** The next results break off in their middle. */
  cutNext(): void;
  /** What is made is answered when the function that this returns is called. */
  hold(): () => void;
  stop(): Promise<void>;
}

/** @param lacks paths that it does not know */
export function startBatchVendor(api: 'openai' | 'anthropic', lacks = /^$/): BatchVendor {
  const kept = new Map<string, Kept>();
  const asked: string[] = [];
  const requests: Record<string, unknown>[][] = [];
  let count = 0;
  let cuts = false;
  let held: Promise<void> | undefined;
  const put = (account: string, id: string, object: Record<string, unknown>, content = '') => {
    kept.set(id, { account, object: { id, ...object }, content });
    return kept.get(id)!.object;
  };
  const error = (status: number, message: string) =>
    api === 'openai'
      ? Response.json({ error: { message, type: 'invalid_request_error', code: null } }, { status })
      : Response.json({ type: 'error', error: { type: 'not_found_error', message } }, { status });

  const openai = async (request: Request, path: string, account: string): Promise<Response> => {
    if (path === '/v1/files' && request.method === 'POST') {
      const form = await request.formData();
      const file = form.get('file') as File;
      const purpose = String(form.get('purpose'));
      if ([...form.keys()].some((key) => !['file', 'purpose', 'expires_after'].includes(key))) {
        return error(400, 'Unknown parameter.');
      }
      const about = {
        object: 'file',
        bytes: file.size,
        created_at: 1,
        filename: file.name,
        purpose,
      };
      return Response.json(put(account, `file-${++count}`, about, await file.text()));
    }
    if (path === '/v1/batches' && request.method === 'POST') {
      const body = (await request.json()) as Record<string, string>;
      const file = kept.get(body.input_file_id!);
      if (file?.account !== account) return error(400, `No such File: ${body.input_file_id}`);
      const lines = file.content.trim().split('\n');
      requests.push(lines.map((line) => JSON.parse(line)));
      const about = {
        object: 'batch',
        endpoint: body.endpoint,
        input_file_id: body.input_file_id,
        status: 'in_progress',
        output_file_id: null,
        error_file_id: null,
      };
      return Response.json(put(account, `batch_${++count}`, about));
    }
    const [, id = '', what] = /^\/v1\/(?:files|batches)\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
    const one = kept.get(id);
    if (one?.account !== account) return error(404, `No such object: ${id}`);
    if (what === 'content') return results(one.content, 'application/octet-stream');
    if (what === 'cancel') one.object.status = 'cancelling';
    if (request.method === 'DELETE') {
      kept.delete(id);
      return Response.json({ id, object: 'file', deleted: true });
    }
    return Response.json(one.object);
  };

  const anthropic = async (request: Request, path: string, account: string): Promise<Response> => {
    const version = request.headers.get('anthropic-version') ?? '';
    if (!/^20\d\d-\d\d-\d\d$/.test(version)) return error(400, 'Version?');
    if (path.startsWith('/v1/files')) {
      const betas = request.headers.get('anthropic-beta') ?? '';
      // From this version on files need no flag.
      if (version < '2026-10-21' && !betas.includes('files-api-2025-04-14')) {
        return error(404, 'Not found');
      }
      if (request.method === 'POST') {
        const file = (await request.formData()).get('file') as File;
        const about = { type: 'file', filename: file.name, size_bytes: file.size };
        return Response.json(put(account, `file_${++count}`, about, await file.text()));
      }
    }
    if (path === '/v1/messages/batches' && request.method === 'POST') {
      const body = (await request.json()) as { requests: Record<string, unknown>[] };
      requests.push(body.requests);
      const about = {
        type: 'message_batch',
        processing_status: 'in_progress',
        request_counts: { processing: body.requests.length, succeeded: 0 },
        results_url: null,
      };
      return Response.json(put(account, `msgbatch_${++count}`, about));
    }
    const [, id = '', what] =
      /^\/v1\/(?:files|messages\/batches)\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
    const one = kept.get(id);
    if (one?.account !== account) return error(404, 'Not found');
    if (what === 'results') return results(one.content, 'application/x-jsonl');
    if (what === 'content') return results(one.content, 'text/html');
    if (what === 'cancel') one.object.processing_status = 'canceling';
    if (request.method === 'DELETE') {
      kept.delete(id);
      return Response.json({ id, type: 'message_batch_deleted' });
    }
    return Response.json(one.object);
  };

  const results = (content: string, type: string) => {
    if (!cuts) return new Response(content, { headers: { 'content-type': type } });
    cuts = false;
    const stream = new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode(content.slice(0, content.length / 2)));
        await Bun.sleep(20);
        controller.error(new Error('cut'));
      },
    });
    return new Response(stream, { headers: { 'content-type': type } });
  };

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const account = request.headers.get('x-api-key') ?? request.headers.get('authorization')!;
      asked.push(`${request.method} ${pathname} ${account.replace('Bearer ', '')}`);
      if (lacks.test(pathname)) return new Response('Not Found', { status: 404 });
      const answer = await (api === 'openai' ? openai : anthropic)(request, pathname, account);
      if (request.method === 'POST') await held;
      return answer;
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}${api === 'openai' ? '/v1' : ''}`,
    asked,
    requests,
    end(answer) {
      for (const { object, account } of [...kept.values()]) {
        const number = requests.length;
        const all = requests[number - 1] ?? [];
        const lines = all.flatMap((one): object[] => {
          const params = (one.params ?? one.body) as { readonly model: string };
          const given = answer(params);
          if (api === 'openai') {
            const response = { status_code: 200, request_id: 'r', body: given };
            return given === undefined ? [] : [{ custom_id: one.custom_id, response, error: null }];
          }
          const result =
            given === undefined ? { type: 'errored' } : { type: 'succeeded', message: given };
          return [{ custom_id: one.custom_id, result }];
        });
        const content = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
        if (object.object === 'batch') {
          const id = `file-out-${++count}`;
          object.status = 'completed';
          object.output_file_id = content === '' ? null : id;
          if (content !== '')
            put(account, id, { object: 'file', purpose: 'batch_output' }, content);
        } else if (object.type === 'message_batch') {
          object.processing_status = 'ended';
          object.results_url = `https://api.anthropic.com/v1/messages/batches/${object.id}/results`;
          object.request_counts = {
            processing: 0,
            succeeded: all.filter((one) => answer(one.params as never) !== undefined).length,
          };
          kept.set(object.id as string, { account, object, content });
        }
      }
    },
    cutNext() {
      cuts = true;
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return () => {
        held = undefined;
        resolve();
      };
    },
    stop: () => server.stop(true),
  };
}
