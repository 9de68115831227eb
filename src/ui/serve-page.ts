/** Serves the files of the page under `/ui`. They need no key: all data comes from the API, of which the page may bring the first answers along. */

import { createHash } from 'node:crypto';

// Only scripts and styles of this server, no frames, no forms, and no way to turn text into markup (trusted
// types), whatever a sample holds.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data: blob:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Headers of every answer under `/ui`. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html',
  js: 'text/javascript',
  css: 'text/css',
  svg: 'image/svg+xml',
};

interface Asset {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

let assets: Promise<ReadonlyMap<string, Asset>> | undefined;

async function load(): Promise<ReadonlyMap<string, Asset>> {
  const { PAGE_FILES } = await import('./page-files.ts');
  return new Map(
    Object.entries(PAGE_FILES).map(([name, body]) => {
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'text/plain';
      const headers = {
        ...SAFE_HEADERS,
        'content-type': `${type}; charset=utf-8`,
        // The page is revalidated each time, so that a new version of the program shows at once; its files
        // are named by their content.
        'cache-control': name.endsWith('.html') ? 'no-cache' : 'max-age=31536000, immutable',
        etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
      };
      return [name, { body, headers }];
    }),
  );
}

/**
 * The page for `/ui` and `/ui/`, and its files for `/ui/NAME`; undefined for any other path. Only names of
 * the bundle exist; nothing is read from disk.
 * @param first JSON that the page needs first; undefined where it has to ask for it with a key
 */
export async function servePage(
  request: Request,
  first: () => Promise<string | undefined>,
): Promise<Response | undefined> {
  const { pathname } = new URL(request.url);
  const name = pathname.replace(/^\/ui\/?/, '') || 'index.html';
  assets ??= load();
  // Bundling can fail while the source is edited: the next request tries again.
  assets.catch(() => {
    assets = undefined;
  });
  const asset = (await assets).get(name);
  if (asset === undefined) return undefined;
  const { body, headers } = asset;
  const data = name === 'index.html' ? await first() : undefined;
  if (data !== undefined) {
    // These four stand in texts alone, where JSON has another form for them: nothing looks like markup.
    const text = data.replace(/[<>&=]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
    const html = body.replace('</body>', () => `<template id="first">${text}</template></body>`);
    const { etag: _, ...rest } = headers;
    return new Response(html, { headers: { ...rest, 'cache-control': 'no-store' } });
  }
  if (request.headers.get('if-none-match') === headers.etag) {
    return new Response(null, { status: 304, headers });
  }
  return new Response(body, { headers });
}
