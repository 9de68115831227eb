/** `GET /`: name, version and endpoints as JSON; browsers are redirected to the page. Claude Code's probes are answered here. */

import { Elysia } from 'elysia';
import type { RequestContext } from '../lib/http/routes.ts';
import { KNOWN_ENDPOINTS } from './endpoints.ts';
import { json } from './json.ts';

export function aboutPlugin({ version }: { readonly version: string }) {
  return (
    new Elysia({ name: 'about' })
      .head('/', () => new Response(null))
      // Claude Code asks whether anything is there, older releases at `/`.
      .head('/api/hello', () => new Response(null))
      .get('/api/hello', () => json({ message: 'hello' }))
      .get('/', ({ request }: RequestContext) =>
        // Programs that do not care about the form send no `accept`, or one of everything.
        request.headers.get('accept')?.includes('text/html')
          ? new Response(null, { status: 302, headers: { location: '/ui', vary: 'accept' } })
          : json({ name: 'hopgate', version, endpoints: KNOWN_ENDPOINTS }),
      )
  );
}
