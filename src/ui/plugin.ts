import { Elysia } from 'elysia';
import type { Ui } from './index.ts';

/** `/ui` and everything under it. `ui` reads bodies itself, bounded. */
export function uiPlugin(ui: Pick<Ui, 'answer'>) {
  const answer = ({ request }: { request: Request }) => ui.answer(request);
  return new Elysia({ name: 'ui', seed: ui })
    .get('/ui', answer)
    .get('/ui/*', answer)
    .post('/ui/*', answer, { parse: 'none' })
    .delete('/ui/*', answer, { parse: 'none' });
}
