/** `GET /`: the name, the version, and what can be asked for. */

import { Elysia } from 'elysia';
import { KNOWN_ENDPOINTS } from './endpoints.ts';
import { json } from './json.ts';

export function aboutPlugin({ version }: { readonly version: string }) {
  return new Elysia({ name: 'about' })
    .head('/', () => new Response(null))
    .get('/', () => json({ name: 'hopgate', version, endpoints: KNOWN_ENDPOINTS }));
}
