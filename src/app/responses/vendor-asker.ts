/** Asks the vendor that keeps a response about it, and gives its answer on without this gateway's credentials. */

import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { decoded } from '../../gateway/response-body.ts';
import { forwardedHeaders, ownHeaders } from '../../gateway/response-headers.ts';
import { ErrorMask } from '../../gateway/stream/mask-errors.ts';
import type { Exchange } from '../../gateway/types.ts';
import { nativeHeaders } from '../../lib/http/native-headers.ts';
import { isObject, tryParse } from '../../lib/json/json.ts';
import { Abort } from '../../lib/loop/abort.ts';
import { maskLiterals } from '../../lib/text/secret-literals.ts';
import { isRedirect } from '../../upstream/classify.ts';
import { readFirst, type UpstreamAnswer } from '../../upstream/transport.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import { aboutOurKey, maskedError } from '../../upstream/vendor-error.ts';

export interface VendorAskerOptions {
  /** The provider of this name, under the configuration in force. */
  readonly upstream: (provider: string) => Upstream | undefined;
  /** What no answer of a vendor may show: every spelling of every credential of the configuration in force. */
  readonly secrets: () => readonly string[];
}

/**
 * The vendor's answer about a response that it keeps; undefined where it has (or there is) none.
 * @param provider '' where no vendor keeps it
 * @param path behind `/responses/`
 * @throws GatewayError where the vendor refuses the gateway's key, redirects, or gives an error that is no JSON
 */
type AskVendor = (
  exchange: Exchange,
  provider: string,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
) => Promise<Response | undefined>;

// A response of the largest answer that is read at all fits into it.
const MAX_BYTES = 64 * 1024 * 1024;

export function vendorAsker({ upstream, secrets }: VendorAskerOptions): AskVendor {
  return async (exchange, provider, method, path) => {
    const vendor = provider === '' ? undefined : upstream(provider);
    if (vendor === undefined) return undefined;
    const abort = new Abort();
    abort.follow(exchange.signal);
    const sent = await vendor.send({
      path: `/responses/${path}`,
      search: exchange.search,
      method,
      ...(method === 'POST' ? { body: new Uint8Array(0) } : {}),
      clientHeaders: exchange.headers,
      sameProtocol: true,
      stream: new URLSearchParams(exchange.search).get('stream') === 'true',
      abort,
    });
    const over = () => {
      abort.unfollow();
      sent.release();
    };
    try {
      const answer = decoded(sent.answer);
      const literals = secrets();
      const { status } = answer;
      const streams = (answer.headers.get('content-type') ?? '').includes('event-stream');
      if (status === 200 && streams) {
        return answered(exchange, answer, literals, streamOf(answer, literals, over));
      }
      const body = await wholeOf(answer);
      over();
      if (status === 404) return undefined;
      if (isRedirect(status)) {
        throw new GatewayError('upstream', `Provider ${provider} answered with a redirect.`);
      }
      const own = status < 400 ? body : errorText(provider, answer, body, literals);
      return answered(exchange, answer, literals, own);
    } catch (thrown) {
      over();
      throw thrown;
    }
  };
}

/** The vendor's error in its own words. @throws GatewayError as {@link AskVendor} */
function errorText(
  provider: string,
  { status, headers }: UpstreamAnswer,
  body: Uint8Array,
  secrets: readonly string[],
): Uint8Array<ArrayBuffer> {
  const text = maskLiterals(new TextDecoder().decode(body), secrets);
  const meaning = maskedError(openaiResponses.decodeError(status, text, headers), secrets);
  const error = aboutOurKey(provider, meaning);
  if (error !== meaning || !isObject(tryParse(text))) throw error;
  return new TextEncoder().encode(text);
}

function answered(
  exchange: Exchange,
  { status, headers }: UpstreamAnswer,
  secrets: readonly string[],
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>,
) {
  const own = { requestId: exchange.id, target: undefined, notes: undefined };
  const all = ownHeaders(forwardedHeaders(headers, secrets), own);
  return new Response(body, { status, headers: nativeHeaders(all) });
}

async function wholeOf({ body }: UpstreamAnswer): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  await readFirst(body, MAX_BYTES, (chunk) => chunks.push(chunk));
  return Buffer.concat(chunks);
}

/** A stream that the vendor gives again, as it comes; one that breaks off breaks off. */
function streamOf(
  { body }: UpstreamAnswer,
  secrets: readonly string[],
  over: () => void,
): ReadableStream<Uint8Array> {
  const mask = new ErrorMask(secrets);
  return new ReadableStream({
    async pull(controller) {
      try {
        for (;;) {
          const chunks = await body.read();
          const own = chunks?.map((chunk) => mask.push(chunk)) ?? [mask.end()];
          const ready = own.filter((bytes) => bytes !== undefined);
          for (const bytes of ready) controller.enqueue(bytes);
          if (chunks === undefined) break;
          // A reader that waits is not asked again before it got something.
          if (ready.length > 0) return;
        }
        controller.close();
      } catch (thrown) {
        controller.error(thrown);
      }
      over();
    },
    cancel() {
      body.cancel();
      over();
    },
  });
}
