/** The empty list: how to switch on recording, and how to send a first request. */

import type { Info } from '../../api/api.ts';
import { copyButton } from '../kit/copy-dom.ts';
import { h } from '../kit/dom.ts';

const code = (text: string) =>
  h(
    'div',
    { class: 'snippet' },
    h('pre', { tabindex: 0 }, text),
    copyButton('Copy', () => text),
  );

/** Recording is switched off. */
export function recordingOff(): HTMLElement {
  return h(
    'div',
    { class: 'blank' },
    h('h2', null, 'Recording is off'),
    h(
      'p',
      null,
      'Exchanges appear here once the gateway records them. Put this into its configuration:',
    ),
    code('samples:\n  mode: all        # or: errors'),
    h(
      'p',
      null,
      'A running gateway applies this by itself; reload this page afterwards. Samples stay on the gateway’s machine, and credentials are never written. ',
      h('a', { href: '/docs/configuration#samples' }, 'All settings'),
    ),
  );
}

/** Nothing was recorded so far. */
export function firstRequest(info: Info): HTMLElement {
  const first = info.targets.find(({ models }) => models.length > 0)?.models[0];
  const model = first ?? 'demo/echo';
  const body = JSON.stringify({
    model,
    stream: true,
    messages: [{ role: 'user', content: 'Hello!' }],
  });
  const key = info.auth ? ' \\\n  -H "authorization: Bearer $HOPGATE_KEY"' : '';
  const line = `curl -N ${location.origin}/v1/chat/completions \\\n  -H 'content-type: application/json'${key} \\\n  -d '${body}'`;
  const errors = info.samples.mode === 'errors' && info.samples.recent === null;
  return h(
    'div',
    { class: 'blank' },
    h('h2', null, errors ? 'No failures so far' : 'Waiting for the first exchange'),
    h(
      'p',
      null,
      errors
        ? 'Only exchanges that fail are recorded (samples.mode: errors). They appear here at once.'
        : 'Send one, and it appears here at once:',
    ),
    errors &&
      h(
        'p',
        null,
        'To see successful exchanges as well, put this into the configuration. They stay on the gateway’s machine, and credentials are never written:',
      ),
    errors && code('samples:\n  mode: all'),
    errors && h('p', null, 'Then send a request:'),
    code(line),
  );
}
