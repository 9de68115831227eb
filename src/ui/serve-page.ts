/** Serves the page under `/ui`. It needs no key: all data comes from the API, of which the page may bring the first answers along. */

import { policyHash, sha256Hex } from '../lib/text/sha256.ts';

/** Headers of every answer under `/ui`: no frames, no forms, nothing that is loaded. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

interface Page {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

let loaded: Promise<Page> | undefined;

async function load(): Promise<Page> {
  const { PAGE } = await import('./bundled-page.ts');
  // Only the script and the style sheet that the page brings, and no way to turn text into markup (trusted types),
  // whatever a sample holds.
  const policy = [
    SAFE_HEADERS['content-security-policy'],
    `script-src ${policyHash(textOf(PAGE, 'script'))}`,
    `style-src ${policyHash(textOf(PAGE, 'style'))}`,
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  const headers = {
    ...SAFE_HEADERS,
    'content-security-policy': policy,
    'content-type': 'text/html; charset=utf-8',
    // Revalidated each time, so that a new version of the program shows at once.
    'cache-control': 'no-cache',
    etag: `"${sha256Hex(PAGE).slice(0, 22)}"`,
  };
  return { html: PAGE, headers };
}

/** The text of the one element of this name. */
function textOf(html: string, name: 'script' | 'style'): string {
  const start = html.indexOf('>', html.indexOf(`<${name}`)) + 1;
  return html.slice(start, html.indexOf(`</${name}>`, start));
}

/**
 * The page for `/ui` and `/ui/`; undefined for any other path. Nothing is read from disk.
 * @param first JSON that the page needs first; undefined where it has to ask for it with a key
 */
export async function servePage(
  request: Request,
  first: () => Promise<string | undefined>,
): Promise<Response | undefined> {
  const { pathname } = new URL(request.url);
  if (pathname !== '/ui' && pathname !== '/ui/') return undefined;
  loaded ??= load();
  // Bundling can fail while the source is edited: the next request tries again.
  loaded.catch(() => {
    loaded = undefined;
  });
  const { html, headers } = await loaded;
  const data = await first();
  if (data !== undefined) {
    // These four stand in texts alone, where JSON has another form for them: nothing looks like markup.
    const text = data.replace(/[<>&=]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
    const end = html.lastIndexOf('</body>');
    const body = `${html.slice(0, end)}<template id="first">${text}</template>${html.slice(end)}`;
    const { etag: _, ...rest } = headers;
    return new Response(body, { headers: { ...rest, 'cache-control': 'no-store' } });
  }
  if (request.headers.get('if-none-match') === headers.etag) {
    return new Response(null, { status: 304, headers });
  }
  return new Response(html, { headers });
}
