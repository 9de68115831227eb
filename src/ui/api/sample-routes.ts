/** `/ui/api/samples…`: the list of exchanges, one exchange, and what is read from its bodies. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { publicOrigin } from '../../lib/http/client-address.ts';
import { json, jsonInSlices, plain } from './answers.ts';
import {
  CONVERSATION_QUERY,
  conversationOf,
  EVENTS_QUERY,
  eventsView,
  RAW_QUERY,
  rawBody,
} from './bodies/body-views.ts';
import { curlLine } from './bodies/curl.ts';
import { diffOf } from './bodies/diff-view.ts';
import type { ApiContext } from './context.ts';
import { guard } from './guard.ts';
import { LIST_QUERY, samplesPage } from './list.ts';
import { queryOf } from './parameters.ts';
import { detailOf } from './sample.ts';

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
