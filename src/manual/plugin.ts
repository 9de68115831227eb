import { Elysia } from 'elysia';
import { docsPage, missingPage } from './docs-page.ts';

export interface ManualOptions {
  /** Version of the program. */
  readonly version: string;
  /** The answer where there is no page at this path, for programs. A browser gets a page. */
  readonly noPage: (request: Request, pathname: string) => Response;
}

export function manualPlugin({ version, noPage }: ManualOptions) {
  const page = ({ request }: { request: Request }) => {
    const { pathname, searchParams } = new URL(request.url);
    return (
      docsPage(
        pathname,
        searchParams.get('q') ?? undefined,
        version,
        searchParams.get('lang') ?? undefined,
      ) ??
      (request.headers.get('accept')?.includes('text/html')
        ? missingPage(pathname, version)
        : noPage(request, pathname))
    );
  };
  return new Elysia({ name: 'manual' }).get('/docs', page).get('/docs/*', page);
}
