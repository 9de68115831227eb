/** `/ui/api/samples…`: the list of exchanges, one exchange, and what is read from its bodies. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { Config } from '../../config/config.ts';
import { needsKey } from '../../config/sections/auth.ts';
import { publicOrigin } from '../../lib/http/client-address.ts';
import { shellQuoted } from '../../lib/text/quoted-words.ts';
import { stagesToCompare } from '../../samples/replay/compare-stages.ts';
import type { Prices } from '../../samples/replay/cost.ts';
import { costOfExchange, hopsOf } from '../../samples/replay/hops.ts';
import { requestTarget } from '../../samples/replay/send.ts';
import { fromSample, sendableStages } from '../../samples/replay/source.ts';
import { json, jsonInSlices, plain } from './answers.ts';
import {
  CONVERSATION_QUERY,
  conversationOf,
  EVENTS_QUERY,
  eventsView,
  RAW_QUERY,
  rawBody,
} from './bodies/body-views.ts';
import { diffOf } from './bodies/diff-view.ts';
import type { Recorded } from './bodies/said.ts';
import type { ApiContext } from './context.ts';
import { guard } from './guard.ts';
import { LIST_QUERY, priced, samplesPage } from './list.ts';
import type { KeyNames } from './options.ts';
import { queryOf } from './parameters.ts';

export const sampleRoutes = (context: ApiContext) =>
  new Elysia()
    .use(guard(context.options))
    .get(
      '/samples',
      async ({ query, viewer }) => {
        const q = query.q?.trim() ?? '';
        const found = q === '' ? undefined : await context.texts.find(q, viewer.owner);
        const page = await samplesPage(context.store, query, viewer, context.prices, found);
        return json(found === undefined ? page : { ...page, unread: found.unread });
      },
      queryOf(LIST_QUERY),
    )
    .group('/samples/:id', (one) =>
      one
        .resolve(async ({ params, viewer }) => ({
          recorded: await context.recorded(params.id, viewer),
        }))
        .get('', ({ recorded }) => json(detailOf(recorded, context.prices, context.options.keys)))
        .get('/diff', ({ recorded, query }) => jsonInSlices(diffOf(recorded, query)), {
          query: Type.Object({ a: Type.Optional(Type.String()), b: Type.Optional(Type.String()) }),
        })
        .get('/curl', ({ recorded, request }) =>
          plain(curlLine(recorded, context.options.config(), publicOrigin(request))),
        )
        .get(
          '/export',
          ({ recorded: { store, meta }, query }) => {
            const redact = query.redact === '1';
            const name = `${meta.id}${redact ? '-redacted' : ''}.json`;
            const disposition = { 'content-disposition': `attachment; filename="${name}"` };
            return jsonInSlices(store.export(meta, redact), disposition);
          },
          { query: Type.Object({ redact: Type.Optional(Type.String()) }) },
        )
        .get(
          '/edges/:stage',
          ({ recorded, params, query }) => rawBody(recorded, params.stage, query),
          queryOf(RAW_QUERY),
        )
        .get(
          '/edges/:stage/conversation',
          ({ recorded, params, query }) =>
            jsonInSlices(conversationOf(recorded, params.stage, query)),
          queryOf(CONVERSATION_QUERY),
        )
        .get(
          '/edges/:stage/events',
          ({ recorded, params, query }) => jsonInSlices(eventsView(recorded, params.stage, query)),
          queryOf(EVENTS_QUERY),
        ),
    );

/** Its meta, its hops with tokens and costs, and the stages that can be sent again. */
export function detailOf({ store, meta, parts }: Recorded, prices: Prices, keys: KeyNames) {
  const hops = hopsOf(store, meta, prices, parts);
  const [a, b] = stagesToCompare(meta);
  const isThere = (stage: string) => meta.edges.some((one) => one.stage === stage);
  return {
    /** Its cost is that of all hops together. */
    row: { ...priced(store.row(meta), prices, keys), cost: costOfExchange(meta, hops, prices) },
    /** As in the meta file, notes included; `meta.edges` is the whole list of bodies. */
    meta,
    /** All tries for one answer of a model, in order; the last one counted. Bodies by the names of their stages. */
    hops: hops.map(({ tries, ...hop }) => ({
      ...hop,
      tries: tries.map(({ request, response, ...one }) => ({
        ...one,
        request: request?.stage,
        response: response?.stage,
      })),
    })),
    /** The pair of stages that a diff shows first; null when a body of it is missing. */
    diff: isThere(a) && isThere(b) ? { a, b } : null,
    /** Stages that can be replayed or bisected. */
    sendable: sendableStages(meta),
  };
}

const STAGE = 'client-request';

/** A body up to this size is part of the command line. */
const INLINE = 64 * 1024;

/** A POSIX shell takes everything between these quotes literally. */

/**
 * The client's request as a curl command line, with a variable in the place of the key.
 * @param origin of this gateway, as the browser knows it
 * @throws GatewayError not_found when there is no request
 */
function curlLine({ store, meta }: Recorded, config: Config, origin: string): string {
  const { protocol, body, search, headers } = fromSample(store, meta, STAGE);
  const named = Array.from(headers, ([name, value]) => `-H ${shellQuoted(`${name}: ${value}`)}`);
  const file = meta.edges.find(({ stage }) => stage === STAGE)!.file;
  const lines = [
    `curl -sS -N ${shellQuoted(origin + requestTarget(protocol, body, search))}`,
    "-H 'content-type: application/json'",
    ...(needsKey(config.auth) ? ['-H "authorization: Bearer $HOPGATE_KEY"'] : []),
    ...named,
    `--data-binary ${dataOf(body) ?? `@${file}`}`,
  ];
  return `${lines.join(' \\\n  ')}\n`;
}

/** Undefined: it is too large, or no text. */
function dataOf(body: Uint8Array): string | undefined {
  const text = Buffer.from(body).toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(body) && !text.includes('\0');
  return body.length <= INLINE && isText ? shellQuoted(text) : undefined;
}
