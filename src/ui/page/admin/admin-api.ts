/** The calls of the admin API that the page makes, with the admin key of this tab. */

import { type Ask, adminKey, Refused, send } from '../kit/fetching.ts';

/** Why the admin API cannot be used: it wants a key, refused the one that was sent, or is switched off. */
export interface Closed {
  readonly why: 'missing' | 'refused' | 'off';
  readonly message: string;
}

let onClosed: (closed: Closed) => void = () => {};

/** Called when a request is refused for its key, or because the admin API is off. */
export function whenClosed(handler: (closed: Closed) => void): void {
  onClosed = handler;
}

/** @throws Refused; AbortError when the signal ends it */
export async function admin(path: string, options: Ask = {}): Promise<Response> {
  const sent = adminKey.get();
  try {
    return await send(`/admin/v1${path}`, sent, options);
  } catch (thrown) {
    if (thrown instanceof Refused) {
      // Meanwhile the user has entered another key.
      if (adminKey.get() !== sent) return admin(path, options);
      const { status, code, message } = thrown;
      if (code === 'admin_off') onClosed({ why: 'off', message });
      else if (status === 401) onClosed({ why: sent === '' ? 'missing' : 'refused', message });
      else if (code === 'not_an_admin_key') onClosed({ why: 'refused', message });
    }
    throw thrown;
  }
}

/** @throws Refused */
export async function adminJson<T>(path: string, options?: Ask): Promise<T> {
  return (await (await admin(path, options)).json()) as T;
}
