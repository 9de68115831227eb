/** The empty list: how to switch on recording, and how to send a first request. */

import type { Info } from '../../api/api.ts';
import { CopyButton } from '../kit/copy.tsx';
import { Blank } from '../kit/ui.tsx';

const Snippet = ({ text }: { text: string }) => (
  <div class="snippet">
    <pre tabIndex={0}>{text}</pre>
    <CopyButton read={() => text}>Copy</CopyButton>
  </div>
);

export const RecordingOff = () => (
  <Blank title="Recording is off">
    <p>Exchanges appear here once the gateway records them. Put this into its configuration:</p>
    <Snippet text={'samples:\n  mode: all        # or: errors'} />
    <p>
      A running gateway applies this by itself; reload this page afterwards. Samples stay on the
      gateway’s machine, and credentials are never written.{' '}
      <a href="/docs/configuration#samples">All settings</a>
    </p>
  </Blank>
);

/** Nothing was recorded so far. */
export function FirstRequest({ info }: { info: Info }) {
  const first = info.targets.find(({ models }) => models.length > 0)?.models[0];
  const body = JSON.stringify({
    model: first ?? 'demo/echo',
    stream: true,
    messages: [{ role: 'user', content: 'Hello!' }],
  });
  const key = info.auth ? ' \\\n  -H "authorization: Bearer $HOPGATE_KEY"' : '';
  const line = `curl -N ${location.origin}/v1/chat/completions \\\n  -H 'content-type: application/json'${key} \\\n  -d '${body}'`;
  if (info.samples.mode === 'errors' && info.samples.recent === null) {
    return (
      <Blank title="No failures so far">
        <p>
          Only exchanges that fail are recorded (samples.mode: errors). They appear here at once.
        </p>
        <p>
          To see successful exchanges as well, put this into the configuration. They stay on the
          gateway’s machine, and credentials are never written:
        </p>
        <Snippet text={'samples:\n  mode: all'} />
        <p>Then send a request:</p>
        <Snippet text={line} />
      </Blank>
    );
  }
  return (
    <Blank title="Waiting for the first exchange">
      <p>Send one, and it appears here at once:</p>
      <Snippet text={line} />
    </Blank>
  );
}
